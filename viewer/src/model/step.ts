// The computation and communication of a model's ranks in one step (unisono.step_show/1,
// docs/formats/step.md), with the findings of a proof. No value in a file is trusted. Pure.
import { BadInput, isObject } from '../schedule/parse';

const MOST_RANKS = 1024;
const MOST_CALLS = 400_000; // calls of all ranks

export interface StepCall {
  what: string; // `computing`, or the operation that moves data
  section: string;
  node: string;
  layer: number; // -1: none
  bytes: number;
  flops: number;
  group: number[];
  peer: number; // -1: none
  pass: string; // action of a pipeline: F, I, W, B, SEND_F, ...; '': outside its passes
  stage: number; // the stage of the pass
  microbatch: number;
}

export interface StepRank {
  weightBytes: number;
  cacheBytes: number;
  activationBytes: number;
  calls: StepCall[];
}

export interface StepFinding {
  section: string;
  node: string;
  text: string;
}

export interface ModelStep {
  name: string;
  mesh: { axis: string; size: number }[]; // slowest axis first
  ranks: StepRank[]; // empty: the step is invalid, or only the proof was opened
  findings?: StepFinding[]; // undefined: the step was not verified
}

export function isStep(document: Record<string, unknown>): boolean {
  const name = document.schema ?? document.format;
  return typeof name === 'string' && /^unisono\.step(_show|_verify)?\//.test(name);
}

function words(value: unknown, place: string): string {
  if (typeof value === 'string' && value.length <= 200) return value;
  throw new BadInput(`${place}: no text of at most 200 characters`);
}

function amount(value: unknown, place: string): number {
  if (value === undefined) return 0;
  if (typeof value === 'number' && value >= 0 && value <= 1e24) return value;
  throw new BadInput(`${place}: no number of 0 or more`);
}

function rankOf(value: unknown, place: string, ranks: number): number {
  if (Number.isInteger(value) && (value as number) >= 0 && (value as number) < ranks) {
    return value as number;
  }
  throw new BadInput(`${place}: no rank from 0 to ${ranks - 1}`);
}

function parseMesh(value: unknown): ModelStep['mesh'] {
  const text = words(value, '/mesh');
  const mesh = text.split(',').map((each) => {
    const match = /^([a-z][a-z0-9_]{0,20})=(\d{1,4})$/.exec(each.trim());
    if (!match || Number(match[2]) < 1) throw new BadInput('/mesh: no axes such as pp=2,tp=4');
    return { axis: match[1]!, size: Number(match[2]) };
  });
  if (mesh.reduce((product, { size }) => product * size, 1) > MOST_RANKS) {
    throw new BadInput(`/mesh: more than ${MOST_RANKS} ranks`);
  }
  return mesh;
}

function parseCall(value: unknown, place: string, ranks: number): StepCall {
  if (!isObject(value)) throw new BadInput(`${place}: no object`);
  const group = value.group ?? [];
  if (!Array.isArray(group) || group.length > ranks) throw new BadInput(`${place}/group: no list`);
  const [, stage = '-1', pass = '', microbatch = '-1'] =
    /^(\d{1,6})(F|I|W|B|(?:SEND|RECV)_[FB])(\d{1,6})$/.exec(words(value.action ?? '', place)) ?? [];
  const layer = value.layer ?? -1;
  if (!Number.isInteger(layer) || (layer as number) < -1) {
    throw new BadInput(`${place}/layer: no whole number from -1`);
  }
  return {
    what: words(value.what, `${place}/what`),
    section: words(value.section, `${place}/section`),
    node: words(value.node, `${place}/node`),
    layer: layer as number,
    bytes: amount(value.bytes, `${place}/bytes`),
    flops: amount(value.flops, `${place}/flops`),
    group: group.map((each, i) => rankOf(each, `${place}/group/${i}`, ranks)),
    peer: value.peer === undefined ? -1 : rankOf(value.peer, `${place}/peer`, ranks),
    pass,
    stage: Number(stage),
    microbatch: Number(microbatch),
  };
}

function parseRanks(value: unknown, ranks: number): StepRank[] {
  if (value === undefined) return [];
  if (!Array.isArray(value) || (value.length !== 0 && value.length !== ranks)) {
    throw new BadInput(`/ranks: not the ${ranks} of the mesh`);
  }
  let count = 0;
  return value.map((each: unknown, i) => {
    const place = `/ranks/${i}`;
    if (!isObject(each) || !Array.isArray(each.calls))
      throw new BadInput(`${place}/calls: no list`);
    count += each.calls.length;
    if (count > MOST_CALLS) throw new BadInput(`/ranks: more than ${MOST_CALLS} calls`);
    return {
      weightBytes: amount(each.weight_bytes, `${place}/weight_bytes`),
      cacheBytes: amount(each.cache_bytes, `${place}/cache_bytes`),
      activationBytes: amount(each.activation_bytes, `${place}/activation_bytes`),
      calls: each.calls.map((call, j) => parseCall(call, `${place}/calls/${j}`, ranks)),
    };
  });
}

