// The costs of algorithms with a short formula: a number of consecutive messages, and a multiple of
// the call's bytes over one port. A test compares them with `unisono plan`, which covers all other
// algorithms.
//
// A time is messages * alpha + volume * Data / bandwidth; `unisono list` gives the sources.
import type { Network } from './cost';

export interface Formula {
  algorithm: string;
  text: string; // n ranks, D bytes, B bandwidth, a latency, S segments
  anyRanks: boolean; // otherwise only powers of two
  messages: (n: number, segments: number) => number;
  volume: (n: number, segments: number) => number; // in units of the call's bytes
}

const lg = (n: number) => Math.ceil(Math.log2(n));
const others = (n: number) => (n - 1) / n;

const row = (
  algorithm: string,
  text: string,
  anyRanks: boolean,
  messages: Formula['messages'],
  volume: Formula['volume'],
): Formula => ({ algorithm, text, anyRanks, messages, volume });

const RING = row('ring', '(n−1)·α + (n−1)/n · D/B', true, (n) => n - 1, others);
const HALVES = '⌈lg n⌉·α + (n−1)/n · D/B';

export const FORMULAS: Record<string, Formula[]> = {
  broadcast: [
    row(
      'chain',
      '(S+n−2) · (α + D/(S·B))',
      true,
      (n, s) => s + n - 2,
      (n, s) => (s + n - 2) / s,
    ),
    row('binomial', '⌈lg n⌉ · (α + D/B)', true, lg, lg),
    row(
      'scatter_all_gather',
      '(lg n + n−1)·α + 2·(n−1)/n · D/B',
      false,
      (n) => lg(n) + n - 1,
      (n) => 2 * others(n),
    ),
    row(
      'flat',
      '(n−1) · (α + D/B)',
      true,
      (n) => n - 1,
      (n) => n - 1,
    ),
  ],
  all_reduce: [
    row(
      'ring',
      '2·(n−1)·α + 2·(n−1)/n · D/B',
      true,
      (n) => 2 * (n - 1),
      (n) => 2 * others(n),
    ),
    row(
      'halving_doubling',
      '2·lg n·α + 2·(n−1)/n · D/B',
      false,
      (n) => 2 * lg(n),
      (n) => 2 * others(n),
    ),
    row('recursive_doubling', 'lg n · (α + D/B)', false, lg, lg),
  ],
  all_gather: [RING, row('recursive_doubling', HALVES, false, lg, others)],
  reduce_scatter: [RING, row('recursive_halving', HALVES, false, lg, others)],
  all_to_all: [
    // An odd number of ranks needs one more round: in each round one rank has no partner.
    row(
      'pairwise',
      '(n−1 + n mod 2) · (α + D/(n·B))',
      true,
      (n) => n - 1 + (n % 2),
      (n) => (n - 1 + (n % 2)) / n,
    ),
    row('bruck', 'lg n · (α + D/(2·B))', false, lg, (n) => lg(n) / 2),
  ],
};

export interface Cost {
  formula: Formula;
  latencyUs: number;
  bytesUs: number;
  us: number;
}

export interface Call {
  collective: string;
  ranks: number;
  bytes: number;
  segments: number; // the segments of the chain
}

// Returns the formulas for this number of ranks, fastest first; of equal ones, the first in the
// list.
export function costs({ collective, ranks, bytes, segments }: Call, network: Network): Cost[] {
  const isPower = Number.isInteger(Math.log2(ranks));
  return (FORMULAS[collective] ?? [])
    .filter((each) => each.anyRanks || isPower)
    .map((formula) => {
      const latencyUs = formula.messages(ranks, segments) * network.alphaUs;
      const bytesUs = (formula.volume(ranks, segments) * bytes) / (network.gbPerS * 1000);
      return { formula, latencyUs, bytesUs, us: latencyUs + bytesUs };
    })
    .sort((a, b) => (Math.abs(a.us - b.us) <= 1e-9 * b.us ? 0 : a.us - b.us));
}

// Returns the fastest number of segments of a chain: a further message then costs as much as it
// saves.
export function bestSegments(ranks: number, bytes: number, network: Network): number {
  const wire = bytes / (network.gbPerS * 1000);
  if (ranks <= 2 || network.alphaUs === 0) return 1;
  return Math.max(1, Math.round(Math.sqrt(((ranks - 2) * wire) / network.alphaUs)));
}

// A broadcast through a chain of n ranks in S segments.
export function chainUs(ranks: number, segments: number, bytes: number, network: Network): number {
  return costs({ collective: 'broadcast', ranks, bytes, segments }, network).find(
    ({ formula }) => formula.algorithm === 'chain',
  )!.us;
}
