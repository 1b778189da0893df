// Recorded and simulated runs, from three forms: `unisono.trace/1` (docs/formats/trace.md), the trace
// of `unisono sim --trace`, and what `unisono trace why --json` prints. Nothing in them is trusted.
import { BadInput, isObject } from '../schedule/parse';

export interface RecordedMessage {
  op: string;
  step: number;
  from: number;
  to: number;
  bytes: number;
  start: number; // us
  end: number;
}

export interface RecordedOp {
  rank: number;
  number: number;
  group: string;
  collective: string;
  algorithm: string;
  bytes: number;
  start: number; // us
  end: number; // -1: it had not ended
  waiting: number;
}

export interface RunFinding {
  kind: string;
  text: string;
  details: string[];
  next: string;
  ranks: number[];
  waiting: number[];
  waitedS: number;
}

export interface Recording {
  title: string;
  ranks: number;
  total: number; // us
  messages: RecordedMessage[];
  ops: RecordedOp[];
  findings: RunFinding[];
  uncertaintyUs: (number | null)[]; // by rank; null: its clock could not be aligned
  ended: string;
  isSimulated: boolean; // equal steps are played only until they repeat
}

const MOST_RANKS = 4096;
const MOST_ROWS = 500_000;

type Json = Record<string, unknown>;

function fail(place: string, message: string): never {
  throw new BadInput(`${place}: ${message}`);
}
function num(value: unknown, place: string, least = 0, most = 1e15): number {
  if (typeof value !== 'number' || !Number.isFinite(value)) fail(place, 'no number');
  if (value < least || value > most) fail(place, `${value} is not in ${least}..${most}`);
  return value;
}
function int(value: unknown, place: string, least: number, most: number): number {
  const result = num(value, place, least, most);
  return Number.isInteger(result) ? result : fail(place, 'no whole number');
}
function str(value: unknown, place: string): string {
  return typeof value === 'string' ? value.slice(0, 2000) : fail(place, 'no text');
}
function list(value: unknown, place: string): unknown[] {
  if (!Array.isArray(value)) fail(place, value === undefined ? 'missing' : 'no array');
  if (value.length > MOST_ROWS) fail(place, `more than ${MOST_ROWS} values`);
  return value;
}

// The columns of a group as rows; all of them must have one length.
function rows(group: unknown, place: string, keys: string[], optional: string[] = []): Json[] {
  if (!isObject(group)) fail(place, group === undefined ? 'missing' : 'no object');
  const count = list(group[keys[0]!], `${place}/${keys[0]}`).length;
  const columns = [...keys, ...optional.filter((key) => group[key] !== undefined)].map((key) => {
    const column = list(group[key], `${place}/${key}`);
    if (column.length !== count) {
      fail(`${place}/${key}`, `${column.length} values, but ${place}/${keys[0]} has ${count}`);
    }
    return [key, column] as const;
  });
  return Array.from({ length: count }, (_, i) =>
    Object.fromEntries(columns.map(([key, column]) => [key, column[i]])),
  );
}

export function parseRecording(document: unknown): Recording {
  if (!isObject(document)) fail('/', 'no object');
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
    ['group', 'algorithm', 'waiting_us'],
  ).map((row, i) => ({
    rank: rank(row.rank, `/ops/rank/${i}`),
    number: int(row.number, `/ops/number/${i}`, 0, 1e15),
    group: row.group === undefined ? 'world' : str(row.group, `/ops/group/${i}`),
    collective: str(row.collective, `/ops/collective/${i}`),
    algorithm: row.algorithm === undefined ? '' : str(row.algorithm, `/ops/algorithm/${i}`),
    bytes: num(row.bytes, `/ops/bytes/${i}`),
    start: num(row.start_us, `/ops/start_us/${i}`),
    end: row.end_us === null ? -1 : num(row.end_us, `/ops/end_us/${i}`, -1),
    waiting: row.waiting_us === undefined ? 0 : num(row.waiting_us, `/ops/waiting_us/${i}`),
  }));
  const uncertainty =
    document.clock_uncertainty_us === undefined
      ? []
      : list(document.clock_uncertainty_us, '/clock_uncertainty_us').map((value, i) =>
          value === null ? null : num(value, `/clock_uncertainty_us/${i}`),
        );
  if (uncertainty.length > 0 && uncertainty.length !== ranks) {
    fail('/clock_uncertainty_us', `${uncertainty.length} values, but there are ${ranks} ranks`);
  }
  return finish({
    title: document.name === undefined ? '' : str(document.name, '/name'),
    ranks,
    total: 0,
    messages,
    ops,
    findings: document.findings === undefined ? [] : findingsOf(document.findings, '/findings'),
    uncertaintyUs: uncertainty,
    ended: document.ended === undefined ? '' : str(document.ended, '/ended'),
    isSimulated: false,
  });
}

