// Worlds that follow each other in one recording: shrink() makes "world (2)" of who is left.
import { isObject } from '../schedule/parse';

interface Named {
  rank: number;
  group: string;
}

// "world (2) #17", "ranks 0,1 (2)": 2.
export function worldOf(name: string): number {
  return Number(/ \((\d+)\)/.exec(name)?.[1] ?? 1);
}

// When a rank had left a world behind: what it was in there did not last longer. Infinity: it has not.
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
    if (name === '') return Infinity; // of a send or recv it is not known
    return world < (latest.get(rank) ?? 1) ? (ended.get(world) ?? Infinity) : Infinity;
  };
}
