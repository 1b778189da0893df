// Overlap and fusion: the same computation and communication, one after the other, at the same
// time, and with fewer passes through memory. Pure; the caller gives the duration of a call.
import type { BeatComm, Plan } from './beat';

export interface OverlapShape {
  ranks: number;
  billions: number; // parameters
  tokens: number; // tokens per rank and step
  buckets: number;
}

export const BUCKET_COUNTS = [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536];
// The speed of large matrix products on an H100, and the memory bandwidth of its data sheet, per
// rank.
const FLOPS = 400e12; // per second
const MEMORY = 3350e9; // bytes per second
export const HIDDEN = 8192;
// Each call is launched before its first byte moves: a kernel, and its bookkeeping on the host.
export const LAUNCH_US = 20;

export interface Bar {
  lane: 'compute' | 'network';
  what: string; // B, a collective, or a pass through memory
  part: number; // the bucket; -1: there is only one
  start: number; // us
  end: number;
}

// Returns the duration of one call.
export type CallUs = (collective: string, bytes: number) => number;

const gradientBytes = ({ billions }: OverlapShape) => 2e9 * billions;

// The backward pass: four operations for each parameter and token.
export function backwardUs({ billions, tokens }: OverlapShape): number {
  return ((4 * billions * 1e9 * tokens) / FLOPS) * 1e6;
}

// A bucket leaves as soon as its layers are computed and the previous bucket has left; with `wait`,
// only when all layers are computed.
export function backward(shape: OverlapShape, us: CallUs, wait: boolean): Bar[] {
  const { buckets } = shape;
  const computing = backwardUs(shape) / buckets;
  const sending = LAUNCH_US + us('all_reduce', gradientBytes(shape) / buckets);
  const bars: Bar[] = [];
  let free = 0;
  for (let part = 0; part < buckets; part++) {
    const end = (part + 1) * computing;
    bars.push({ lane: 'compute', what: 'B', part, start: part * computing, end });
    const start = Math.max(free, wait ? buckets * computing : end);
    free = start + sending;
    bars.push({ lane: 'network', what: 'all_reduce', part, start, end: free });
  }
  return bars;
}

export const endOf = (bars: Bar[]) => bars.reduce((end, bar) => Math.max(end, bar.end), 0);

// Returns the communication that computation does not hide.
export function exposedUs(bars: Bar[]): number {
  const computed = bars.filter((bar) => bar.lane === 'compute');
  return endOf(bars) - computed.reduce((sum, bar) => sum + bar.end - bar.start, 0);
}

// Returns the duration of the step, and its exposed part, for each number of buckets.
export function sweep(
  shape: OverlapShape,
  us: CallUs,
): { buckets: number; us: number; exposed: number }[] {
  return BUCKET_COUNTS.map((buckets) => {
    const bars = backward({ ...shape, buckets }, us, false);
    return { buckets, us: endOf(bars), exposed: exposedUs(bars) };
  });
}

// Returns the smallest number of buckets beyond which the step gains less than one per cent.
export function enough(steps: { buckets: number; us: number }[]): number {
  const best = Math.min(...steps.map((each) => each.us));
  return steps.find((each) => each.us <= 1.01 * best)!.buckets;
}

export const activationBytes = ({ tokens }: OverlapShape) => 2 * tokens * HIDDEN;

export const FUSIONS = ['apart', 'fused', 'between'] as const;
export type Fusion = (typeof FUSIONS)[number];

// Passes through memory after the partial sums of a block are added up, as the number of reads and
// writes of the activations. Separately, the residual reads two and writes one, and the norm reads
// one and writes one. Fused, the result of the residual is not read again. Between the halves of an
// all_reduce, each rank does this for its own tokens only, as sequence parallelism does
// (Korthikanti et al., 2022).
export function fusion(shape: OverlapShape, us: CallUs, kind: Fusion): Bar[] {
  const bytes = activationBytes(shape);
  const walk = (times: number) => ((times * bytes) / MEMORY) * 1e6;
  const parts: [Bar['lane'], string, number][] =
    kind === 'between'
      ? [
          ['network', 'reduce_scatter', us('reduce_scatter', bytes)],
          ['compute', 'residual_norm', walk(4 / shape.ranks)],
          ['network', 'all_gather', us('all_gather', bytes)],
        ]
      : [
          ['network', 'all_reduce', us('all_reduce', bytes)],
          ...(kind === 'fused'
            ? ([['compute', 'residual_norm', walk(4)]] as [Bar['lane'], string, number][])
            : ([
                ['compute', 'residual', walk(3)],
                ['compute', 'norm', walk(2)],
              ] as [Bar['lane'], string, number][])),
        ];
  let time = 0;
  return parts.map(([lane, what, takes]) => {
    const start = time;
    time += takes;
    return { lane, what, part: -1, start, end: time };
  });
}

// A line of a picture.
export interface BarRow {
  name: string;
  bars: Bar[];
  part: number; // progress, 0 to 1
}

export interface FusionPiece {
  bar: Bar;
  at: number; // us of its own lane before it
  takes: number; // us
  before: number; // us of the network before it
}

// Returns a row of fusion in two lanes, each without the time of the other.
export function fusionRow(bars: Bar[]) {
  const lanes = { network: 0, compute: 0 };
  const pieces: FusionPiece[] = bars.map((bar) => {
    const piece = {
      ...{ bar, at: lanes[bar.lane], takes: bar.end - bar.start, before: lanes.network },
    };
    lanes[bar.lane] += piece.takes;
    return piece;
  });
  return { pieces, networkUs: lanes.network, memoryUs: lanes.compute, end: endOf(bars) };
}

export function overlapPlans(shape: OverlapShape): Plan[] {
  const call = (collective: string, bytes: number, times: number): BeatComm => ({
    ...{ collective, ranks: shape.ranks, bytes, times },
  });
  const whole = gradientBytes(shape);
  const bytes = activationBytes(shape);
  return [
    { id: 'apart', length: 2, comms: [call('all_reduce', whole, 1)] },
    {
      ...{ id: 'buckets', length: 3 },
      comms: [call('all_reduce', whole / shape.buckets, shape.buckets)],
    },
    { id: 'sweep', length: 1.5 },
    { id: 'unfused', length: 1.5, comms: [call('all_reduce', bytes, 1)] },
    { id: 'fused', length: 1.5, comms: [call('all_reduce', bytes, 1)] },
    {
      ...{ id: 'between', length: 1.5 },
      comms: [call('reduce_scatter', bytes, 1), call('all_gather', bytes, 1)],
    },
  ];
}
