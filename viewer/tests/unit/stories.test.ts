import { describe, expect, it } from 'vitest';
import { boxesOf, bubbleOf } from '../../src/pipeline/picture';
import { play } from '../../src/pipeline/play';
import { verify } from '../../src/pipeline/verify';
import {
  bubble,
  comms,
  groupOf,
  kept,
  membersOf,
  pipeline,
  worldSize,
  type LayerShape,
} from '../../src/stories/layer';
import { busiest, imbalance, landed, route, routeCounts, wayOf } from '../../src/stories/moe';

describe('mixture of experts', () => {
  const shape = { ranks: 4, perRank: 2, tokens: 8, k: 2, skew: 0, capacity: 0, replicas: 0 };

  it('sends every token to k different experts and sums with weights of one', () => {
    const { copies, sends } = route(shape);
    expect(copies).toHaveLength(4 * 8 * 2);
    for (let i = 0; i < copies.length; i += 2) {
      expect(copies[i]!.expert).not.toBe(copies[i + 1]!.expert);
      expect(copies[i]!.weight + copies[i + 1]!.weight).toBeCloseTo(1);
    }
    expect(sends.flat().reduce((a, b) => a + b)).toBe(copies.length);
  });

  it('is less even when it is skewed, and drops what does not fit', () => {
    expect(imbalance(route({ ...shape, skew: 1 }))).toBeGreaterThan(imbalance(route(shape)));
    const limited = route({ ...shape, skew: 1, capacity: 1 });
    expect(Math.max(...limited.load)).toBe(8);
    expect(limited.dropped).toBeGreaterThan(0);
    expect(limited.load.reduce((a, b) => a + b) + limited.dropped).toBe(limited.copies.length);
  });

  it('shares what a hot expert has with its replicas, one a rank', () => {
    const hot = { ...shape, skew: 1 };
    let before = Infinity;
    for (const replicas of [0, 1, 2, 4, 9]) {
      const routing = route({ ...hot, replicas });
      const extra = routing.slots.slice(8);
      expect(extra).toHaveLength(Math.min(replicas, 4));
      expect(new Set(extra.map(({ rank }) => rank)).size).toBe(extra.length);
      for (const { expert, rank } of extra) expect(rank).not.toBe(Math.trunc(expert / 2));
      for (const copy of routing.copies) {
        const slot = routing.slots[copy.slot]!;
        expect(slot.expert).toBe(copy.expert);
        const isHere = routing.slots.some((s) => s.expert === copy.expert && s.rank === copy.rank);
        if (isHere) expect(slot.rank).toBe(copy.rank);
      }
      expect(routing.sends.flat().reduce((a, b) => a + b)).toBe(routing.copies.length);
      expect(imbalance(routing)).toBeLessThanOrEqual(before);
      before = imbalance(routing);
    }
    expect(before).toBeLessThan(imbalance(route(hot)));
    // With one rank there is no other one that could have a replica.
    expect(route({ ...hot, ranks: 1, replicas: 2 }).slots).toHaveLength(2);
  });

  it('fills the matrix of ranks while copies fly, and ends with what is sent', () => {
    const routing = route({ ...shape, skew: 1, capacity: 1 });
    const sum = (rows: number[][]) => rows.flat().reduce((a, b) => a + b, 0);
    let before = 0;
    for (let part = 0; part <= 1; part += 0.05) {
      const now = sum(landed(routing, part));
      expect(now).toBeGreaterThanOrEqual(before);
      before = now;
    }
    expect(sum(landed(routing, 0))).toBe(0);
    expect(landed(routing, 1)).toEqual(routing.sends);
    for (const copy of routing.copies) expect(wayOf(routing, copy, 1)).toBe(1);
  });

  it('knows the rank that sends or takes the most', () => {
    const document = {
      format: 'unisono.routing/1',
      counts: [
        [9, 2, 3],
        [1, 0, 0],
        [4, 0, 7],
      ],
    };
    // Rank 0 keeps 9, sends 5 and takes 5.
    expect(busiest(routeCounts(document, 0))).toBe(5);
  });

  it('takes counts from a file, or says what is wrong with them', () => {
    const routing = routeCounts(
      {
        format: 'unisono.routing/1',
        counts: [
          [1, 2],
          [3, 0],
        ],
      },
      0,
    );
    expect(routing.sends).toEqual([
      [1, 2],
      [3, 0],
    ]);
    for (const [counts, words] of [
      [[], '/counts'],
      [[[1], [1]], '/counts/0'],
      [[[1, 2], [1]], '/counts/1'],
      [
        [
          [1, -2],
          [1, 1],
        ],
        '/counts/0/1',
      ],
      ['x', '/counts'],
    ] as const) {
      expect(() => routeCounts({ format: 'unisono.routing/1', counts }, 0)).toThrow(words);
    }
    expect(() => routeCounts({ counts: [[1]] }, 0)).toThrow('unisono.routing/1');
  });
});

const LAYER: LayerShape = {
  ...{ tp: 2, cp: 2, dp: 4, pp: 2, ep: 2, hidden: 1024, kvHeads: 0, sequence: 2048, batch: 1 },
  ...{ sequenceParallel: false, context: 'ring', zero: 0, microBatches: 4, topK: 2 },
};

