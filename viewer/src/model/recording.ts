// Recorded and simulated runs in three formats: `unisono.trace/1` (docs/formats/trace.md), the
// trace of `unisono sim --trace`, and the output of `unisono trace why --json`. No value is
// trusted.
import { isObject } from '../schedule/parse';
import { fail, int, list, num, rows, str, type Json } from './reading';
import { leavings } from './worlds';

export interface RecordedMessage {
  op: string;
  step: number;
  from: number;
  to: number;
  bytes: number;
  start: number; // us
  end: number;
}

// A rank's event in an operation.
export interface RecordedEvent {
  op: number; // the row of the operation in `ops`
  kind: (typeof KINDS)[number];
  step: number;
  peer: number; // -1: all ranks, or none
  bytes: number;
  start: number; // us
  end: number;
}
const KINDS = ['send', 'receive', 'reduce', 'copy'] as const;

// A send or a receive of the program.
export interface RecordedTransfer {
  rank: number;
  start: number; // us
  end: number;
  open: boolean;
}

export interface RecordedOp {
  rank: number;
  number: number;
  group: string;
  collective: string;
  algorithm: string;
  bytes: number;
  start: number; // us
  end: number;
  open: boolean; // it had not ended: `end` is the end of its rank's process, or of the recording
  waiting: number; // us, until the end of the recording if the operation had not ended
  root: number; // rank of the world; -1: none, or unknown
  purpose: string; // the label that the program set; '': none
}

// An activity of a rank that had not ended at the end of the recording.
export interface Unfinished {
  rank: number;
  start: number; // us
  end: number; // as for an open operation
  label: string; // the label of the operation; "": a send or a receive
}

export interface RunFinding {
  kind: string;
  text: string;
  details: string[];
  next: string;
  ranks: number[];
  waiting: number[];
  waitedS: number;
  abort: boolean; // the ranks themselves ended the job with this error
  ops?: string[]; // labels of the affected operations; undefined: unknown
  chinese?: Pick<RunFinding, 'text' | 'details' | 'next'>;
}

export interface Recording {
  title: string;
  ranks: number;
  total: number; // us: the end of the recording
  messages: RecordedMessage[];
  ops: RecordedOp[];
  events: RecordedEvent[]; // sorted by row of `ops`, then by time
  transfers: RecordedTransfer[];
  groups: Map<string, number[]>; // by name: ranks of the world in the group's order
  until: number[]; // us, by rank: when its process ended; empty: unknown
  unfinished: Unfinished[];
  shortened: boolean[]; // by rank: the beginning of its recording was dropped
  findings: RunFinding[]; // the most severe first
  uncertaintyUs: (number | null)[]; // by rank; null: its clock could not be aligned
  ended: string;
  endedChinese: string; // empty: unknown
  isSimulated: boolean; // equal steps are simulated only until they repeat
}

const MOST_RANKS = 4096;

// The end of activities that had not ended is computed later.
function endOf(value: unknown, place: string): { end: number; open: boolean } {
  if (value === null) return { end: 0, open: true };
  const end = num(value, place, -1);
  return { end, open: end < 0 };
}

export function parseRecording(document: unknown): Recording {
  if (!isObject(document)) fail('/', 'this is not an object');
  if (Array.isArray(document.traceEvents)) return fromSimulation(document.traceEvents);
  if (document.schema === 'unisono.why/1') return fromWhy(document);
  if (document.format === 'unisono.trace/1') return fromTrace(document);
  const found = String(document.format ?? document.schema ?? '').slice(0, 40);
  fail('/format', `unknown version "${found}", this page reads unisono.trace/1`);
}

