// Clocks for the stage: when each step ends and when each of its messages is in transit, as
// predicted by the model or as recorded. Without a clock all steps have the same length.
import type { Timing } from '../model/cost';
import type { OpSummary } from '../model/operations';
import type { RecordedMessage, Recording } from '../model/recording';
import { plannedSteps } from '../model/planned';
import { endsOf } from '../model/sweep';
import type { Schedule } from '../schedule/types';

export interface Clock {
  ends: Float64Array; // us, by step
  spanOf: (move: number) => { start: number; end: number } | undefined;
}

export interface RecordedClock extends Clock {
  label: string; // the label of the operation
  members: number[]; // members of its group, as ranks of the world
  begin: number; // us: when its first message was sent
  messages: RecordedMessage[]; // its messages from `begin` on, between ranks of the group
}

export function modelClock(schedule: Schedule, times: Timing): Clock {
  return {
    ends: endsOf(times.messages, schedule.steps),
    spanOf: (move) => {
      const message = times.messages[times.messageOf[move] ?? -1];
      return message && { start: message.start, end: message.sent };
    },
  };
}

// Returns the operation that ran this schedule and has messages: `op`, or the first one.
function operationFor(
  { collective, algorithm, ranks }: Schedule,
  { messages, title, ranks: all }: Recording,
  ops: OpSummary[],
  op: string,
): { label: string; members: number[] } | undefined {
  const present = new Set(messages.map((each) => each.op));
  const isOne = (each: OpSummary) =>
    each.collective === collective &&
    each.algorithm === algorithm &&
    each.size === ranks &&
    present.has(each.label);
  const chosen = ops.find((each) => each.label === op && isOne(each));
  const found = chosen ?? ops.find(isOne);
  if (found) return found;
  if (title !== `${collective}/${algorithm}` || messages.length === 0) return undefined;
  if (ranks !== all || ops.length > 0) return undefined;
  return { label: messages[0]!.op, members: Array.from({ length: all }, (_, rank) => rank) };
}

// undefined: the recording has no messages of this schedule, or it is a simulation, which leaves
// out repeated steps.
export function recordedClock(
  schedule: Schedule,
  recording: Recording,
  ops: OpSummary[],
  op = '',
): RecordedClock | undefined {
  const { isSimulated, messages } = recording;
  const { ranks } = schedule;
  const found = isSimulated ? undefined : operationFor(schedule, recording, ops, op);
  if (!found) return undefined;
  const { label, members } = found;
  // The schedule's ranks are numbered within the group.
  const index = new Map(members.map((rank, i) => [rank, i]));
  const own = messages.flatMap((each) => {
    const from = index.get(each.from);
    const to = index.get(each.to);
    const fits = each.op === label && each.step < schedule.steps;
    return fits && from !== undefined && to !== undefined ? [{ ...each, from, to }] : [];
  });
  if (own.length === 0) return undefined;
  // Time starts with the operation.
  const begin = own.reduce((least, each) => Math.min(least, each.start), Infinity);
  const stepOf = plannedSteps(schedule, own);
  const key = (step: number, from: number, to: number) => (step * ranks + from) * ranks + to;
  const spans = new Map<number, { step: number; start: number; end: number }>();
  for (const each of own) {
    const at = stepOf(each);
    const known = spans.get(key(at, each.from, each.to));
    const [start, end] = [each.start - begin, each.end - begin];
    // A move may be sent as several messages.
    if (!known) spans.set(key(at, each.from, each.to), { step: at, start, end });
    else
      Object.assign(known, { start: Math.min(known.start, start), end: Math.max(known.end, end) });
  }
  const { step, from, to } = schedule.moves;
  return {
    label,
    members,
    begin,
    messages: own.map((m) => ({
      ...{ ...m, step: stepOf(m) },
      ...{ start: m.start - begin, end: m.end - begin },
    })),
    ends: endsOf([...spans.values()], schedule.steps),
    spanOf: (move) => spans.get(key(step[move]!, from[move]!, to[move]!)),
  };
}

function begins(clock: Clock, step: number): number {
  return step === 0 ? 0 : clock.ends[step - 1]!;
}

export function timeAt(clock: Clock, step: number, fraction: number): number {
  if (step >= clock.ends.length) return clock.ends.at(-1) ?? 0;
  const begin = begins(clock, step);
  return begin + fraction * (clock.ends[step]! - begin);
}

// Returns the length of a step, where the mean is 1. Never zero, so that it is visible.
export function lengthOf(clock: Clock | undefined, step: number): number {
  const total = clock?.ends.at(-1) ?? 0;
  if (!clock || total <= 0 || step >= clock.ends.length) return 1;
  const share = (clock.ends[step]! - begins(clock, step)) / total;
  return Math.max(0.05, share * clock.ends.length);
}

// Returns the progress of a move while its step is played.
export function partOf(
  clock: Clock | undefined,
  step: number,
  fraction: number,
  move: number,
): number {
  const span = clock?.spanOf(move);
  if (!clock || !span || span.end <= span.start) return fraction;
  const now = timeAt(clock, step, fraction);
  return Math.max(0, Math.min(1, (now - span.start) / (span.end - span.start)));
}
