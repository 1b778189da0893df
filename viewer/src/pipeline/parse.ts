// Reads untrusted `unisono.pipeline/1`, or the CSV of torch.distributed.pipelining. An error states
// its place.
import { BadInput, isObject } from '../schedule/parse';
import { addTransfers, hasTransfers } from './transfers';
import { parseActions } from './text';
import { costsOf, isCompute, type Action, type Chain, type Pipeline } from './types';

export const PIPELINE_FORMAT = 'unisono.pipeline/1';
const MOST_ACTIONS = 200_000; // the most that a page draws
const MOST_RANKS = 256;
const UNIT = { forward: 1, input: 1, weight: 1, transfer: 0 };

export function isPipeline(document: Record<string, unknown>): boolean {
  return typeof document.format === 'string' && document.format.startsWith('unisono.pipeline/');
}

function whole(value: unknown, place: string, least: number, most: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > most) {
    throw new BadInput(`${place}: no whole number from ${least} to ${most}`);
  }
  return value;
}

function list(value: unknown, place: string, most: number): unknown[] {
  if (!Array.isArray(value) || value.length < 1 || value.length > most) {
    throw new BadInput(`${place}: no list of 1 to ${most}`);
  }
  return value;
}

function amounts(parent: unknown, key: string, place: string, stages: number, other: number) {
  const value = isObject(parent) ? parent[key] : undefined;
  if (value === undefined) return new Array<number>(stages).fill(other);
  const all = Array.isArray(value) ? value : new Array<unknown>(stages).fill(value);
  if (all.length !== stages) throw new BadInput(`${place}/${key}: not one number for each stage`);
  return all.map((each) => {
    if (typeof each === 'number' && each >= 0 && each <= 1e18) return each;
    throw new BadInput(`${place}/${key}: no number of 0 or more`);
  });
}

function chainOf(value: unknown, place: string, stages: number, microbatches: number): Chain {
  if (!isObject(value)) throw new BadInput(`${place}: no object`);
  const first = whole(value.first, `${place}/first`, 0, microbatches - 1);
  return {
    first,
    count: whole(value.count, `${place}/count`, 1, microbatches - first),
    stages: list(value.stages, `${place}/stages`, stages).map((each, i) =>
      whole(each, `${place}/stages/${i}`, 0, stages - 1),
    ),
  };
}

// Each stage is in one chain, and all actions are within stages and microbatches.
function finish(pipeline: Pipeline): Pipeline {
  const { stages, microbatches, actions } = pipeline;
  if (stages.length * microbatches > MOST_ACTIONS) {
    throw new BadInput(
      `/stages: ${stages.length} times ${microbatches} microbatches; a page shows ${MOST_ACTIONS}`,
    );
  }
  const seen = pipeline.chains.flatMap((chain) => chain.stages);
  if (seen.length !== stages.length || new Set(seen).size !== stages.length) {
    throw new BadInput('/chains: each stage has to be in one chain, once');
  }
  let count = 0;
  actions.forEach((row, rank) => {
    count += row.length;
    for (const action of row) {
      if (action.stage >= stages.length || action.microbatch >= microbatches) {
        throw new BadInput(`/actions/${rank}: a stage or a microbatch that there is not`);
      }
    }
  });
  if (count === 0 || count > MOST_ACTIONS) {
    throw new BadInput(`/actions: ${count} actions; a page shows 1 to ${MOST_ACTIONS}`);
  }
  if (!hasTransfers(pipeline)) addTransfers(pipeline);
  return pipeline;
}

export function parsePipeline(document: unknown): Pipeline {
  if (!isObject(document)) throw new BadInput('/: no object');
  if (document.format !== PIPELINE_FORMAT) {
    throw new BadInput(`/format: this page reads ${PIPELINE_FORMAT}`);
  }
  const rows = list(document.actions, '/actions', MOST_RANKS);
  const microbatches = whole(document.microbatches, '/microbatches', 1, 65536);
  const stages = list(document.stages, '/stages', 16384).map((rank, i) =>
    whole(rank, `/stages/${i}`, 0, rows.length - 1),
  );
  const all = { stages: stages.map((_, i) => i), first: 0, count: microbatches };
  const chains =
    document.chains === undefined
      ? [all]
      : list(document.chains, '/chains', 64).map((each, i) =>
          chainOf(each, `/chains/${i}`, stages.length, microbatches),
        );
  const of = (parent: string, key: string, other: number) =>
    amounts(document[parent], key, `/${parent}`, stages.length, other);
  return finish({
    name: typeof document.name === 'string' ? document.name.slice(0, 60) : '',
    ...{ ranks: rows.length, microbatches, stages, chains },
    costs: {
      ...{ forward: of('costs', 'forward', 1), input: of('costs', 'input', 1) },
      ...{ weight: of('costs', 'weight', 1), transfer: of('costs', 'transfer', 0) },
    },
    activationBytes: of('memory', 'activation_bytes', 1),
    keptBytes: of('memory', 'kept_bytes', 1),
    lanes: document.lanes === undefined ? 2 : (whole(document.lanes, '/lanes', 1, 2) as 1 | 2),
    capacity: document.capacity === undefined ? 1 : whole(document.capacity, '/capacity', 0, 1e6),
    actions: rows.map((row, i) => parseActions(rowText(row, i), `/actions/${i}`)),
  });
}

function rowText(row: unknown, i: number): string {
  if (typeof row === 'string') return row;
  if (Array.isArray(row) && row.every((each) => typeof each === 'string')) return row.join(',');
  throw new BadInput(`/actions/${i}: no list of actions`);
}

// A stage is on the rank that computes it, and all costs are 1. A line without actions is a rank
// without stages.
export function parseCsv(text: string, name: string): Pipeline {
  const lines = text.replace(/\n$/, '').split('\n');
  if (lines.length > MOST_RANKS) throw new BadInput(`more than ${MOST_RANKS} ranks`);
  const actions = lines.map((line, i) => parseActions(line, `line ${i + 1}`));
  const stages: number[] = [];
  let microbatches = 0;
  actions.forEach((row, rank) => {
    for (const { kind, stage, microbatch } of row) {
      if (isCompute(kind)) stages[stage] ??= rank;
      microbatches = Math.max(microbatches, microbatch + 1);
    }
  });
  for (let stage = 0; stage < stages.length; stage++) {
    if (stages[stage] === undefined) throw new BadInput(`no rank computes stage ${stage}`);
  }
  if (stages.length === 0) throw new BadInput('no rank computes anything');
  const chain = { stages: stages.map((_, i) => i), first: 0, count: microbatches };
  const ones = stages.map(() => 1);
  return finish({
    ...{ name, ranks: lines.length, microbatches, stages, chains: [chain] },
    costs: costsOf({ stages, chains: [chain] }, UNIT),
    ...{ activationBytes: ones, keptBytes: ones, lanes: 2, capacity: 1, actions },
  });
}

// The form in which the page carries the pipelines of the catalogue.
export interface PackedPipeline {
  microbatches: number;
  stages: number[];
  chains: Chain[];
  actions: string[];
}

export function unpackPipeline(name: string, packed: PackedPipeline): Pipeline {
  const ones = packed.stages.map(() => 1);
  return finish({
    ...{ name, ranks: packed.actions.length, microbatches: packed.microbatches },
    ...{ stages: packed.stages, chains: packed.chains },
    costs: costsOf(packed, UNIT),
    ...{ activationBytes: ones, keptBytes: ones, lanes: 2, capacity: 1 },
    actions: packed.actions.map((row, i): Action[] => parseActions(row, `rank ${i}`)),
  });
}
