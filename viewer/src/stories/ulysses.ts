// Ulysses: all_to_all turns parts of the sequence into heads, and back. Pure.
import { comms, type LayerShape } from './layer';
import type { Plan } from './beat';

export interface UlyssesShape {
  ranks: number;
  sequence: number;
  hidden: number;
}

export function ulyssesLayer({ ranks, sequence, hidden }: UlyssesShape): LayerShape {
  return {
    ...{ tp: 1, cp: ranks, dp: 1, pp: 1, ep: 1, hidden, sequence, batch: 1 },
    ...{ sequenceParallel: false, context: 'ulysses', zero: 0, microBatches: 1, topK: 1 },
  };
}

export function ulyssesPlans(shape: UlyssesShape): Plan[] {
  const { bytes, times } = comms(ulyssesLayer(shape)).find((each) => each.where === 'ulysses')!;
  const all = { collective: 'all_to_all', ranks: shape.ranks, bytes };
  return [
    { id: 'cut', length: 1 },
    { id: 'out', length: 2.5, comms: [{ ...all, times: times - 1 }] }, // Q, K and V
    { id: 'attend', length: 1.5 },
    { id: 'home', length: 2.5, comms: [{ ...all, times: 1 }] }, // the output
    { id: 'limit', length: 1 },
  ];
}
