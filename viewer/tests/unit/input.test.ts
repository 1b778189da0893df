import { describe, expect, it } from 'vitest';
import { summarize } from '../../src/model/operations';
import { parseRecording } from '../../src/model/recording';
import { parseJson, parseSchedule } from '../../src/schedule/parse';
import { unpackMoves } from '../../src/schedule/pack';
import { readPageData } from '../../src/view/data';
import { run } from '../program';

const GOOD = JSON.parse(run(['show', 'all_reduce/ring', '-n', '3', '--json']));

function problem(change: Record<string, unknown>): string {
  try {
    parseSchedule({ ...GOOD, ...change });
  } catch (error) {
    return (error as Error).message;
  }
  return '';
}

describe('a schedule from a file', () => {
  it('is read', () => {
    expect(parseSchedule(GOOD).moves.count).toBe(12);
  });

  it.each([
    [{ format: 'unisono.schedule/9' }, '/format: unknown version "unisono.schedule/9"'],
    [{ collective: 'all_redcue' }, '/collective: "all_redcue" is not a collective'],
    [{ ranks: 0 }, '/ranks: 0 is not in 1..4096'],
    [{ ranks: 1e9 }, '/ranks: 1000000000 is not in'],
    [{ ranks: '3' }, '/ranks: no whole number'],
    [{ root: 2 }, '/root: all_reduce has no root'],
    [{ moves: undefined }, '/moves: missing'],
    [{ moves: { ...GOOD.moves, to: [1] } }, '/moves/to: 1 values, but /moves/step has 12'],
    [{ moves: { ...GOOD.moves, to: Array(12).fill(7) } }, '/moves/to/0: 7 is not in 0..2'],
    [{ moves: { ...GOOD.moves, evil: [] } }, '/moves: unknown key "evil"'],
    [{ steps: 2 ** 40 }, '/steps: 1099511627776 is not in'],
    [{ algorithm: 'a\u0000b' }, '/algorithm: no name'],
    [{ __proto__x: 1 }, '/: unknown key'],
  ])('that is wrong is refused in words: %j', (change, message) => {
    expect(problem(change)).toContain(message);
  });

  it.each(['', '{', '[1,2', 'null', '"x"', '42', '[]'])('is not this: %s', (text) => {
    expect(() => parseSchedule(parseJson(text))).toThrow(/not JSON|no object/);
  });
});

describe('page data', () => {
  it('that is broken leaves a page that says so', () => {
    expect(readPageData('{').problem).toBeTruthy();
    expect(readPageData('{"format": "unisono.view/2", "catalogue": []}').problem).toContain(
      'unisono.view/1',
    );
    const page = '{"format": "unisono.view/1", "catalogue": [], "open": "#moe"}';
    expect(readPageData(page).open).toBe('#moe');
    expect(readPageData(undefined).problem).toBe('no data');
  });

  it('does not read past the packed moves', () => {
    expect(() => unpackMoves('gICAgICAgICA')).toThrow();
    expect(() => unpackMoves(btoa('\x05\x00'))).toThrow('end too early');
  });
});

describe('recordings', () => {
  const trace = {
    format: 'unisono.trace/1',
    ranks: 3,
    clock_uncertainty_us: [0, 2, null],
    ops: {
      rank: [0, 1, 2, 0, 1],
      number: [1, 1, 1, 2, 2],
      collective: Array(5).fill('all_reduce'),
      bytes: Array(5).fill(1024),
      start_us: [0, 5, 3, 20, 21],
      end_us: [10, 11, 12, 30, null],
    },
  };

  it('are summed up: straggler, missing ranks, what never ended', () => {
    const [first, second] = summarize(parseRecording(trace));
    expect(first).toMatchObject({ number: 1, straggler: 1, missing: [], end: 12 });
    expect(second).toMatchObject({ number: 2, missing: [2], open: [1], end: 30 });
  });

  it.each([
    [{ format: 'unisono.trace/7' }, 'unknown version "unisono.trace/7"'],
    [{ ranks: -1 }, '/ranks: -1 is not between'],
    [{ clock_uncertainty_us: [1] }, '1 values, but there are 3 ranks'],
    [{ ops: { rank: [0] } }, '/ops/number: missing'],
    [{ ops: { ...trace.ops, rank: [0, 1, 9, 0, 1] } }, '/ops/rank/2: 9 is not between 0 and 2'],
    [{ findings: [{}] }, '/findings/0/kind: this is not a text'],
    [{ messages: { from: 'x' } }, '/messages/from: this is not a list'],
  ])('that are wrong are refused in words: %j', (change, message) => {
    expect(() => parseRecording({ ...trace, ...change })).toThrow(message);
  });

  it('of the simulator and of trace why are read, too', () => {
    const events = [
      { ph: 'X', tid: 3, ts: 1, dur: 2, name: 'a', args: { to: 0, step: 0, bytes: 8 } },
    ];
    expect(parseRecording({ traceEvents: events })).toMatchObject({ ranks: 2, total: 3 });
    const why = {
      schema: 'unisono.why/1',
      jobs: [
        { job: 'a', ended: '', findings: [] },
        {
          job: 'b',
          ended: '',
          findings: [{ kind: 'late', ranks: [3], waiting: [0, 1], text: 'rank 3 is late' }],
        },
      ],
    };
    expect(parseRecording(why)).toMatchObject({ title: 'b', ranks: 4 });
    expect(() => parseRecording({ traceEvents: [] })).toThrow('no messages');
  });
});
