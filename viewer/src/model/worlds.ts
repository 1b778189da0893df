// Successive worlds of one recording: shrink() makes "world (2)" of the remaining ranks.
import { isObject } from '../schedule/parse';

interface Named {
  rank: number;
  group: string;
}

// "world (2) #17", "ranks 0,1 (2)": 2.
export function worldOf(name: string): number {
  return Number(/ \((\d+)\)/.exec(name)?.[1] ?? 1);
}

// Returns when a rank left a world: its activities in that world end there. Infinity: it has not
// left.
export function leavings(aborts: unknown, ops: Named[]): (rank: number, name: string) => number {
  const ended = new Map<number, number>();
  for (const each of Array.isArray(aborts) ? aborts : []) {
    if (!isObject(each) || typeof each.world !== 'string') continue;
    if (typeof each.at_us === 'number') ended.set(worldOf(each.world), each.at_us);
  }
  const latest = new Map<number, number>();
  for (const { rank, group } of ops) {
    latest.set(rank, Math.max(latest.get(rank) ?? 1, worldOf(group)));
  }
  return (rank, name) => {
    const world = worldOf(name);
    if (name === '') return Infinity; // unknown for a send or recv
    return world < (latest.get(rank) ?? 1) ? (ended.get(world) ?? Infinity) : Infinity;
  };
}
