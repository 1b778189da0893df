// Clocks for the stage: when each step ends and when each of its messages is under way, as the model
// predicts it or as it was recorded. Without one all steps are alike.
import type { Timing } from '../model/cost';
import { labelOf, type RecordedMessage, type Recording } from '../model/recording';
import { endsOf } from '../model/sweep';
import type { Schedule } from '../schedule/types';

export interface Clock {
  ends: Float64Array; // us, by step
  spanOf: (move: number) => { start: number; end: number } | undefined;
}

export interface RecordedClock extends Clock {
  label: string; // of the operation
  messages: RecordedMessage[]; // its own, from its beginning on
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

// The label of an operation that ran this schedule and has messages: `op`, or the first one.
function labelFor(
  schedule: Schedule,
  { messages, ops, title }: Recording,
  op: string,
): string | undefined {
  const { collective, algorithm } = schedule;
  const labels = new Set<string>();
  for (const each of ops) {
    if (each.collective === collective && each.algorithm === algorithm) labels.add(labelOf(each));
  }
  if (title === `${collective}/${algorithm}` && messages.length > 0) labels.add(messages[0]!.op);
  if (labels.has(op)) return op;
  const present = new Set(messages.map((each) => each.op));
  for (const label of labels) if (present.has(label)) return label;
  return undefined;
}

type Sent = Pick<RecordedMessage, 'step' | 'from' | 'to'>;

// The step of the schedule in which a message is sent. A recording has the one in which it is used: the
// engine lets a rank add up what others have sent in earlier steps.
function plannedSteps(schedule: Schedule, messages: Sent[]): (message: Sent) => number {
  const { ranks, moves } = schedule;
  const pair = ({ from, to }: { from: number; to: number }) => from * ranks + to;
  const planned = new Map<number, Set<number>>();
  for (let i = 0; i < moves.count; i++) {
    const at = pair({ from: moves.from[i]!, to: moves.to[i]! });
    planned.set(at, (planned.get(at) ?? new Set()).add(moves.step[i]!));
  }
  const used = new Map<number, Set<number>>();
  for (const each of messages) {
    used.set(pair(each), (used.get(pair(each)) ?? new Set()).add(each.step));
  }
  const found = new Map<string, number>();
  for (const [at, steps] of used) {
    const free = [...(planned.get(at) ?? [])].filter((step) => !steps.has(step));
    for (const step of [...steps].sort((a, b) => b - a)) {
      if (planned.get(at)?.has(step)) continue;
      const before = free.filter((each) => each < step);
      if (before.length === 0) continue;
      const sent = Math.max(...before);
      found.set(`${at} ${step}`, sent);
      free.splice(free.indexOf(sent), 1);
    }
  }
  return (message) => found.get(`${pair(message)} ${message.step}`) ?? message.step;
}

// undefined: the recording has no messages of this schedule, or is a simulation, which leaves out
// steps that repeat.
export function recordedClock(
  schedule: Schedule,
  recording: Recording,
  op = '',
): RecordedClock | undefined {
  const { ranks, isSimulated, messages } = recording;
  const fits = ranks === schedule.ranks && !isSimulated;
  const label = fits ? labelFor(schedule, recording, op) : undefined;
  const own = messages.filter((each) => each.op === label && each.step < schedule.steps);
  if (label === undefined || own.length === 0) return undefined;
  // Time begins with the operation.
  const begin = own.reduce((least, each) => Math.min(least, each.start), Infinity);
  const stepOf = plannedSteps(schedule, own);
  const key = (step: number, from: number, to: number) => (step * ranks + from) * ranks + to;
  const spans = new Map<number, { step: number; start: number; end: number }>();
  for (const each of own) {
    const at = stepOf(each);
    const known = spans.get(key(at, each.from, each.to));
    const [start, end] = [each.start - begin, each.end - begin];
    // A move may go as several messages.
    if (!known) spans.set(key(at, each.from, each.to), { step: at, start, end });
    else
      Object.assign(known, { start: Math.min(known.start, start), end: Math.max(known.end, end) });
  }
  const { step, from, to } = schedule.moves;
  return {
    label,
    messages: own.map((m) => ({ ...m, start: m.start - begin, end: m.end - begin })),
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

// How long a step takes, where the mean is 1. Never nothing, so that it can be seen.
export function lengthOf(clock: Clock | undefined, step: number): number {
  const total = clock?.ends.at(-1) ?? 0;
  if (!clock || total <= 0 || step >= clock.ends.length) return 1;
  const share = (clock.ends[step]! - begins(clock, step)) / total;
  return Math.max(0.05, share * clock.ends.length);
}

// How far a move is on its way while its step is played.
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
