// The pipelines of the page, played with the usual times: forward 1, backward 2.
import { unpackPipeline } from '../pipeline/parse';
import { play, type Played } from '../pipeline/play';
import { costsOf, type Pipeline } from '../pipeline/types';
import type { PageData } from './data';

interface Shape {
  ranks: number;
  microbatches: number;
}

export function playedOf(
  { pipelines }: Pick<PageData, 'pipelines'>,
  name: string,
  { ranks, microbatches }: Shape,
): { pipeline: Pipeline; played: Played } | undefined {
  const packed = pipelines
    .find((each) => each.name === name)
    ?.schedules.find((each) => each.actions.length === ranks && each.microbatches === microbatches);
  if (!packed) return undefined;
  const plain = unpackPipeline(name, packed);
  const costs = costsOf(plain, { forward: 1, input: 1, weight: 1, transfer: 0 });
  // A stage holds its share of the rank's memory per microbatch.
  const pipeline = { ...plain, costs, activationBytes: costs.forward, keptBytes: costs.forward };
  return { pipeline, played: play(pipeline) };
}
