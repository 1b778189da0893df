// Operations as bars over the visible time span. Pure.
import type { OpSummary } from '../model/operations';

// The same span as in the time-space diagram below.
export const LEFT = 66;
export const RIGHT = 10;
const MOST_ROWS = 4; // of operations that overlap, such as those of several groups
const NARROW = 1.5; // pixels; adjacent narrower bars merge into one

export interface Bar {
  op: OpSummary; // the longest, if the bar merges several
  row: number;
  x: number;
  wide: number;
  count: number;
}

export function packed(
  ops: OpSummary[],
  total: number,
  zoom: number,
  from: number,
  pixels: number,
): Bar[] {
  const span = Math.max(total / zoom, 1e-9);
  const first = from * total;
  const ends: number[] = [];
  const lasts: (Bar | undefined)[] = [];
  const bars: Bar[] = [];
  for (const op of [...ops].sort((a, b) => a.start - b.start)) {
    if (op.end < first || op.start > first + span) continue;
    const x = Math.max(0, ((op.start - first) / span) * pixels);
    const end = Math.min(pixels, ((op.end - first) / span) * pixels);
    let row = ends.findIndex((each) => each <= op.start);
    if (row < 0) row = ends.length < MOST_ROWS ? ends.length : MOST_ROWS - 1;
    ends[row] = Math.max(ends[row] ?? 0, op.end);
    const before = lasts[row];
    const isNarrow = end - x < NARROW;
    if (isNarrow && before && before.wide < 2 * NARROW && x - (before.x + before.wide) < 1) {
      if (op.end - op.start > before.op.end - before.op.start) before.op = op;
      before.wide = Math.max(before.wide, end - before.x);
      before.count++;
      continue;
    }
    const bar = { op, row, x, wide: Math.max(1, end - x), count: 1 };
    lasts[row] = bar;
    bars.push(bar);
  }
  return bars;
}
