import { describe, expect, it } from 'vitest';
import { timing } from '../../src/model/cost';
import { empty } from '../../src/model/recording';
import { tickText } from '../../src/model/units';
import { check } from '../../src/replay/check';
import { lengthOf, modelClock, partOf, recordedClock, timeAt } from '../../src/view/clock';
import { arc } from '../../src/view/arrows';
import { brightness, rankColour } from '../../src/view/colours';
import { HeatSizes } from '../../src/view/heat_sizes';
import { layout, rowY, stripX } from '../../src/view/layout';
import { DEFAULTS, fromHash, parseEdits, parseSettings, TABS, toHash } from '../../src/view/url';
import { narrate } from '../../src/text/narrate';
import { text, TEXTS } from '../../src/text/texts';
import { stepStarts } from '../../src/schedule/types';
import { schedule } from '../schedules';

it('calls each thing by one Chinese word', () => {
  const chinese = Object.values(TEXTS).map(([, each]) => each);
  const old = /散发|规约分发|归约|动手改错|未隐藏|偏斜|轴/;
  expect(chinese.filter((each) => old.test(each))).toEqual([]);
});

describe('layout', () => {
  const ring8 = () => schedule('all_reduce/ring', 8);

  it('shows as much as fits', () => {
    expect(layout(ring8(), 900).detail).toBe('digits');
    expect(layout(ring8(), 360).detail).toBe('strips');
    expect(layout(schedule('all_reduce/ring', 16), 900).detail).toBe('strips');
    expect(layout(schedule('all_reduce/ring', 16), 360).detail).toBe('cells');
    expect(layout(schedule('all_reduce/ring', 64), 900).detail).toBe('heat');
  });

  it.each([300, 360, 900, 1400])('overlaps nothing in %i pixels', (width) => {
    for (const ranks of [2, 3, 8, 16]) {
      const l = layout(schedule('all_reduce/ring', ranks), width);
      expect(l.width).toBeLessThanOrEqual(width + 0.01);
      for (let rank = 1; rank < ranks; rank++) {
        expect(stripX(l, rank)).toBeGreaterThanOrEqual(stripX(l, rank - 1) + l.stripWidth + 3);
      }
      expect(rowY(l, 1) - rowY(l, 0)).toBeGreaterThanOrEqual(l.stripHeight + 10);
      expect(stripX(l, 0)).toBeGreaterThanOrEqual(l.left - 1);
    }
  });

  it('uses the room that few ranks leave', () => {
    const [narrow, wide] = [900, 1400].map((width) =>
      layout(schedule('all_reduce/ring', 4), width),
    );
    expect(narrow!.width).toBeGreaterThan(0.9 * 900);
    expect(wide!.slotWidth).toBeGreaterThan(narrow!.slotWidth);
  });

  it.each([3, 4, 8, 16])('of %i ranks lets no arc begin where another one ends', (ranks) => {
    const l = layout(schedule('all_reduce/ring', ranks), 900);
    const ends = Array.from({ length: ranks }, (_, rank) => arc(l, rank, (rank + 1) % ranks)).map(
      (path) => {
        const points = path.match(/[\d.-]+(?=,)/g)!.map(Number);
        return { begin: points[0]!, end: points.at(-1)! };
      },
    );
    for (const { end } of ends) {
      const gap = Math.min(...ends.map(({ begin }) => Math.abs(begin - end)));
      expect(gap).toBeGreaterThanOrEqual(Math.min(9, 0.14 * l.columnWidth));
    }
  });
});