export function parseStep(document: unknown): ModelStep {
  if (!isObject(document)) throw new BadInput('/: no object');
  if (document.format !== undefined) {
    throw new BadInput(
      'a step as it is written: `unisono view FILE` opens it, and `unisono step show FILE --json` writes what this page can open',
    );
  }
  if (document.schema !== 'unisono.step_show/1' && document.schema !== 'unisono.step_verify/1') {
    throw new BadInput(`/schema: unknown version ${String(document.schema)}`);
  }
  const mesh = parseMesh(document.mesh);
  const ranks = mesh.reduce((product, { size }) => product * size, 1);
  const step: ModelStep = {
    name: words(document.name, '/name'),
    mesh,
    ranks: parseRanks(document.ranks, ranks),
  };
  if (document.findings !== undefined) {
    if (!Array.isArray(document.findings)) throw new BadInput('/findings: no list');
    step.findings = document.findings.slice(0, 200).map((each: unknown, i) => {
      if (!isObject(each) || typeof each.text !== 'string') {
        throw new BadInput(`/findings/${i}/text: no text`);
      }
      const { section = '', node = '', text } = each;
      return { section: String(section), node: String(node), text };
    });
  }
  return step;
}

// Calls that belong together: all calls of a layer, or of a section without layers.
export interface Block {
  name: string;
  layer: number;
  columns: Column[];
}

// A node of the step, with the call of every rank that has it.
export interface Column {
  node: string;
  what: string;
  calls: (StepCall | undefined)[]; // by rank
}

// Coordinates of a rank in the mesh.
function coordinates(mesh: ModelStep['mesh'], rank: number): number[] {
  const at: number[] = [];
  for (const { size } of [...mesh].reverse()) {
    at.unshift(rank % size);
    rank = Math.trunc(rank / size);
  }
  return at;
}

// Returns the stage that passes a tensor on; each stage does so in a section of one name.
function hopOf(mesh: ModelStep['mesh'], call: StepCall, rank: number): string {
  if (call.peer < 0 || call.layer >= 0) return '';
  const [from, to] = call.what === 'send' ? [rank, call.peer] : [call.peer, rank];
  const other = coordinates(mesh, to);
  return coordinates(mesh, from)
    .filter((each, i) => each !== other[i])
    .join(' ');
}

// Returns the number of microbatches in the pipeline; 0: there is no pipeline.
export function microbatchesOf(step: ModelStep): number {
  let most = -1;
  for (const { calls } of step.ranks) {
    for (const { microbatch } of calls) most = Math.max(most, microbatch);
  }
  return most + 1;
}

// A stage's first microbatch represents all of them.
function ofFirst(calls: StepCall[]): StepCall[] {
  const first = new Map<number, number>();
  for (const { stage, microbatch } of calls) {
    first.set(stage, Math.min(first.get(stage) ?? microbatch, microbatch));
  }
  return calls.filter(({ stage, microbatch }) => microbatch === first.get(stage));
}

export function blocksOf(step: ModelStep): Block[] {
  const blocks: Block[] = [];
  const known = new Map<string, { block: Block; columns: Map<string, Column> }>();
  // Ranks of later stages have sections that the first stage lacks. Each one is inserted after the
  // section that precedes it there.
  step.ranks.forEach(({ calls }, rank) => {
    const seen = new Map<string, number>();
    let before: Block | undefined;
    for (const call of ofFirst(calls)) {
      // Training passes a layer twice: forward and backward.
      const key = `${call.section} ${call.layer} ${hopOf(step.mesh, call, rank)}`;
      let entry = known.get(key);
      if (!entry) {
        const block = { name: call.section, layer: call.layer, columns: [] };
        known.set(key, (entry = { block, columns: new Map() }));
        blocks.splice(before ? blocks.indexOf(before) + 1 : blocks.length, 0, block);
      }
      before = entry.block;
      // Both ends of a transfer share one column; in a ring, each rank is both ends. A node that
      // occurs again gets a new column.
      const what = call.what === 'receive' && call.layer < 0 ? 'send' : call.what;
      const id = `${key} ${call.node} ${what}`;
      const again = seen.get(id) ?? 0;
      seen.set(id, again + 1);
      const at = `${id} ${again}`;
      let column = entry.columns.get(at);
      if (!column) {
        column = { node: call.node, what, calls: new Array(step.ranks.length).fill(undefined) };
        entry.columns.set(at, column);
        entry.block.columns.push(column);
      }
      column.calls[rank] = call;
    }
  });
  return blocks;
}

// Returns the axes that a group spans: "tp", or "pp tp".
export function axesOf(mesh: ModelStep['mesh'], group: number[]): string {
  const first = coordinates(mesh, group[0] ?? 0);
  const differs = mesh.filter((_, i) =>
    group.some((rank) => coordinates(mesh, rank)[i] !== first[i]),
  );
  return differs.map(({ axis }) => axis).join(' ');
}

export interface Wire {
  axes: string;
  calls: number;
  inside: number; // bytes of groups within one node, over all ranks
  between: number; // bytes of groups that span nodes
}

// Sums the bytes by axis, and by whether the group leaves its node. A message counts on its sender.
export function wiresOf(step: ModelStep, perNode: number): Wire[] {
  const wires = new Map<string, Wire>();
  const node = (rank: number) => Math.trunc(rank / perNode);
  for (const { calls } of step.ranks) {
    for (const call of calls) {
      if (call.group.length < 2 || call.what === 'receive') continue;
      const axes = axesOf(step.mesh, call.group);
      const wire = wires.get(axes) ?? { axes, calls: 0, inside: 0, between: 0 };
      wires.set(axes, wire);
      wire.calls++;
      const isInside = call.group.every((rank) => node(rank) === node(call.group[0]!));
      if (isInside) wire.inside += call.bytes;
      else wire.between += call.bytes;
    }
  }
  const order = step.mesh.map(({ axis }) => axis);
  return [...wires.values()].sort((a, b) => order.indexOf(b.axes) - order.indexOf(a.axes));
}
