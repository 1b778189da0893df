// The messages of the first chapter. Pure.
import type { Network } from '../model/cost';
import { bytesText } from '../model/units';

// The number of bytes whose time on the wire equals the latency.
export const halfBytes = ({ alphaUs, gbPerS }: Network) => alphaUs * gbPerS * 1000;

// Returns a size as text; round thousands below 1 MB are kB.
export const sizeText = (bytes: number) =>
  bytes % 1024 && bytes % 500 === 0 && bytes < 1e6 ? `${bytes / 1000} kB` : bytesText(bytes);

// The side of a message's box, whose area is proportional to its bytes; large enough to be visible.
const MOST_BYTES = 512 * 2 ** 20;
const MOST_SIDE = 60;
export const boxSide = (bytes: number) => Math.max(2, MOST_SIDE * Math.sqrt(bytes / MOST_BYTES));

export function messageBytes(id: string, chosen: number, network: Network): number {
  if (id === 'short') return 4096;
  return id === 'half' ? halfBytes(network) : chosen;
}