function fromTrace(document: Json): Recording {
  const ranks = int(document.ranks, '/ranks', 1, MOST_RANKS);
  const rank = (value: unknown, place: string) => int(value, place, 0, ranks - 1);
  const messages = rows(
    document.messages ?? { from: [], to: [], step: [], bytes: [], start_us: [], end_us: [] },
    '/messages',
    ['from', 'to', 'step', 'bytes', 'start_us', 'end_us'],
    ['op'],
  ).map((row, i) => ({
    op: row.op === undefined ? '' : str(row.op, `/messages/op/${i}`),
    step: int(row.step, `/messages/step/${i}`, 0, 1e9),
    from: rank(row.from, `/messages/from/${i}`),
    to: rank(row.to, `/messages/to/${i}`),
    bytes: num(row.bytes, `/messages/bytes/${i}`),
    start: num(row.start_us, `/messages/start_us/${i}`),
    end: num(row.end_us, `/messages/end_us/${i}`),
  }));
  const ops = rows(
    document.ops ?? { rank: [], number: [], collective: [], bytes: [], start_us: [], end_us: [] },
    '/ops',
    ['rank', 'number', 'collective', 'bytes', 'start_us', 'end_us'],
    ['group', 'algorithm', 'waiting_us', 'root', 'label'],
  ).map((row, i) => {
    const at = (column: string) => `/ops/${column}/${i}`;
    return {
      rank: rank(row.rank, at('rank')),
      number: int(row.number, at('number'), 0, 1e15),
      group: row.group === undefined ? 'world' : str(row.group, at('group')),
      collective: str(row.collective, at('collective')),
      algorithm: row.algorithm === undefined ? '' : str(row.algorithm, at('algorithm')),
      bytes: num(row.bytes, at('bytes')),
      start: num(row.start_us, at('start_us')),
      ...endOf(row.end_us, at('end_us')),
      waiting: row.waiting_us === undefined ? NaN : num(row.waiting_us, at('waiting_us')),
      root: row.root === undefined || row.root === null ? -1 : rank(row.root, at('root')),
      purpose: row.label === undefined || row.label === null ? '' : str(row.label, at('label')),
    };
  });
  if (
    ops.length === 0 &&
    isObject(document.events) &&
    list(document.events.op, '/events/op').length > 0
  ) {
    fail('/events', 'there are events of operations, and /ops has no operations');
  }
  const events = rows(
    document.events ?? { op: [], kind: [], step: [], peer: [], start_us: [], end_us: [] },
    '/events',
    ['op', 'kind', 'step', 'peer', 'start_us', 'end_us'],
    ['bytes'],
  )
    .map((row, i) => ({
      op: int(row.op, `/events/op/${i}`, 0, ops.length - 1),
      kind:
        KINDS.find((kind) => kind === row.kind) ??
        fail(`/events/kind/${i}`, 'this is not one of send, receive, reduce, copy'),
      step: int(row.step, `/events/step/${i}`, 0, 1e9),
      peer: row.peer === null ? -1 : rank(row.peer, `/events/peer/${i}`),
      bytes: row.bytes === undefined ? 0 : num(row.bytes, `/events/bytes/${i}`),
      start: num(row.start_us, `/events/start_us/${i}`),
      end: num(row.end_us, `/events/end_us/${i}`),
    }))
    .sort((a, b) => a.op - b.op || a.start - b.start);
  const uncertainty =
    document.clock_uncertainty_us === undefined
      ? []
      : list(document.clock_uncertainty_us, '/clock_uncertainty_us').map((value, i) =>
          value === null ? null : num(value, `/clock_uncertainty_us/${i}`),
        );
  if (uncertainty.length > 0 && uncertainty.length !== ranks) {
    fail('/clock_uncertainty_us', `${uncertainty.length} values, but there are ${ranks} ranks`);
  }
  const transfers = rows(
    document.transfers ?? { rank: [], start_us: [], end_us: [] },
    '/transfers',
    ['rank', 'start_us', 'end_us'],
  ).map((row, i) => ({
    rank: rank(row.rank, `/transfers/rank/${i}`),
    start: num(row.start_us, `/transfers/start_us/${i}`),
    ...endOf(row.end_us, `/transfers/end_us/${i}`),
  }));
  // Returns one number per rank, if the document has them.
  const byRank = (name: string): number[] => {
    if (document[name] === undefined) return [];
    const values = list(document[name], `/${name}`).map((value, i) => num(value, `/${name}/${i}`));
    if (values.length !== ranks) {
      fail(`/${name}`, `${values.length} values, but there are ${ranks} ranks`);
    }
    return values;
  };
  const dropped = byRank('dropped_events');
  const until = byRank('until_us');
  const recording = {
    ...empty(ranks),
    title: document.name === undefined ? '' : str(document.name, '/name'),
    messages,
    ops,
    events,
    transfers,
    until,
    groups: groupsOf(document.groups, ranks),
    unfinished: [
      ...ops.filter(({ open }) => open).map((op) => ({ ...op, label: labelOf(op) })),
      ...transfers.filter(({ open }) => open).map((each) => ({ ...each, label: '' })),
    ].map(({ rank, start, end, label }) => ({ rank, start, end, label })),
    shortened: Array.from({ length: ranks }, (_, rank) => (dropped[rank] ?? 0) > 0),
    findings: aboutThis(
      document.findings === undefined ? [] : findingsOf(document.findings, '/findings'),
      document.dropped_events === undefined ? ops : [],
    ),
    uncertaintyUs: uncertainty,
    ended: document.ended === undefined ? '' : str(document.ended, '/ended'),
    endedChinese:
      document.ended_chinese === undefined ? '' : str(document.ended_chinese, '/ended_chinese'),
  };
  return finish(recording, leavings(document.aborts, ops));
}

