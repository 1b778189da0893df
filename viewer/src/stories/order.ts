// One sum under two layouts: over a fixed tree, whose additions are the same under each, and in
// rank order, where they differ. Pure; sums are f32.
import type { Plan } from './beat';

export const LEAVES = 8;

// The sum of leaves [first, end): the sum of two such sums, unless it is a leaf.
export interface Sum {
  first: number;
  end: number;
  rank: number; // the rank that adds it from its own terms; -1: its terms are on several ranks
  level: number; // 0: a leaf
  value: number;
  terms?: [Sum, Sum];
}

// Rank r has leaves [L * r / n, L * (r+1) / n), as in even_leaves() of the library.
export function rankOf(leaf: number, ranks: number): number {
  let rank = 0;
  while (Math.floor((LEAVES * (rank + 1)) / ranks) <= leaf) rank++;
  return rank;
}

// Numbers whose sum depends on its order.
export function valueOf(leaf: number): number {
  const mixed = Math.imul(leaf + 1, 0x47852453) >>> 0;
  return Math.fround((mixed / 2 ** 32) * 2 ** (2 * (leaf % 4)) * (-1) ** leaf);
}

function leafOf(leaf: number, ranks: number): Sum {
  const place = { first: leaf, end: leaf + 1, rank: rankOf(leaf, ranks) };
  return { ...place, level: 0, value: valueOf(leaf) };
}

function add(a: Sum, b: Sum): Sum {
  return {
    ...{ first: a.first, end: b.end, rank: a.rank === b.rank ? a.rank : -1, terms: [a, b] },
    ...{ level: Math.max(a.level, b.level) + 1, value: Math.fround(a.value + b.value) },
  };
}

export function treeSum(ranks: number, first = 0, end = LEAVES): Sum {
  if (end - first === 1) return leafOf(first, ranks);
  let half = 1;
  while (2 * half < end - first) half *= 2;
  return add(treeSum(ranks, first, first + half), treeSum(ranks, first + half, end));
}

// Each rank adds its leaves one after the other; then the sums of the ranks are added in the same
// way.
export function chainSum(ranks: number): Sum {
  const sums: Sum[] = [];
  for (let leaf = 0; leaf < LEAVES; leaf++) {
    const next = leafOf(leaf, ranks);
    if (sums.at(-1)?.rank === next.rank) sums.push(add(sums.pop()!, next));
    else sums.push(next);
  }
  return sums.reduce(add);
}

// Returns a sum and all its terms, terms first.
export function sumsOf(sum: Sum): Sum[] {
  return [...(sum.terms ?? []).flatMap(sumsOf), sum];
}

// Formats a sum as "((0+1)+2)".
export function textOf(sum: Sum): string {
  return sum.terms ? `(${sum.terms.map(textOf).join('+')})` : String(sum.first);
}

// Formats the bits of an f32 as eight hexadecimal digits.
export function bitsOf(value: number): string {
  const [bits] = new Uint32Array(new Float32Array([value]).buffer);
  return bits!.toString(16).padStart(8, '0');
}

export function orderPlans(): Plan[] {
  return [
    { id: 'leaves', length: 1 },
    { id: 'own', length: 1.5 },
    { id: 'join', length: 1.5 },
    { id: 'chain', length: 2.5 },
  ];
}
