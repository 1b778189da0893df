// Reads untrusted `unisono.pipeline_times/1`: the measured times of a pipeline step on its ranks,
// and the times that the player predicts.
import { BadInput, isObject } from '../schedule/parse';
import { parsePipeline } from './parse';
import type { Played, Span } from './play';
import { actionText } from './text';
import { isCompute, type Pipeline } from './types';

const TIMES_FORMAT = 'unisono.pipeline_times/1';

export interface PipelineTimes {
  pipeline: Pipeline; // its costs are the measured ones, in microseconds
  measured: Played;
  predicted: Played;
}

export function isPipelineTimes(document: Record<string, unknown>): boolean {
  return (
    typeof document.schema === 'string' && document.schema.startsWith('unisono.pipeline_times/')
  );
}

function spanOf(value: unknown, action: string, place: string): Span {
  if (!isObject(value) || value.action !== action) throw new BadInput(`${place}: no ${action}`);
  const { start, end } = value;
  const isTime = (each: unknown) => typeof each === 'number' && each >= -1 && each <= 1e18;
  if (!isTime(start) || !isTime(end)) throw new BadInput(`${place}: no start and end`);
  return { start: start as number, end: Math.max(start as number, end as number) };
}

function playedOf(pipeline: Pipeline, value: unknown, place: string): Played {
  const rows: unknown[] = Array.isArray(value) ? value : [];
  const spans = pipeline.actions.map((actions, rank) => {
    const row: unknown = rows[rank];
    if (!Array.isArray(row) || row.length !== actions.length) {
      throw new BadInput(`${place}/${rank}: not a time for each of ${actions.length} actions`);
    }
    return actions.map((each, i) => spanOf(row[i], actionText(each), `${place}/${rank}/${i}`));
  });
  const played: Played = { makespan: 0, spans, busy: [], waiting: [] };
  pipeline.actions.forEach((actions, rank) => {
    const own = spans[rank]!.filter((_, i) => isCompute(actions[i]!.kind));
    played.busy.push(own.reduce((sum, { start, end }) => sum + end - start, 0));
    for (const { end } of own) played.makespan = Math.max(played.makespan, end);
  });
  return played;
}

export function parsePipelineTimes(document: Record<string, unknown>): PipelineTimes {
  if (document.schema !== TIMES_FORMAT) {
    throw new BadInput(`/schema: this page reads ${TIMES_FORMAT}`);
  }
  if (!isObject(document.pipeline)) throw new BadInput('/pipeline: no object');
  const pipeline = parsePipeline(document.pipeline);
  return {
    pipeline,
    measured: playedOf(pipeline, document.ranks, '/ranks'),
    predicted: playedOf(pipeline, document.predicted, '/predicted'),
  };
}
