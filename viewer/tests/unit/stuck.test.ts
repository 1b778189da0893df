// The activity and waits of ranks in a recorded run.
import { describe, expect, it } from 'vitest';
import { jobsOfRecording } from '../../src/model/activity';
import { lastChain } from '../../src/model/chain';
import { lostOf, membersOf } from '../../src/model/groups';
import { summarize } from '../../src/model/operations';
import { parseRecording } from '../../src/model/recording';
import { placesOf, stuckStep } from '../../src/model/stuck';
import { asSentence } from '../../src/text/said';
import { recordedClock } from '../../src/view/clock';
import { lanePaths } from '../../src/view/lanes';
import { columns, oneMissing, secondOf, type Row } from '../recordings';
import { schedule } from '../schedules';

const ring = schedule('all_reduce/ring', 4);
const document = oneMissing(ring, 1);
const NAMES = 'rank number group collective algorithm bytes start_us end_us';

// Only what came after it, for rank 1.
function laterRowsOf({ ops }: Row): Row[] {
  const { rank, ...rest } = ops as Record<string, unknown[]>;
  return rank!.map((each, i) => {
    const row = Object.fromEntries(Object.entries(rest).map(([name, list]) => [name, list[i]]));
    return { ...row, rank: each, ...(each === 1 ? { number: 3, start_us: 4000 } : {}) };
  });
}

describe('the lanes of a recorded run', () => {
  it('show waiting, not that a message is under way', () => {
    const jobs = jobsOfRecording(parseRecording(document)).filter(({ rank }) => rank === 2);
    const second = jobs.filter(({ start }) => start >= 1000);
    expect(second).toEqual([
      { rank: 2, doing: 'sends', start: 1002, end: 1004 },
      { rank: 2, doing: 'waits', start: 1004, end: 5000 },
    ]);
    const waits = jobs.filter(({ doing }) => doing === 'waits' && !second.includes(jobs[0]!));
    expect(waits.length).toBeGreaterThan(5);
    expect(jobs.some(({ doing }) => doing === 'receives')).toBe(false);
  });

  it('draw waiting as a thread, and moving as a band', () => {
    const place = { left: 0, lane: 100, y: () => 50 };
    const window = { first: 0, span: 10, pixels: 10 };
    const job = (doing: 'waits' | 'sends') => [{ rank: 0, doing, start: 0, end: 10 }];
    const high = (doing: 'waits' | 'sends', exact: boolean) =>
      Number(/v([\d.]+)/.exec(lanePaths(job(doing), 1, window, place, exact)[0]!.d)![1]);
    for (const exact of [true, false])
      expect(high('waits', exact)).toBeLessThan(high('sends', exact));
  });

  it('say no more than is known without events', () => {
    const jobs = jobsOfRecording(parseRecording({ ...document, events: undefined }));
    expect(new Set(jobs.map(({ doing }) => doing))).toEqual(new Set(['inside', 'waits']));
  });
});