describe('colours', () => {
  const rgb = (colour: string) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  const light = (colour: string) => brightness(rgb(colour));
  // WCAG's, where 4.5 is what text needs.
  const contrast = (a: string, b: string) => {
    const linear = (part: number) => (part / 255 <= 0.04 ? part / 3294 : (part / 255) ** 2.2);
    const [dark, bright] = [a, b]
      .map((each) => brightness(rgb(each).map(linear)) + 0.05)
      .sort((x, y) => x - y);
    return bright! / dark!;
  };

  it('of filled slots are told from empty ones in greyscale, and carry dark digits', () => {
    for (let rank = 0; rank < 64; rank++) {
      const colour = rankColour(rank);
      expect(colour).toMatch(/^#[0-9a-f]{6}$/);
      expect(light('#e6e8eb') - light(colour), `rank ${rank}, light`).toBeGreaterThan(40);
      expect(light(colour) - light('#32383e'), `rank ${rank}, dark`).toBeGreaterThan(40);
      expect(contrast(colour, '#14171a'), `rank ${rank}, digit`).toBeGreaterThan(4.5);
    }
  });
});

describe('the heat map', () => {
  const big = (name: string, ranks: number) => {
    const replay = check(schedule(name, ranks)).replay!;
    return { replay, l: layout(replay.schedule, 900) };
  };

  it('shares cells beyond 256 ranks', () => {
    const { l } = big('all_gather/ring', 300);
    expect(l).toMatchObject({ perColumn: 4, perRow: 4, columns: 75, rows: 75, detail: 'heat' });
    expect(stripX(l, 3)).toBe(stripX(l, 0));
    expect(stripX(l, 4)).toBeGreaterThan(stripX(l, 3));
  });

  it.each([
    ['all_reduce/ring', 40],
    ['all_to_all/bruck', 40],
    ['reduce_scatter/ring', 264],
  ] as const)('says the same however %s of %i ranks got there', (name, ranks) => {
    const { replay, l } = big(name, ranks);
    const fresh = (step: number) => [...new HeatSizes(replay, l).shares(step)];
    const moved = new HeatSizes(replay, l);
    const { steps } = replay.schedule;
    for (const step of [0, 1, 2, 1, 0, steps, steps - 1, steps, 3]) {
      expect([...moved.shares(step)], `step ${step}`).toEqual(fresh(step));
    }
    const end = moved.shares(steps);
    expect(Math.max(...end)).toBeLessThanOrEqual(1);
    expect(Math.min(...fresh(0))).toBeGreaterThanOrEqual(0);
    if (name === 'all_reduce/ring') expect(end.every((share) => share === 1)).toBe(true);
  });
});

describe('clocks', () => {
  const chain = () => schedule('broadcast/binomial', 8);
  const network = { alphaUs: 5, gbPerS: 12.5 };

  it('of the model end with the last message', () => {
    const one = chain();
    const times = timing(one, 2 ** 20, network);
    const clock = modelClock(one, times);
    expect(clock.ends.at(-1)).toBe(times.total);
    expect(timeAt(clock, one.steps, 0)).toBe(times.total);
    const lengths = Array.from({ length: one.steps }, (_, step) => lengthOf(clock, step));
    expect(lengths.reduce((a, b) => a + b)).toBeCloseTo(one.steps);
    expect(lengthOf(undefined, 0)).toBe(1);
  });

  it('let a move go when it goes', () => {
    const ring = schedule('all_reduce/ring', 4);
    const clock = modelClock(ring, timing(ring, 2 ** 20, network));
    expect(partOf(clock, 0, 0, 0)).toBe(0);
    expect(partOf(clock, 0, 0.5, 0)).toBeCloseTo(0.5);
    expect(partOf(undefined, 0, 0.3, 0)).toBe(0.3);
  });

  it('of a recording are those of its first operation, if it is of this schedule', () => {
    const one = schedule('broadcast/flat', 2);
    const message = { op: 'a', step: 0, from: 0, to: 1, bytes: 8, start: 2, end: 6 };
    const recording = {
      ...{ ...empty(2), title: 'broadcast/flat', total: 9 },
      ...{ messages: [message, { ...message, op: 'b', end: 9 }] },
    };
    const clock = recordedClock(one, recording, [])!;
    expect(clock.ends[0]).toBe(4);
    expect(partOf(clock, 0, 0.25, 0)).toBeCloseTo(0.25);
    expect(recordedClock(one, { ...recording, isSimulated: true }, [])).toBeUndefined();
    expect(recordedClock(one, { ...recording, title: 'reduce/flat' }, [])).toBeUndefined();
    expect(recordedClock(one, { ...recording, ranks: 3 }, [])).toBeUndefined();
  });
});

describe('address', () => {
  it('restores every field', () => {
    const state = {
      ...DEFAULTS,
      ...{
        tab: 'compare' as const,
        collective: 'all_to_all',
        algorithm: 'bruck',
        ranks: 5,
        step: 2,
      },
      ...{
        lang: 'zh' as const,
        theme: 'dark' as const,
        edits: '3x.4t1',
        compare: ['flat', 'pairwise'],
      },
      ...{ bytes: 4096, alphaUs: 0.5, gbPerS: 100, follow: 3, perNode: 2, clock: 500, only: 2 },
      ...{ op: 'ranks 0,2 (2) #17', find: 'ring #1', sort: 'time-', stuck: 1 },
      ...{ reduceGbPerS: 20, base: 'model' as const, zoom: 2.25, from: 120.5, file: 'a b&c.json' },
      bare: 1,
    };
    expect(fromHash(toHash(state))).toEqual(state);
    for (const tab of TABS) expect(fromHash(toHash({ ...DEFAULTS, tab })).tab).toBe(tab);
  });

  it('keeps what it cannot read out', () => {
    const hash =
      '#steps?ranks=-4&step=1.5&lang=xx&edits=<b>&collective=%00&bytes=1e99&compare=..&x=1&base=9&zoom=0&from=-1&file=%00&op=%0a&sort=x&stuck=2';
    expect(fromHash(hash)).toEqual({ ...DEFAULTS, tab: 'steps' });
    expect(fromHash('#nonsense')).toEqual(DEFAULTS);
  });

  it('reads edits and settings', () => {
    expect(parseEdits('0x.7t3')).toEqual([
      { move: 0, drop: true, to: -1 },
      { move: 7, drop: false, to: 3 },
    ]);
    expect(parseSettings('9.2', '1.1.5', [[1, 2], [1, 2], [5]])).toEqual([1, 2, 5]);
  });
});

describe('narration', () => {
  const say = (name: string, ranks: number, step: number, lang: 'en' | 'zh' = 'en') => {
    const one = schedule(name, ranks);
    const starts = stepStarts(one);
    return narrate(lang, one, starts[step]!, starts[step + 1]!);
  };

  it('says what a step does', () => {
    expect(say('all_reduce/ring', 8, 0)).toBe(
      'Each rank sends one chunk to the rank on its right, which adds it to its own.',
    );
    expect(say('all_reduce/ring', 8, 9)).toBe(
      'Each rank sends one chunk to the rank on its right.',
    );
    expect(say('all_reduce/recursive_doubling', 8, 1)).toBe(
      'Pairs of ranks 2 apart exchange one chunk and both add.',
    );
    expect(say('all_to_all/pairwise', 6, 1)).toBe('Ranks exchange one chunk in pairs.');
    // 0 and 3, and 1 and 2, which are not as far apart.
    expect(say('all_to_all/pairwise', 4, 0)).toBe('Ranks exchange one chunk in pairs.');
    expect(say('broadcast/binomial', 4, 0)).toMatch(/^Rank 0 sends one chunk to rank \d\.$/);
    expect(say('all_reduce/ring', 8, 0, 'zh')).toBe(
      '每个 rank 把一个块发给右边的 rank，对方把它累加到自己的数据上。',
    );
  });
});

describe('axes', () => {
  it('say different moments differently', () => {
    expect(tickText(0, 500_000)).toBe('0 µs');
    expect(tickText(1_500_000, 500_000)).toBe('1.5 s');
    const marks = [0, 1, 2, 3].map((k) => tickText(1_686_000 + 200 * k, 200));
    expect(marks).toEqual(['1.686 s', '1.6862 s', '1.6864 s', '1.6866 s']);
    expect(tickText(12.5, 0.5)).toBe('12.5 µs');
  });
});

describe('texts', () => {
  it('have the same values in both languages', () => {
    const values = (text: string) => [...text.matchAll(/\{(\w+)/g)].map(([, name]) => name);
    for (const [key, [en, zh]] of Object.entries(TEXTS)) {
      expect(zh.length, key).toBeGreaterThan(0);
      expect(
        values(zh).filter((v) => !values(en).includes(v)),
        key,
      ).toEqual([]);
    }
  });

  it('say of one what they say of several', () => {
    const waiting = (count: number, list: string) =>
      text('en', 'run_waiting', { count, list, time: '1 s' });
    expect(waiting(1, '0')).toBe('Rank 0 waits for it, for 1 s');
    expect(waiting(2, '0 2')).toBe('Ranks 0 2 wait for it, the longest for 1 s');
    expect(text('en', 'until_all', { steps: 1 })).toBe('the only step');
    expect(text('zh', 'run_whole', { count: 1 })).toBe('唯一的操作已完成，没有 rank 卡住。');
    expect(text('zh', 'run_whole', { count: 2 })).toMatch(/^全部 2 个操作/);
  });
});
