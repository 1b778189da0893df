// One transformer layer on a grid of ranks: the groups of ranks, and the communication of each
// group in the forward and the backward pass. Pure.
import { parseCsv } from '../pipeline/parse';
import type { Pipeline } from '../pipeline/types';

export interface LayerShape {
  tp: number; // tensor parallel
  cp: number; // context parallel
  dp: number; // data parallel
  pp: number; // pipeline stages
  ep: number; // expert parallel, a part of dp; 1: no experts
  hidden: number;
  kvHeads: number; // heads of keys and values; 0: as many as query heads
  sequence: number;
  batch: number; // sequences in a micro-batch
  sequenceParallel: boolean;
  context: 'ring' | 'ulysses';
  zero: 0 | 1 | 2 | 3;
  microBatches: number;
  topK: number;
}

export type Axis = 'tp' | 'cp' | 'dp' | 'pp' | 'ep';

export interface Comm {
  pass: 'forward' | 'backward' | 'step';
  where: string; // key of a text
  axis: Axis;
  over: 'axis' | 'replicas' | 'experts'; // the participants: see membersOf
  size: number; // size of the group
  collective: string; // of the catalogue, or send_recv
  bytes: number; // of one call, counted as on the command line
  times: number;
}

const WIDTH = 2; // bytes per element
export const HEAD = 128; // elements per head, as in every model of the planner

export const headsOf = ({ hidden }: Pick<LayerShape, 'hidden'>) => Math.max(1, hidden / HEAD);

// Returns the width of keys (or values) relative to queries if each of `ranks` ranks needs a head:
// a head that several ranks use is copied to all of them.
export function kvShare(shape: Pick<LayerShape, 'hidden' | 'kvHeads'>, ranks = 1): number {
  const heads = headsOf(shape);
  return Math.min(1, Math.max(shape.kvHeads || heads, ranks) / heads);
}

// Returns the bytes that a rank has: the activations between two blocks, and the weights of the
// layer.
export function sizesOf(shape: LayerShape) {
  const { tp, cp, ep, hidden, batch, sequence } = shape;
  const square = (hidden * hidden * WIDTH) / tp;
  return {
    activations: ((batch * sequence) / cp) * hidden * WIDTH,
    square,
    // Attention 4 h^2, less if heads share keys and values; MLP 8 h^2. Experts have fewer replicas.
    weights: (2 + 2 * kvShare(shape) + (ep > 1 ? 0 : 8)) * square,
  };
}

export function worldSize({ tp, cp, dp, pp }: LayerShape): number {
  return tp * cp * dp * pp;
}

// Tensor-parallel ranks are neighbours; context, data and pipeline follow.
export function placeOf(shape: LayerShape, rank: number): Record<Axis, number> {
  const tp = rank % shape.tp;
  const cp = Math.trunc(rank / shape.tp) % shape.cp;
  const dp = Math.trunc(rank / (shape.tp * shape.cp)) % shape.dp;
  const pp = Math.trunc(rank / (shape.tp * shape.cp * shape.dp));
  return { tp, cp, dp, pp, ep: dp % shape.ep };
}

// Returns the ranks that differ from this one only along the axis.
export function groupOf(shape: LayerShape, rank: number, axis: Axis): number[] {
  const own = placeOf(shape, rank);
  const same = (a: Axis, other: Record<Axis, number>) => other[a] === own[a];
  const group: number[] = [];
  for (let other = 0; other < worldSize(shape); other++) {
    const at = placeOf(shape, other);
    const isIn =
      axis === 'ep'
        ? (['tp', 'cp', 'pp'] as const).every((a) => same(a, at)) &&
          Math.trunc(at.dp / shape.ep) === Math.trunc(own.dp / shape.ep)
        : (['tp', 'cp', 'dp', 'pp'] as const).every((a) => a === axis || same(a, at));
    if (isIn) group.push(other);
  }
  return group;
}

// Returns the ranks that communicate with a rank. Parts of the sequence use the same weights, so
// replicas of weights differ along dp and cp. Replicas of an expert are the ranks that have the
// same expert.
export function membersOf(shape: LayerShape, rank: number, comm: Comm): number[] {
  if (comm.over === 'axis') return groupOf(shape, rank, comm.axis);
  const own = placeOf(shape, rank);
  const isIn = (at: Record<Axis, number>) =>
    at.tp === own.tp && at.pp === own.pp && (comm.over === 'replicas' || at.ep === own.ep);
  return Array.from({ length: worldSize(shape) }, (_, each) => each).filter((each) =>
    isIn(placeOf(shape, each)),
  );
}

