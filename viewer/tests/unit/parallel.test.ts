// The drawn stories move what schedules move, and say the bytes of the layer.
import { describe, expect, it } from 'vitest';
import { check } from '../../src/replay/check';
import { progressAt } from '../../src/stories/beat';
import { exchangeAt, mostSent } from '../../src/stories/exchange';
import { comms } from '../../src/stories/layer';
import { layerShape, tensorPlans, type TensorShape } from '../../src/stories/tensor';
import { schedule } from '../schedules';

const RANKS = [2, 3, 4, 6, 8, 12, 16];

describe('what flies', () => {
  it.each(['all_reduce/ring', 'reduce_scatter/ring', 'all_gather/ring', 'all_to_all/pairwise'])(
    'is what %s moves, and arrives',
    (name) => {
      for (const ranks of RANKS) {
        const of = schedule(name, ranks);
        const replay = check(of).replay!;
        let flown = 0;
        for (let step = 0; step < of.steps; step++) {
          const { flights } = exchangeAt(of, replay, step + 0.5);
          flown += flights.length;
          const after = exchangeAt(of, replay, step + 1);
          for (const { to, chunk, parts } of flights) {
            const cell = after.cells.find((each) => each.rank === to && each.chunk === chunk);
            expect(parts.length).toBeGreaterThan(0);
            expect(cell!.parts).toEqual(expect.arrayContaining(parts));
          }
          expect(exchangeAt(of, replay, step).flights).toEqual([]);
        }
        const moved = [...Array(of.moves.count).keys()]
          .filter((i) => of.moves.from[i] !== of.moves.to[i])
          .reduce((sum, i) => sum + of.moves.chunks[i]!, 0);
        expect(flown).toBe(moved);
      }
    },
  );

  it('ends with every part of the sum on every rank', () => {
    for (const ranks of RANKS) {
      const of = schedule('all_reduce/ring', ranks);
      const { cells } = exchangeAt(of, check(of).replay!, of.steps);
      expect(cells).toHaveLength(ranks * of.chunks);
      expect(cells.every(({ parts }) => parts.length === ranks)).toBe(true);
      expect(mostSent(of) / of.chunks).toBeCloseTo((2 * (ranks - 1)) / ranks);
    }
  });
});

describe('tensor parallelism', () => {
  const shape: TensorShape = {
    ...{ ranks: 4, sequenceParallel: false, hidden: 8192, tokens: 8192, vocabulary: 131072 },
  };

  it.each([false, true])('says the bytes of the layer (sequence parallel: %s)', (sp) => {
    for (const ranks of RANKS) {
      const at = { ...shape, ranks, sequenceParallel: sp };
      const plans = tensorPlans(at);
      const total = (list: { bytes: number; times: number }[]) =>
        list.reduce((sum, each) => sum + each.bytes * each.times, 0);
      const block = plans.find((plan) => plan.id.startsWith('block'))!;
      expect(total(block.comms!)).toBe(total(comms(layerShape(at))));
      const middle = plans.filter(({ id }) => ['gather', 'sum', 'scatter'].includes(id));
      expect(middle.flatMap((plan) => plan.comms!.map((each) => each.collective))).toEqual(
        sp ? ['all_gather', 'reduce_scatter'] : ['all_reduce'],
      );
      for (const plan of middle) expect(plan.comms![0]!.bytes).toBe(2 * 8192 * 8192);
    }
  });

  it('knows how far each step is', () => {
    const plans = tensorPlans(shape);
    expect(progressAt(plans, 1.5, 'cut')).toBe(1);
    expect(progressAt(plans, 1.5, 'columns')).toBe(0.5);
    expect(progressAt(plans, 1.5, 'rows')).toBe(0);
    expect(progressAt(plans, 1.5, 'none')).toBe(0);
  });
});