function findingsOf(value: unknown, place: string): RunFinding[] {
  return list(value, place).map((each, i) => {
    const at = `${place}/${i}`;
    if (!isObject(each)) fail(at, 'no object');
    const ranksOf = (key: string) =>
      each[key] === undefined
        ? []
        : list(each[key], `${at}/${key}`).map((r, j) =>
            int(r, `${at}/${key}/${j}`, 0, MOST_RANKS - 1),
          );
    return {
      kind: str(each.kind, `${at}/kind`),
      text: str(each.text, `${at}/text`),
      details:
        each.details === undefined
          ? []
          : list(each.details, `${at}/details`).map((d, j) => str(d, `${at}/details/${j}`)),
      next: each.next === undefined ? '' : str(each.next, `${at}/next`),
      ranks: ranksOf('ranks'),
      waiting: ranksOf('waiting'),
      waitedS: each.waited_s === undefined ? 0 : num(each.waited_s, `${at}/waited_s`, -1e9),
    };
  });
}

// What `unisono trace why --json` prints: findings of the first job that has any.
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
    title: job.job === undefined ? '' : str(job.job, `/jobs/${index}/job`),
    ranks: Math.max(0, ...all) + 1,
    total: 0,
    messages: [],
    ops: [],
    findings,
    uncertaintyUs: [],
    ended: job.ended === undefined ? '' : str(job.ended, `/jobs/${index}/ended`),
    isSimulated: false,
  });
}

// Complete events with `to` are the sending halves of messages; tracks are 3 * rank + side.
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
  if (messages.length === 0) fail('/traceEvents', 'no messages of unisono sim in it');
  return finish({
    title: messages[0]!.op,
    ranks,
    total: 0,
    messages,
    ops: [],
    findings: [],
    uncertaintyUs: [],
    ended: '',
    isSimulated: true,
  });
}

function finish(recording: Recording): Recording {
  let total = 0;
  for (const { end } of recording.messages) total = Math.max(total, end);
  for (const { end } of recording.ops) total = Math.max(total, end);
  return { ...recording, total };
}

// One operation of a group, over its ranks.
export interface OpSummary {
  key: string;
  number: number;
  group: string;
  collective: string;
  algorithm: string;
  bytes: number;
  start: number;
  end: number; // -1: somebody had not ended
  waiting: number; // the longest
  straggler: number; // who came last
  missing: number[]; // ranks of the group that have no record of it
  open: number[]; // ranks that had not ended it
  size: number; // ranks of its group, as far as they are recorded
}

export function summarize(recording: Recording): OpSummary[] {
  const members = new Map<string, Set<number>>();
  const ops = new Map<string, OpSummary & { present: Set<number>; last: number }>();
  for (const op of recording.ops) {
    const inGroup = members.get(op.group) ?? new Set<number>();
    members.set(op.group, inGroup.add(op.rank));
    const key = `${op.group}#${op.number}`;
    let row = ops.get(key);
    if (!row) {
      const { number, group, collective, algorithm, bytes } = op;
      row = {
        ...{ key, number, group, collective, algorithm, bytes, start: op.start, end: op.end },
        ...{
          waiting: 0,
          straggler: op.rank,
          missing: [],
          open: [],
          size: 0,
          present: new Set(),
          last: -1,
        },
      };
      ops.set(key, row);
    }
    row.present.add(op.rank);
    row.start = Math.min(row.start, op.start);
    row.end = row.end < 0 || op.end < 0 ? -1 : Math.max(row.end, op.end);
    if (op.end < 0) row.open.push(op.rank);
    row.waiting = Math.max(row.waiting, op.waiting);
    if (op.start > row.last) {
      row.last = op.start;
      row.straggler = op.rank;
    }
  }
  return [...ops.values()]
    .map(({ present, last: _, ...row }) => ({
      ...row,
      size: members.get(row.group)!.size,
      missing: [...members.get(row.group)!].filter((rank) => !present.has(rank)),
    }))
    .sort((a, b) => a.start - b.start);
}

// The label that messages of an operation carry.
export function labelOf(op: { group: string; number: number }): string {
  return `${op.group} #${op.number}`;
}

// The first operation that somebody never came to or never finished: where a hang begins.
export function firstStuck(ops: OpSummary[]): OpSummary | undefined {
  return ops.find((op) => op.missing.length > 0 || op.open.length > 0);
}

// By rank: the last operation that it finished, "" for none.
export function lastFinished(recording: Recording): string[] {
  const last: (RecordedOp | undefined)[] = Array.from({ length: recording.ranks });
  for (const op of recording.ops) {
    if (op.end >= 0 && op.end >= (last[op.rank]?.end ?? 0)) last[op.rank] = op;
  }
  return last.map((op) => (op ? `${op.collective}, ${labelOf(op)}` : ''));
}
