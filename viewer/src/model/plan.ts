// A ranking of the layouts to train or serve a model with, and the rankings for other links and
// batches (unisono.plan_model/1, docs/formats/plan-model.md). No value in a file is trusted. Pure.
import { BadInput, isObject } from '../schedule/parse';

const MOST_LAYOUTS = 1000;
const MOST_RANKINGS = 1000;
const MOST_PARTS = 20;

export interface Part {
  name: string; // the program's name, such as matrix_products
  value: number;
}

export interface PlannedLayout {
  name: string; // tp=2,pp=4, without degrees of 1
  seconds: Part[]; // the parts of a step, or of a token
  bytes: Part[]; // the parts of the fullest rank's memory
  totalS: number;
  tokensPerS: number; // per device
  memory: number;
}

export interface Ranking {
  layouts: PlannedLayout[]; // fastest first
  tried: number;
  fitting: number;
  refused: { why: string; layouts: number }[];
  missing?: { layout: string; bytes: number }; // the layout that lacks the least memory
}

export const SLIDERS = ['near', 'far', 'batch'] as const;
export type Slider = (typeof SLIDERS)[number];

export interface ModelPlan {
  model: string;
  weights: number;
  machine: string;
  device: string;
  devices: number;
  memory: number; // bytes per device
  source: string; // the data that the constants were fitted to; "": the values of the data sheet
  task: 'train' | 'serve';
  precision: string;
  lengths: [number, number]; // batch and sequence, or input and output tokens
  asked: Ranking;
  // The positions of the sliders; undefined: there are no sliders. A batch is a number of
  // sequences, or of concurrent requests, where 0 means as many as fit.
  whatIf?: Record<Slider, number[]> & { rankings: Ranking[]; start: number[] };
}

export function isModelPlan(document: Record<string, unknown>): boolean {
  return typeof document.schema === 'string' && document.schema.startsWith('unisono.plan_model/');
}

function words(value: unknown, place: string): string {
  if (typeof value === 'string' && value.length <= 300) return value;
  throw new BadInput(`${place}: no text of at most 300 characters`);
}

function amount(value: unknown, place: string): number {
  if (typeof value === 'number' && value >= 0 && value <= 1e24) return value;
  throw new BadInput(`${place}: no number of 0 or more`);
}

function list(value: unknown, place: string, most: number): unknown[] {
  if (Array.isArray(value) && value.length <= most) return value;
  throw new BadInput(`${place}: no list of at most ${most}`);
}

function parts(value: unknown, place: string): Part[] {
  if (!isObject(value)) throw new BadInput(`${place}: no object`);
  const entries = Object.entries(value);
  if (entries.length > MOST_PARTS || entries.some(([name]) => !/^[a-z_]{1,30}$/.test(name))) {
    throw new BadInput(`${place}: no parts by their names`);
  }
  return entries
    .map(([name, each]) => ({ name, value: amount(each, `${place}/${name}`) }))
    .filter((each) => each.value > 0);
}

const SHORT: Record<string, string> = { micro_batch: 'mb' };

// Returns the layout as the program prints it, without degrees of 1 and without dp if its degree is
// 1.
function nameOf(value: unknown, place: string): string {
  if (!isObject(value)) throw new BadInput(`${place}: no object`);
  const said = Object.entries(value)
    .filter(([name, each]) => typeof each === 'number' && (each > 1 || name === 'micro_batch'))
    .filter(([name]) => name !== 'zero')
    .map(([name, each]) => `${SHORT[name] ?? words(name, place)}=${String(each)}`);
  const zero = value.zero === undefined ? '' : ` · ZeRO ${amount(value.zero, `${place}/zero`)}`;
  const again =
    value.recompute === undefined || value.recompute === 'none'
      ? ''
      : ` · ${words(value.recompute, `${place}/recompute`)}`;
  return said.join(',') + zero + again;
}

function sum(all: Part[]): number {
  return all.reduce((total, each) => total + each.value, 0);
}

function parseLayout(value: unknown, place: string): PlannedLayout {
  if (!isObject(value)) throw new BadInput(`${place}: no object`);
  const seconds = parts(value.seconds, `${place}/seconds`);
  const bytes = parts(value.bytes, `${place}/bytes`);
  return {
    ...{ name: nameOf(value.layout, `${place}/layout`), seconds, bytes },
    totalS: amount(value.step_s ?? value.token_s, `${place}/step_s`),
    tokensPerS: amount(value.tokens_per_s_device, `${place}/tokens_per_s_device`),
    memory: sum(bytes),
  };
}

function parseRanking(value: Record<string, unknown>, place: string): Ranking {
  const layouts = list(value.layouts, `${place}/layouts`, MOST_LAYOUTS);
  const ranking: Ranking = {
    layouts: layouts.map((each, i) => parseLayout(each, `${place}/layouts/${i}`)),
    tried: amount(value.tried ?? layouts.length, `${place}/tried`),
    fitting: amount(value.fitting ?? layouts.length, `${place}/fitting`),
    refused: list(value.refused ?? [], `${place}/refused`, MOST_PARTS).map((each, i) => {
      const at = `${place}/refused/${i}`;
      if (!isObject(each)) throw new BadInput(`${at}: no object`);
      return { why: words(each.why, `${at}/why`), layouts: amount(each.layouts, `${at}/layouts`) };
    }),
  };
  const { least_missing: missing } = value;
  if (isObject(missing)) {
    const at = `${place}/least_missing`;
    ranking.missing = {
      layout: words(missing.layout, `${at}/layout`),
      bytes: amount(missing.bytes, `${at}/bytes`),
    };
  }
  return ranking;
}