export function comms(shape: LayerShape): Comm[] {
  const { tp, cp, dp, pp, ep, zero } = shape;
  const { activations, square, weights } = sizesOf(shape);
  // Parts of the sequence use the same weights, so they are replicas too.
  const replicas = dp * cp;
  const list: Comm[] = [];
  const add = (
    pass: Comm['pass'],
    where: string,
    axis: Axis,
    collective: string,
    bytes: number,
    times = 1,
    size = shape[axis],
    over: Comm['over'] = 'axis',
  ) => list.push({ pass, where, axis, over, size, collective, bytes, times });

  // ZeRO-3 keeps a shard of the weights, and gathers the weights for each use.
  const collect = (pass: Comm['pass'], where: string, bytes: number, size: number) => {
    if (zero !== 3 || size <= 1) return;
    const over = where === 'zero3_experts' ? 'experts' : 'replicas';
    add(pass, where, 'dp', 'all_gather', bytes, 1, size, over);
  };
  const isSequence = shape.sequenceParallel && tp > 1;
  // The communication around a block of tensor parallelism; `inner` adds the communication inside.
  const block = (pass: Comm['pass'], name: string, bytes: number, inner: () => void) => {
    const end = pass === 'backward' ? 'back' : 'sp';
    if (isSequence) add(pass, `${name}_in_${end}`, 'tp', 'all_gather', bytes);
    inner();
    if (isSequence) add(pass, `${name}_out_${end}`, 'tp', 'reduce_scatter', bytes);
    else if (tp > 1)
      add(pass, end === 'back' ? `${name}_back` : `${name}_out`, 'tp', 'all_reduce', bytes);
  };
  const attention = (pass: Comm['pass']) => {
    block(pass, 'attention', activations, () => {
      if (cp === 1) return;
      if (shape.context === 'ulysses') {
        // Queries and the output; keys and values, of which every rank needs a head.
        const share = kvShare(shape, cp * tp);
        add(pass, 'ulysses', 'cp', 'all_to_all', activations / tp, 2);
        add(pass, 'ulysses_kv', 'cp', 'all_to_all', (activations * share) / tp, 2);
        return;
      }
      // Keys and values travel around the ring; in the backward pass so do their gradients, which
      // must also return.
      const keysValues = (2 * activations * kvShare(shape, tp)) / tp;
      const back = pass === 'backward';
      add(pass, back ? 'ring_back' : 'ring_attention', 'cp', 'send_recv', keysValues, cp - 1);
      if (back) add(pass, 'ring_gradients', 'cp', 'send_recv', keysValues, cp);
    });
  };
  const experts = (pass: Comm['pass']) => {
    const back = pass === 'backward';
    collect(pass, 'zero3_experts', 8 * square, replicas / ep);
    const routed = activations * shape.topK;
    const exchange = (where: string) =>
      add(pass, where, 'ep', 'all_to_all', routed / (isSequence ? tp : 1));
    const there = () => exchange(back ? 'combine_back' : 'dispatch');
    const home = () => exchange(back ? 'dispatch_back' : 'combine');
    if (isSequence) {
      // Each rank has other tokens; if an expert is split over ranks, all of these ranks need the
      // tokens.
      there();
      block(pass, 'experts', routed, () => {});
      home();
    } else {
      block(pass, 'experts', activations, () => {
        there();
        home();
      });
    }
  };
  const mlp = (pass: Comm['pass']) => {
    if (ep > 1) experts(pass);
    else block(pass, 'mlp', activations, () => {});
  };
  const onwards = (pass: Comm['pass'], where: string) => {
    if (pp > 1) add(pass, where, 'pp', 'send_recv', activations / (isSequence ? tp : 1));
  };
  collect('forward', 'zero3_weights', weights, replicas);
  attention('forward');
  mlp('forward');
  onwards('forward', 'pipeline');
  // The backward pass reverses the order.
  collect('backward', 'zero3_weights', weights, replicas);
  mlp('backward');
  attention('backward');
  onwards('backward', 'pipeline_back');

  const update = (where: string, bytes: number, size: number, over: Comm['over']) => {
    if (size <= 1) return;
    if (zero === 0) add('step', where, 'dp', 'all_reduce', bytes, 1, size, over);
    if (zero === 1) add('step', `${where}_zero`, 'dp', 'reduce_scatter', bytes, 1, size, over);
    // A rank that keeps only a shard of the gradients cannot gather them over micro-batches.
    if (zero >= 2) add('backward', `${where}_each`, 'dp', 'reduce_scatter', bytes, 1, size, over);
    if (zero === 1 || zero === 2) {
      add('step', 'weights_zero', 'dp', 'all_gather', bytes, 1, size, over);
    }
  };
  update('gradients', weights, replicas, 'replicas');
  if (ep > 1) update('experts', 8 * square, replicas / ep, 'experts');
  return list;
}

// Returns the share of the time in which a stage is idle, the same for GPipe and 1F1B.
export function bubble(stages: number, microBatches: number): number {
  return (stages - 1) / (microBatches + stages - 1);
}

// GPipe: all forward passes, then all backward passes. 1F1B: a stage starts a backward pass as soon
// as possible, so it keeps at most `stages` micro-batches. Forward takes 1, backward 2.
export function pipeline(stages: number, microBatches: number, kind: 'gpipe' | '1f1b'): Pipeline {
  const rows = Array.from({ length: stages }, (_, stage) => {
    const row: string[] = [];
    const warm = kind === 'gpipe' ? microBatches : Math.min(microBatches, stages - stage);
    let forward = 0;
    while (forward < warm) row.push(`${stage}F${forward++}`);
    for (let back = 0; back < microBatches; back++) {
      row.push(`${stage}B${back}`);
      if (forward < microBatches) row.push(`${stage}F${forward++}`);
    }
    return row.join(',');
  });
  return parseCsv(rows.join('\n'), kind);
}

// Returns the most micro-batches whose activations a stage keeps at the same time.
export function kept(stages: number, microBatches: number, kind: 'gpipe' | '1f1b'): number {
  return kind === 'gpipe' ? microBatches : Math.min(stages, microBatches);
}
