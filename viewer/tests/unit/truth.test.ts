// The stories say what the program's own training step calls (`unisono step show --train`): the same collectives,
// as many bytes, as often, on up to 16 ranks.
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseStep, type StepCall } from '../../src/model/step';
import type { Plan } from '../../src/stories/beat';
import { contextPlans, METHODS } from '../../src/stories/context';
import { dataPlans } from '../../src/stories/data';
import { tensorPlans } from '../../src/stories/tensor';
import { ulyssesPlans } from '../../src/stories/ulysses';
import { run } from '../program';

const HIDDEN = 768;
const LAYERS = 2;
// The stories' layer: as many heads of keys and values as of queries, and 12 hidden² weights, 8 of them in the MLP.
const MODEL = {
  ...{ architectures: ['LlamaForCausalLM'], model_type: 'llama', torch_dtype: 'bfloat16' },
  ...{ hidden_size: HIDDEN, intermediate_size: (8 * HIDDEN) / 3, num_hidden_layers: LAYERS },
  ...{ num_attention_heads: 16, num_key_value_heads: 16, vocab_size: 4096 },
  ...{ max_position_embeddings: 4096, rms_norm_eps: 1e-5, tie_word_embeddings: false },
};
const file = join(mkdtempSync(join(tmpdir(), 'viewer-truth-')), 'config.json');
writeFileSync(file, JSON.stringify(MODEL));

type Said = [collective: string, bytes: number, times: number];

// Returns rank 0's calls; what it receives is what another rank sends.
function stepOf(layout: string, train: string, words: string): StepCall[] {
  const given = ['--layout', layout, '--train', train, '--with', words, '--json'];
  const step = parseStep(JSON.parse(run(['step', 'show', file, ...given])));
  return step.ranks[0]!.calls.filter(({ what }) => what !== 'computing' && what !== 'receive');
}
function counted(calls: { what: string; bytes: number; times?: number }[]): Said[] {
  const counts = new Map<string, Said>();
  for (const { what, bytes, times = 1 } of calls) {
    const said = counts.get(`${what} ${bytes}`);
    if (said) said[2] += times;
    else counts.set(`${what} ${bytes}`, [what, bytes, times]);
  }
  return [...counts.values()].sort((a, b) => a[0].localeCompare(b[0]) || a[1] - b[1]);
}
const told = (plans: Plan[], id = /./) =>
  counted(
    plans
      .filter((plan) => id.test(plan.id))
      .flatMap(({ comms = [] }) =>
        comms.map(({ collective, bytes, times }) => ({
          ...{ what: collective === 'send_recv' ? 'send' : collective, bytes, times },
        })),
      ),
  );
const inLayer = (calls: StepCall[]) => calls.filter(({ layer }) => layer === 0);

describe.each([2, 4, 8, 16])('tensor parallelism of %i ranks', (ranks) => {
  const shape = { ranks, hidden: HIDDEN, tokens: 512, vocabulary: MODEL.vocab_size };

  it.each([false, true])('calls what the step calls (sequence parallel: %s)', (sp) => {
    const calls = stepOf(`tp=${ranks}`, '2x256', sp ? 'sp vocab' : 'vocab');
    const plans = tensorPlans({ ...shape, sequenceParallel: sp });
    // The gradients of norms, which each rank has for its own rows, are no activations.
    const isNorm = ({ what, bytes }: StepCall) => what === 'all_reduce' && bytes === 2 * HIDDEN;
    expect(told(plans, /^block/)).toEqual(
      counted(inLayer(calls).filter((call) => !(sp && isNorm(call)))),
    );
    const ends = ['largest told', 'sums added'];
    expect(told(plans, /^vocabulary$/)).toEqual(
      counted(calls.filter(({ node }) => ends.includes(node))),
    );
  });
});

describe.each([2, 3, 4, 6, 8, 12, 16])('data parallelism of %i ranks', (ranks) => {
  it.each([0, 1, 2, 3] as const)('calls for each layer what the step calls, ZeRO %i', (stage) => {
    const calls = stepOf(`dp=${ranks}`, `${ranks}x64`, stage > 0 ? `zero=${stage}` : '');
    const weights = 2 * 12 * HIDDEN ** 2;
    const layers = calls.filter(({ bytes }) => bytes === weights + 2 * 2 * HIDDEN); // and two norms
    const billions = 7;
    const ours = told(dataPlans({ ranks, stage, billions, tokens: 64 })).map(
      ([what, bytes, times]) => [what, (bytes * times) / (2e9 * billions)],
    );
    expect(ours).toEqual(counted(layers).map(([what, , times]) => [what, times / LAYERS]));
  });
});

describe.each([2, 3, 4, 6, 8, 12, 16])('context parallelism of %i ranks', (ranks) => {
  const sequence = 48 * ranks;
  it.each(METHODS)('sends what the step sends: %s', (method) => {
    const words = { ring: 'contiguous', zigzag: '', gather: 'all_gather' }[method];
    const calls = inLayer(stepOf(`cp=${ranks}`, `1x${sequence}`, words));
    const isWeights = ({ bytes }: StepCall) => bytes > 12 * HIDDEN ** 2;
    expect(told(contextPlans({ ranks, method, sequence, hidden: HIDDEN, kvHeads: 0 }))).toEqual(
      counted(calls.filter((call) => !isWeights(call))),
    );
  });
});

describe.each([2, 4, 8, 16])('Ulysses of %i ranks', (ranks) => {
  it('calls what the forward pass of the step calls', () => {
    const sequence = 48 * ranks;
    const calls = inLayer(stepOf(`uly=${ranks}`, `1x${sequence}`, '')).filter(
      ({ section, what }) => section.startsWith('forward') && what === 'all_to_all',
    );
    // A number for each row and head goes with the outputs, for the backward pass.
    const rows = (2 * sequence * HIDDEN) / ranks;
    expect(told(ulyssesPlans({ ranks, sequence, hidden: HIDDEN, kvHeads: 0 }))).toEqual(
      counted(calls.filter(({ bytes }) => bytes === rows)),
    );
    expect(calls.filter(({ bytes }) => bytes > rows / 10 && bytes !== rows)).toEqual([]);
  });
});
