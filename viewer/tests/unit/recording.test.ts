// Recorded runs: what is unfinished, which operations are listed, and what a crowded picture draws.
import { describe, expect, it } from 'vitest';
import { jobsOfMessages } from '../../src/model/activity';
import { bundles, inWindow, stretches, type Span } from '../../src/model/density';
import {
  firstStuck,
  listed,
  mainOperation,
  opsOf,
  summarize,
  type Listing,
} from '../../src/model/operations';
import { parseRecording } from '../../src/model/recording';
import { saidIn } from '../../src/text/said';
import { recordedClock } from '../../src/view/clock';
import { schedule } from '../schedules';

// Two ranks: #1 is whole, #2 hangs; 4 s later the launcher looked.
const hang = {
  ...{ format: 'unisono.trace/1', ranks: 2 },
  ops: {
    ...{ rank: [0, 1, 0, 1], number: [1, 1, 2, 2], collective: Array(4).fill('all_reduce') },
    ...{ algorithm: Array(4).fill('ring'), bytes: [1024, 1024, 4096, 4096] },
    ...{ start_us: [0, 2, 20, 30], end_us: [10, 12, null, null], waiting_us: [3, 4, 0, 0] },
  },
  messages: {
    ...{ op: ['world #1', 'world #2'], from: [0, 0], to: [1, 1], step: [0, 0], bytes: [512, 2048] },
    ...{ start_us: [1, 25], end_us: [5, 50] },
  },
};
const finding = (fields: object) => ({
  ...{ kind: 'deadlock', text: 'x', details: [], waiting: [], waited_s: 0 },
  ...fields,
});

describe('what did not end', () => {
  it('lasts until the last event', () => {
    const recording = parseRecording(hang);
    expect(recording.total).toBe(50);
    const [, second] = summarize(recording);
    expect(second).toMatchObject({ start: 20, end: 50, open: [0, 1], waiting: 25 });
  });

  it('lasts until its process ended, if that is known', () => {
    const recording = parseRecording({ ...hang, until_us: [4e6, 5e6] });
    expect(recording.total).toBe(5e6);
    const [first, second] = summarize(recording);
    expect(first).toMatchObject({ end: 12, waiting: 4 });
    expect(second).toMatchObject({ end: 5e6, waiting: 5e6 - 50 });
    // Once all have ended, later events do not belong to the run.
    const ended = { ...hang.ops, end_us: [10, 12, 60, 61] };
    expect(parseRecording({ ...hang, ops: ended, until_us: [4e6, 5e6] }).total).toBe(61);
    expect(() => parseRecording({ ...hang, until_us: [1] })).toThrow('/until_us: 1 values');
  });

  it('is longer than anything that did end', () => {
    const slow = { ...hang.ops, end_us: [45, 48, null, null], waiting_us: [40, 45, 0, 0] };
    const ops = summarize(parseRecording({ ...hang, ops: slow }));
    expect(ops.map((op) => op.waiting)).toEqual([45, 25]);
    for (const sort of ['time', 'waiting'] as const) {
      expect(listed(ops, { ...ALL, sort, down: true })[0]!.label).toBe('world #2');
    }
  });

  it('may be a receive', () => {
    const transfers = { rank: [1], start_us: [40], end_us: [null] };
    expect(parseRecording({ ...hang, transfers }).unfinished).toHaveLength(3);
  });

  it('is not what a rank has dropped', () => {
    const ops = {
      ...{ rank: [0, 0, 1], number: [1, 2, 2], collective: Array(3).fill('barrier') },
      ...{ bytes: [0, 0, 0], start_us: [0, 5, 5], end_us: [1, 6, 6] },
    };
    const parse = (dropped: number[]) =>
      summarize(parseRecording({ ...hang, messages: undefined, ops, dropped_events: dropped }));
    expect(firstStuck(parse([0, 0]))?.missing).toEqual([1]);
    expect(firstStuck(parse([0, 7]))).toBeUndefined();
  });
});

describe('a document that is wrong', () => {
  const events = { op: [0], kind: ['send'], step: [0], peer: [1], start_us: [0], end_us: [1] };
  it.each([
    [{ ops: undefined, events }, 'there are events of operations, and /ops has no operations'],
    [{ events: { ...events, op: [9] } }, '/events/op/0: 9 is not between 0 and 3'],
    [{ events: { ...events, kind: ['fly'] } }, '/events/kind/0: this is not one of send'],
    [{ ops: { ...hang.ops, rank: [0, 1, 0, 'x'] } }, '/ops/rank/3: this is not a number'],
    [{ ops: { ...hang.ops, bytes: [0, 0, 0, -4] } }, '/ops/bytes/3: -4 is less than 0'],
  ])('is refused in words', (part, words) => {
    expect(() => parseRecording({ ...hang, ...part })).toThrow(words);
  });
});

const ALL: Listing = { words: '', onlyOpen: false, sort: 'start', down: false };

