// Structure: the numbers of a schedule, before anything is followed through it.
import { chunkUnit, isRooted, needsOutput, reduces } from '../schedule/collective';
import { INPUT, OUTPUT, REDUCE, moveAt, type Move, type Schedule } from '../schedule/types';
import type { Findings } from './finding';

function wrong(findings: Findings, text: string): void {
  findings.add({ kind: 'structure', step: -1, rank: -1, chunk: -1, line: 0, text });
}

function wrongMove(findings: Findings, move: Move, rank: number, text: string): void {
  const { step, chunk, line } = move;
  findings.add({ kind: 'structure', step, rank, chunk, line, text });
}

function moveText(move: Move): string {
  return `move ${move.from}->${move.to}`;
}

function checkShape(s: Schedule, findings: Findings): void {
  if (s.ranks < 1 || s.chunks < 1 || s.steps < 0) {
    wrong(findings, `shape: ${s.ranks} ranks, ${s.chunks} chunks, ${s.steps} steps`);
    return;
  }
  if (s.root < 0 || s.root >= s.ranks || (!isRooted(s.collective) && s.root !== 0)) {
    wrong(findings, `shape: root ${s.root} of ${s.ranks} ranks`);
  }
  const unit = chunkUnit(s.collective, s.ranks);
  if (s.chunks % unit !== 0) {
    wrong(findings, `shape: ${s.chunks} chunks are no multiple of ${unit}`);
  }
  if (s.collective === 'barrier' && s.chunks !== 1) {
    wrong(findings, `shape: a barrier has 1 chunk, not ${s.chunks}`);
  }
}

function checkPhases(s: Schedule, findings: Findings): void {
  let after = 0;
  for (const phase of s.phases) {
    if (phase.firstStep < after || phase.firstStep >= s.steps) {
      wrong(
        findings,
        `phase ${phase.name}: first step ${phase.firstStep} is out of order or beyond the ` +
          `${s.steps} steps`,
      );
    }
    after = phase.firstStep;
  }
}

function checkNumbers(s: Schedule, move: Move, leastStep: number, findings: Findings): boolean {
  const isRank = (rank: number) => rank >= 0 && rank < s.ranks;
  if (!isRank(move.from) || !isRank(move.to)) {
    wrongMove(findings, move, -1, `${moveText(move)}: there are ${s.ranks} ranks`);
    return false;
  }
  if (move.chunk < 0 || move.chunks < 1 || move.chunks > s.chunks - move.chunk) {
    const text = `${moveText(move)}: chunks ${move.chunk}+${move.chunks} of ${s.chunks}`;
    wrongMove(findings, move, move.from, text);
    return false;
  }
  if (move.step < leastStep || move.step >= s.steps) {
    const text = `${moveText(move)}: step is out of order or beyond the ${s.steps} steps`;
    wrongMove(findings, move, move.from, text);
    return false;
  }
  return true;
}

function checkBuffers(s: Schedule, move: Move, findings: Findings): void {
  if (move.target === INPUT) {
    wrongMove(findings, move, move.to, `${moveText(move)} writes the input`);
    return;
  }
  if (move.combine === REDUCE && !reduces(s.collective) && s.collective !== 'barrier') {
    const text = `${moveText(move)} reduces, but ${s.collective} does not`;
    wrongMove(findings, move, move.to, text);
  }
  if (move.from === move.to && move.source === move.target) {
    wrongMove(findings, move, move.to, `${moveText(move)} moves cells onto themselves`);
  }
  if (move.source !== OUTPUT && move.target !== OUTPUT) return;
  const isThere = (buffer: number, rank: number, chunk: number) => {
    if (buffer === OUTPUT && !needsOutput(s, rank, chunk)) {
      wrongMove(findings, move, rank, `rank ${rank} has no output chunk ${chunk}`);
      return false;
    }
    return true;
  };
  for (let chunk = move.chunk; chunk < move.chunk + move.chunks; chunk++) {
    if (!isThere(move.source, move.from, chunk) || !isThere(move.target, move.to, chunk)) return;
  }
}

export function checkStructure(schedule: Schedule, findings: Findings): void {
  checkShape(schedule, findings);
  if (!findings.empty()) return;
  checkPhases(schedule, findings);
  let step = 0;
  for (let i = 0; i < schedule.moves.count && !findings.full(); i++) {
    const move = moveAt(schedule.moves, i);
    if (!checkNumbers(schedule, move, step, findings)) continue;
    step = move.step;
    checkBuffers(schedule, move, findings);
  }
}
