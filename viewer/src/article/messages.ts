// The messages of the first chapter. Pure.
import type { Network } from '../model/cost';

// Bytes whose time on the wire is as long as the latency.
export const halfBytes = ({ alphaUs, gbPerS }: Network) => alphaUs * gbPerS * 1000;

export function messageBytes(id: string, chosen: number, network: Network): number {
  if (id === 'short') return 4096;
  return id === 'half' ? halfBytes(network) : chosen;
}
