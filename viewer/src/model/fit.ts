// Fits the network of a recording: the latency and bandwidth that bring the model closest to the
// recorded times. A prediction beside a recording is then one for the recorded machine.
import { timing } from './cost';
import { quantile } from './op_groups';
import type { OpSummary } from './operations';
import { labelOf, type Recording } from './recording';
import type { Schedule } from '../schedule/types';

export interface Fitted {
  alphaUs: number;
  gbPerS: number;
  shapes: number; // number of different operations that were fitted
}

interface Point {
  messages: number; // us, if a message takes 1 us and its bytes take no time
  bytes: number; // us at 1 GB/s, if a message has no latency
  us: number; // us, as recorded
}

// Least squares of the relative errors; neither parameter is negative.
export function fitPoints(points: Point[]): { alphaUs: number; usPerGb: number } | undefined {
  let [aa, ab, bb, a, b] = [0, 0, 0, 0, 0];
  for (const { messages, bytes, us } of points) {
    if (us <= 0) continue;
    const [x, y] = [messages / us, bytes / us];
    aa += x * x;
    ab += x * y;
    bb += y * y;
    a += x;
    b += y;
  }
  if (aa === 0) return undefined;
  const det = aa * bb - ab * ab;
  if (det > 1e-9 * aa * bb) {
    const [alphaUs, usPerGb] = [(a * bb - b * ab) / det, (b * aa - a * ab) / det];
    if (alphaUs >= 0 && usPerGb >= 0) return { alphaUs, usPerGb };
    if (alphaUs < 0) return { alphaUs: 0, usPerGb: b / bb };
  }
  // All operations have the same size, or only latency matters.
  return { alphaUs: a / aa, usPerGb: 0 };
}

const MOST_MOVES = 20_000;
const MOST_SHAPES = 64;

// Measures from the arrival of the last rank, because earlier time does not depend on the network.
// undefined: no operation with a schedule in the page has ended.
export function fitRecording(
  recording: Recording,
  ops: OpSummary[],
  scheduleFor: (op: OpSummary) => Schedule | undefined,
): Fitted | undefined {
  const spans = new Map<string, { start: number; end: number }>();
  for (const op of recording.ops) {
    const span = spans.get(labelOf(op)) ?? { start: -Infinity, end: -Infinity };
    span.start = Math.max(span.start, op.start);
    span.end = Math.max(span.end, op.end);
    spans.set(labelOf(op), span);
  }
  const shapes = new Map<string, { op: OpSummary; times: number[] }>();
  for (const op of ops) {
    if (op.open.length > 0 || op.missing.length > 0 || op.size < 2) continue;
    const key = `${op.collective}/${op.algorithm} ${op.size} ${op.root} ${op.bytes}`;
    const { start, end } = spans.get(op.label)!;
    const shape = shapes.get(key) ?? { op, times: [] };
    shape.times.push(end - start);
    shapes.set(key, shape);
  }
  const points: Point[] = [];
  for (const { op, times } of [...shapes.values()].slice(0, MOST_SHAPES)) {
    const schedule = scheduleFor(op);
    if (!schedule || schedule.moves.count > MOST_MOVES) continue;
    const messages = timing(schedule, 0, { alphaUs: 1, gbPerS: 1 }).total;
    const bytes = timing(schedule, op.bytes, { alphaUs: 0, gbPerS: 1 }).total;
    const us = quantile(
      times.sort((x, y) => x - y),
      0.5,
    );
    points.push({ messages, bytes, us });
  }
  const found = fitPoints(points);
  if (!found) return undefined;
  const round = (value: number) => Number(value.toPrecision(3));
  const gbPerS = found.usPerGb > 0 ? 1 / found.usPerGb : 1e5;
  return {
    alphaUs: round(Math.min(1e6, found.alphaUs)),
    gbPerS: round(Math.max(0.001, Math.min(1e5, gbPerS))),
    shapes: points.length,
  };
}
