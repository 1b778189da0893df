// Reads the block lengths of an all_to_all_v from untrusted `unisono.counts/1`.
import { chunkBytes, pairSize } from './collective';
import type { Counts, Schedule } from './types';

// Returns an error message, or the counts. Counts may exceed the integers that a number represents
// exactly; the page shows only widths, and bytes and times to three digits.
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

// Returns the bytes of each move of a call of `bytes` bytes. If the schedule has counts, they give
// the blocks; a block is cut into chunks as length_of() in src/schedule/schedule.h does.
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

// Returns the most that a rank sends or receives. With `withOwn`, a rank's own block counts, as in
// the size of a call; otherwise only bytes from and to other ranks count, which every algorithm
// must move.
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
