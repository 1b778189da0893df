// The drawn stories as data: their settings, the beats with their texts, and their pictures.
import type { Component } from 'svelte';
import type { Network } from '../model/cost';
import { bytesText, timeText } from '../model/units';
import Context from '../pictures/Context.svelte';
import Data from '../pictures/Data.svelte';
import Order from '../pictures/Order.svelte';
import Overlap from '../pictures/Overlap.svelte';
import Reshard from '../pictures/Reshard.svelte';
import Tensor from '../pictures/Tensor.svelte';
import Together from '../pictures/Together.svelte';
import Ulysses from '../pictures/Ulysses.svelte';
import type { Plan } from '../stories/beat';
import { contextPlans, duration, METHODS } from '../stories/context';
import { bytesKept, dataPlans, exposed } from '../stories/data';
import {
  activationBytes,
  backward,
  BUCKET_COUNTS,
  endOf,
  enough,
  exposedUs,
  fusion,
  overlapPlans,
  sweep,
} from '../stories/overlap';
import { chainSum, orderPlans, textOf } from '../stories/order';
import {
  bytesOf,
  flightsOf,
  gathered,
  gridOf,
  KINDS,
  reshardPlans,
  RESHARDS,
} from '../stories/reshard';
import { tensorPlans } from '../stories/tensor';
import {
  axesOf,
  layoutText,
  partsOf,
  PLANS,
  rankedFirst,
  togetherPlans,
} from '../stories/together';
import { crossing, ulyssesPlans } from '../stories/ulysses';
import type { TextKey } from '../text/texts';
import { costOf } from './collective';
import { nodeGrid } from './nodes';
import {
  axisName,
  contextShape,
  dataShape,
  jobsOf,
  overlapShape,
  tensorShape,
  ulyssesShape,
  type PictureProps,
  type Values,
} from './picture';
import { reshardFrame } from './reshard';
import { t } from './t.svelte';
import type { StoryName } from './url';

export interface Field {
  key: string;
  name: TextKey;
  choices: readonly number[];
  first: number;
  text?: (value: number) => string; // the text of a choice
  isSwitch?: boolean; // 0 or 1
}

export interface Story {
  name: StoryName;
  fields: Field[];
  link?: number; // initial index in LINKS; undefined: its times do not depend on a link
  plans: (values: Values) => Plan[];
  words: (plan: Plan, values: Values, network: Network) => { name: string; words: string };
  picture: Component<PictureProps>;
  height: (width: number, values: Values) => number;
  legend?: (values: Values, far: (id: string) => number) => string;
  note?: (values: Values) => string;
  table?: (values: Values) => { title: string; columns: string[]; rows: (string | number)[][] };
}

// NVLink of an H100: the data sheet says 450 each way, and NCCL reaches 328, as in the planner's
// machines.
export const LINKS: Network[] = [
  { alphaUs: 5, gbPerS: 12.5 },
  { alphaUs: 5, gbPerS: 50 },
  { alphaUs: 2, gbPerS: 328 },
];
const [ETHERNET, NVLINK] = [0, 2];

const HIDDEN = [1024, 4096, 8192, 16384];
const SEQUENCES = [8192, 32768, 131072];
const RANKS: Omit<Field, 'first'> = { key: 'ranks', name: 'ranks', choices: [2, 4, 8, 16] };
const FEW: Field = { ...RANKS, choices: [2, 4, 8], first: 4 };
const BILLIONS: Field = { key: 'billions', name: 'dp_parameters', choices: [1, 7, 70], first: 7 };
const TOKENS = [4096, 16384, 65536];
const HIDDEN_FIELD: Field = { key: 'hidden', name: 'layer_hidden', choices: HIDDEN, first: 8192 };
const SEQUENCE: Field = {
  ...{ key: 'sequence', name: 'layer_sequence', choices: SEQUENCES, first: 32768 },
};
const KV: Field = {
  ...{ key: 'kvHeads', name: 'ul_kv', choices: [0, 8, 1], first: 8 },
  text: (value) => (value === 0 ? t('ul_kv_all') : String(value)),
};

const key = (text: string) => text as TextKey;

function togetherHeight(width: number, chosen: number): number {
  const plan = PLANS[chosen]!;
  const { height } = nodeGrid(plan.devices / plan.perNode, plan.perNode, width);
  return Math.max(height + 50 + plan.wires.length * 31, partsOf(plan).length * 27 + 34);
}

