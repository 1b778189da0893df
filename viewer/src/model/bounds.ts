// The least that a collective can cost on a one-port network, whatever the algorithm
// (src/model/bounds.h).
import { plainForm } from '../schedule/collective';
import type { Network } from './cost';

export interface Bound {
  messages: number;
  bytes: number;
}

export function lowerBound(collective: string, ranks: number, bytes: number): Bound {
  if (ranks === 1) return { messages: 0, bytes: 0 };
  const messages = Math.ceil(Math.log2(ranks));
  const others = (bytes * (ranks - 1)) / ranks;
  switch (plainForm(collective)) {
    case 'barrier':
      return { messages, bytes: 0 };
    case 'broadcast':
    case 'reduce':
      return { messages, bytes };
    case 'all_reduce':
      return { messages, bytes: 2 * others };
    default:
      return { messages, bytes: others };
  }
}

export function boundUs(bound: Bound, network: Network): number {
  return Math.max(bound.messages * network.alphaUs, bound.bytes / (network.gbPerS * 1000));
}
