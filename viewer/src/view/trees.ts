// The trees through which a schedule's chunks pass: one, or two that share the chunks. Pure.
import { gridOf, placeOf } from './layout';
import { isRooted, plainForm } from '../schedule/collective';
import type { Schedule } from '../schedule/types';

export interface Tree {
  parent: number[]; // by rank; -1: the root
  rows: number[]; // rows of the stage whose chunks pass through this tree
}

const MOST_TREES = 2;

// By chunk and rank: the rank from which it gets the chunk, or for a reduce the rank to which it
// sends its sum; -1: none.
function parentsOf(schedule: Schedule): Int32Array[] {
  const { chunks, ranks, moves } = schedule;
  const isUp =
    isRooted(schedule.collective) && ['reduce', 'gather'].includes(plainForm(schedule.collective));
  const parents = Array.from({ length: chunks }, () => new Int32Array(ranks).fill(-1));
  for (let i = 0; i < moves.count; i++) {
    const [from, to] = [moves.from[i]!, moves.to[i]!];
    if (from === to || (!isUp && moves.combine[i] === 1)) continue;
    for (let c = moves.chunk[i]!; c < moves.chunk[i]! + moves.chunks[i]!; c++) {
      const of = parents[c]!;
      if (isUp) of[from] = to;
      else if (of[to]! < 0) of[to] = from;
    }
  }
  return parents;
}

// Returns whether two chunks can use one tree: no node may have two parents.
function agrees(a: Int32Array, b: Int32Array): boolean {
  return a.every((parent, rank) => parent < 0 || b[rank]! < 0 || parent === b[rank]);
}

export function depthsOf(parent: ArrayLike<number>): number[] | undefined {
  const depths: number[] = [];
  for (let rank = 0; rank < parent.length; rank++) {
    let depth = 0;
    for (let at = rank; parent[at]! >= 0; at = parent[at]!) {
      if (++depth >= parent.length) return undefined; // a cycle
    }
    depths.push(depth);
  }
  return depths;
}

// Empty: the chunks do not pass through one or two trees. A chain is a tree in which no rank has
// two children.
export function treesOf(schedule: Schedule): Tree[] {
  if (schedule.ranks < 3 || plainForm(schedule.collective) === 'all_to_all') return [];
  const groups: { parent: Int32Array; rows: Set<number> }[] = [];
  parentsOf(schedule).forEach((parent, chunk) => {
    if (parent.every((each) => each < 0)) return;
    const { row } = placeOf(schedule, chunk);
    const group = groups.find((each) => agrees(each.parent, parent));
    if (!group) {
      groups.push({ parent: parent.slice(), rows: new Set([row]) });
      return;
    }
    group.rows.add(row);
    parent.forEach((each, rank) => {
      if (each >= 0) group.parent[rank] = each;
    });
  });
  if (groups.length === 0 || groups.length > MOST_TREES) return [];
  const isTree = groups.every(({ parent }) => {
    const roots = parent.filter((each) => each < 0).length;
    return roots === 1 && depthsOf(parent) !== undefined;
  });
  if (!isTree) return [];
  if (groups.length === 1) {
    const all = Array.from({ length: gridOf(schedule).rows }, (_, row) => row);
    return [{ parent: [...groups[0]!.parent], rows: all }];
  }
  return groups.map(({ parent, rows }) => ({ parent: [...parent], rows: [...rows] }));
}

// Returns the children of each rank, in the order in which they are served: the child with the
// longest path below it first.
export function childrenOf(parent: number[]): number[][] {
  const children: number[][] = parent.map(() => []);
  parent.forEach((of, rank) => {
    if (of >= 0) children[of]!.push(rank);
  });
  return children;
}
