// Tensor parallelism of one transformer layer: weights cut by columns and by rows, and the
// communication that this requires. Pure; the bytes are those of src/stories/layer.ts.
import { comms, type LayerShape } from './layer';
import type { BeatComm, Plan } from './beat';

export interface TensorShape {
  ranks: number;
  sequenceParallel: boolean;
  hidden: number;
  tokens: number; // tokens per microbatch
  vocabulary: number;
}

export function layerShape({ ranks, sequenceParallel, hidden, tokens }: TensorShape): LayerShape {
  return {
    ...{ tp: ranks, cp: 1, dp: 1, pp: 1, ep: 1, hidden, kvHeads: 0, sequence: tokens, batch: 1 },
    ...{ sequenceParallel, context: 'ring', zero: 0, microBatches: 1, topK: 1 },
  };
}

// Returns the forward pass of the layer's second half, the MLP, at one of its positions.
function at(shape: TensorShape, where: string): BeatComm[] {
  return comms(layerShape(shape))
    .filter((each) => each.pass === 'forward' && each.where === where)
    .map(({ collective, size, bytes, times }) => ({ collective, ranks: size, bytes, times }));
}

// Returns all calls of the layer, with equal calls of a pass joined.
function all(shape: TensorShape): BeatComm[] {
  const list: BeatComm[] = [];
  for (const { pass, collective, size: ranks, bytes, times } of comms(layerShape(shape))) {
    if (pass === 'step') continue;
    const same = list.find((each) => each.pass === pass && each.collective === collective);
    if (same) same.times += times;
    else list.push({ pass, collective, ranks, bytes, times });
  }
  return list;
}

export function tensorPlans(shape: TensorShape): Plan[] {
  const { ranks, tokens, sequenceParallel } = shape;
  // The largest logit of each token in four bytes; then its sum of exponentials and its target's
  // logit in eight bytes each.
  const told = [4, 16].map((bytes) => ({
    ...{ collective: 'all_reduce', ranks, bytes: bytes * tokens, times: 1 },
  }));
  return [
    { id: 'cut', length: 1 },
    ...(sequenceParallel ? [{ id: 'gather', length: 1.5, comms: at(shape, 'mlp_in_sp') }] : []),
    { id: 'columns', length: 1 },
    { id: 'rows', length: 1 },
    sequenceParallel
      ? { id: 'scatter', length: 2, comms: at(shape, 'mlp_out_sp') }
      : { id: 'sum', length: 3, comms: at(shape, 'mlp_out') },
    { id: sequenceParallel ? 'block_sp' : 'block', length: 2.5, comms: all(shape) },
    { id: 'vocabulary', length: 1.5, comms: told },
  ];
}

const FLOPS = 400e12; // per second and rank: the speed of large matrix products on an H100

// Returns the microseconds that a rank computes in the forward pass of the layer: two operations
// per weight and token, and the products of attention.
export function computeUs({ ranks, hidden, tokens }: TensorShape): number {
  const operations = 24 * tokens * hidden * hidden + 4 * tokens * tokens * hidden;
  return (operations / ranks / FLOPS) * 1e6;
}

// Returns the bytes of the activations between the blocks that a rank keeps.
export function activationBytes({ ranks, hidden, tokens, sequenceParallel }: TensorShape): number {
  return (2 * tokens * hidden) / (sequenceParallel ? ranks : 1);
}
