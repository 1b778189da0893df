// A machine: devices, one-way links, and the device of each rank. It is read from an untrusted
// `unisono.topology/1` file (docs/formats/topology.md), or consists of plain nodes.
import { BadInput, isObject } from '../schedule/parse';

export interface Device {
  name: string;
  kind: string;
  inside: number; // -1: not inside another device
}

export interface Link {
  from: number;
  to: number;
  latencyUs: number;
  bytesPerUs: number;
}

export interface Topology {
  name: string;
  devices: Device[];
  links: Link[];
  ranks: number[]; // the device of each rank
}

const MOST_DEVICES = 20_000;
const MOST_LINKS = 100_000;
const KINDS = ['node', 'socket', 'core', 'gpu', 'nic', 'switch', 'group'];
const TIMES: Record<string, number> = { ns: 1e-3, us: 1, ms: 1e3 };
const RATES: Record<string, number> = {
  ...{ gb_per_s: 1e3, gbit_per_s: 125, gib_per_s: 1073.741824, mb_per_s: 1 },
};

// The ranks of a node share one link to all other nodes.
export function nodesOf(ranks: number, perNode: number, gbPerS: number): Topology {
  const topology: Topology = { name: '', devices: [], links: [], ranks: [] };
  const { devices, links } = topology;
  const add = (name: string, kind: string, inside = -1) => devices.push({ name, kind, inside }) - 1;
  const connect = (a: number, b: number) => {
    const figures = { latencyUs: 0, bytesPerUs: gbPerS * 1000 };
    links.push({ from: a, to: b, ...figures }, { from: b, to: a, ...figures });
  };
  const nodes = Math.ceil(ranks / perNode);
  const network = nodes > 1 ? add('network', 'switch') : -1;
  for (let node = 0; node < nodes; node++) {
    const own = perNode > 1 ? add(`node ${node}`, 'node') : -1;
    if (own >= 0 && network >= 0) connect(own, network);
    for (let rank = node * perNode; rank < Math.min(ranks, (node + 1) * perNode); rank++) {
      const device = add(`rank ${rank}`, 'gpu', own);
      connect(device, own >= 0 ? own : network);
      topology.ranks.push(device);
    }
  }
  return topology;
}

function fail(place: string, message: string): never {
  throw new BadInput(`${place}: ${message}`);
}

function listAt(document: Record<string, unknown>, key: string, most: number): unknown[] {
  const value = document[key];
  if (!Array.isArray(value)) fail(`/${key}`, value === undefined ? 'missing' : 'no array');
  if (value.length > most) fail(`/${key}`, `more than ${most} are too many for a page`);
  return value;
}

function name(value: unknown, place: string): string {
  if (typeof value !== 'string' || value === '') fail(place, 'no name');
  return value.slice(0, 200);
}

// Reads a figure of a link: the one key with this prefix, and its unit.
function figure(
  link: Record<string, unknown>,
  at: string,
  begin: string,
  units: Record<string, number>,
): { value: number; rest: string } {
  const keys = Object.keys(link).filter((key) => key.startsWith(begin));
  const key = keys[0];
  if (key === undefined || keys.length > 1) fail(at, `one ${begin}UNIT is needed`);
  const rest = key.slice(begin.length);
  const unit = units[rest.replace(/_(each|one)_way$/, '')];
  if (unit === undefined) fail(`${at}/${key}`, 'unknown unit');
  const value = link[key];
  if (typeof value !== 'number' || !Number.isFinite(value) || value < 0) {
    fail(`${at}/${key}`, 'no number of zero or more');
  }
  return { value: value * unit, rest };
}

export function isTopology(document: Record<string, unknown>): boolean {
  return typeof document.format === 'string' && document.format.startsWith('unisono.topology/');
}

export function parseTopology(document: unknown): Topology {
  if (!isObject(document)) throw new BadInput('/: no object');
  if (document.format !== 'unisono.topology/1') {
    fail('/format', 'unknown version, this page reads unisono.topology/1');
  }
  if (document.preset !== undefined) {
    const preset = String(document.preset).slice(0, 40);
    fail('/preset', `write it out first: unisono topo ${preset} --json > machine.json`);
  }
  const index = new Map<string, number>();
  const devices: Device[] = listAt(document, 'devices', MOST_DEVICES).map((each, i) => {
    const at = `/devices/${i}`;
    if (!isObject(each)) fail(at, 'no object');
    const own = name(each.name, `${at}/name`);
    if (index.has(own)) fail(at, `the name "${own}" is that of another device`);
    index.set(own, i);
    if (!KINDS.includes(String(each.kind))) fail(`${at}/kind`, `none of ${KINDS.join(', ')}`);
    return { name: own, kind: String(each.kind), inside: -1 };
  });
  const named = (value: unknown, place: string) => {
    const found = index.get(String(value));
    return found === undefined ? fail(place, `there is no device "${String(value)}"`) : found;
  };
  listAt(document, 'devices', MOST_DEVICES).forEach((each, i) => {
    const inside = (each as Record<string, unknown>).inside;
    if (inside !== undefined) devices[i]!.inside = named(inside, `/devices/${i}/inside`);
  });
  const links: Link[] = [];
  listAt(document, 'links', MOST_LINKS).forEach((each, i) => {
    const at = `/links/${i}`;
    if (!isObject(each)) fail(at, 'no object');
    const from = named(each.from, `${at}/from`);
    const to = named(each.to, `${at}/to`);
    if (from === to) fail(at, 'a link joins two devices');
    const latencyUs = figure(each, at, 'latency_', TIMES).value;
    const { value: bytesPerUs, rest } = figure(each, at, 'bandwidth_', RATES);
    if (!/_(each|one)_way$/.test(rest)) fail(at, 'a bandwidth ends with _each_way or _one_way');
    if (bytesPerUs <= 0) fail(at, 'the bandwidth must be above zero');
    links.push({ from, to, latencyUs, bytesPerUs });
    if (rest.endsWith('_each_way')) links.push({ from: to, to: from, latencyUs, bytesPerUs });
  });
  const ranks = listAt(document, 'ranks', 4096).map((each, i) => named(each, `/ranks/${i}`));
  if (ranks.length === 0) fail('/ranks', 'there are no ranks');
  if (new Set(ranks).size < ranks.length) fail('/ranks', 'two ranks on one device');
  const title = document.name === undefined ? '' : String(document.name).slice(0, 200);
  return { name: title, devices, links, ranks };
}
