// Lower bounds of the cost of a collective on a one-port network, for any algorithm
// (src/cost/bounds.h).
import { plainForm, reduces } from '../schedule/collective';
import { mostMoved } from '../schedule/counts';
import type { Schedule } from '../schedule/types';
import type { Network } from './cost';

export interface Bound {
  messages: number;
  bytes: number;
  reduced: number; // bytes that some rank must reduce
}

export function lowerBound(collective: string, ranks: number, bytes: number): Bound {
  if (ranks === 1) return { messages: 0, bytes: 0, reduced: 0 };
  const messages = Math.ceil(Math.log2(ranks));
  const others = (bytes * (ranks - 1)) / ranks;
  const reduced = !reduces(collective)
    ? 0
    : others - (collective === 'exclusive_scan' ? bytes / ranks : 0);
  switch (plainForm(collective)) {
    case 'barrier':
      return { messages, bytes: 0, reduced };
    case 'broadcast':
    case 'reduce':
    case 'scan':
    case 'exclusive_scan':
      return { messages, bytes, reduced };
    case 'all_reduce':
      return { messages, bytes: 2 * others, reduced };
    default:
      return { messages, bytes: others, reduced };
  }
}

// The bounds for a schedule, from its counts if it has some.
export function boundOf({ collective, ranks, counts }: Schedule, bytes: number): Bound {
  const bound = lowerBound(collective, ranks, bytes);
  return counts ? { ...bound, bytes: mostMoved(counts, false) } : bound;
}

export function boundUs(bound: Bound, network: Network): number {
  const adding = network.reduceGbPerS ? bound.reduced / (network.reduceGbPerS * 1000) : 0;
  const sending = bound.bytes / (network.gbPerS * 1000);
  return Math.max(bound.messages * network.alphaUs, sending, adding);
}
