// The story of overlap and fusion: its bars against sums, and its calls against the model.
import { describe, expect, it } from 'vitest';
import { timing } from '../../src/model/cost';
import {
  backward,
  backwardUs,
  BUCKET_COUNTS,
  endOf,
  enough,
  exposedUs,
  fusion,
  fusionRow,
  LAUNCH_US,
  overlapPlans,
  sweep,
  type Bar,
  type OverlapShape,
} from '../../src/stories/overlap';
import { schedule } from '../schedules';

const NETWORK = { alphaUs: 5, gbPerS: 12.5 };
const SHAPE: OverlapShape = { ranks: 8, billions: 7, tokens: 4096, buckets: 16 };
const us = (collective: string, bytes: number) =>
  timing(schedule(`${collective}/ring`, SHAPE.ranks), bytes, NETWORK).total;

describe('overlap', () => {
  it('takes as long as both together where one waits for the other', () => {
    const bars = backward({ ...SHAPE, buckets: 1 }, us, true);
    const sending = LAUNCH_US + us('all_reduce', 14e9);
    expect(endOf(bars)).toBeCloseTo(backwardUs(SHAPE) + sending, 3);
    expect(exposedUs(bars)).toBeCloseTo(sending, 3);
  });

  it.each(BUCKET_COUNTS)('of %i buckets never sends before it has computed', (buckets) => {
    const bars = backward({ ...SHAPE, buckets }, us, false);
    const laneOf = (lane: Bar['lane']) => bars.filter((bar) => bar.lane === lane);
    const [computed, sent] = [laneOf('compute'), laneOf('network')];
    expect([computed.length, sent.length]).toEqual([buckets, buckets]);
    const wrong = sent.filter(
      (bar, part) =>
        bar.part !== part ||
        bar.start < computed[part]!.end - 1e-9 ||
        (part > 0 && bar.start < sent[part - 1]!.end - 1e-9),
    );
    expect(wrong).toEqual([]);
    // Never less than either of the two, nor more than both.
    const sending = buckets * (LAUNCH_US + us('all_reduce', 14e9 / buckets));
    expect(endOf(bars)).toBeGreaterThanOrEqual(Math.max(backwardUs(SHAPE), sending) * (1 - 1e-9));
    expect(endOf(bars)).toBeLessThanOrEqual((backwardUs(SHAPE) + sending) * (1 + 1e-9));
    const swept = sweep(SHAPE, us).find((each) => each.buckets === buckets)!;
    expect(swept.us).toBe(endOf(bars));
    expect(swept.exposed / backwardUs(SHAPE)).toBeCloseTo(swept.us / backwardUs(SHAPE) - 1, 6);
  });

  it('has a best number of buckets where messages cost', () => {
    const slow = (collective: string, bytes: number) =>
      timing(schedule(`${collective}/ring`, 8), bytes, { alphaUs: 500, gbPerS: 450 }).total;
    const steps = sweep({ ...SHAPE, tokens: 1024 }, slow).map((each) => each.us);
    const best = steps.indexOf(Math.min(...steps));
    expect(best).toBeGreaterThan(0);
    expect(best).toBeLessThan(steps.length - 1);
  });

  it('says from where on more buckets gain nothing', () => {
    // As the story opens: 65536 tokens of a rank, 8 ranks on Ethernet.
    const steps = sweep({ ...SHAPE, tokens: 65536 }, us);
    expect(enough(steps)).toBe(64);
    const at = (buckets: number) => steps.find((each) => each.buckets === buckets)!.us;
    expect(Math.min(...steps.map((each) => each.us))).toBeGreaterThan(0.99 * at(64));
    // A launch of its own makes ten thousands of them slow.
    expect(at(65536)).toBeGreaterThan(1.01 * at(64));
  });

  it('sends the same with and without buckets, and in two halves as in one', () => {
    const plans = overlapPlans(SHAPE);
    const bytes = (id: string) =>
      plans
        .find((each) => each.id === id)!
        .comms!.reduce((sum, each) => sum + each.bytes * each.times, 0);
    expect(bytes('buckets')).toBe(bytes('apart'));
    expect(us('reduce_scatter', 2 ** 26) + us('all_gather', 2 ** 26)).toBeCloseTo(
      us('all_reduce', 2 ** 26),
      6,
    );
  });
});

describe('fusion', () => {
  it('is drawn in two lanes, with the walk where it comes', () => {
    const row = fusionRow(fusion(SHAPE, us, 'between'));
    const [scatter, walk, gather] = row.pieces;
    expect([scatter!.at, walk!.at, walk!.before]).toEqual([0, 0, scatter!.takes]);
    expect(gather!.at).toBe(scatter!.takes);
    expect(row.networkUs + row.memoryUs).toBeCloseTo(row.end, 9);
    expect(row.memoryUs).toBe(walk!.takes);
  });

  it('saves walks through memory and nothing else', () => {
    const computed = (kind: 'apart' | 'fused' | 'between') =>
      fusion(SHAPE, us, kind)
        .filter((bar) => bar.lane === 'compute')
        .reduce((sum, bar) => sum + bar.end - bar.start, 0);
    expect(computed('fused') / computed('apart')).toBeCloseTo(4 / 5);
    expect(computed('between') / computed('fused')).toBeCloseTo(1 / SHAPE.ranks);
    const sent = (kind: 'apart' | 'between') => endOf(fusion(SHAPE, us, kind)) - computed(kind);
    expect(sent('between')).toBeCloseTo(sent('apart'), 6);
  });
});