// {"name": ["world"], "ranks": [[0, 1]]}
function groupsOf(value: unknown, ranks: number): Map<string, number[]> {
  if (value === undefined) return new Map();
  return new Map(
    rows(value, '/groups', ['name', 'ranks']).map(({ name, ranks: members }, i) => [
      str(name, `/groups/name/${i}`),
      list(members, `/groups/ranks/${i}`).map((rank, j) =>
        int(rank, `/groups/ranks/${i}/${j}`, 0, ranks - 1),
      ),
    ]),
  );
}

// For a document with one operation of a recording: drops findings about the whole recording or
// about other operations. `ops`: empty for a whole recording.
function aboutThis(findings: RunFinding[], ops: RecordedOp[]): RunFinding[] {
  const label = ops.length > 0 ? labelOf(ops[0]!) : '';
  if (label === '' || ops.some((op) => labelOf(op) !== label)) return findings;
  return findings.filter(
    ({ kind, ops: about }) =>
      kind !== 'dropped' && (about === undefined || about.length === 0 || about.includes(label)),
  );
}

function wordsOf(value: unknown, at: string): Pick<RunFinding, 'text' | 'details' | 'next'> {
  if (!isObject(value)) fail(at, 'this is not an object');
  return {
    text: str(value.text, `${at}/text`),
    details:
      value.details === undefined
        ? []
        : list(value.details, `${at}/details`).map((d, j) => str(d, `${at}/details/${j}`)),
    next: value.next === undefined ? '' : str(value.next, `${at}/next`),
  };
}

function findingsOf(value: unknown, place: string): RunFinding[] {
  return list(value, place).map((each, i) => {
    const at = `${place}/${i}`;
    if (!isObject(each)) fail(at, 'this is not an object');
    const ranksOf = (key: string) =>
      each[key] === undefined
        ? []
        : list(each[key], `${at}/${key}`).map((r, j) =>
            int(r, `${at}/${key}/${j}`, 0, MOST_RANKS - 1),
          );
    return {
      kind: str(each.kind, `${at}/kind`),
      ...wordsOf(each, at),
      ...(each.chinese === undefined ? {} : { chinese: wordsOf(each.chinese, `${at}/chinese`) }),
      ranks: ranksOf('ranks'),
      waiting: ranksOf('waiting'),
      waitedS: each.waited_s === undefined ? 0 : num(each.waited_s, `${at}/waited_s`, -1e9),
      abort: each.abort === true,
      ...(each.ops === undefined
        ? {}
        : { ops: list(each.ops, `${at}/ops`).map((op, j) => str(op, `${at}/ops/${j}`)) }),
    };
  });
}

// Reads the output of `unisono trace why --json`: the findings of the first job that has any.
function fromWhy(document: Json): Recording {
  const jobs = list(document.jobs, '/jobs');
  const index = Math.max(
    0,
    jobs.findIndex(
      (job) => isObject(job) && Array.isArray(job.findings) && job.findings.length > 0,
    ),
  );
  const job = jobs[index];
  if (!isObject(job)) fail('/jobs', 'no job in it');
  const findings = findingsOf(job.findings, `/jobs/${index}/findings`);
  const all = findings.flatMap((each) => [...each.ranks, ...each.waiting]);
  return finish({
    ...empty(Math.max(0, ...all) + 1),
    title: job.job === undefined ? '' : str(job.job, `/jobs/${index}/job`),
    findings,
    ended: job.ended === undefined ? '' : str(job.ended, `/jobs/${index}/ended`),
  });
}

