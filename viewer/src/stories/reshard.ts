// A reshard: the blocks of one matrix, from a trainer's layout to an engine's, as planned by
// `unisono reshard` (src/stories/reshards.json; a test compares it with the program). Pure.
import type { Plan as Beat } from './beat';
import reshards from './reshards.json';

export interface Move {
  from: number;
  to: number; // = from: a copy within the rank's memory
  elements: string; // "[0-63] x [0-511]"
  bytes: number;
}

export interface Reshard {
  command: string; // the command that made the plan
  from: string; // the layouts
  to: string;
  hosts: number[]; // by rank: its host
  held: { rank: number; elements: string }[]; // the blocks before
  moves: Move[]; // a move that passes a block on comes after the move that delivers it
  sent: number; // bytes to other ranks
  between: number; // the part of these bytes that goes to other hosts
  least: { sent: number; between: number };
}

export const RESHARDS = reshards as Reshard[];

type Range = [first: number, last: number];

export function rangesOf(elements: string): Range[][] {
  return elements.split(' x ').map((dimension) =>
    [...dimension.matchAll(/(\d+)(?:-(\d+))?/g)].map(([, first, last]): Range => {
      return [Number(first), Number(last ?? first)];
    }),
  );
}

// Cuts the matrix at all bounds of all blocks.
export interface Cell {
  row: number;
  column: number;
  bytes: number;
  held: number[]; // the ranks that have it before
  wanted: number[]; // the ranks that have it afterwards
}

export interface Grid {
  rows: Range[];
  columns: Range[];
  cells: Cell[]; // row by row
}

function cuts(ranges: Range[]): Range[] {
  const bounds = [...new Set(ranges.flatMap(([first, last]) => [first, last + 1]))];
  bounds.sort((a, b) => a - b);
  return bounds.slice(1).map((end, i): Range => [bounds[i]!, end - 1]);
}

const has = (ranges: Range[], [first, last]: Range) =>
  ranges.some((range) => range[0] <= first && last <= range[1]);

export function gridOf({ held, moves }: Reshard): Grid {
  const blocks = [...held, ...moves].map(({ elements }) => rangesOf(elements));
  const [rows, columns] = [0, 1].map((dim) => cuts(blocks.flatMap((block) => block[dim]!)));
  const covers = (elements: string, row: Range, column: Range) => {
    const [down, across] = rangesOf(elements);
    return has(down!, row) && has(across!, column);
  };
  const elements = moves.reduce((sum, { elements: each }) => sum + count(rangesOf(each)), 0);
  const bytesEach = moves.reduce((sum, { bytes }) => sum + bytes, 0) / elements;
  const cells = rows!.flatMap((row, r) =>
    columns!.map((column, c) => ({
      ...{ row: r, column: c, bytes: bytesEach * count([[row], [column]]) },
      held: held.filter((each) => covers(each.elements, row, column)).map(({ rank }) => rank),
      wanted: moves
        .filter((each) => covers(each.elements, row, column))
        .map(({ to }) => to)
        .sort((a, b) => a - b),
    })),
  );
  return { rows: rows!, columns: columns!, cells };
}

function count(block: Range[][]): number {
  return block.reduce(
    (product, ranges) => product * ranges.reduce((sum, [a, b]) => sum + b - a + 1, 0),
    1,
  );
}

export const KINDS = ['own', 'far', 'near'] as const;
export type Kind = (typeof KINDS)[number]; // within a rank's memory, to another host, within a host

// A cell that flies from one rank to another.
export interface Flight {
  kind: Kind;
  cell: number;
  from: number;
  to: number;
  isPassedOn: boolean; // the sender received it before, and did not have it from the beginning
  origin: number; // the rank that had it before
  round: number; // in a round of its kind, a rank sends and receives at most one cell
}

export function flightsOf(reshard: Reshard, grid: Grid): Flight[] {
  const flights: Flight[] = [];
  const busy = new Set<string>();
  for (const { from, to, elements } of reshard.moves) {
    const [down, across] = rangesOf(elements);
    const isFar = reshard.hosts[from] !== reshard.hosts[to];
    const kind = from === to ? 'own' : isFar ? 'far' : 'near';
    grid.cells.forEach(({ row, column, held }, cell) => {
      if (!has(down!, grid.rows[row]!) || !has(across!, grid.columns[column]!)) return;
      const brought = flights.find((each) => each.cell === cell && each.to === from);
      const isPassedOn = !held.includes(from);
      const after = isPassedOn && brought?.kind === kind ? brought.round + 1 : 0;
      let round = after;
      while (
        kind !== 'own' &&
        [`${kind} ${round} from ${from}`, `${kind} ${round} to ${to}`].some((key) => busy.has(key))
      ) {
        round++;
      }
      busy.add(`${kind} ${round} from ${from}`).add(`${kind} ${round} to ${to}`);
      const origin = isPassedOn ? brought!.origin : from;
      flights.push({ kind, cell, from, to, isPassedOn, origin, round });
    });
  }
  return flights;
}

export const roundsOf = (flights: Flight[], kind: Kind) =>
  1 + Math.max(-1, ...flights.filter((each) => each.kind === kind).map(({ round }) => round));

export const bytesOf = (flights: Flight[], { cells }: Grid, kind: Kind) =>
  flights.reduce((sum, each) => sum + (each.kind === kind ? cells[each.cell]!.bytes : 0), 0);

export function reshardPlans(reshard: Reshard): Beat[] {
  const flights = flightsOf(reshard, gridOf(reshard));
  return [
    { id: 'before', length: 1 },
    { id: 'after', length: 1 },
    ...KINDS.map((kind) => ({ id: kind, length: 0.4 + 0.7 * roundsOf(flights, kind) })).filter(
      ({ id }) => roundsOf(flights, id as Kind) > 0,
    ),
    { id: 'bytes', length: 1.2 },
  ];
}

// The usual method: one rank gathers the whole matrix, and broadcasts it to all ranks that need a
// part. Each block of the matrix crosses between hosts once.
export function gathered({ hosts }: Reshard, { cells }: Grid): { sent: number; between: number } {
  const root = Math.min(...cells.flatMap(({ held }) => held));
  const targets = new Set(cells.flatMap(({ wanted }) => wanted));
  targets.delete(root);
  const whole = cells.reduce((sum, { bytes }) => sum + bytes, 0);
  const lacking = cells.filter(({ held }) => !held.includes(root));
  const far = lacking.filter(({ held }) => held.every((rank) => hosts[rank] !== hosts[root]));
  const away = new Set([...targets].map((rank) => hosts[rank]));
  away.delete(hosts[root]);
  const bytes = (of: Cell[]) => of.reduce((sum, cell) => sum + cell.bytes, 0);
  return {
    sent: bytes(lacking) + targets.size * whole,
    between: bytes(far) + away.size * whole,
  };
}