function parseWhatIf(value: unknown, batch: number): ModelPlan['whatIf'] {
  if (!isObject(value)) throw new BadInput('/what_if: no object');
  const stops = (name: string) =>
    list(value[name], `/what_if/${name}`, MOST_RANKINGS).map((each, i) =>
      amount(each, `/what_if/${name}/${i}`),
    );
  const [near, far] = [stops('near'), stops('far')];
  const batches = stops(value.batch === undefined ? 'concurrency' : 'batch');
  const rankings = list(value.rankings, '/what_if/rankings', MOST_RANKINGS);
  const start = [near.indexOf(1), far.indexOf(1), batches.indexOf(batch)];
  if (rankings.length !== near.length * far.length * batches.length || start.includes(-1)) {
    throw new BadInput('/what_if/rankings: not one for each speed of links and each batch');
  }
  return {
    ...{ near, far, batch: batches, start },
    rankings: rankings.map((each, i) => {
      const place = `/what_if/rankings/${i}`;
      if (!isObject(each)) throw new BadInput(`${place}: no object`);
      return parseRanking(each, place);
    }),
  };
}

export function parseModelPlan(document: unknown): ModelPlan {
  if (!isObject(document)) throw new BadInput('/: no object');
  if (document.schema !== 'unisono.plan_model/1') {
    throw new BadInput(`/schema: unknown version ${String(document.schema)}`);
  }
  const { task } = document;
  if (task !== 'train' && task !== 'serve') throw new BadInput('/task: neither train nor serve');
  const constants = isObject(document.constants) ? document.constants : {};
  const [first, second] = task === 'train' ? ['batch', 'sequence'] : ['input', 'output'];
  const plan: ModelPlan = {
    ...{ model: words(document.model, '/model'), machine: words(document.machine, '/machine') },
    ...{ device: words(document.device, '/device'), task },
    weights: amount(document.weights, '/weights'),
    devices: amount(document.devices, '/devices'),
    memory: amount(document.memory_bytes, '/memory_bytes'),
    source: words(constants.source ?? '', '/constants/source'),
    precision: words(document.precision, '/precision'),
    lengths: [amount(document[first!], `/${first}`), amount(document[second!], `/${second}`)],
    asked: parseRanking(document, ''),
  };
  if (document.what_if !== undefined) {
    const batch = task === 'train' ? document.batch : document.concurrency;
    plan.whatIf = parseWhatIf(document.what_if, amount(batch, '/batch'));
  }
  return plan;
}

// Returns the ranking for the sliders' positions.
export function rankingAt({ asked, whatIf }: ModelPlan, stops: number[]): Ranking {
  if (!whatIf) return asked;
  const [near, far, batch] = stops as [number, number, number];
  return whatIf.rankings[(near * whatIf.far.length + far) * whatIf.batch.length + batch]!;
}

// Returns the part that takes most of the time.
export function longest({ seconds }: PlannedLayout): Part {
  return seconds.reduce((a, b) => (b.value > a.value ? b : a), { name: '', value: 0 });
}

// Returns the part that contributes most to the difference between two layouts: the time that the
// first one saves, per step when training, or per token and device when serving, because serving
// ranks by that.
export function saving(
  task: ModelPlan['task'],
  first: PlannedLayout,
  second: PlannedLayout,
): Part & { before: number } {
  const scale = (each: PlannedLayout) =>
    task === 'train' ? 1 : 1 / (each.tokensPerS * sum(each.seconds));
  const now = (name: string) => first.seconds.find((each) => each.name === name)?.value ?? 0;
  return second.seconds
    .map(({ name, value }) => ({
      ...{ name, value: now(name) * scale(first), before: value * scale(second) },
    }))
    .reduce((a, b) => (b.before - b.value > a.before - a.value ? b : a));
}

const COMMUNICATION = ['tensor', 'context', 'experts', 'pipeline', 'data'];

// Returns the share of the time that is exposed communication.
export function communication({ seconds, totalS }: PlannedLayout): number {
  return sum(seconds.filter(({ name }) => COMMUNICATION.includes(name))) / totalS;
}

export function bubble({ seconds, totalS }: PlannedLayout): number {
  return sum(seconds.filter(({ name }) => name === 'bubble')) / totalS;
}

// The sort orders of the table, smaller first; the rank is the program's, by tokens per second.
export const ORDERS = {
  rank: undefined,
  time: (each: PlannedLayout) => each.totalS,
  communication,
  bubble,
  memory: (each: PlannedLayout) => each.memory,
} as const;
export const ORDER_NAMES = Object.keys(ORDERS) as (keyof typeof ORDERS)[];

export function sorted(layouts: PlannedLayout[], order: keyof typeof ORDERS): PlannedLayout[] {
  const by = ORDERS[order];
  return by ? [...layouts].sort((a, b) => by(a) - by(b)) : layouts;
}