export const STORY_LIST: Story[] = [
  {
    ...{ name: 'tensor', link: NVLINK, picture: Tensor },
    fields: [
      FEW,
      { key: 'sp', name: 'layer_sp', choices: [0, 1], first: 0, isSwitch: true },
      HIDDEN_FIELD,
      { key: 'tokens', name: 'story_tokens', choices: [2048, 8192, 32768], first: 8192 },
    ],
    plans: (v) => tensorPlans(tensorShape(v)),
    words: ({ id }, { ranks: n }) => ({
      name: t(key(`tp_${id}`)),
      words: t(key(`tp_${id}_words`), { n: n! }),
    }),
    height: (w) => (w < 700 ? 434 : 326),
  },
  {
    ...{ name: 'data', link: ETHERNET, picture: Data },
    fields: [
      { ...RANKS, first: 4 },
      { key: 'stage', name: 'layer_zero', choices: [0, 1, 2, 3], first: 0 },
      BILLIONS,
      { key: 'tokens', name: 'dp_tokens', choices: TOKENS, first: 16384 },
    ],
    plans: (v) => dataPlans(dataShape(v)),
    words: ({ id }, v, network) => {
      const shape = dataShape(v);
      const { ranks: n, billions, stage } = shape;
      const own = id === 'memory' || id === 'replicas' ? '' : stage;
      return {
        name: t(key(`dp_${id}`)),
        words: t(key(`dp_${id}_words${own}`), {
          ...{ n, billions, stage },
          kept: Math.round(bytesKept(stage, n, billions * 1e9) / 1e8) / 10,
          hidden: timeText(exposed(jobsOf(shape, network))),
        }),
      };
    },
    height: (w) => (w < 640 ? 320 : 370),
    legend: (_, far) => (far('memory') === 0 ? t('dp_key') : ''),
  },
  {
    ...{ name: 'context', link: ETHERNET, picture: Context },
    fields: [
      FEW,
      {
        ...{ key: 'method', name: 'layer_context', choices: [0, 1, 2], first: 0 },
        text: (value) => t(key(`cp_method_${METHODS[value]}`)),
      },
      ...[SEQUENCE, HIDDEN_FIELD, KV],
    ],
    plans: (v) => contextPlans(contextShape(v)),
    words: ({ id }, v) => {
      const { ranks: n, method } = contextShape(v);
      const own = id === 'balance' || id === 'cut' ? `${id}_${method}` : id;
      const percent = Math.round((100 * duration(n, method)) / (2 * n) - 100);
      return {
        name: t(key(`cp_${id}`)),
        words: t(key(`cp_${own}_words`), { n, last: n - 1, percent }),
      };
    },
    height: (w) => (w < 640 ? Math.min(250, w - 60) + 300 : 316),
    legend: ({ method }, far) => (far('back') > 0 && method !== 2 ? t('cp_back_key') : ''),
  },
  {
    ...{ name: 'ulysses', link: NVLINK, picture: Ulysses },
    fields: [FEW, SEQUENCE, HIDDEN_FIELD, KV],
    plans: (v) => ulyssesPlans(ulyssesShape(v)),
    words: ({ id }, v) => {
      const shape = ulyssesShape(v);
      const ranks = crossing(shape, [2, 4, 8, 16, 32, 64, 128]);
      const words = t(key(`ul_${id}_words`), { n: shape.ranks });
      const cross = ranks ? t('ul_limit_cross', { ranks }) : t('ul_limit_never');
      return { name: t(key(`ul_${id}`)), words: id === 'limit' ? `${words} ${cross}` : words };
    },
    height: (w, { ranks }) => Math.max(90, Math.min(190, w / ranks! - 12)) + 76,
    legend: (_, far) => (far('limit') === 0 ? t('ul_axes') : ''),
  },
  {
    ...{ name: 'overlap', link: ETHERNET, picture: Overlap },
    fields: [
      ...[{ ...RANKS, first: 8 }, BILLIONS],
      { key: 'tokens', name: 'dp_tokens', choices: TOKENS, first: 65536 },
      // More would be too thin to see.
      { key: 'buckets', name: 'ov_buckets_field', choices: BUCKET_COUNTS.slice(0, 4), first: 16 },
    ],
    plans: (v) => overlapPlans(overlapShape(v)),
    words: ({ id }, v, network) => {
      const shape = overlapShape(v);
      const us = (name: string, bytes: number) => costOf(name, shape.ranks, bytes, network).us;
      const unfused = endOf(fusion(shape, us, 'apart'));
      const won = id === 'fused' || id === 'between' ? unfused - endOf(fusion(shape, us, id)) : 0;
      return {
        name: t(key(`ov_${id}`)),
        words: t(key(`ov_${id}_words`), {
          ...{ n: shape.ranks, billions: shape.billions, buckets: shape.buckets },
          ...{ bytes: bytesText(activationBytes(shape)), won: timeText(won) },
          hidden: timeText(exposedUs(backward(shape, us, false))),
          enough: enough(sweep(shape, us)),
        }),
      };
    },
    height: () => 232,
    note: () => t('ov_memory'),
  },
  {
    ...{ name: 'order', picture: Order },
    fields: [
      { key: 'left', name: 'or_left', choices: [1, 2, 3, 4, 8], first: 2 },
      { key: 'right', name: 'or_right', choices: [1, 2, 3, 4, 8], first: 3 },
    ],
    plans: orderPlans,
    words: ({ id }, { left, right }) => {
      const [a, b] = [chainSum(left!), chainSum(right!)];
      return {
        name: t(key(`or_${id}`)),
        words: t(key(`or_${id}_words`), {
          ...{ left: textOf(a), right: textOf(b), same: Number(a.value === b.value) },
        }),
      };
    },
    height: (w) => (w < 700 ? 580 : 320),
  },
  {
    ...{ name: 'together', picture: Together },
    fields: [
      {
        ...{ key: 'plan', name: 'to_choice', choices: [...PLANS.keys()], first: 1 },
        text: (i) => {
          const { model, machine, asked } = PLANS[i]!;
          return `${model}, ${machine}, ${asked || t('to_ranked')}`;
        },
      },
    ],
    plans: (v) => togetherPlans(PLANS[v.plan!]!),
    words: ({ id }, v) => {
      const plan = PLANS[v.plan!]!;
      const wire = plan.wires[Number(id.slice(4))];
      if (id === 'nodes') {
        const words = t('to_nodes_words', {
          ...{ model: plan.model, devices: plan.devices, each: plan.perNode },
          ...{ nodes: plan.devices / plan.perNode, near: plan.insideGbPerS },
          layout: layoutText(plan),
        });
        const far = plan.betweenGbPerS;
        return {
          name: t('to_nodes'),
          words: words + (far > 0 ? t('to_nodes_far', { far }) : ''),
        };
      }
      if (id === 'time' || !wire) {
        const words = t('to_time_words', { time: timeText(plan.stepS * 1e6) });
        return { name: t('to_time'), words };
      }
      return {
        name: t('to_wire', { axis: axisName(axesOf(plan, wire)), what: wire.what }),
        words: t(wire.axis === 'pp' ? 'to_pair_words' : 'to_wire_words', {
          ...{ size: wire.size, calls: wire.calls, inside: bytesText(wire.inside) },
          between: bytesText(wire.between),
        }),
      };
    },
    height: (w, v) => togetherHeight(w, v.plan!),
    legend: (_, far) => (far('time') === 0 ? t('to_legend') : ''),
    note: (v) => {
      const plan = PLANS[v.plan!]!;
      const explain = plan.asked && ` --explain ${plan.asked}`;
      const command = t('to_source', { model: plan.model, machine: plan.machine, explain });
      const first = rankedFirst(plan);
      if (!plan.asked || !first) return command;
      return `${t('to_classic', {
        ...{ layout: layoutText(plan), time: timeText(plan.stepS * 1e6) },
        ...{ first: layoutText(first), best: timeText(first.stepS * 1e6) },
      })} ${command}`;
    },
    table: (v) => ({
      title: t('to_table'),
      columns: [
        ...[t('step_axis'), t('collective'), t('ranks'), t('step_calls')],
        ...[t('step_inside'), t('step_between')],
      ],
      rows: PLANS[v.plan!]!.wires.map((wire) => [
        ...[axisName(axesOf(PLANS[v.plan!]!, wire)), wire.what, wire.size, wire.calls],
        ...[bytesText(wire.inside), bytesText(wire.between)],
      ]),
    }),
  },
  {
    ...{ name: 'reshard', picture: Reshard },
    fields: [
      {
        ...{ key: 'plan', name: 'rs_plan', choices: [...RESHARDS.keys()], first: 0 },
        text: (i) => `${RESHARDS[i]!.from} → ${RESHARDS[i]!.to}`,
      },
    ],
    plans: (v) => reshardPlans(RESHARDS[v.plan!]!),
    words: ({ id }, v) => {
      const plan = RESHARDS[v.plan!]!;
      const grid = gridOf(plan);
      const kind = KINDS.find((each) => each === id);
      const whole = grid.cells.reduce((sum, { bytes }) => sum + bytes, 0);
      return {
        name: t(key(`rs_${id}`)),
        words: t(key(`rs_${id}_words`), {
          ...{ from: plan.from, to: plan.to, sent: bytesText(plan.sent) },
          bytes: bytesText(kind ? bytesOf(flightsOf(plan, grid), grid, kind) : whole),
          gathered: bytesText(gathered(plan, grid).sent),
        }),
      };
    },
    height: (w, v) => reshardFrame(gridOf(RESHARDS[v.plan!]!), w).height,
    legend: (_, far) => t(far('bytes') > 0 ? 'rs_legend_bytes' : 'rs_legend'),
    note: (v) => t('rs_source', { command: RESHARDS[v.plan!]!.command }),
    table: (v) => ({
      title: t('rs_table'),
      columns: [t('column_from'), t('column_to'), t('rs_column_elements'), t('column_bytes')],
      rows: RESHARDS[v.plan!]!.moves.map(({ from, to, elements, bytes }) => [
        ...[from, to, elements, bytesText(bytes)],
      ]),
    }),
  },
];

export const storyOf = (name: StoryName) => STORY_LIST.find((each) => each.name === name)!;

export function firstValues({ fields }: Story): Values {
  return Object.fromEntries(fields.map((field) => [field.key, field.first]));
}
