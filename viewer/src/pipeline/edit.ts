// Edits of a pipeline that the page offers: an action is dropped, or swapped with the next one.
import type { Pipeline } from './types';

export interface PipelineEdit {
  rank: number;
  index: number; // index among the actions of the rank
  drop: boolean; // false: the action is swapped with the next one
}

export function editPipeline(pipeline: Pipeline, { rank, index, drop }: PipelineEdit): Pipeline {
  const row = [...(pipeline.actions[rank] ?? [])];
  // The parts of an overlap stay together.
  const isFree = (at: number) =>
    at >= 0 &&
    at < row.length &&
    !row.slice(0, at + 1).some((action, i) => action.parts > 0 && i + action.parts >= at);
  if (drop ? !isFree(index) : !(isFree(index) && isFree(index + 1))) return pipeline;
  if (drop) row.splice(index, 1);
  else row.splice(index, 2, row[index + 1]!, row[index]!);
  return { ...pipeline, actions: pipeline.actions.map((own, r) => (r === rank ? row : own)) };
}

// "2.5x" drops action 5 of rank 2, "2.5s" swaps it with the next one; separated by commas.
export function parsePipelineEdits(text: string): PipelineEdit[] {
  return [...text.matchAll(/(\d{1,4})\.(\d{1,6})([xs])/g)].map(([, rank, index, what]) => ({
    ...{ rank: Number(rank), index: Number(index), drop: what === 'x' },
  }));
}