describe('an operation that did not end', () => {
  const recording = parseRecording(document);
  const second = summarize(recording).find(({ label }) => label === 'world #2')!;

  it('has what was sent to nobody', () => {
    expect(lostOf(recording).map(({ from, to }) => [from, to])).toEqual([[0, 1]]);
  });

  it('lasts until its ranks went on without the dead', () => {
    const rows = [
      ...[0, 1, 2, 3].map((rank) => ({ rank, number: 1, group: 'world', end_us: 10 })),
      ...[0, 2, 3].map((rank) => ({ rank, number: 2, group: 'world', end_us: null })),
      ...[0, 2].map((rank) => ({ rank, number: 1, group: 'world (2)', start_us: 80, end_us: 90 })),
    ].map((row) => ({
      collective: 'barrier',
      algorithm: 'flat',
      bytes: 0,
      start_us: 20,
      waiting_us: 400,
      ...row,
    }));
    const gone = parseRecording({
      ...{ format: 'unisono.trace/1', ranks: 4, until_us: [500, 30, 510, 520] },
      aborts: [{ world: 'world', code: 'peer_lost', at_us: 50 }],
      ops: columns(`${NAMES} waiting_us`, rows),
      groups: {
        name: ['world', 'world (2)'],
        ranks: [
          [0, 1, 2, 3],
          [0, 2, 3],
        ],
      },
    });
    // Nothing is known of rank 3 in the next world: it is in the first until its process ends.
    const ends = gone.ops.filter(({ open }) => open).map(({ rank, end }) => [rank, end]);
    expect(ends).toEqual([
      ...[
        [0, 50],
        [2, 50],
        [3, 520],
      ],
    ]);
    expect(gone.unfinished.map(({ end }) => end)).toEqual([50, 50, 520]);
    expect(gone.ops.find(({ open }) => open)!.waiting).toBe(30);
  });

  it('says of a rank that called something else what that was', () => {
    const ops = columns(
      NAMES,
      Array.from({ length: 4 }, (_, rank) => ({
        ...{ rank, number: 1, group: 'world', bytes: 64, start_us: rank, end_us: null },
        ...(rank === 2
          ? { collective: 'broadcast', algorithm: 'flat' }
          : { collective: 'all_reduce', algorithm: 'ring' }),
      })),
    );
    const mixed = parseRecording({ ...document, ops, events: undefined, messages: undefined });
    const places = placesOf(mixed, summarize(mixed)[0]!, ring);
    expect(places.map(({ is }) => is)).toEqual(['open', 'open', 'other', 'open']);
    expect(places[2]!.in!.collective).toBe('broadcast');
  });

  it('says nothing of a rank whose record of it is not here', () => {
    const one = secondOf(document);
    const missing = { kind: 'missing', text: 'rank 1 left no recording', ranks: [1] };
    const lacking = [
      { ...one, findings: [missing] },
      { ...one, clock_uncertainty_us: [0, null, 0, 0] },
      { ...one, dropped_events: [0, 7, 0, 0] },
      { ...document, ops: columns(NAMES, laterRowsOf(document)), dropped_events: [0, 7, 0, 0] },
    ];
    for (const each of lacking.map(parseRecording)) {
      expect(lostOf(each)).toEqual([]);
      const op = summarize(each).find(({ label }) => label === 'world #2')!;
      expect(placesOf(each, op, ring)[1]).toMatchObject({ is: 'missing', unknown: true });
    }
    // It has a recording, and did not come.
    const there = parseRecording({ ...one, clock_uncertainty_us: [0, 2, 0, 0] });
    expect(lostOf(there)).toHaveLength(1);
    const place = placesOf(there, summarize(there)[0]!, ring)[1]!;
    expect(place.is).toBe('missing');
    expect(place.unknown).toBeUndefined();
  });

  it('is stuck where each rank waits for another, and first of all for the one that never came', () => {
    const places = placesOf(recording, second, ring);
    expect(places.map(({ is }) => is)).toEqual(['waits', 'missing', 'waits', 'waits']);
    expect(places[2]).toMatchObject({ step: 0, steps: 6, peers: [1], since: 1004, lasted: 3996 });
    expect(places[3]).toMatchObject({ step: 1, peers: [2] });
    expect(places[1]).toMatchObject({ since: 100, in: { number: 1 } });
    expect(stuckStep(places)).toBe(0);
  });

  it('has one that does not go on, if nothing is missing to it', () => {
    // Rank 3 gets what rank 2 sends in step 0, and does nothing after that.
    const whole = oneMissing(ring, 9);
    const stopped = parseRecording({
      ...whole,
      messages: columns('from to step bytes start_us end_us op', []),
    });
    const op = summarize(stopped).find(({ label }) => label === 'world #2')!;
    const places = placesOf(stopped, op, ring);
    expect(places.map(({ is, step }) => `${is} ${step}`)).toEqual(Array(4).fill('stands 0'));
  });

  it('is where what others have put aside is used', () => {
    // All wait for rank 1 in the step that adds up, though 2 and 3 have sent theirs.
    const flat = schedule('all_reduce/one_shot', 4);
    const made = oneMissing(flat, 1);
    const shot = parseRecording(made);
    const op = summarize(shot).find(({ label }) => label === 'world #2')!;
    const [first] = placesOf(shot, op, flat);
    expect(first).toMatchObject({ is: 'waits' });
    expect(first!.peers).toContain(1);
  });

  it('says less without events or without the schedule', () => {
    const bare = parseRecording({ ...document, events: undefined });
    for (const places of [placesOf(bare, second, ring), placesOf(recording, second)]) {
      expect(places[0]).toMatchObject({ is: 'open', peers: [1], step: -1 });
    }
  });
});

