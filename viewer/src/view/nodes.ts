// Nodes with their ranks, the network below them, and the paths between ranks. Pure.

export interface Point {
  x: number;
  y: number;
}

export interface NodeGrid {
  nodes: number;
  perNode: number;
  across: number; // nodes per line
  cell: number; // side of a rank's square
  box: number; // distance from a node to the next one
  tall: number; // distance from a line of nodes to the next one, with the network between them
  height: number;
}

const EDGE = 7; // between the frame of a node and its ranks
const COLUMNS = 4; // ranks beside each other
const TRUNK = 13; // from a node down to the network
const NAME = 14; // height of the name above a node, if there are several
const LEFT = 12; // margin in which the network joins its lines

export function nodeGrid(nodes: number, perNode: number, width: number): NodeGrid {
  const across = Math.min(nodes, width < 600 ? 4 : 8);
  const lines = Math.ceil(nodes / across);
  const box = Math.min(300, (width - LEFT) / across);
  const high = Math.ceil(perNode / COLUMNS);
  const most = lines > 2 ? 25 : lines > 1 ? 34 : 52;
  const cell = Math.min(most, (box - 2 * EDGE - 6) / COLUMNS);
  const tall = high * cell + 2 * EDGE + (nodes > 1 ? 2 * TRUNK + NAME : 4);
  return { nodes, perNode, across, cell, box, tall, height: lines * tall };
}

export function nodeFrame(g: NodeGrid, node: number) {
  return {
    x: LEFT + (node % g.across) * g.box,
    y: Math.trunc(node / g.across) * g.tall + (g.nodes > 1 ? NAME : 2),
    width: COLUMNS * g.cell + 2 * EDGE,
    height: Math.ceil(g.perNode / COLUMNS) * g.cell + 2 * EDGE,
  };
}

// Returns the middle of a rank.
export function rankPoint(g: NodeGrid, rank: number): Point {
  const frame = nodeFrame(g, Math.trunc(rank / g.perNode));
  const at = rank % g.perNode;
  return {
    x: frame.x + EDGE + ((at % COLUMNS) + 0.5) * g.cell,
    y: frame.y + EDGE + (Math.trunc(at / COLUMNS) + 0.5) * g.cell,
  };
}

// Returns where a node is attached to the network.
export function port(g: NodeGrid, node: number): Point {
  const frame = nodeFrame(g, node);
  return { x: frame.x + frame.width / 2, y: frame.y + frame.height + TRUNK };
}

// Returns the network: a line below each line of nodes, a connection between these lines on the
// left, and a stub for each node.
export function network(g: NodeGrid): string {
  const lines = Math.ceil(g.nodes / g.across);
  let path = '';
  for (let line = 0; line < lines; line++) {
    const last = port(g, Math.min(g.nodes, (line + 1) * g.across) - 1);
    const first = lines > 1 ? LEFT / 2 : port(g, line * g.across).x;
    path += `M${first},${last.y}H${last.x}`;
  }
  if (lines > 1) path += `M${LEFT / 2},${port(g, 0).y}V${port(g, g.nodes - 1).y}`;
  for (let node = 0; node < g.nodes; node++) {
    const { x, y } = port(g, node);
    path += `M${x},${y}v-${TRUNK}`;
  }
  return path;
}

// Returns where messages leave and reach a rank: below its number.
export function doorOf(g: NodeGrid, rank: number): Point {
  const { x, y } = rankPoint(g, rank);
  return { x, y: y + 0.27 * g.cell };
}

// Returns the size of a moving piece: it fits below a number, and between two.
export function pieceOf({ cell }: NodeGrid): number {
  return Math.max(5, Math.min(10, 0.26 * cell));
}

// Returns the path from rank to rank: across the node, or between its ranks down to the network,
// and up again.
export function way(g: NodeGrid, from: number, to: number): Point[] {
  const [a, b] = [doorOf(g, from), doorOf(g, to)];
  const [home, away] = [Math.trunc(from / g.perNode), Math.trunc(to / g.perNode)];
  if (home === away) return a.y === b.y ? [a, b] : [a, ...across(g, from, to), b];
  const [down, up] = [port(g, home), port(g, away)];
  const corner = { x: LEFT / 2, y: down.y };
  const turn = down.y === up.y ? [] : [corner, { ...corner, y: up.y }];
  return [a, ...exit(g, a, down), down, ...turn, up, ...exit(g, b, up).reverse(), b];
}

// The path to another line of the same node goes through the gaps between ranks, around their
// numbers.
function across(g: NodeGrid, from: number, to: number): Point[] {
  const [a, b, middle] = [doorOf(g, from), doorOf(g, to), rankPoint(g, from)];
  const side = b.x < a.x ? -1 : 1;
  const out = a.x + (side * g.cell) / 2;
  const back = b.x === a.x ? out : b.x - (side * g.cell) / 2;
  const gap = middle.y + (Math.sign(b.y - a.y) * g.cell) / 2;
  return [
    ...[
      { x: out, y: a.y },
      { x: out, y: gap },
    ],
    ...[
      { x: back, y: gap },
      { x: back, y: b.y },
    ],
  ];
}

// Returns the path from a rank to its node's attachment to the network, through the gaps between
// ranks.
function exit(g: NodeGrid, { x, y }: Point, { x: middle, y: below }: Point): Point[] {
  const gap = x + Math.sign(middle - x) * (g.cell / 2);
  const floor = below - TRUNK - EDGE / 2;
  return [
    { x: gap, y },
    { x: gap, y: floor },
    { x: middle, y: floor },
  ];
}

// Returns the point of a path at `part` of its length.
export function along(points: Point[], part: number): Point {
  const lengths = points.slice(1).map((p, i) => Math.hypot(p.x - points[i]!.x, p.y - points[i]!.y));
  let left = part * lengths.reduce((sum, each) => sum + each, 0);
  for (const [i, length] of lengths.entries()) {
    if (left > length && i < lengths.length - 1) {
      left -= length;
      continue;
    }
    const at = length > 0 ? Math.min(1, left / length) : 0;
    const [p, q] = [points[i]!, points[i + 1]!];
    return { x: p.x + (q.x - p.x) * at, y: p.y + (q.y - p.y) * at };
  }
  return points[0]!;
}
