// Data parallelism and ZeRO: when gradients leave, what each rank keeps, and how long a step takes.
// Pure. The collectives are those of src/stories/layer.ts.
import type { BeatComm, Plan } from './beat';

export interface DataShape {
  ranks: number;
  stage: 0 | 1 | 2 | 3; // stage of ZeRO
  billions: number; // parameters
  tokens: number; // tokens per rank and step
}

export const BUCKETS = 8; // parts of the model, in the order of its layers

// Bytes per parameter in mixed precision with Adam: 2 for weights, 2 for gradients, and 12 for the
// optimizer state (Rajbhandari et al., 2020).
export const KINDS = ['weights', 'gradients', 'optimizer'] as const;
export const BYTES = { weights: 2, gradients: 2, optimizer: 12 } as const;

// Returns the share of each kind that a rank keeps between steps.
export function shares(stage: number, ranks: number) {
  return {
    weights: stage >= 3 ? 1 / ranks : 1,
    gradients: stage >= 2 ? 1 / ranks : 1,
    optimizer: stage >= 1 ? 1 / ranks : 1,
  };
}

export function bytesKept(stage: number, ranks: number, parameters: number): number {
  const share = shares(stage, ranks);
  return parameters * KINDS.reduce((sum, kind) => sum + BYTES[kind] * share[kind], 0);
}

const parameters = ({ billions }: DataShape) => billions * 1e9;
const bucketBytes = (shape: DataShape) => (2 * parameters(shape)) / BUCKETS;

const call = (collective: string, shape: DataShape, times: number): BeatComm => ({
  ...{ collective, ranks: shape.ranks, bytes: bucketBytes(shape), times },
});

export const gbText = (bytes: number) => `${Number((bytes / 1e9).toPrecision(3))} GB`;

// Returns the operation that reduces a bucket's gradients.
export function reduction(stage: number): string {
  return stage === 0 ? 'all_reduce' : 'reduce_scatter';
}

export function dataPlans(shape: DataShape): Plan[] {
  const gather = [call('all_gather', shape, BUCKETS)];
  const { stage } = shape;
  return [
    { id: 'replicas', length: 1 },
    { id: 'forward', length: 2, ...(stage === 3 ? { comms: gather } : {}) },
    {
      ...{ id: 'backward', length: 3 },
      comms: [...(stage === 3 ? gather : []), call(reduction(stage), shape, BUCKETS)],
    },
    { id: 'update', length: 1.5, ...(stage === 1 || stage === 2 ? { comms: gather } : {}) },
    { id: 'memory', length: 2 },
  ];
}

export interface Job {
  lane: 'compute' | 'network';
  phase: 'forward' | 'backward' | 'update';
  what: string; // F, B, U or a collective
  bucket: number; // -1: all buckets
  start: number; // us
  end: number;
}

const FLOPS = 400e12; // per second and rank

// Returns one step: a lane of computations and a lane of communications, each with one job after
// the other. `us` returns the duration of a call on one bucket.
export function timeline(shape: DataShape, us: (collective: string) => number): Job[] {
  const jobs: Job[] = [];
  const free = { compute: 0, network: 0 };
  const add = (
    lane: Job['lane'],
    phase: Job['phase'],
    what: string,
    bucket: number,
    ready: number,
    time: number,
  ): number => {
    const start = Math.max(free[lane], ready);
    free[lane] = start + time;
    jobs.push({ lane, phase, what, bucket, start, end: free[lane] });
    return free[lane];
  };
  const computing = ((2 * parameters(shape) * shape.tokens) / FLOPS / BUCKETS) * 1e6;
  const whole = shape.stage === 3;
  const pass = (phase: 'forward' | 'backward', order: number[]) => {
    const begun: number[] = []; // when the computation of each bucket began
    order.forEach((bucket, i) => {
      // Weights are gathered while the previous bucket is computed, not earlier, because memory is
      // bounded.
      const asked = i < 2 ? 0 : begun[i - 2]!;
      const ready = whole
        ? add('network', phase, 'all_gather', bucket, asked, us('all_gather'))
        : 0;
      const time = phase === 'forward' ? computing : 2 * computing;
      const end = add('compute', phase, phase === 'forward' ? 'F' : 'B', bucket, ready, time);
      begun.push(end - time);
      if (phase === 'backward') {
        const what = reduction(shape.stage);
        add('network', phase, what, bucket, end, us(what));
      }
    });
  };
  const order = Array.from({ length: BUCKETS }, (_, i) => i);
  pass('forward', order);
  pass('backward', [...order].reverse());
  const summed = Math.max(free.compute, free.network);
  const updated = add('compute', 'update', 'U', -1, summed, computing / 4);
  if (shape.stage === 1 || shape.stage === 2) {
    for (const bucket of order)
      add('network', 'update', 'all_gather', bucket, updated, us('all_gather'));
  }
  return jobs;
}

export const endOf = (jobs: Job[]) => Math.max(0, ...jobs.map((job) => job.end));

// Returns the part of a step without computation.
export function exposed(jobs: Job[]): number {
  const computed = jobs.filter((job) => job.lane === 'compute');
  return endOf(jobs) - computed.reduce((sum, job) => sum + job.end - job.start, 0);
}

export type Held = 'none' | 'shard' | 'all';

export interface BucketState {
  weights: Held;
  gradients: Held;
  isSummed: boolean;
}

// Returns a rank's part of each bucket at a time.
export function stateAt(shape: DataShape, jobs: Job[], time: number): BucketState[] {
  return Array.from({ length: BUCKETS }, (_, bucket) => {
    const of = (what: string, phase?: string) =>
      jobs.find((j) => j.bucket === bucket && j.what === what && (!phase || j.phase === phase));
    const done = (job: Job | undefined) => job !== undefined && job.end <= time + 1e-9;
    const collected = (['forward', 'backward'] as const).some(
      (phase) => done(of('all_gather', phase)) && !done(of(phase === 'forward' ? 'F' : 'B', phase)),
    );
    const isSummed = done(of(reduction(shape.stage)));
    const back = done(of('B'));
    return {
      weights: shape.stage < 3 || collected ? 'all' : 'shard',
      gradients: !back ? 'none' : isSummed && shape.stage >= 2 ? 'shard' : 'all',
      isSummed,
    };
  });
}
