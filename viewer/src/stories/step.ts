// The sample of "A model's step": what `unisono step show --json` says, where calls that are the same in every
// layer stand once (src/stories/step.json, compared with the program by a test). Pure.
import { parseStep, type ModelStep } from '../model/step';
import sample from './step.json';

export interface PackedCall {
  layers?: number[]; // the first and the last one
  [field: string]: unknown;
}

// Neighbours with the same layers are gone through layer by layer.
export function unpackCalls(packed: PackedCall[]): Record<string, unknown>[] {
  const calls: Record<string, unknown>[] = [];
  for (let begin = 0, end = 0; begin < packed.length; begin = end) {
    const [first = -1, last = -1] = packed[begin]!.layers ?? [];
    const isSame = ({ layers: [a = -1, b = -1] = [] }: PackedCall) => a === first && b === last;
    while (end < packed.length && isSame(packed[end]!)) end++;
    for (let layer = first; layer <= last; layer++) {
      calls.push(...packed.slice(begin, end).map(({ layers: _, ...call }) => ({ ...call, layer })));
    }
  }
  return calls;
}

export function sampleStep(): ModelStep {
  const ranks = sample.ranks.map((rank) => ({ ...rank, calls: unpackCalls(rank.calls) }));
  return parseStep({ ...sample, ranks });
}