// Complete events with `to` are the sending halves of messages; a track is 3 * rank + side.
function fromSimulation(events: unknown[]): Recording {
  const messages: RecordedMessage[] = [];
  let ranks = 0;
  list(events, '/traceEvents').forEach((event, i) => {
    if (!isObject(event) || event.ph !== 'X' || !isObject(event.args)) return;
    const at = `/traceEvents/${i}`;
    if (event.args.to === undefined) return;
    const from = Math.trunc(int(event.tid, `${at}/tid`, 0, 3 * MOST_RANKS - 1) / 3);
    const to = int(event.args.to, `${at}/args/to`, 0, MOST_RANKS - 1);
    const start = num(event.ts, `${at}/ts`);
    ranks = Math.max(ranks, from + 1, to + 1);
    messages.push({
      op: typeof event.name === 'string' ? event.name.slice(0, 200) : '',
      step: int(event.args.step ?? 0, `${at}/args/step`, 0, 1e9),
      from,
      to,
      bytes: num(event.args.bytes ?? 0, `${at}/args/bytes`),
      start,
      end: start + num(event.dur, `${at}/dur`),
    });
  });
  if (messages.length === 0)
    fail(
      '/traceEvents',
      'no messages of `unisono sim` in it; of a recorded run open what `unisono run --record` wrote',
    );
  return finish({ ...empty(ranks), title: messages[0]!.op, messages, isSimulated: true });
}

export function empty(ranks: number): Recording {
  return {
    ...{ title: '', ranks, total: 0, messages: [], ops: [], events: [], transfers: [] },
    ...{ groups: new Map<string, number[]>(), until: [], unfinished: [], shortened: [] },
    ...{ findings: [], uncertaintyUs: [], ended: '', endedChinese: '', isSimulated: false },
  };
}

// Returns the label of an operation that its messages carry.
export function labelOf(op: { group: string; number: number }): string {
  return `${op.group} #${op.number}`;
}

// An unfinished operation lasts until the end of its rank's process, or, if that is unknown, until
// the last event of the recording.
function lastEvent({ messages, ops, events, unfinished }: Recording): number {
  let last = 0;
  for (const { end } of messages) last = Math.max(last, end);
  for (const { start, end } of ops) last = Math.max(last, start, end);
  for (const { end } of events) last = Math.max(last, end);
  for (const { start } of unfinished) last = Math.max(last, start);
  return last;
}

// Findings that explain others come first; those about the recording itself come last.
const WORST = ['gone', 'mismatch', 'deadlock', 'stopped', 'left', 'never called', 'late'];
const LEAST = ['unanswered', 'elsewhere', 'missing', 'dropped'];

function severity({ kind, abort }: RunFinding): number {
  if (abort) return -1;
  const least = LEAST.indexOf(kind);
  if (least >= 0) return WORST.length + 1 + least;
  return WORST.includes(kind) ? WORST.indexOf(kind) : WORST.length;
}

function finish(recording: Recording, leftAt = leavings([], [])): Recording {
  const { until } = recording;
  const last = lastEvent(recording);
  // By rank: the last time at which it was active in an operation that did not end.
  const latest = new Map<string, number>();
  const key = (rank: number, label: string) => `${rank} ${label}`;
  for (const { rank, start, label } of recording.unfinished) latest.set(key(rank, label), start);
  if (latest.size > 0) {
    for (const { op, from, to, start, end } of recording.messages) {
      for (const [rank, when] of [[from, start] as const, [to, end] as const]) {
        const known = latest.get(key(rank, op));
        if (known !== undefined && when > known) latest.set(key(rank, op), when);
      }
    }
  }
  const endOfRank = (rank: number, name: string) =>
    Math.min(until[rank] ?? last, leftAt(rank, name));
  const unfinished = recording.unfinished.map((each) => ({
    ...each,
    end: Math.max(each.start, endOfRank(each.rank, each.label)),
  }));
  const hasLeft = (op: RecordedOp) => leftAt(op.rank, op.group) < Infinity;
  const ops = recording.ops.map((op) => {
    if (!op.open) return op;
    const end = Math.max(op.start, endOfRank(op.rank, op.group));
    const since = latest.get(key(op.rank, labelOf(op))) ?? op.start;
    return { ...op, end, waiting: Math.max(hasLeft(op) ? 0 : op.waiting || 0, end - since) };
  });
  const transfers = recording.transfers.map((each) =>
    each.open ? { ...each, end: Math.max(each.start, until[each.rank] ?? last) } : each,
  );
  const total = unfinished.reduce((most, { end }) => Math.max(most, end), last);
  const findings = [...recording.findings].sort((a, b) => severity(a) - severity(b));
  return { ...recording, total, ops, transfers, unfinished, findings };
}
