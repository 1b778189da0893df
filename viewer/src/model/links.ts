// The load of the links of a machine: each byte crosses all links of its route.
import { Router } from './routes';
import type { Topology } from './topology';

export interface LinkLoad {
  link: number; // index in the topology
  bytes: number;
  us: number; // the least time that the link needs for these bytes
  pairs: Set<number>; // pairs of ranks that use the link, as from * ranks + to
}

export interface Loads {
  list: LinkLoad[]; // links that carry data, the busiest first
  across: number; // bytes that leave a node
  total: number;
  unreachable: number; // pairs of ranks without a route
}

// Returns the node that contains a device. If there are no nodes, each device is its own node.
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

// Assigns the bytes of the matrix to the first `ranks` ranks of the machine.
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
