// Groups similar operations of a run, one row per group: how many there are, how long they take,
// how much of the time is waiting, and which rank the others wait for.
import type { OpSummary } from './operations';
import { labelOf, type Recording } from './recording';

export interface OpGroup {
  key: string;
  collective: string;
  bytes: number;
  group: string; // the group of ranks
  purpose: string; // the label that the program set; '': none
  calls: number;
  open: number; // operations that did not end on all ranks
  p50: number; // us, of the operations that ended; NaN: none ended
  p99: number;
  waiting: number; // share of the time of all ranks in the calls, 0 to 1; NaN: unknown
  worst: number; // the rank that came last most often; -1: no rank came last more than once
  worstCalls: number;
  slowest: OpSummary;
}

export function quantile(sorted: number[], part: number): number {
  if (sorted.length === 0) return NaN;
  return sorted[Math.min(sorted.length - 1, Math.ceil(part * sorted.length) - 1)] ?? sorted[0]!;
}

// Sorts by total time, longest first.
export function groupsOf(recording: Recording, ops: OpSummary[]): OpGroup[] {
  const keyOf = (op: Pick<OpSummary, 'collective' | 'bytes' | 'group' | 'purpose'>) =>
    `${op.collective} ${op.bytes} ${op.group} ${op.purpose}`;
  const spent = new Map<string, { waiting: number; time: number }>();
  const keys = new Map(ops.map((op) => [op.label, keyOf(op)]));
  for (const op of recording.ops) {
    const key = keys.get(labelOf(op)) ?? keyOf(op);
    const sum = spent.get(key) ?? { waiting: 0, time: 0 };
    sum.time += op.end - op.start;
    sum.waiting += Math.min(op.waiting, op.end - op.start);
    spent.set(key, sum);
  }
  const found = new Map<string, OpSummary[]>();
  for (const op of ops) found.set(keyOf(op), [...(found.get(keyOf(op)) ?? []), op]);
  const rows = [...found].map(([key, list]) => {
    const { collective, bytes, group, purpose } = list[0]!;
    const times = list
      .filter((op) => op.open.length === 0)
      .map((op) => op.end - op.start)
      .sort((a, b) => a - b);
    const last = new Map<number, number>();
    for (const op of list) {
      const rank = op.missing[0] ?? op.straggler;
      last.set(rank, (last.get(rank) ?? 0) + 1);
    }
    const [worst, worstCalls] = [...last].sort((a, b) => b[1] - a[1] || a[0] - b[0])[0]!;
    const sum = spent.get(key) ?? { waiting: 0, time: 0 };
    const length = (op: OpSummary) => op.end - op.start;
    return {
      ...{ key, collective, bytes, group, purpose, calls: list.length },
      ...{ open: list.length - times.length, worstCalls },
      ...{ p50: quantile(times, 0.5), p99: quantile(times, 0.99) },
      waiting: sum.time > 0 ? sum.waiting / sum.time : 0,
      worst: list[0]!.size > 1 && worstCalls * list[0]!.size > list.length ? worst : -1,
      slowest: list.reduce((a, b) => (length(b) > length(a) ? b : a)),
      time: sum.time,
    };
  });
  return rows.sort((a, b) => b.time - a.time).map(({ time: _, ...row }) => row);
}
