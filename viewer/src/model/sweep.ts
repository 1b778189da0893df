// The time of every algorithm over a range of sizes, for the chart that shows why libraries switch.
import type { Schedule } from '../schedule/types';
import { timing, type Network } from './cost';

export interface Curve {
  name: string;
  us: number[]; // by size
}

// Powers of two from 2^first to 2^last.
export function sizes(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, i) => 2 ** (first + i));
}

export function curves(schedules: Schedule[], at: number[], network: Network): Curve[] {
  return schedules.map((schedule) => ({
    name: schedule.algorithm,
    us: at.map((bytes) => timing(schedule, bytes, network).total),
  }));
}

export interface Best {
  name: string;
  from: number; // the size from which this algorithm is fastest
}

// Interpolates the time between two computed sizes. Times are sums and maxima of terms that are
// linear in the bytes, so interpolation is exact unless the order of messages changes.
export function usAt({ us }: Curve, at: number[], bytes: number): number {
  const next = at.findIndex((size) => size >= bytes);
  if (next < 0) return us.at(-1)!;
  if (next === 0) return us[0]!;
  const part = (bytes - at[next - 1]!) / (at[next]! - at[next - 1]!);
  return us[next - 1]! + part * (us[next]! - us[next - 1]!);
}

// Returns the fastest algorithm for each range of sizes; of equal ones, the first one stays.
export function quickest(list: Curve[], at: number[]): Best[] {
  const best: Best[] = [];
  at.forEach((bytes, i) => {
    let winner = list.find((curve) => curve.name === best.at(-1)?.name) ?? list[0];
    for (const curve of list) {
      if (winner && curve.us[i]! < winner.us[i]! * (1 - 1e-9)) winner = curve;
    }
    const last = list.find((curve) => curve.name === best.at(-1)?.name);
    if (!winner || winner === last) return;
    let from = bytes;
    if (last && i > 0) {
      const before = winner.us[i - 1]! - last.us[i - 1]!; // at least 0: it was not the fastest
      const after = last.us[i]! - winner.us[i]!;
      from = at[i - 1]! + ((bytes - at[i - 1]!) * before) / (before + after);
    }
    best.push({ name: winner.name, from });
  });
  return best;
}

// Returns when each step has ended on all ranks: a clock for stages that move step by step.
export function stepEnds(schedule: Schedule, bytes: number, network: Network): Float64Array {
  return endsOf(timing(schedule, bytes, network).messages, schedule.steps);
}

export function endsOf(messages: { step: number; end: number }[], steps: number): Float64Array {
  const ends = new Float64Array(steps);
  for (const { step, end } of messages) ends[step] = Math.max(ends[step]!, end);
  for (let i = 1; i < ends.length; i++) ends[i] = Math.max(ends[i]!, ends[i - 1]!);
  return ends;
}

// Returns the step at a time, and the progress in it.
export function positionAt(ends: Float64Array, us: number): { step: number; fraction: number } {
  let step = 0;
  while (step < ends.length && ends[step]! <= us) step++;
  if (step === ends.length) return { step, fraction: 0 };
  const before = step === 0 ? 0 : ends[step - 1]!;
  return { step, fraction: Math.max(0, Math.min(0.999, (us - before) / (ends[step]! - before))) };
}
