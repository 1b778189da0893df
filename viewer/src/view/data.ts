// The data in the page: the catalogue, and the files given to `unisono view`.
import { parseModelPlan, type ModelPlan } from '../model/plan';
import { parseStep, type ModelStep } from '../model/step';
import { parseTopology, type Topology } from '../model/topology';
import { parsePipeline, type PackedPipeline } from '../pipeline/parse';
import { parsePipelineTimes, type PipelineTimes } from '../pipeline/recorded';
import type { Pipeline } from '../pipeline/types';
import { plainForm } from '../schedule/collective';
import { readCounts } from '../schedule/counts';
import { unpack, type Packed } from '../schedule/pack';
import { BadInput, isObject } from '../schedule/parse';
import type { Schedule } from '../schedule/types';
import { routeCounts } from '../stories/moe';

export interface Algorithm {
  collective: string;
  algorithm: string;
  summary: string;
  source: string;
  file: string;
  schedules: Packed[];
  variants?: { setting: string; schedules: Packed[] }[]; // other segments or ranks per node
}

export interface PipelineEntry {
  name: string;
  summary: string;
  source: string;
  schedules: PackedPipeline[];
}

export interface PageData {
  version: string;
  catalogue: Algorithm[];
  lang?: 'en' | 'zh'; // requested language
  open?: string; // the opening place, in the form of an address: "#parallel?story=context"
  pipelines: PipelineEntry[];
  pipeline?: Pipeline; // from a file
  pipelineTimes?: PipelineTimes; // from a file
  step?: ModelStep; // from a file
  plan?: ModelPlan; // from a file
  routing?: unknown;
  schedule?: Schedule; // requested by name, or from a file
  recording?: unknown;
  topology?: Topology;
  problem?: string; // why the schedule is missing
}

export const NO_DATA: PageData = { version: '', catalogue: [], pipelines: [] };

export function readPageData(text: string | null | undefined): PageData {
  if (!text) return { ...NO_DATA, problem: 'no data' };
  try {
    const data: unknown = JSON.parse(text);
    if (!isObject(data) || data.format !== 'unisono.view/1' || !Array.isArray(data.catalogue)) {
      throw new BadInput('not unisono.view/1');
    }
    const page: PageData = {
      version: String(data.version),
      catalogue: data.catalogue as Algorithm[],
      pipelines: (data.pipelines ?? []) as PipelineEntry[],
      recording: data.recording,
    };
    if (data.lang === 'en' || data.lang === 'zh') page.lang = data.lang;
    if (typeof data.open === 'string') page.open = data.open;
    if (data.pipeline !== undefined) page.pipeline = parsePipeline(data.pipeline);
    if (isObject(data.pipeline_times)) {
      page.pipelineTimes = parsePipelineTimes(data.pipeline_times);
      page.pipeline = page.pipelineTimes.pipeline;
    }
    if (data.step !== undefined) page.step = parseStep(data.step);
    if (data.plan !== undefined) page.plan = parseModelPlan(data.plan);
    if (data.routing !== undefined) {
      routeCounts(data.routing, 0); // refuses data that cannot be shown
      page.routing = data.routing;
    }
    if (data.topology !== undefined) page.topology = parseTopology(data.topology);
    if (isObject(data.schedule)) {
      const given = data.schedule as unknown as Packed & {
        collective: string;
        algorithm: string;
        file: string;
      };
      page.schedule = unpack(given, given);
      if (isObject(data.schedule.counts)) {
        const counts = readCounts(data.schedule.counts, given.ranks);
        if (typeof counts === 'string') throw new BadInput(`counts: ${counts}`);
        page.schedule.counts = counts;
      }
    }
    return page;
  } catch (error) {
    return { ...NO_DATA, problem: error instanceof Error ? error.message : String(error) };
  }
}

// v-forms are drawn with the schedules of the plain form.
export function algorithmsOf(data: PageData, collective: string): Algorithm[] {
  return data.catalogue.filter((each) => each.collective === plainForm(collective));
}

// Finds an algorithm by name, with or without a setting: "chain", "chain:segments=4".
export function findAlgorithm(
  data: PageData,
  collective: string,
  name: string,
): Algorithm | undefined {
  const base = baseName(name);
  const entry = algorithmsOf(data, collective).find((each) => each.algorithm === base);
  if (!entry || name === base) return entry;
  return settingsOf(entry).find((each) => each.algorithm === name);
}

export function baseName(algorithm: string): string {
  return algorithm.split(':')[0]!;
}

const spread = new Map<Algorithm, Algorithm[]>();

// Returns an algorithm with each setting that the page has.
export function settingsOf(entry: Algorithm): Algorithm[] {
  let list = spread.get(entry);
  if (!list) {
    list = (entry.variants ?? []).map(({ setting, schedules }) => ({
      ...entry,
      ...{ algorithm: `${entry.algorithm}:${setting}`, schedules, variants: [] },
    }));
    spread.set(entry, list);
  }
  return list;
}

// Returns the algorithm shown under a name. A hierarchical algorithm gets the ranks of a node as
// its groups, if possible.
export function algorithmAt(
  data: PageData,
  collective: string,
  name: string,
  ranks: number,
  perNode: number,
): Algorithm | undefined {
  const entry = findAlgorithm(data, collective, name);
  const local = entry && findAlgorithm(data, collective, `${name}:local=${perNode}`);
  return local && perNode < ranks && rankCounts(local).includes(ranks) ? local : entry;
}

interface Ran {
  collective: string;
  algorithm: string;
  size: number;
  root?: number; // rank of the world; -1: none, or unknown
  members?: number[];
}

// Returns the root's index in the group of the call.
export function rootOf({ root = -1, members }: Ran): number {
  return Math.max(0, members ? members.indexOf(root) : root);
}

// Returns whether the page has the schedule of an operation. v-forms are drawn with equal parts, so
// they do not count.
export function isCarried(data: PageData, op: Ran): boolean {
  const found = findAlgorithm(data, op.collective, op.algorithm);
  return (
    found !== undefined &&
    op.collective === plainForm(op.collective) &&
    rootsOf(found, op.size).includes(rootOf(op))
  );
}

export function rankCounts(algorithm: Algorithm): number[] {
  return [...new Set(algorithm.schedules.map((each) => each.ranks))];
}

export function rootsOf(algorithm: Algorithm, ranks: number): number[] {
  return algorithm.schedules.filter((each) => each.ranks === ranks).map((each) => each.root);
}

const unpacked = new Map<Packed, Schedule>();

// Returns the schedule with the nearest shape if there is none with exactly this shape.
export function scheduleOf(algorithm: Algorithm, ranks: number, root: number): Schedule {
  const counts = rankCounts(algorithm);
  const near = counts.includes(ranks)
    ? ranks
    : counts.reduce((a, b) => (Math.abs(b - ranks) < Math.abs(a - ranks) ? b : a));
  const choices = algorithm.schedules.filter((each) => each.ranks === near);
  const packed = choices.find((each) => each.root === root) ?? choices[0]!;
  let schedule = unpacked.get(packed);
  if (!schedule) {
    const { collective, algorithm: name, file } = algorithm;
    schedule = unpack(packed, { collective, algorithm: name, file });
    unpacked.set(packed, schedule);
  }
  return schedule;
}
