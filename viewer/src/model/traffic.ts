// The bytes that a schedule moves, independent of the network.
import { bytesOfMoves } from '../schedule/counts';
import type { Schedule } from '../schedule/types';

// Returns the bytes from rank to rank, as [from * ranks + to], of the steps first..last-1.
export function byteMatrix(
  schedule: Schedule,
  bytes: number,
  first = 0,
  last = schedule.steps,
): Float64Array {
  const { moves, ranks } = schedule;
  const matrix = new Float64Array(ranks * ranks);
  const bytesOf = bytesOfMoves(schedule, bytes);
  for (let i = 0; i < moves.count; i++) {
    if (moves.step[i]! < first || moves.step[i]! >= last || moves.from[i] === moves.to[i]) continue;
    matrix[moves.from[i]! * ranks + moves.to[i]!]! += bytesOf(i);
  }
  return matrix;
}

export interface Totals {
  sent: number[]; // by rank
  received: number[];
  most: number; // the most that one rank sends
  total: number;
}

export function totals(schedule: Schedule, bytes: number): Totals {
  const { ranks } = schedule;
  const matrix = byteMatrix(schedule, bytes);
  const sent = new Array<number>(ranks).fill(0);
  const received = new Array<number>(ranks).fill(0);
  let total = 0;
  matrix.forEach((value, at) => {
    sent[Math.trunc(at / ranks)]! += value;
    received[at % ranks]! += value;
    total += value;
  });
  return { sent, received, most: Math.max(0, ...sent), total };
}
