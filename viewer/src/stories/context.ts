// Context parallelism: the sequence is cut, and each rank has the queries, keys and values of its
// part. Pure. The messages are those of the ring's schedule: a block of keys and values moves on,
// and no data accumulates.
import { comms, type LayerShape } from './layer';
import type { Plan } from './beat';

export const METHODS = ['ring', 'zigzag', 'gather'] as const;
export type Method = (typeof METHODS)[number];

export interface ContextShape {
  ranks: number;
  method: Method;
  sequence: number;
  hidden: number;
  kvHeads: number; // 0: as many as query heads
}

export function contextLayer({ ranks, sequence, hidden, kvHeads }: ContextShape): LayerShape {
  return {
    ...{ tp: 1, cp: ranks, dp: 1, pp: 1, ep: 1, hidden, kvHeads, sequence, batch: 1 },
    ...{ sequenceParallel: false, context: 'ring', zero: 0, microBatches: 1, topK: 1 },
  };
}

// Returns which two of 2n parts of the sequence a rank has. Zigzag: an early and a late part.
export function partsOf(rank: number, ranks: number, method: Method): [number, number] {
  return method === 'ring' ? [2 * rank, 2 * rank + 1] : [rank, 2 * ranks - 1 - rank];
}

// Returns the rank whose keys and values a rank has in a step of the ring.
export function blockOf(rank: number, step: number, ranks: number): number {
  return (rank - step + ranks) % ranks;
}

export interface RingMove {
  step: number;
  from: number;
  to: number;
  block: number;
}

// While step s is computed, every rank passes its block on; the last block stays.
export function ringMoves(ranks: number): RingMove[] {
  return Array.from({ length: ranks - 1 }, (_, step) =>
    Array.from({ length: ranks }, (_, from) => ({
      ...{ step, from, to: (from + 1) % ranks, block: blockOf(from, step, ranks) },
    })),
  ).flat();
}

// Returns whether a rank computes with a block: later positions are masked.
export function uses(rank: number, block: number, ranks: number, method: Method): boolean {
  return Math.min(...partsOf(block, ranks, method)) <= Math.max(...partsOf(rank, ranks, method));
}

// Returns the ranks that have added to a block's gradient after this number of hops.
export function givers(block: number, hops: number, ranks: number, method: Method): number[] {
  return Array.from({ length: Math.min(hops + 1, ranks) }, (_, i) => (block + i) % ranks).filter(
    (rank) => uses(rank, block, ranks, method),
  );
}

export interface Tile {
  query: number; // parts of the sequence
  key: number;
  rank: number;
  step: number;
  work: number; // 1: a whole tile; half of a tile on the diagonal is masked
}

// The tiles of causal attention: the rank that computes each, and the step.
export function tiles(ranks: number, method: Method): Tile[] {
  const list: Tile[] = [];
  for (let rank = 0; rank < ranks; rank++) {
    for (let step = 0; step < ranks; step++) {
      const block = partsOf(blockOf(rank, step, ranks), ranks, method);
      for (const query of partsOf(rank, ranks, method)) {
        for (const key of block.filter((each) => each <= query)) {
          list.push({ query, key, rank, step, work: key === query ? 0.5 : 1 });
        }
      }
    }
  }
  return list;
}

// [step][rank], in tiles.
export function work(ranks: number, method: Method): number[][] {
  const table = Array.from({ length: ranks }, () => new Array<number>(ranks).fill(0));
  for (const tile of tiles(ranks, method)) table[tile.step]![tile.rank]! += tile.work;
  return table;
}

// In every step, a ring is as slow as its slowest rank; after all_gather only the total work
// counts.
export function duration(ranks: number, method: Method): number {
  const table = work(ranks, method);
  if (method !== 'gather') return table.reduce((sum, row) => sum + Math.max(...row), 0);
  const sums = table[0]!.map((_, rank) => table.reduce((sum, row) => sum + row[rank]!, 0));
  return Math.max(...sums);
}

export function contextPlans(shape: ContextShape): Plan[] {
  const { ranks, method } = shape;
  const list = comms(contextLayer(shape));
  const of = (where: string) => {
    const { bytes, times } = list.find((each) => each.where === where)!;
    return { collective: 'send_recv', ranks, bytes, times };
  };
  // Bytes of keys and values of all ranks.
  const bytes = (of('ring_attention').bytes * ranks) / 2;
  const gathered = (collective: string) => ({ collective, ranks, bytes, times: 2 });
  if (method === 'gather') {
    return [
      { id: 'cut', length: 1 },
      { id: 'gather', length: 2, comms: [gathered('all_gather')] },
      { id: 'attend', length: 2 },
      { id: 'balance', length: 1 },
      { id: 'back', length: 1.5, comms: [gathered('all_gather'), gathered('reduce_scatter')] },
    ];
  }
  return [
    { id: 'cut', length: 1 },
    { id: 'ring', length: ranks, comms: [of('ring_attention')] },
    { id: 'balance', length: 1 },
    { id: 'back', length: 1.5, comms: [of('ring_back'), of('ring_gradients')] },
  ];
}