describe('operations', () => {
  const ops = () => summarize(parseRecording(hang));
  const labels = (listing: Partial<Listing>) =>
    listed(ops(), { ...ALL, ...listing }).map((op) => op.label);

  it('are found and ordered', () => {
    expect(labels({})).toEqual(['world #1', 'world #2']);
    expect(labels({ sort: 'bytes', down: true })).toEqual(['world #2', 'world #1']);
    expect(labels({ sort: 'time', down: true })).toEqual(['world #2', 'world #1']);
    expect(labels({ onlyOpen: true })).toEqual(['world #2']);
    expect(labels({ words: 'RING #1' })).toEqual(['world #1']);
    expect(labels({ words: 'bruck' })).toEqual([]);
  });

  it('are what a finding is about', () => {
    const recording = parseRecording({
      ...hang,
      ops: { ...hang.ops, group: ['world', 'world', 'ranks 0,1', 'ranks 0,1'] },
    });
    const byLabel = new Map(summarize(recording).map((op) => [op.label, op]));
    const about = (kind: string, ranks: number[], ops?: string[]) =>
      opsOf({ kind, ranks, ...(ops ? { ops } : {}) }, recording, byLabel).map((op) => op.label);
    expect(about('late', [1], ['world #1'])).toEqual(['world #1']);
    expect(about('late', [1], ['world #9'])).toEqual([]);
    expect(about('gone', [1])).toEqual(['ranks 0,1 #2']);
    expect(about('dropped', [1])).toEqual([]);
  });

  it('that move most are where other views begin, and barriers only without others', () => {
    expect(mainOperation(ops(), () => true)?.bytes).toBe(4096);
    const barriers = ops().map((op) => ({ ...op, bytes: op.bytes === 4096 ? 0 : op.bytes }));
    expect(mainOperation(barriers, () => true)?.bytes).toBe(1024);
    expect(mainOperation(ops(), () => false)).toBeUndefined();
  });

  it('have their times at the steps that send, where a later step adds up', () => {
    const flat = schedule('all_reduce/flat', 2);
    const { step, from, to } = flat.moves;
    const move = [...step.keys()].find((i) => from[i] === 0 && to[i] === 1)!;
    const reduces = [...step.keys()].find((i) => from[i] === to[i] && step[i]! > step[move]!)!;
    const recording = parseRecording({
      ...hang,
      ops: { ...hang.ops, algorithm: Array(4).fill('flat') },
      messages: { ...hang.messages, step: [step[reduces], step[reduces]] },
    });
    const clock = recordedClock(flat, recording, summarize(recording), 'world #2')!;
    expect(clock.label).toBe('world #2');
    expect(clock.spanOf(move)).toMatchObject({ start: 0, end: 25 });
  });
});

describe('findings', () => {
  it('are listed with the worst first', () => {
    const kinds = ['dropped', 'late', 'gone', 'another', 'missing'];
    const findings = kinds.map((kind) => finding({ kind, ranks: [0] }));
    expect(parseRecording({ ...hang, findings }).findings.map(({ kind }) => kind)).toEqual([
      ...['gone', 'late', 'another', 'missing', 'dropped'],
    ]);
  });

  it('are said in the language of the reader, where the recording has it', () => {
    const chinese = { text: 'rank 1 已不存在', details: ['其进程已结束'], next: '' };
    const findings = [finding({ kind: 'gone' }), { ...finding({ kind: 'gone' }), chinese }];
    const recording = parseRecording({
      ...{ ...hang, findings },
      ...{ ended: 'rank 1 was killed', ended_chinese: 'rank 1 被杀死' },
    });
    expect(recording.endedChinese).toBe('rank 1 被杀死');
    const [plain, both] = recording.findings;
    expect(saidIn('zh', plain!)).toMatchObject({ lang: 'en', text: plain!.text });
    expect(saidIn('zh', both!)).toMatchObject({ lang: 'zh', ...chinese });
    expect(saidIn('en', both!)).toMatchObject({ lang: 'en', text: both!.text });
  });
});

describe('a crowded picture', () => {
  const window = { first: 0, span: 100_000, pixels: 1000 };
  // 20,000 messages, one after the other, 5 us each, of four ranks.
  const crowd: Span[] = Array.from({ length: 20_000 }, (_, i) => ({
    ...{ from: i % 4, to: (i + 1) % 4, start: 5 * i, end: 5 * i + 5 },
  }));

  it('leaves nothing out', () => {
    expect(inWindow(crowd, window)).toHaveLength(20_000);
    const lines = bundles(crowd, 4, window, 4000);
    expect(lines.length).toBeLessThanOrEqual(4000);
    expect(lines.reduce((sum, each) => sum + each.count, 0)).toBe(20_000);
    expect(Math.max(...lines.map((each) => each.end))).toBeGreaterThan(99_000);
  });

  it('shows each rank busy from the first pixel to the last, as much as it is', () => {
    for (const doing of ['sends', 'receives'] as const) {
      for (let rank = 0; rank < 4; rank++) {
        const own = stretches(jobsOfMessages(crowd), 4, window).filter(
          (each) => each.rank === rank && each.doing === doing,
        );
        // A quarter of the time: one pixel is 100 us, five turns of each rank.
        expect(own).toEqual([{ rank, doing, begin: 0, end: 1000, level: 1 }]);
      }
    }
  });

  it('shows what is shorter than a pixel, and pauses as pauses', () => {
    const two = [
      { from: 0, to: 1, start: 10_000, end: 10_000 },
      { from: 0, to: 1, start: 50_000, end: 60_000, sent: 55_000 },
    ];
    expect(
      stretches(jobsOfMessages(two), 2, window).filter((each) => each.doing !== 'receives'),
    ).toEqual([
      { rank: 0, doing: 'sends', begin: 100, end: 101, level: 1 },
      { rank: 0, doing: 'sends', begin: 500, end: 550, level: 4 },
      { rank: 1, doing: 'adds', begin: 550, end: 600, level: 4 },
    ]);
  });

  it('stays within its window', () => {
    const part = { first: 50_000, span: 1000, pixels: 500 };
    const shown = inWindow(crowd, part);
    expect(shown.length).toBeGreaterThanOrEqual(200);
    expect(shown.length).toBeLessThanOrEqual(202);
    for (const { begin, end } of stretches(jobsOfMessages(shown), 4, part)) {
      expect(begin).toBeGreaterThanOrEqual(0);
      expect(end).toBeLessThanOrEqual(500);
    }
  });
});
