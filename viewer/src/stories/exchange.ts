// The contents of ranks and the messages between them at a moment of a collective: the real
// schedule and its replay, at a step and a fraction of it. Pure.
import type { Replay } from '../replay/replay';
import { needsOutput, originOf } from '../schedule/collective';
import type { Schedule } from '../schedule/types';

export interface Cell {
  rank: number;
  chunk: number;
  parts: number[]; // the ranks whose data it contains
}

export interface Flight {
  from: number;
  to: number;
  chunk: number;
  parts: number[];
  way: number; // progress, 0 to 1
}

export interface Exchange {
  cells: Cell[]; // without data that was sent and is not needed here any more
  flights: Flight[];
}

function partsOf(schedule: Schedule, chunk: number, counts: Uint8Array | undefined): number[] {
  if (!counts) return [];
  if (counts.length === 1) return counts[0]! > 0 ? [originOf(schedule, chunk)] : [];
  return [...counts].flatMap((count, rank) => (count > 0 ? [rank] : []));
}

// `at` counts steps: 2.5 is the middle of the third step.
export function exchangeAt(schedule: Schedule, replay: Replay, at: number): Exchange {
  const step = Math.max(0, Math.min(schedule.steps, Math.floor(at + 1e-9)));
  const way = Math.min(1, Math.max(0, at - step));
  const cells: Cell[] = [];
  const sent = new Set<number>(); // chunk * ranks + rank
  for (
    let i = 0;
    i < schedule.moves.count && schedule.moves.step[i]! < step + (way > 0 ? 1 : 0);
    i++
  ) {
    const { chunk, chunks, from } = schedule.moves;
    for (let c = chunk[i]!; c < chunk[i]! + chunks[i]!; c++)
      sent.add(c * schedule.ranks + from[i]!);
  }
  for (let rank = 0; rank < schedule.ranks; rank++) {
    for (let chunk = 0; chunk < schedule.chunks; chunk++) {
      const parts = partsOf(schedule, chunk, replay.countsAt(rank, chunk, step));
      if (parts.length === 0) continue;
      const isSpent =
        sent.has(chunk * schedule.ranks + rank) && !needsOutput(schedule, rank, chunk);
      if (!isSpent) cells.push({ rank, chunk, parts });
    }
  }
  const flights: Flight[] = [];
  const { moves } = schedule;
  for (let i = 0; i < moves.count && way > 0; i++) {
    const [from, to] = [moves.from[i]!, moves.to[i]!];
    if (moves.step[i] !== step || from === to) continue;
    for (let chunk = moves.chunk[i]!; chunk < moves.chunk[i]! + moves.chunks[i]!; chunk++) {
      const parts = partsOf(schedule, chunk, replay.sourceCounts(i, chunk));
      flights.push({ from, to, chunk, parts, way });
    }
  }
  return { cells, flights };
}

// Returns the chunks that the busiest rank sends.
export function mostSent({ moves, ranks }: Schedule): number {
  const sent = new Array<number>(ranks).fill(0);
  for (let i = 0; i < moves.count; i++) {
    if (moves.from[i] !== moves.to[i]) sent[moves.from[i]!]! += moves.chunks[i]!;
  }
  return Math.max(0, ...sent);
}
