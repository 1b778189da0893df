// The operations of a recorded run, each over all its ranks: its duration, the last rank to arrive,
// and the missing ranks. Also the selection and order of listed operations.
import { membersOf } from './groups';
import { labelOf, type RecordedOp, type RunFinding, type Recording } from './recording';

// One operation of a group, summed up over its ranks.
export interface OpSummary {
  label: string; // "world #17"
  number: number;
  group: string;
  collective: string;
  algorithm: string;
  bytes: number;
  start: number;
  end: number; // when the last rank ended it
  waiting: number; // the longest wait; NaN: unknown
  straggler: number; // the last rank to arrive
  missing: number[]; // ranks of the group without a record of the operation
  open: number[]; // ranks that had not ended the operation
  members: number[]; // members of its group, in the group's order, as far as known
  size: number;
  root: number; // rank of the world; -1: none, or unknown
  purpose: string; // the label that the program set; '': none
}

export function isWhole(op: OpSummary): boolean {
  return op.missing.length === 0 && op.open.length === 0;
}

type Named = Pick<OpSummary, 'collective' | 'algorithm' | 'label'> & { purpose?: string };
export function nameOf(op: Named): string {
  const name = `${op.collective}${op.algorithm ? `/${op.algorithm}` : ''}`;
  return `${name}, ${op.purpose ? `${op.purpose}, ` : ''}${op.label}`;
}

export function summarize(recording: Recording): OpSummary[] {
  // By group and member: the first operation in the recording. Earlier ones were dropped.
  const firsts = new Map<string, Map<number, number>>();
  const ops = new Map<string, OpSummary & { present: Set<number>; last: number }>();
  for (const op of recording.ops) {
    const inGroup = firsts.get(op.group) ?? new Map<number, number>();
    const first = recording.shortened[op.rank] ? op.number : 0;
    firsts.set(op.group, inGroup.set(op.rank, Math.min(inGroup.get(op.rank) ?? first, first)));
    const label = labelOf(op);
    let row = ops.get(label);
    if (!row) {
      const { number, group, collective, algorithm, bytes, start, rank, root, purpose } = op;
      row = {
        ...{ label, number, group, collective, algorithm, bytes, start, end: op.end, waiting: 0 },
        ...{ straggler: rank, missing: [], open: [], members: [], size: 0, root, purpose },
        ...{ present: new Set(), last: -1 },
      };
      ops.set(label, row);
    }
    row.present.add(op.rank);
    row.start = Math.min(row.start, op.start);
    row.end = Math.max(row.end, op.end);
    if (op.open) row.open.push(op.rank);
    row.waiting = Math.max(row.waiting, op.waiting);
    if (op.start > row.last) {
      row.last = op.start;
      row.straggler = op.rank;
    }
  }
  const recorded = new Set(recording.ops.map(({ rank }) => rank));
  const groups = new Map(
    [...firsts].map(([group, known]) => [group, groupOf(recording, group, [...known.keys()])]),
  );
  return [...ops.values()]
    .map(({ present, last: _, ...row }) => {
      const members = groups.get(row.group)!;
      const first = firsts.get(row.group)!;
      const missing = members.filter((rank) => {
        if (present.has(rank)) return false;
        // A rank without any record is named once, not for each operation.
        if (!recorded.has(rank)) return ops.size === 1;
        return row.number >= (first.get(rank) ?? (recording.shortened[rank] ? Infinity : 0));
      });
      return { ...row, members, size: members.length, missing };
    })
    .sort((a, b) => a.start - b.start);
}

function groupOf(recording: Recording, group: string, seen: number[]): number[] {
  const known = membersOf(recording, group);
  if (known && seen.every((rank) => known.includes(rank))) return known;
  const all = Array.from({ length: recording.ranks }, (_, rank) => rank);
  return group === 'world' ? all : seen.sort((a, b) => a - b);
}

