// The sample of "A model's step": the output of `unisono step show --json`, in which calls that are
// equal in every layer occur once (src/stories/step.json; a test compares it with the program).
// Pure.
import { parseStep, type ModelStep } from '../model/step';
import sample from './step.json';

export interface PackedCall {
  layers?: number[]; // the first and the last layer
  [field: string]: unknown;
}

// Adjacent calls with the same layers are repeated layer by layer.
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
