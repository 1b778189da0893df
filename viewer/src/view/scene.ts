// The contents of the stage at a step: strips, moving pieces, arrows. Pure, so that it can be
// tested without a browser.
import type { Finding } from '../replay/finding';
import type { Replay } from '../replay/replay';
import { needsOutput, pairSize, plainForm } from '../schedule/collective';
import type { Schedule } from '../schedule/types';
import { gridOf, placeOf } from './layout';

export interface Strip {
  rank: number;
  row: number;
  counts: Uint8Array; // by slot: how many times the part is included
  whole: boolean; // everything that the rank must have at the end
  missing: boolean; // the schedule has ended, and the result is not complete
  sends: boolean;
}

export interface Piece {
  move: number;
  from: number;
  to: number;
  row: number;
  counts: Uint8Array;
  reduces: boolean;
}

// Returns the chunks of a row: one, or for all_to_all those of every origin.
export function chunksOf(schedule: Schedule, row: number): number[] {
  if (plainForm(schedule.collective) !== 'all_to_all') return [row];
  const parts = pairSize(schedule);
  const chunks: number[] = [];
  for (let origin = 0; origin < schedule.ranks; origin++) {
    for (let part = 0; part < parts; part++) {
      chunks.push((origin * schedule.ranks + row) * parts + part);
    }
  }
  return chunks;
}

// Returns how often each slot is in a rank's copy of a row before step `step`.
export function countsOf(replay: Replay, rank: number, row: number, step: number): Uint8Array {
  const { schedule } = replay;
  const { slots } = gridOf(schedule);
  if (plainForm(schedule.collective) !== 'all_to_all') {
    return replay.countsAt(rank, row, step) ?? new Uint8Array(slots);
  }
  // A slot is filled when all parts of its origin are present.
  const counts = new Uint8Array(slots).fill(255);
  for (const chunk of chunksOf(schedule, row)) {
    const { slot } = placeOf(schedule, chunk);
    counts[slot] = Math.min(counts[slot]!, replay.countsAt(rank, chunk, step)?.[0] ?? 0);
  }
  return counts;
}

export function isWhole(replay: Replay, rank: number, row: number, step: number): boolean {
  return chunksOf(replay.schedule, row).every((chunk) => replay.isWhole(rank, chunk, step));
}

export function strips(replay: Replay, step: number, pieces: Piece[]): Strip[] {
  const { schedule } = replay;
  const { rows } = gridOf(schedule);
  const sending = new Set(pieces.map((piece) => piece.from * rows + piece.row));
  const list: Strip[] = [];
  for (let row = 0; row < rows; row++) {
    const first = chunksOf(schedule, row)[0]!;
    for (let rank = 0; rank < schedule.ranks; rank++) {
      const whole = isWhole(replay, rank, row, step);
      list.push({
        rank,
        row,
        counts: countsOf(replay, rank, row, step),
        whole,
        missing: step >= schedule.steps && !whole && needsOutput(schedule, rank, first),
        sends: sending.has(rank * rows + row),
      });
    }
  }
  return list;
}

// Returns the pieces that move between ranks in a step with the moves [begin, end).
export function piecesOf(replay: Replay, begin: number, end: number): Piece[] {
  const { schedule } = replay;
  const { moves } = schedule;
  const { slots } = gridOf(schedule);
  const isTransposed = plainForm(schedule.collective) === 'all_to_all';
  const pieces: Piece[] = [];
  for (let move = begin; move < end; move++) {
    const from = moves.from[move]!;
    const to = moves.to[move]!;
    if (from === to) continue;
    const byRow = new Map<number, Uint8Array>();
    for (let c = moves.chunk[move]!; c < moves.chunk[move]! + moves.chunks[move]!; c++) {
      const { row, slot } = placeOf(schedule, c);
      const counts = replay.sourceCounts(move, c);
      if (!isTransposed) {
        byRow.set(row, counts ?? new Uint8Array(slots));
        continue;
      }
      const filled = byRow.get(row) ?? new Uint8Array(slots);
      filled[slot] = counts?.[0] ?? 0;
      byRow.set(row, filled);
    }
    for (const [row, counts] of byRow) {
      pieces.push({ move, from, to, row, counts, reduces: moves.combine[move] === 1 });
    }
  }
  return pieces;
}

// Returns how many results are complete before step `step`, and how many are needed.
export function progress(replay: Replay, step: number): { done: number; needed: number } {
  const { schedule } = replay;
  let done = 0;
  let needed = 0;
  for (let chunk = 0; chunk < schedule.chunks; chunk++) {
    for (let rank = 0; rank < schedule.ranks; rank++) {
      if (!needsOutput(schedule, rank, chunk)) continue;
      needed++;
      if (replay.isWhole(rank, chunk, step)) done++;
    }
  }
  return { done, needed };
}

// Returns whether all moves of a step go to the neighbour on one side, including around the end.
export function isRingStep(ranks: number, pieces: Piece[]): boolean {
  if (ranks < 3 || pieces.length === 0) return false;
  const distance = (pieces[0]!.to - pieces[0]!.from + ranks) % ranks;
  return (
    (distance === 1 || distance === ranks - 1) &&
    pieces.every(({ from, to }) => (to - from + ranks) % ranks === distance)
  );
}

// Returns the places (rank, row) of the findings of a step, or of the end.
export function blamed(schedule: Schedule, findings: Finding[], step: number): Set<string> {
  const at = step >= schedule.steps ? -1 : step;
  return new Set(
    findings
      .filter((each) => each.rank >= 0 && each.chunk >= 0 && each.step === at)
      .map((each) => `${each.rank}/${placeOf(schedule, each.chunk).row}`),
  );
}

// Returns the hops of one chunk, in order.
export function trail(schedule: Schedule, row: number) {
  const chunks = new Set(chunksOf(schedule, row));
  const { moves } = schedule;
  const hops: { step: number; from: number; to: number; reduces: boolean }[] = [];
  for (let i = 0; i < moves.count; i++) {
    let hit = false;
    for (let c = moves.chunk[i]!; c < moves.chunk[i]! + moves.chunks[i]! && !hit; c++) {
      hit = chunks.has(c);
    }
    if (hit && moves.from[i] !== moves.to[i]) {
      hops.push({
        step: moves.step[i]!,
        from: moves.from[i]!,
        to: moves.to[i]!,
        reduces: moves.combine[i] === 1,
      });
    }
  }
  return hops;
}
