// Clocks for the stage: when each step ends and when each of its messages is under way, as the model
// predicts it or as it was recorded. Without one all steps are alike.
import type { Timing } from '../model/cost';
import { labelOf, type RecordedMessage, type RecordedOp, type Recording } from '../model/recording';
import { endsOf } from '../model/sweep';
import type { Schedule } from '../schedule/types';

export interface Clock {
  ends: Float64Array; // us, by step
  spanOf: (move: number) => { start: number; end: number } | undefined;
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

// The messages of an operation that ran this schedule: the one labelled `op`, or the first one.
function recordedMessages(
  schedule: Schedule,
  { messages, ops, title }: Recording,
  op: string,
): RecordedMessage[] {
  const isThis = (each: RecordedOp) =>
    each.collective === schedule.collective && each.algorithm === schedule.algorithm;
  const labels = ops.filter(isThis).map(labelOf);
  if (title === `${schedule.collective}/${schedule.algorithm}` && messages.length > 0) {
    labels.push(messages[0]!.op);
  }
  const present = new Set(messages.map((each) => each.op));
  const label = labels.includes(op) ? op : labels.find((each) => present.has(each));
  return messages.filter((each) => each.op === label && each.step < schedule.steps);
}

// undefined: the recording has no messages of this schedule, or is a simulation, which leaves out
// steps that repeat.
export function recordedClock(
  schedule: Schedule,
  recording: Recording,
  op = '',
): Clock | undefined {
  const { ranks, isSimulated } = recording;
  const fits = ranks === schedule.ranks && !isSimulated;
  const own = fits ? recordedMessages(schedule, recording, op) : [];
  if (own.length === 0) return undefined;
  // Time begins with the operation.
  const begin = own.reduce((least, each) => Math.min(least, each.start), Infinity);
  const shifted = own.map((m) => ({ ...m, start: m.start - begin, end: m.end - begin }));
  const key = (step: number, from: number, to: number) => (step * ranks + from) * ranks + to;
  const spans = new Map(shifted.map((each) => [key(each.step, each.from, each.to), each]));
  const { step, from, to } = schedule.moves;
  return {
    ends: endsOf(shifted, schedule.steps),
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
