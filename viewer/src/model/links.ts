// The load of links on a machine of two levels: every rank has a link to its node, and every node
// one to all others, each with two directions.

export interface Link {
  id: string;
  kind: 'rank' | 'node';
  index: number;
  out: boolean;
  bytes: number;
}

export interface Loads {
  list: Link[]; // nodes first, then ranks, the busiest of each first
  busiest: Link | undefined; // of the nodes
  across: number; // bytes that leave a node
  total: number;
}

export function linkLoads(matrix: Float64Array, ranks: number, perNode: number): Loads {
  const links = new Map<string, Link>();
  const add = (kind: 'rank' | 'node', index: number, out: boolean, bytes: number) => {
    const id = `${kind}${index}${out ? 'out' : 'in'}`;
    const link = links.get(id) ?? { id, kind, index, out, bytes: 0 };
    link.bytes += bytes;
    links.set(id, link);
  };
  let across = 0;
  let total = 0;
  matrix.forEach((bytes, at) => {
    if (bytes === 0) return;
    const from = Math.trunc(at / ranks);
    const to = at % ranks;
    total += bytes;
    add('rank', from, true, bytes);
    add('rank', to, false, bytes);
    const fromNode = Math.trunc(from / perNode);
    const toNode = Math.trunc(to / perNode);
    if (fromNode === toNode || perNode <= 1) return;
    across += bytes;
    add('node', fromNode, true, bytes);
    add('node', toNode, false, bytes);
  });
  const order = (a: Link, b: Link) =>
    a.kind === b.kind ? b.bytes - a.bytes || a.index - b.index : a.kind === 'node' ? -1 : 1;
  const list = [...links.values()].sort(order);
  return { list, busiest: list.find((each) => each.kind === 'node'), across, total };
}
