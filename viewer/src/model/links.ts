// The load of the links of a machine: every byte goes over each link of its route.
import { Router } from './routes';
import type { Topology } from './topology';

export interface LinkLoad {
  link: number; // index in the topology
  bytes: number;
  us: number; // that the link needs for them, at least
  pairs: Set<number>; // from * ranks + to: who uses it
}

export interface Loads {
  list: LinkLoad[]; // those that carry anything, the busiest first
  across: number; // bytes that leave a node
  total: number;
  unreachable: number; // pairs that no links join
}

// The node that a device is in, or is; without nodes, each device is its own.
function nodeOf({ devices }: Topology, device: number): number {
  let found = device;
  for (let at = device, left = devices.length; at >= 0 && left > 0; left--) {
    if (devices[at]!.kind === 'node') found = at;
    at = devices[at]!.inside;
  }
  return found;
}

export function nodesOfRanks(topology: Topology): number[] {
  return topology.ranks.map((device) => nodeOf(topology, device));
}

// The first `ranks` ranks of the machine send what the matrix says.
export function linkLoads(topology: Topology, matrix: Float64Array, ranks: number): Loads {
  const router = new Router(topology);
  const nodes = nodesOfRanks(topology);
  const loads = new Map<number, LinkLoad>();
  const sums = { across: 0, total: 0, unreachable: 0 };
  matrix.forEach((bytes, pair) => {
    if (bytes === 0) return;
    const from = Math.trunc(pair / ranks);
    const to = pair % ranks;
    const route = router.route(from, to);
    if (!route) {
      sums.unreachable++;
      return;
    }
    sums.total += bytes;
    if (nodes[from] !== nodes[to]) sums.across += bytes;
    for (const link of route) {
      const load = loads.get(link) ?? { link, bytes: 0, us: 0, pairs: new Set() };
      load.bytes += bytes;
      load.us = load.bytes / topology.links[link]!.bytesPerUs;
      load.pairs.add(pair);
      loads.set(link, load);
    }
  });
  const list = [...loads.values()].sort((a, b) => b.us - a.us || a.link - b.link);
  return { list, ...sums };
}
