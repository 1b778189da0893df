// Computes the progress of all ranks in a schedule when one rank stops, and the rank that each then
// waits for. Pure.
import type { Schedule } from '../schedule/types';

export interface Stopped {
  done: number[]; // by rank: steps that it has ended
  waits: number[]; // by rank: the rank that it waits for; -1: none
}

// `rank` takes no part in step `step` and later steps.
export function stopAt(schedule: Schedule, rank: number, step: number): Stopped {
  const { ranks, steps, moves } = schedule;
  const done = new Array<number>(ranks).fill(0);
  const waits = new Array<number>(ranks).fill(-1);
  // A rank ends a step when all ranks that send to it in that step have reached the step.
  const senders = (to: number, at: number) =>
    Array.from({ length: moves.count }, (_, i) => i)
      .filter((i) => moves.step[i] === at && moves.to[i] === to && moves.from[i] !== to)
      .map((i) => moves.from[i]!);
  for (let moved = true; moved;) {
    moved = false;
    for (let each = 0; each < ranks; each++) {
      const limit = each === rank ? Math.min(step, steps) : steps;
      while (done[each]! < limit) {
        const at = done[each]!;
        const late = senders(each, at).find(
          (from) => done[from]! < at || (from === rank && at >= step),
        );
        waits[each] = late ?? -1;
        if (late !== undefined) break;
        done[each] = at + 1;
        moved = true;
      }
    }
  }
  waits[rank] = -1;
  return { done, waits };
}
