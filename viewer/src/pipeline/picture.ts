// The contents of the bubble diagram, from the spans that were played.
import type { Played, Span } from './play';
import {
  after,
  isCompute,
  isReceive,
  isSend,
  neighbours,
  partnerOf,
  type Kind,
  type Pipeline,
} from './types';
import { bytesChange } from './verify';

export interface Box extends Span {
  rank: number;
  index: number; // index of the action
  kind: Kind;
  microbatch: number;
  later: number; // 0: the first stage of its rank
}

// Returns the computations that were reached.
export function boxesOf(pipeline: Pipeline, { spans }: Played): Box[] {
  const own = pipeline.actions.map((_, rank) =>
    pipeline.stages.flatMap((at, stage) => (at === rank ? [stage] : [])),
  );
  return pipeline.actions.flatMap((row, rank) =>
    row.flatMap(({ kind, stage, microbatch }, index) => {
      const span = spans[rank]![index]!;
      if (!isCompute(kind) || span.start < 0) return [];
      return [{ ...span, rank, index, kind, microbatch, later: own[rank]!.indexOf(stage) }];
    }),
  );
}

export interface Arrow extends Span {
  from: number;
  to: number;
}

// Returns the time from the departure of a message to its arrival. In measured times, each end of a
// lane notes the completion when it looks, so the earlier of the two times is more accurate.
export function arrowsOf(pipeline: Pipeline, { spans }: Played): Arrow[] {
  const around = neighbours(pipeline);
  const nameOf = (kind: Kind, stage: number, microbatch: number) =>
    `${kind.slice(-1)} ${stage} ${microbatch}`;
  const received = new Map<string, number>();
  pipeline.actions.forEach((row, rank) =>
    row.forEach(({ kind, stage, microbatch }, i) => {
      const { end } = spans[rank]![i]!;
      if (isReceive(kind) && end >= 0) received.set(nameOf(kind, stage, microbatch), end);
    }),
  );
  return pipeline.actions.flatMap((row, from) =>
    row.flatMap((action, i) => {
      const { start, end } = spans[from]![i]!;
      const partner = isSend(action.kind) ? partnerOf(around, action) : -1;
      if (partner < 0 || start < 0) return [];
      const to = pipeline.stages[partner]!;
      const taken = received.get(nameOf(action.kind, partner, action.microbatch)) ?? end;
      return [{ from, to, start, end: Math.max(start, Math.min(end, taken)) }];
    }),
  );
}

export interface Holding {
  changes: { time: number; bytes: number }[]; // the bytes held from this time on
  peak: number;
}

// Returns the memory of each rank over time: from the beginning of F to the end of B, of I and W,
// or of the overlap that contains them.
export function holdings(pipeline: Pipeline, { spans }: Played): Holding[] {
  return pipeline.actions.map((row, rank) => {
    const events: { time: number; change: number }[] = [];
    for (let i = 0; i < row.length; i = after(row, i)) {
      const { start, end } = spans[rank]![i]!;
      for (const action of start < 0 ? [] : row.slice(i, after(row, i))) {
        if (!isCompute(action.kind)) continue;
        const change = bytesChange(pipeline, action);
        events.push({ time: action.kind === 'F' ? start : end, change });
      }
    }
    // Memory that is freed at a time is freed before memory is taken at the same time.
    events.sort((a, b) => a.time - b.time || a.change - b.change);
    let bytes = 0;
    const changes = events.map(({ time, change }) => ({ time, bytes: (bytes += change) }));
    return { changes, peak: Math.max(0, ...changes.map((each) => each.bytes)) };
  });
}

// Returns a rank's activity at a time; undefined: it waits.
export function doingAt(boxes: Box[], rank: number, time: number): Box | undefined {
  return boxes.find((box) => box.rank === rank && box.start <= time && time < box.end);
}

// Returns the share of the time in which the busiest rank waits.
export function bubbleOf({ makespan, busy }: Played): number {
  return makespan > 0 ? 1 - Math.max(...busy) / makespan : 0;
}
