// How long the blocks of an all_to_all_v are, as `unisono.counts/1` has them: untrusted as well.
import type { Counts, Schedule } from './types';

// A message about what is wrong, or the counts. They may be beyond what a number holds exactly:
// what is drawn of them are widths.
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

export interface Span {
  x: number;
  width: number;
}

// Where the blocks of the row of a destination are in a strip that is `width` wide for the longest
// row; by origin.
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
