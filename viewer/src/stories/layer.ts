// One transformer layer on a grid of ranks: who is in which group, and what each group communicates
// in the forward and the backward pass. Pure.

export interface LayerShape {
  tp: number; // tensor parallel
  cp: number; // context parallel
  dp: number; // data parallel
  pp: number; // pipeline stages
  ep: number; // expert parallel, a part of dp; 1: no experts
  hidden: number;
  sequence: number;
  batch: number; // of a micro-batch
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
  over: 'axis' | 'replicas' | 'experts'; // who takes part: see membersOf
  size: number; // of the group
  collective: string; // of the catalogue, or send_recv
  bytes: number; // of one call, as the command line counts
  times: number;
}

const WIDTH = 2; // bytes of an element

export function worldSize({ tp, cp, dp, pp }: LayerShape): number {
  return tp * cp * dp * pp;
}

// Tensor parallel ranks are neighbours, then context, data, pipeline.
export function placeOf(shape: LayerShape, rank: number): Record<Axis, number> {
  const tp = rank % shape.tp;
  const cp = Math.trunc(rank / shape.tp) % shape.cp;
  const dp = Math.trunc(rank / (shape.tp * shape.cp)) % shape.dp;
  const pp = Math.trunc(rank / (shape.tp * shape.cp * shape.dp));
  return { tp, cp, dp, pp, ep: dp % shape.ep };
}

// The ranks that differ from this one only along the axis.
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

// The ranks of a communication that one rank takes part in. Parts of the sequence use the same weights,
// so replicas of weights differ along dp and cp; those of an expert, where the expert is the same.
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
  const { tp, cp, dp, pp, ep, hidden, zero } = shape;
  const tokens = (shape.batch * shape.sequence) / cp; // of a rank
  const activations = tokens * hidden * WIDTH;
  const square = (hidden * hidden * WIDTH) / tp;
  // Of the layer, on a rank: attention 4 h^2, MLP 8 h^2. Experts are replicated less often.
  const weights = (ep > 1 ? 4 : 12) * square;
  // Parts of the sequence use the same weights, so they are replicas, too.
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

  if (zero === 3 && replicas > 1) {
    add('forward', 'zero3_weights', 'dp', 'all_gather', weights, 1, replicas, 'replicas');
  }
  for (const pass of ['forward', 'backward'] as const) {
    const back = pass === 'backward';
    if (back && zero === 3 && replicas > 1) {
      add(pass, 'zero3_weights', 'dp', 'all_gather', weights, 1, replicas, 'replicas');
    }
    if (tp > 1) {
      for (const block of ['attention', 'mlp']) {
        if (ep > 1 && block === 'mlp') continue;
        if (shape.sequenceParallel) {
          add(pass, `${block}_in_${back ? 'back' : 'sp'}`, 'tp', 'all_gather', activations);
          add(pass, `${block}_out_${back ? 'back' : 'sp'}`, 'tp', 'reduce_scatter', activations);
        } else {
          add(pass, back ? `${block}_back` : `${block}_out`, 'tp', 'all_reduce', activations);
        }
      }
    }
    if (cp > 1) {
      if (shape.context === 'ulysses') {
        add(pass, 'ulysses', 'cp', 'all_to_all', activations / tp, 4);
      } else {
        // Keys and values of one rank go all around, and so do their gradients.
        add(pass, 'ring_attention', 'cp', 'send_recv', (2 * activations) / tp, cp - 1);
      }
    }
    if (ep > 1) {
      const routed = (activations * shape.topK) / (shape.sequenceParallel ? tp : 1);
      add(pass, back ? 'combine_back' : 'dispatch', 'ep', 'all_to_all', routed);
      add(pass, back ? 'dispatch_back' : 'combine', 'ep', 'all_to_all', routed);
    }
    if (pp > 1) {
      const share = shape.sequenceParallel ? tp : 1;
      add(pass, back ? 'pipeline_back' : 'pipeline', 'pp', 'send_recv', activations / share);
    }
  }
  const update = (where: string, bytes: number, size: number, over: Comm['over']) => {
    if (size <= 1) return;
    if (zero === 0) add('step', where, 'dp', 'all_reduce', bytes, 1, size, over);
    else add('step', `${where}_zero`, 'dp', 'reduce_scatter', bytes, 1, size, over);
    if (zero === 1 || zero === 2) {
      add('step', 'weights_zero', 'dp', 'all_gather', bytes, 1, size, over);
    }
  };
  update('gradients', weights, replicas, 'replicas');
  if (ep > 1) update('experts', 8 * square, replicas / ep, 'experts');
  return list;
}

// The part of the time in which a stage has nothing to do, the same for GPipe and 1F1B.
export function bubble(stages: number, microBatches: number): number {
  return (stages - 1) / (microBatches + stages - 1);
}

export interface Slot {
  stage: number;
  start: number;
  length: number;
  micro: number;
  back: boolean;
}

// Forward takes 1, backward 2. GPipe: all forward, then all backward. 1F1B: a stage goes back as
// soon as it can, so that at most `stages` micro-batches are kept, and not all of them.
export function pipeline(stages: number, microBatches: number, kind: 'gpipe' | '1f1b'): Slot[] {
  const order = Array.from({ length: stages }, (_, stage) => {
    const list: { micro: number; back: boolean }[] = [];
    const warm = kind === 'gpipe' ? microBatches : Math.min(microBatches, stages - stage);
    let forward = 0;
    while (forward < warm) list.push({ micro: forward++, back: false });
    for (let back = 0; back < microBatches; back++) {
      list.push({ micro: back, back: true });
      if (forward < microBatches) list.push({ micro: forward++, back: false });
    }
    return list;
  });
  const ends = new Map<string, number>();
  const free = new Array<number>(stages).fill(0);
  const at = new Array<number>(stages).fill(0);
  const slots: Slot[] = [];
  for (let left = 2 * stages * microBatches; left > 0;) {
    const before = left;
    for (let stage = 0; stage < stages; stage++) {
      const job = order[stage]![at[stage]!];
      if (!job) continue;
      const peer = job.back ? stage + 1 : stage - 1;
      const isFirst = job.back ? stage === stages - 1 : stage === 0;
      const needs = isFirst
        ? job.back
          ? ends.get(`${stage}/${job.micro}/f`)
          : 0
        : ends.get(`${peer}/${job.micro}/${job.back ? 'b' : 'f'}`);
      if (needs === undefined) continue;
      const start = Math.max(free[stage]!, needs);
      const length = job.back ? 2 : 1;
      slots.push({ stage, start, length, ...job });
      free[stage] = start + length;
      ends.set(`${stage}/${job.micro}/${job.back ? 'b' : 'f'}`, start + length);
      at[stage]!++;
      left--;
    }
    if (left === before) break; // cannot be: nothing could go on
  }
  return slots;
}

// The most micro-batches whose activations a stage keeps at once.
export function kept(stages: number, microBatches: number, kind: 'gpipe' | '1f1b'): number {
  return kind === 'gpipe' ? microBatches : Math.min(stages, microBatches);
}
