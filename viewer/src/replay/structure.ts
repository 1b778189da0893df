// Checks the structure: the numbers of a schedule, before its data is followed.
import { chunkUnit, isRooted, needsOutput, reduces } from '../schedule/collective';
import { INPUT, OUTPUT, REDUCE, moveAt, type Move, type Schedule } from '../schedule/types';
import type { Argument, Findings, Mistake } from './finding';

function wrong(findings: Findings, mistake: Mistake, ...given: Argument[]): void {
  const nowhere = { step: -1, rank: -1, chunk: -1, line: 0 };
  findings.add({ kind: 'structure', mistake, ...nowhere, arguments: given });
}

function wrongMove(
  findings: Findings,
  move: Move,
  rank: number,
  mistake: Mistake,
  ...given: Argument[]
): void {
  const { step, chunk, line } = move;
  findings.add({ kind: 'structure', mistake, step, rank, chunk, line, arguments: given });
}

function checkShape(s: Schedule, findings: Findings): void {
  if (s.ranks < 1 || s.chunks < 1 || s.steps < 0) {
    wrong(findings, 'shape', s.ranks, s.chunks, s.steps);
    return;
  }
  if (s.root < 0 || s.root >= s.ranks || (!isRooted(s.collective) && s.root !== 0)) {
    wrong(findings, 'root', s.root, s.ranks);
  }
  const unit = chunkUnit(s.collective, s.ranks);
  if (s.chunks % unit !== 0) {
    wrong(findings, 'chunk_unit', s.chunks, unit);
  }
  if (s.collective === 'barrier' && s.chunks !== 1) {
    wrong(findings, 'barrier_chunks', s.chunks);
  }
}

function checkPhases(s: Schedule, findings: Findings): void {
  let after = 0;
  for (const phase of s.phases) {
    if (phase.firstStep < after || phase.firstStep >= s.steps) {
      wrong(findings, 'phase_order', phase.name, phase.firstStep, s.steps);
    }
    after = phase.firstStep;
  }
}

function checkNumbers(s: Schedule, move: Move, leastStep: number, findings: Findings): boolean {
  const { from, to } = move;
  const isRank = (rank: number) => rank >= 0 && rank < s.ranks;
  if (!isRank(move.from) || !isRank(move.to)) {
    wrongMove(findings, move, -1, 'move_ranks', from, to, s.ranks);
    return false;
  }
  if (move.chunk < 0 || move.chunks < 1 || move.chunks > s.chunks - move.chunk) {
    const range: Argument[] = [move.chunk, move.chunks, s.chunks];
    wrongMove(findings, move, from, 'move_chunks', from, to, ...range);
    return false;
  }
  if (move.step < leastStep || move.step >= s.steps) {
    wrongMove(findings, move, from, 'move_step', from, to, s.steps);
    return false;
  }
  return true;
}

function checkBuffers(s: Schedule, move: Move, findings: Findings): void {
  const { from, to } = move;
  if (move.target === INPUT) {
    wrongMove(findings, move, to, 'writes_input', from, to);
    return;
  }
  if (move.combine === REDUCE && !reduces(s.collective) && s.collective !== 'barrier') {
    wrongMove(findings, move, to, 'cannot_reduce', from, to, s.collective);
  }
  if (move.from === move.to && move.source === move.target) {
    wrongMove(findings, move, to, 'onto_itself', from, to);
  }
  if (move.source !== OUTPUT && move.target !== OUTPUT) return;
  const isThere = (buffer: number, rank: number, chunk: number) => {
    if (buffer === OUTPUT && !needsOutput(s, rank, chunk)) {
      wrongMove(findings, move, rank, 'no_output', chunk);
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