describe('a layer', () => {
  it('divides the ranks into groups', () => {
    expect(worldSize(LAYER)).toBe(32);
    expect(groupOf(LAYER, 0, 'tp')).toEqual([0, 1]);
    expect(groupOf(LAYER, 0, 'cp')).toEqual([0, 2]);
    expect(groupOf(LAYER, 0, 'dp')).toEqual([0, 4, 8, 12]);
    expect(groupOf(LAYER, 0, 'ep')).toEqual([0, 4]);
    expect(groupOf(LAYER, 9, 'ep')).toEqual([9, 13]);
    expect(groupOf(LAYER, 0, 'pp')).toEqual([0, 16]);
    for (const axis of ['tp', 'cp', 'dp', 'pp', 'ep'] as const) {
      for (let rank = 0; rank < 32; rank++) {
        const group = groupOf(LAYER, rank, axis);
        expect(group).toHaveLength(LAYER[axis]);
        expect(group).toContain(rank);
      }
    }
  });

  it.each([
    { ep: 2, zero: 0 },
    { ep: 4, zero: 3 },
    { ep: 1, zero: 1, cp: 1 },
  ] as const)('knows who takes part: %j', (change) => {
    const shape = { ...LAYER, ...change };
    for (const comm of comms(shape)) {
      for (const rank of [0, 7, worldSize(shape) - 1]) {
        const group = membersOf(shape, rank, comm);
        expect(group, `${comm.where} of ${rank}`).toHaveLength(comm.size);
        expect(group).toContain(rank);
      }
    }
  });

  it('communicates what the literature says', () => {
    const only = (change: Partial<LayerShape>) =>
      comms({ ...LAYER, tp: 1, cp: 1, dp: 1, pp: 1, ep: 1, ...change }).map(
        (each) => `${each.pass} ${each.collective}`,
      );
    expect(only({})).toEqual([]);
    expect(only({ tp: 4 })).toEqual([
      ...Array(2).fill('forward all_reduce'),
      ...Array(2).fill('backward all_reduce'),
    ]);
    expect(only({ tp: 4, sequenceParallel: true }).filter((c) => c.startsWith('forward'))).toEqual([
      ...['forward all_gather', 'forward reduce_scatter'],
      ...['forward all_gather', 'forward reduce_scatter'],
    ]);
    expect(only({ dp: 4 })).toEqual(['step all_reduce']);
    expect(only({ dp: 4, zero: 1 })).toEqual(['step reduce_scatter', 'step all_gather']);
    expect(only({ dp: 4, zero: 3 })).toEqual([
      ...['forward all_gather', 'backward all_gather', 'backward reduce_scatter'],
    ]);
    // ZeRO-2 cannot wait for the last micro-batch with its gradients, ZeRO-1 can.
    expect(only({ dp: 4, zero: 2 })).toEqual(['backward reduce_scatter', 'step all_gather']);
    expect(only({ dp: 2, ep: 2 }).filter((c) => c.includes('all_to_all'))).toHaveLength(4);
    expect(only({ cp: 4, context: 'ulysses' })[0]).toBe('forward all_to_all');
    // The published example: 32 x 2048 tokens of 12288 in 2 bytes.
    const gpt = comms({ ...LAYER, tp: 8, cp: 1, dp: 1, pp: 1, ep: 1, hidden: 12288, batch: 32 });
    expect(gpt[0]!.bytes).toBe(1536 * 2 ** 20);
  });

  it('lists what is communicated in its order, backwards the other way round', () => {
    const where = (change: Partial<LayerShape>, pass: string) =>
      comms({ ...LAYER, pp: 1, dp: 2, ...change })
        .filter((each) => each.pass === pass)
        .map((each) => each.where);
    const dense = { ep: 1, sequenceParallel: true };
    expect(where(dense, 'forward')).toEqual([
      ...['attention_in_sp', 'ring_attention', 'attention_out_sp', 'mlp_in_sp', 'mlp_out_sp'],
    ]);
    expect(where(dense, 'backward')).toEqual([
      ...['mlp_in_back', 'mlp_out_back'],
      ...['attention_in_back', 'ring_back', 'ring_gradients', 'attention_out_back'],
    ]);
    // Experts that are split over ranks give partial sums, as the MLP does.
    expect(where({ ep: 2, cp: 1 }, 'forward')).toEqual([
      ...['attention_out', 'dispatch', 'combine', 'experts_out'],
    ]);
    expect(where({ ep: 2, cp: 1, zero: 3, dp: 4 }, 'backward')).toEqual([
      ...['zero3_weights', 'zero3_experts', 'combine_back', 'dispatch_back', 'experts_back'],
      ...['attention_back', 'gradients_each', 'experts_each'],
    ]);
  });

  it('sends keys and values around the ring, and their gradients home', () => {
    const ring = comms({ ...LAYER, tp: 2, cp: 4, dp: 1, ep: 1 }).filter((c) => c.axis === 'cp');
    expect(ring.map(({ where, times }) => [where, times])).toEqual([
      ...[
        ['ring_attention', 3],
        ['ring_back', 3],
        ['ring_gradients', 4],
      ],
    ]);
    // Keys and values: 2 of 2048/4 tokens, of 1024/2 in 2 bytes.
    expect(new Set(ring.map(({ bytes }) => bytes))).toEqual(new Set([2 * 512 * 512 * 2]));
  });

  it('has pipelines as long as the formula says', () => {
    for (const kind of ['gpipe', '1f1b'] as const) {
      const schedule = pipeline(4, 8, kind);
      const verdict = verify(schedule);
      expect(verdict.findings).toEqual([]);
      const played = play(schedule);
      expect(boxesOf(schedule, played)).toHaveLength(2 * 4 * 8);
      expect(bubbleOf(played)).toBeCloseTo(bubble(4, 8));
      expect(Math.max(...verdict.peakActivations)).toBe(kept(4, 8, kind));
    }
  });
});
