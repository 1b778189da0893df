// The block lengths of an all_to_all_v, from `unisono.counts/1`: untrusted as well.
import { chunkBytes, pairSize } from './collective';
import type { Counts, Schedule } from './types';

// A message about what is wrong, or the counts. They may be beyond what a number holds exactly:
// what is shown of them are widths, and bytes and times to three digits.
export function readCounts(value: Record<string, unknown>, ranks: number): Counts | string {
  const send = readTable(value.send, ranks);
  if (typeof send === 'string') return `send: ${send}`;
  const bytes = value.element_bytes ?? 1;
  if (typeof bytes !== 'number' || !(bytes >= 1)) return 'element_bytes: no size';
  return { elementBytes: bytes, send };
}

function readTable(value: unknown, ranks: number): number[][] | string {
  if (!Array.isArray(value) || value.length !== ranks) return `no ${ranks} rows`;
  for (const row of value) {
    if (!Array.isArray(row) || row.length !== ranks) return `a row without ${ranks} counts`;
    if (!row.every((count) => typeof count === 'number' && count >= 0)) return 'no count';
  }
  return value as number[][];
}

// Bytes of each move, by its number, of a call of `bytes` bytes. Counts say it, where there are some:
// a block is cut into chunks as length_of() of src/schedule/schedule.h cuts it.
export function bytesOfMoves(schedule: Schedule, bytes: number): (move: number) => number {
  const { counts, moves, ranks } = schedule;
  if (counts === undefined) {
    const chunk = chunkBytes(schedule, bytes);
    return (move) => chunk * moves.chunks[move]!;
  }
  const cuts = pairSize(schedule);
  const elements = (chunk: number) => {
    const block = Math.trunc(chunk / cuts);
    const count = counts.send[Math.trunc(block / ranks)]?.[block % ranks] ?? 0;
    const begin = chunk % cuts;
    return Math.floor((count * (begin + 1)) / cuts) - Math.floor((count * begin) / cuts);
  };
  return (move) => {
    let sum = 0;
    for (let i = 0; i < moves.chunks[move]!; i++) sum += elements(moves.chunk[move]! + i);
    return sum * counts.elementBytes;
  };
}

// The most that a rank sends or receives: `withOwn`, as a call of so many bytes counts, or to and
// from others only, which no algorithm can do without.
export function mostMoved({ send, elementBytes }: Counts, withOwn: boolean): number {
  const sums = send.flatMap((row, rank) => {
    const own = withOwn ? 0 : row[rank]!;
    const sent = row.reduce((sum, count) => sum + count, -own);
    return [sent, send.reduce((sum, from) => sum + from[rank]!, -own)];
  });
  return Math.max(0, ...sums) * elementBytes;
}

export interface Span {
  x: number;
  width: number;
}

// Returns the positions of a destination row's blocks, by origin, in a strip that is `width` wide
// for the longest row.
export function spansOf(schedule: Schedule, row: number, width: number): Span[] | undefined {
  const { counts, ranks } = schedule;
  if (counts === undefined) return undefined;
  const total = (to: number) => counts.send.reduce((sum, from) => sum + from[to]!, 0);
  const longest = Math.max(...Array.from({ length: ranks }, (_, to) => total(to)));
  const unit = longest > 0 ? width / longest : 0;
  let x = 0;
  return counts.send.map((from) => {
    const span = { x, width: from[row]! * unit };
    x += span.width;
    return span;
  });
}

export function endOf(spans: Span[]): number {
  const last = spans.at(-1);
  return last === undefined ? 0 : last.x + last.width;
}