// Returns the first operation that some rank never entered or never finished, where a hang begins.
export function firstStuck(ops: OpSummary[]): OpSummary | undefined {
  return ops.find((op) => !isWhole(op));
}

// Returns the last operation that each rank finished.
export function lastFinished(recording: Recording): (RecordedOp | undefined)[] {
  const last: (RecordedOp | undefined)[] = Array.from({ length: recording.ranks });
  for (const op of recording.ops) {
    if (!op.open && op.end >= (last[op.rank]?.end ?? 0)) last[op.rank] = op;
  }
  return last;
}

export const SORTS = ['start', 'name', 'bytes', 'time', 'waiting', 'last'] as const;
export type Sort = (typeof SORTS)[number];
// Unfinished operations count as longer than all finished ones.
const ENDLESS = 1e15;
const lengthOf = (op: OpSummary, us: number) => us + (op.open.length > 0 ? ENDLESS : 0);
const VALUE: Record<Exclude<Sort, 'name'>, (op: OpSummary) => number> = {
  start: (op) => op.start,
  bytes: (op) => op.bytes,
  time: (op) => lengthOf(op, op.end - op.start),
  waiting: (op) => lengthOf(op, op.waiting || 0),
  last: (op) => op.missing[0] ?? op.straggler,
};

// Returns the operations with all `words` in their names, in the order of `sort`; equal ones by
// their start.
export function listed(ops: OpSummary[], { words, onlyOpen, sort, down }: Listing): OpSummary[] {
  const parts = words.toLowerCase().split(/\s+/).filter(Boolean);
  const found = ops.filter((op) => {
    const name = nameOf(op).toLowerCase();
    return (!onlyOpen || !isWhole(op)) && parts.every((part) => matches(name, part));
  });
  const sign = down ? -1 : 1;
  if (sort === 'name') {
    return found.sort(
      (a, b) => sign * (a.collective + a.algorithm).localeCompare(b.collective + b.algorithm),
    );
  }
  const value = VALUE[sort];
  return found.sort((a, b) => sign * (value(a) - value(b)));
}

export interface Listing {
  words: string;
  onlyOpen: boolean;
  sort: Sort;
  down: boolean; // the largest first
}

// "#17" matches only this number, not #170.
function matches(name: string, part: string): boolean {
  return /^#\d+$/.test(part) ? name.endsWith(` ${part}`) : name.includes(part);
}

// Returns the operations of a finding; if it names none, the operations that its ranks were in.
export function opsOf(
  finding: Pick<RunFinding, 'kind' | 'ranks' | 'ops'>,
  recording: Recording,
  byLabel: Map<string, OpSummary>,
): OpSummary[] {
  const known = (labels: Iterable<string>) =>
    [...labels].flatMap((label) => byLabel.get(label) ?? []);
  if (finding.ops) return known(finding.ops);
  // Findings about the recording itself.
  if (['dropped', 'missing'].includes(finding.kind)) return [];
  const own = recording.unfinished.filter(({ rank }) => finding.ranks.includes(rank));
  return known(new Set(own.map(({ label }) => label)));
}

// Returns the main operation of a run: the operation with one size that moved most bytes in total,
// or, without bytes, took most time. Other views begin with it.
export function mainOperation(
  ops: OpSummary[],
  isShown: (op: OpSummary) => boolean,
): OpSummary | undefined {
  const sums = new Map<string, { op: OpSummary; bytes: number; time: number }>();
  for (const op of ops) {
    if (!isShown(op)) continue;
    const key = `${op.collective}/${op.algorithm} ${op.size} ${op.bytes}`;
    const known = sums.get(key) ?? { op, bytes: 0, time: 0 };
    known.bytes += op.bytes;
    known.time += op.end - op.start;
    sums.set(key, known);
  }
  return [...sums.values()].sort((a, b) => b.bytes - a.bytes || b.time - a.time)[0]?.op;
}