describe('a document of one operation', () => {
  const findings = [
    { kind: 'dropped', text: 'the beginning is not here: ranks 0-3 dropped 7 events' },
    { kind: 'timeout', text: 'timeout: all_reduce #1', ops: ['world #1'] },
    { kind: 'gone', text: 'rank 1 is gone', ranks: [1], ops: ['world #2'] },
  ];
  it('knows who is missing in it', () => {
    const [op, ...more] = summarize(parseRecording(secondOf(document)));
    expect(more).toEqual([]);
    expect(op).toMatchObject({ missing: [1], open: [0, 2, 3], size: 4 });
  });

  it('has only findings that concern it', () => {
    const kinds = (of: object) => parseRecording({ ...of, findings }).findings.map((f) => f.kind);
    expect(kinds(secondOf(document))).toEqual(['gone']);
    expect(kinds(document)).toHaveLength(3);
    expect(kinds({ ...secondOf(document), dropped_events: [0, 0, 0, 7] })).toHaveLength(3);
  });
});

describe('groups', () => {
  const named = {
    name: ['world', 'ranks 1,3'],
    ranks: [
      [0, 1, 2, 3],
      [3, 1],
    ],
  };
  it('have the order that the recording says, or that of their name', () => {
    const known = parseRecording({ ...document, groups: named });
    expect(membersOf(known, 'ranks 1,3')).toEqual([3, 1]);
    const unknown = parseRecording(document);
    expect(membersOf(unknown, 'ranks 0-1,3')).toEqual([0, 1, 3]);
    expect(membersOf(unknown, 'ranks 2-9')).toBeUndefined();
    expect(membersOf(unknown, 'world (2)')).toBeUndefined();
    expect(() => parseRecording({ ...document, groups: { name: ['a'], ranks: [[4]] } })).toThrow(
      '/groups/ranks/0/0',
    );
  });

  it('have recorded times on the stage of their own ranks', () => {
    const pair = schedule('all_reduce/ring', 2);
    const ops = columns(NAMES, [
      ...[1, 3].map((rank) => ({
        ...{ rank, number: 1, group: 'ranks 1,3', collective: 'all_reduce', algorithm: 'ring' },
        ...{ bytes: 64, start_us: 50, end_us: 90 },
      })),
    ]);
    const messages = columns('from to step bytes start_us end_us op', [
      { from: 3, to: 1, step: 0, bytes: 32, start_us: 60, end_us: 70, op: 'ranks 1,3 #1' },
    ]);
    const recording = parseRecording({
      ...{ ...document, events: undefined, name: '', ops, messages, groups: named },
    });
    const clock = recordedClock(pair, recording, summarize(recording), 'ranks 1,3 #1')!;
    expect(clock.members).toEqual([3, 1]);
    expect(clock.messages).toMatchObject([{ from: 0, to: 1, start: 0, end: 10 }]);
  });
});

it('the chain that ends last goes back over what each sender had taken', () => {
  const chain = lastChain([
    { step: 0, from: 0, to: 1, start: 0, end: 5 },
    { step: 0, from: 2, to: 1, start: 0, end: 12 }, // passed on while it is taken
    { step: 1, from: 1, to: 3, start: 10, end: 20 },
    { step: 1, from: 3, to: 0, start: 15, end: 19 },
  ]);
  expect([...chain]).toEqual([2, 1]);
  expect(lastChain([])).toEqual(new Set());
});

it('a line begins with a large letter, unless it is a name', () => {
  expect(asSentence('rank 1 is gone')).toBe('Rank 1 is gone');
  expect(asSentence('timeout: x')).toBe('Timeout: x');
  expect(asSentence('all_reduce #7 is slow')).toBe('all_reduce #7 is slow');
});
