// What the bubble diagram draws, from the spans that were played.
import type { Played, Span } from './play';
import { isCompute, isSend, neighbours, partnerOf, type Kind, type Pipeline } from './types';
import { bytesChange } from './verify';

export interface Box extends Span {
  rank: number;
  index: number; // of the action
  kind: Kind;
  microbatch: number;
  later: number; // 0: the first stage of its rank
}

// The computations that were reached.
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

// From when a message leaves to when it arrives.
export function arrowsOf(pipeline: Pipeline, { spans }: Played): Arrow[] {
  const around = neighbours(pipeline);
  return pipeline.actions.flatMap((row, from) =>
    row.flatMap((action, i) => {
      const { start, end } = spans[from]![i]!;
      const partner = isSend(action.kind) ? partnerOf(around, action) : -1;
      if (partner < 0 || start < 0) return [];
      const to = pipeline.stages[partner]!;
      return [{ from, to, start, end }];
    }),
  );
}

export interface Holding {
  changes: { time: number; bytes: number }[]; // what is held from then on
  peak: number;
}

// The memory of each rank over time: from the begin of F to the end of B, I and W.
export function holdings(pipeline: Pipeline, { spans }: Played): Holding[] {
  return pipeline.actions.map((row, rank) => {
    const events = row.flatMap((action, i) => {
      const { start, end } = spans[rank]![i]!;
      if (!isCompute(action.kind) || start < 0) return [];
      return [{ time: action.kind === 'F' ? start : end, change: bytesChange(pipeline, action) }];
    });
    // What is freed at the same moment is freed before more is taken.
    events.sort((a, b) => a.time - b.time || a.change - b.change);
    let bytes = 0;
    const changes = events.map(({ time, change }) => ({ time, bytes: (bytes += change) }));
    return { changes, peak: Math.max(0, ...changes.map((each) => each.bytes)) };
  });
}

// What a rank does at a time; undefined: it waits.
export function doingAt(boxes: Box[], rank: number, time: number): Box | undefined {
  return boxes.find((box) => box.rank === rank && box.start <= time && time < box.end);
}

// The share of the time in which the rank that has the most work waits.
export function bubbleOf({ makespan, busy }: Played): number {
  return makespan > 0 ? 1 - Math.max(...busy) / makespan : 0;
}
