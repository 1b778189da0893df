// Operations of a run as groups and bars, and the network that is fitted to them.
import { describe, expect, it } from 'vitest';
import { timing } from '../../src/model/cost';
import { fitPoints, fitRecording } from '../../src/model/fit';
import { groupsOf, quantile } from '../../src/model/op_groups';
import { listed, summarize } from '../../src/model/operations';
import { parseRecording } from '../../src/model/recording';
import { packed } from '../../src/view/bars';
import { columns, oneMissing, type Row } from '../recordings';
import { schedule } from '../schedules';

const ring = schedule('all_reduce/ring', 4);

// Each operation takes as long as the model says, and rank 2 comes 10 us after the others.
function run(sizes: number[], alphaUs: number, gbPerS: number) {
  const ops: Row[] = [];
  let now = 0;
  sizes.forEach((bytes, number) => {
    const { total } = timing(ring, bytes, { alphaUs, gbPerS });
    for (let rank = 0; rank < 4; rank++) {
      const late = rank === 2 ? 10 : 0;
      ops.push({
        ...{ rank, number, group: 'world', collective: 'all_reduce', algorithm: 'ring', bytes },
        ...{ start_us: now + late, end_us: now + 10 + total, waiting_us: 10 - late },
      });
    }
    now += total + 50;
  });
  const names = 'rank number group collective algorithm bytes start_us end_us waiting_us';
  return parseRecording({
    ...{ format: 'unisono.trace/1', ranks: 4, ops: columns(names, ops) },
  });
}

describe('groups', () => {
  it('count calls, and name who came last', () => {
    const recording = run([4096, 4096, 65536, 4096], 5, 10);
    const groups = groupsOf(recording, summarize(recording));
    expect(groups.map(({ bytes, calls }) => [bytes, calls])).toEqual([
      [4096, 3],
      [65536, 1],
    ]);
    const [small] = groups;
    const { total } = timing(ring, 4096, { alphaUs: 5, gbPerS: 10 });
    expect(small!.p50).toBeCloseTo(10 + total);
    expect(small).toMatchObject({ worst: 2, worstCalls: 3, open: 0, group: 'world' });
    const time = 3 * (total + 10) + total;
    expect(small!.waiting).toBeCloseTo(30 / time);
  });

  it('are apart by what the program said that they were for', () => {
    const names = 'rank number group collective bytes start_us end_us label';
    const ops: Row[] = [0, 1, 2, 3].flatMap((number) =>
      [0, 1].map((rank) => ({
        ...{ rank, number, group: 'world', collective: 'all_reduce', bytes: 64 },
        ...{ start_us: 10 * number, end_us: 10 * number + 5 },
        label: number === 3 ? null : `layer 0 ${number === 0 ? 'attention' : 'mlp'}`,
      })),
    );
    const recording = parseRecording({
      ...{ format: 'unisono.trace/1', ranks: 2, ops: columns(names, ops) },
    });
    const groups = groupsOf(recording, summarize(recording));
    expect(groups.map(({ purpose, calls }) => [purpose, calls])).toEqual([
      ['layer 0 mlp', 2],
      ['layer 0 attention', 1],
      ['', 1],
    ]);
    // A recording that does not say how long its ranks waited.
    expect(groups.map(({ waiting }) => waiting)).toEqual([NaN, NaN, NaN]);
    const listing = { words: 'attention', onlyOpen: false, sort: 'start' as const, down: false };
    expect(listed(summarize(recording), listing).map(({ number }) => number)).toEqual([0]);
  });

  it('say what did not end', () => {
    const recording = parseRecording(oneMissing(ring, 1));
    const [only] = groupsOf(recording, summarize(recording));
    expect(only).toMatchObject({ calls: 2, open: 1 });
    expect(groupsOf(parseRecording({ format: 'unisono.trace/1', ranks: 2 }), [])).toEqual([]);
  });

  it('have quantiles of few and of many', () => {
    expect(quantile([], 0.5)).toBeNaN();
    expect(quantile([7], 0.99)).toBe(7);
    expect(quantile([1, 2, 3, 4], 0.5)).toBe(2);
    expect(
      quantile(
        Array.from({ length: 100 }, (_, i) => i + 1),
        0.99,
      ),
    ).toBe(99);
  });
});

describe('the network of a recording', () => {
  it.each([
    [0.5, 3],
    [12, 25],
  ])('is found: %f us and %f GB/s', (alphaUs, gbPerS) => {
    const recording = run([1024, 65536, 2 ** 24], alphaUs, gbPerS);
    const found = fitRecording(recording, summarize(recording), () => ring)!;
    expect(found.alphaUs / alphaUs).toBeCloseTo(1, 1);
    expect(found.gbPerS / gbPerS).toBeCloseTo(1, 1);
    expect(found.shapes).toBe(3);
  });

  it('is none where nothing is known', () => {
    const recording = run([1024], 1, 1);
    expect(fitRecording(recording, summarize(recording), () => undefined)).toBeUndefined();
    expect(fitPoints([])).toBeUndefined();
    expect(fitPoints([{ messages: 6, bytes: 0, us: 12 }])).toEqual({ alphaUs: 2, usPerGb: 0 });
  });
});

describe('bars', () => {
  it('are over the part in view, and narrow ones are one', () => {
    const recording = run([4096, 4096, 2 ** 22], 5, 10);
    const ops = summarize(recording);
    const all = packed(ops, recording.total, 1, 0, 1000);
    expect(all.map(({ op }) => op.number)).toEqual([0, 1, 2]);
    expect(all.at(-1)!.x + all.at(-1)!.wide).toBeCloseTo(1000);
    const right = packed(ops, recording.total, 4, 0.75, 1000);
    expect(right.map(({ op }) => op.number)).toEqual([2]);
    const many = run(
      Array.from({ length: 2000 }, () => 4096),
      5,
      10,
    );
    const dense = packed(summarize(many), many.total, 1, 0, 500);
    expect(dense.length).toBeLessThanOrEqual(500);
    expect(dense.reduce((sum, { count }) => sum + count, 0)).toBe(2000);
  });
});
