// Ulysses: all_to_all turns parts of the sequence into heads, and back. Pure.
import { comms, headsOf, type LayerShape } from './layer';
import type { Plan } from './beat';

export interface UlyssesShape {
  ranks: number;
  sequence: number;
  hidden: number;
  kvHeads: number; // 0: as many as query heads
}

export function ulyssesLayer({ ranks, sequence, hidden, kvHeads }: UlyssesShape): LayerShape {
  return {
    ...{ tp: 1, cp: ranks, dp: 1, pp: 1, ep: 1, hidden, kvHeads, sequence, batch: 1 },
    ...{ sequenceParallel: false, context: 'ulysses', zero: 0, microBatches: 1, topK: 1 },
  };
}

export function ulyssesPlans(shape: UlyssesShape): Plan[] {
  const [whole, shared] = comms(ulyssesLayer(shape));
  const call = (bytes: number, times: number) => ({
    ...{ collective: 'all_to_all', ranks: shape.ranks, bytes, times },
  });
  return [
    { id: 'cut', length: 1 },
    { id: 'out', length: 2.5, comms: [call(whole!.bytes, 1), call(shared!.bytes, 2)] }, // Q; K and V
    { id: 'attend', length: 1.5 },
    { id: 'home', length: 2.5, comms: [call(whole!.bytes, 1)] }, // the output
    { id: 'limit', length: 1 },
  ];
}

// Returns the bytes that a rank sends in the forward pass of a layer. A test compares them with the
// schedules.
export function sentBy(method: 'ulysses' | 'ring', shape: UlyssesShape): number {
  const { ranks } = shape;
  return comms({ ...ulyssesLayer(shape), context: method })
    .filter(({ pass }) => pass === 'forward')
    .reduce((sum, { bytes, times }) => {
      const share = method === 'ulysses' ? (ranks - 1) / ranks : 1;
      return sum + times * share * bytes;
    }, 0);
}

// Returns the smallest of these rank counts with which the ring sends more than Ulysses; undefined:
// none.
export function crossing(shape: UlyssesShape, counts: number[]): number | undefined {
  return counts.find((ranks) => {
    const at = { ...shape, ranks };
    return ranks <= headsOf(shape) && sentBy('ulysses', at) < sentBy('ring', at);
  });
}
