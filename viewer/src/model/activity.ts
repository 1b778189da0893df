// The activity of each rank over time: the lanes of a time-space diagram.
import type { Span } from './density';
import type { RecordedEvent, RecordedOp, Recording } from './recording';

// inside: in a library call without further details.
export const DOINGS = ['inside', 'waits', 'sends', 'receives', 'adds'] as const;
export type Doing = (typeof DOINGS)[number];

export interface Job {
  rank: number;
  doing: Doing;
  start: number; // us
  end: number;
}

const DOES: Record<RecordedEvent['kind'], Doing> = {
  ...{ send: 'sends', receive: 'receives', reduce: 'adds', copy: 'adds' },
};

// For recordings that contain only messages, which last as long as they are in transit.
export function jobsOfMessages(messages: Span[]): Job[] {
  return messages.flatMap(({ from, to, start, end, sent = end }) => [
    { rank: from, doing: 'sends' as const, start, end: sent },
    { rank: to, doing: 'receives' as const, start, end: sent },
    ...(sent < end ? [{ rank: to, doing: 'adds' as const, start: sent, end }] : []),
  ]);
}

// A recorded message lasts until the receiver takes it, which may be long after it arrived. So only
// events show when a rank was busy. Between the events of an operation, the rank waits.
export function jobsOfRecording(
  recording: Recording,
  isMeant?: (op: RecordedOp) => boolean,
): Job[] {
  const { ops, events, transfers, messages } = recording;
  if (ops.length === 0) return jobsOfMessages(messages);
  const jobs: Job[] = [];
  let at = 0; // events are sorted by operation
  ops.forEach((op, row) => {
    const first = at;
    while (at < events.length && events[at]!.op === row) at++;
    if (!isMeant || isMeant(op)) addJobs(op, events.slice(first, at), jobs);
  });
  for (const { rank, start, end } of isMeant ? [] : transfers)
    jobs.push({ rank, doing: 'inside', start, end });
  return jobs;
}

function addJobs({ rank, start, end, waiting }: RecordedOp, events: RecordedEvent[], jobs: Job[]) {
  if (events.length === 0) {
    const waits = end > start && waiting > 0.5 * (end - start);
    jobs.push({ rank, doing: waits ? 'waits' : 'inside', start, end });
    return;
  }
  let until = start;
  for (const each of events) {
    if (each.start > until) jobs.push({ rank, doing: 'waits', start: until, end: each.start });
    jobs.push({ rank, doing: DOES[each.kind], start: each.start, end: each.end });
    until = Math.max(until, each.end);
  }
  if (end > until) jobs.push({ rank, doing: 'waits', start: until, end });
}
