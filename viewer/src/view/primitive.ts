// The effect of a collective, for any algorithm: for each part of a result, the rank that had it
// before.
import { needsOutput, plainForm } from '../schedule/collective';
import type { Replay } from '../replay/replay';
import { gridOf } from './layout';
import { chunksOf, countsOf } from './scene';

export interface Flight {
  from: number; // rank
  row: number; // the row in which it is drawn before
  slot: number;
  to: number;
  target: number; // the row in which it is drawn afterwards
}

export function flightsOf(replay: Replay): Flight[] {
  const { schedule } = replay;
  const { rows, slots } = gridOf(schedule);
  const { ranks, steps } = schedule;
  const all = Array.from({ length: ranks }, (_, rank) => rank);
  // A block is drawn on its rank, in the row of the other rank.
  if (plainForm(schedule.collective) === 'all_to_all') {
    return all.flatMap((to) => all.map((from) => ({ from, row: to, slot: 0, to, target: from })));
  }
  const flights: Flight[] = [];
  for (let row = 0; row < rows; row++) {
    const before = all.map((rank) => countsOf(replay, rank, row, 0));
    for (const to of all) {
      if (!needsOutput(schedule, to, chunksOf(schedule, row)[0]!)) continue;
      const after = countsOf(replay, to, row, steps);
      for (let slot = 0; slot < slots; slot++) {
        const from = before.findIndex((counts) => counts[slot]! > 0);
        if (after[slot]! > 0 && from >= 0) flights.push({ from, row, slot, to, target: row });
      }
    }
  }
  return flights;
}
