// The arguments of the pictures of stories, and the settings of a story in the form that its
// picture uses.
import type { Network } from '../model/cost';
import type { Plan } from '../stories/beat';
import { METHODS, type ContextShape } from '../stories/context';
import { BUCKETS, timeline, type DataShape } from '../stories/data';
import type { OverlapShape } from '../stories/overlap';
import type { TensorShape } from '../stories/tensor';
import type { UlyssesShape } from '../stories/ulysses';
import type { TextKey } from '../text/texts';
import { costOf } from './collective';
import { t } from './t.svelte';

export type Values = Record<string, number>; // values of the fields, by key

// The arguments of every picture: it draws into an SVG of this size, at this time of the story's
// clock.
export interface PictureProps {
  values: Values;
  plans: Plan[];
  time: number;
  width: number;
  height: number;
  network: Network;
}

export const tensorShape = (v: Values): TensorShape => ({
  ...{ ranks: v.ranks!, sequenceParallel: v.sp === 1, hidden: v.hidden!, tokens: v.tokens! },
  vocabulary: 128 * 1024,
});
export const dataShape = (v: Values): DataShape => ({
  ...{ ranks: v.ranks!, stage: v.stage as 0, billions: v.billions!, tokens: v.tokens! },
});
export const contextShape = (v: Values): ContextShape => ({
  ...{ ranks: v.ranks!, method: METHODS[v.method!]!, sequence: v.sequence!, hidden: v.hidden! },
  kvHeads: v.kvHeads!,
});
export const ulyssesShape = (v: Values): UlyssesShape => ({
  ...{ ranks: v.ranks!, sequence: v.sequence!, hidden: v.hidden!, kvHeads: v.kvHeads! },
});
export const overlapShape = (v: Values): OverlapShape => ({
  ...{ ranks: v.ranks!, billions: v.billions!, tokens: v.tokens!, buckets: v.buckets! },
});

// Returns the jobs of a step of data parallelism on a network.
export function jobsOf(shape: DataShape, network: Network) {
  const bucket = (2e9 * shape.billions) / BUCKETS;
  return timeline(shape, (name) => costOf(name, shape.ranks, bucket, network).us);
}

export const axisName = (axis: string) =>
  `${t(`axis_${axis}` as TextKey)} (${axis.replace('_', '·')})`;
