// Matches recorded messages with the schedule that sent them.
import { chunkBytes } from '../schedule/collective';
import type { Schedule } from '../schedule/types';
import type { RecordedMessage } from './recording';

type Sent = Pick<RecordedMessage, 'step' | 'from' | 'to'>;

// Returns the bytes of the operation that sent these messages, derived from the first message that
// the schedule has; 0: none.
export function bytesOf(schedule: Schedule, messages: (Sent & { bytes: number })[]): number {
  const { moves } = schedule;
  for (const message of messages) {
    let chunks = 0;
    for (let i = 0; i < moves.count; i++) {
      const isIt = moves.from[i] === message.from && moves.to[i] === message.to;
      if (isIt && moves.step[i] === message.step) chunks += moves.chunks[i]!;
    }
    if (chunks > 0) return message.bytes / (chunkBytes(schedule, 1) * chunks);
  }
  return 0;
}

// Returns the step of the schedule in which a message is sent. A recording has the step in which
// the message is used: the engine lets a rank reduce data that others sent in earlier steps.
export function plannedSteps(schedule: Schedule, messages: Sent[]): (message: Sent) => number {
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
