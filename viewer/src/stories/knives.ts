// The cuts of a model, and the part that a GPU keeps under each. Pure.

export const KNIVES = [
  'none',
  'batch',
  'state',
  'hidden',
  'sequence',
  'layers',
  'experts',
] as const;
export type Knife = (typeof KNIVES)[number];

export const BILLIONS = 70; // parameters, as Llama 3 70B
export const CARD_GB = 80;
const BYTES = 16; // bytes per parameter: weights 2, gradients 2, optimizer 12 (src/stories/data.ts)
const MLP = 0.8; // share of the weights of Llama 3 70B; they become experts

// GB of weights, gradients and optimizer state on each of n GPUs.
export function gbOf(knife: Knife, n: number): number {
  const all = BILLIONS * BYTES;
  switch (knife) {
    case 'state':
    case 'hidden':
    case 'layers':
      return all / n;
    case 'experts':
      return all * (1 - MLP + MLP / n);
    default:
      return all; // if a batch or a sequence is cut, every GPU keeps the whole model
  }
}

export const fits = (knife: Knife, n: number) => gbOf(knife, n) <= CARD_GB;
