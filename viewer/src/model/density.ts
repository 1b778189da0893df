// Draws time-space diagrams with more messages than there is space for. Nothing is left out:
// messages that coincide are drawn as one line.
import { DOINGS, type Doing, type Job } from './activity';

export interface Span {
  from: number;
  to: number;
  start: number;
  end: number;
  sent?: number; // when it has arrived, if `end` includes the reduction
}

// A time span and its width in pixels.
export interface Window {
  first: number;
  span: number;
  pixels: number;
}

// Adjacent pixels in which a rank spends about the same share of the time on one activity.
export interface Stretch {
  rank: number;
  doing: Doing;
  begin: number; // pixels
  end: number;
  level: number; // 1..LEVELS: the share of the time
}

export const LEVELS = 4;

export function inWindow<T extends { start: number; end: number }>(
  list: T[],
  { first, span }: Window,
): T[] {
  return list.filter((each) => each.end >= first && each.start <= first + span);
}

// Computes the stretches of all ranks. An activity shorter than a pixel counts with its share of
// the pixel, but never as nothing.
export function stretches(jobs: Job[], ranks: number, window: Window): Stretch[] {
  const { first, span, pixels } = window;
  const columns = Math.max(1, Math.ceil(pixels));
  const result: Stretch[] = [];
  const by = new Map<Doing, [number, number][][]>();
  for (const { rank, doing, start, end } of jobs) {
    const lanes = by.get(doing) ?? Array.from({ length: ranks }, () => []);
    lanes[rank]!.push([start, end]);
    by.set(doing, lanes);
  }
  const at = (us: number) => Math.max(0, Math.min(columns, ((us - first) / span) * columns));
  const filled = new Float64Array(columns);
  const touched = new Uint8Array(columns);
  for (const doing of DOINGS) {
    const lanes = by.get(doing) ?? [];
    for (let rank = 0; rank < lanes.length; rank++) {
      filled.fill(0);
      touched.fill(0);
      let until = 0; // pixels: overlapping activities count once
      for (const [start, end] of lanes[rank]!.sort((a, b) => a[0] - b[0])) {
        const left = Math.max(at(start), until);
        const right = at(end);
        touched[Math.min(columns - 1, Math.floor(at(start)))] = 1;
        for (let column = Math.floor(left); column < right; column++) {
          const part = Math.min(right, column + 1) - Math.max(left, column);
          if (part > 0) filled[column]! += part;
        }
        until = Math.max(until, right);
      }
      result.push(...merged(filled, touched, rank, doing));
    }
  }
  return result;
}

function merged(filled: Float64Array, touched: Uint8Array, rank: number, doing: Doing): Stretch[] {
  const result: Stretch[] = [];
  const levelAt = (column: number) =>
    filled[column]! > 0 || touched[column]
      ? Math.max(1, Math.min(LEVELS, Math.ceil(filled[column]! * LEVELS - 1e-6)))
      : 0;
  for (let begin = 0; begin < filled.length;) {
    const level = levelAt(begin);
    let end = begin + 1;
    while (end < filled.length && levelAt(end) === level) end++;
    if (level > 0) result.push({ rank, doing, begin, end, level });
    begin = end;
  }
  return result;
}

// A line for messages between the same ranks that begin and arrive within the same few pixels.
export interface Bundle {
  from: number;
  to: number;
  start: number; // us, mean values
  end: number;
  count: number;
}

// Returns at most about `most` lines: the more messages there are, the larger the area that counts
// as one place.
export function bundles(messages: Span[], ranks: number, window: Window, most: number): Bundle[] {
  const { first, span, pixels } = window;
  for (let width = 2; ; width *= 2) {
    const per = pixels / width / span;
    const columns = Math.ceil(pixels / width) + 2;
    const place = (us: number) =>
      Math.max(0, Math.min(columns - 1, Math.floor((us - first) * per) + 1));
    const found = new Map<number, Bundle>();
    for (const each of messages) {
      const arrival = each.sent ?? each.end;
      const key =
        ((each.from * ranks + each.to) * columns + place(each.start)) * columns + place(arrival);
      const known = found.get(key);
      if (known) {
        known.count++;
        known.start += (each.start - known.start) / known.count;
        known.end += (arrival - known.end) / known.count;
      } else {
        if (found.size > most && width < pixels) break;
        found.set(key, { from: each.from, to: each.to, start: each.start, end: arrival, count: 1 });
      }
    }
    if (found.size <= most || width >= pixels) return [...found.values()];
  }
}
