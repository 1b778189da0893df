// Positions on the stage: pure functions of sizes.
//
// A column is a rank, a row a chunk (for all_to_all a destination). The space of a cell determines
// its content: digits, strips without digits, or a share.
import { countsEveryone, originOf, pairSize, plainForm } from '../schedule/collective';
import type { Schedule } from '../schedule/types';

export type Detail = 'digits' | 'strips' | 'cells' | 'heat';

export interface Grid {
  rows: number;
  slots: number; // slots of a strip
}

export interface Layout extends Grid {
  detail: Detail;
  columns: number;
  allRows: number; // if several rows or ranks share a cell
  perRow: number;
  perColumn: number;
  left: number; // space for the names of rows
  top: number; // space for the arcs between ranks and their names
  arcs: number; // height of the arcs
  columnWidth: number;
  rowHeight: number;
  slotWidth: number;
  stripWidth: number;
  stripHeight: number;
  width: number;
  height: number;
}

// The slots of a strip: contributors if they are summed, origins for all_to_all, otherwise one
// slot.
export function gridOf(schedule: Schedule): Grid {
  if (plainForm(schedule.collective) === 'all_to_all') {
    return { rows: schedule.ranks, slots: schedule.ranks };
  }
  return {
    rows: schedule.chunks,
    slots: countsEveryone(schedule.collective) ? schedule.ranks : 1,
  };
}

// Returns the row of a chunk, and its first slot if slots are origins.
export function placeOf(schedule: Schedule, chunk: number): { row: number; slot: number } {
  if (plainForm(schedule.collective) !== 'all_to_all') return { row: chunk, slot: 0 };
  const pair = Math.trunc(chunk / pairSize(schedule));
  return { row: pair % schedule.ranks, slot: Math.trunc(pair / schedule.ranks) };
}

// Returns the name of a row: "c4", or for all_to_all "→4".
export function rowName(schedule: Schedule, row: number): string {
  return `${plainForm(schedule.collective) === 'all_to_all' ? '→' : 'c'}${row}`;
}

// Formats the rows of chunks: "c4", "c4–c7", "→7 →0".
export function rowsName(schedule: Schedule, first: number, chunks: number): string {
  const rows = new Set<number>();
  for (let chunk = first; chunk < first + chunks && rows.size < gridOf(schedule).rows; chunk++) {
    rows.add(placeOf(schedule, chunk).row);
  }
  const list = [...rows];
  const name = (row: number) => rowName(schedule, row);
  const isRun = list.every((row, i) => row === list[0]! + i);
  if (list.length === 1) return name(list[0]!);
  return isRun ? `${name(list[0]!)}–${name(list.at(-1)!)}` : list.map(name).join(' ');
}

// Returns the rank whose colour and digit a slot has.
export function labelOf(schedule: Schedule, row: number, slot: number): number {
  if (gridOf(schedule).slots > 1) return slot;
  if (plainForm(schedule.collective) === 'scatter') {
    return Math.trunc((row * schedule.ranks) / schedule.chunks);
  }
  return originOf(schedule, row);
}

const SLOT = 28; // the least useful width; if there is space for more:
const SLOT_MOST = 52;
const SINGLE = 48; // if a strip has a single slot
const SEAM = 3; // between rows whose height shows their bytes
const LEFT = 44;
const NAMES = 24; // height of the rank names
const MOST_SINGLE = 256; // ranks or rows; with more, several share a cell
const SHARED = 128; // the most cells in that case
const MOST_SVG = 1100; // cells; with more, a canvas is faster

function sharing(count: number): number {
  return count <= MOST_SINGLE ? 1 : 2 ** Math.ceil(Math.log2(count / SHARED));
}

// With `tall`, all rows of a rank together have this height: area is bytes.
export function layout(schedule: Schedule, width: number, tall = 0): Layout {
  const all = gridOf(schedule);
  const perRow = sharing(all.rows);
  const perColumn = sharing(schedule.ranks);
  const grid = { rows: Math.ceil(all.rows / perRow), slots: all.slots };
  const columns = Math.ceil(schedule.ranks / perColumn);
  const left = width < 500 ? 30 : LEFT;
  const free = (width - left - 4) / columns - 60;
  const widest =
    grid.slots === 1 ? SINGLE : Math.max(SLOT, Math.min(SLOT_MOST, free / Math.max(grid.slots, 2)));
  const columnWidth = Math.min((width - left - 4) / columns, 60 + widest * Math.max(grid.slots, 2));
  const gap = Math.max(4, Math.min(28, columnWidth * 0.2));
  const room = columnWidth - gap;
  const slot = Math.min(widest, room / grid.slots);
  const isLarge = columns * grid.rows > MOST_SVG;
  const detail: Detail =
    columns > 32 || isLarge
      ? 'heat'
      : slot >= 9.5 && columns <= 16
        ? 'digits'
        : slot >= 2 && columns <= 16
          ? 'strips'
          : 'cells';
  const arcs = columns > 32 || columns < 2 ? 0 : Math.min(64, 14 + 6 * columns);
  const top = arcs + NAMES;
  const isShared = tall > 0 && detail !== 'heat';
  const shared = tall / grid.rows;
  const stripHeight = isShared
    ? Math.max(shared - SEAM, shared * 0.6)
    : detail === 'heat'
      ? Math.max(1, Math.min(12, 640 / grid.rows))
      : 20 + Math.max(0, Math.min(slot, SLOT_MOST) - SLOT) * (grid.slots > 1 ? 0.5 : 0);
  const rowHeight = isShared ? shared : detail === 'heat' ? stripHeight : stripHeight + 12;
  const stripWidth =
    detail === 'heat' ? columnWidth : detail === 'cells' ? Math.min(room, 44) : slot * grid.slots;
  return {
    ...grid,
    detail,
    columns,
    allRows: all.rows,
    perRow,
    perColumn,
    left,
    top,
    arcs,
    columnWidth,
    rowHeight,
    slotWidth: slot,
    stripWidth,
    stripHeight,
    width: left + columns * columnWidth + 4,
    height: top + grid.rows * rowHeight + 10,
  };
}

export function columnOf(l: Layout, rank: number): number {
  return Math.trunc(rank / l.perColumn);
}

export function columnCentre(l: Layout, rank: number): number {
  return l.left + (columnOf(l, rank) + 0.5) * l.columnWidth;
}

export function stripX(l: Layout, rank: number): number {
  return columnCentre(l, rank) - l.stripWidth / 2;
}

export function rowY(l: Layout, row: number): number {
  return l.top + Math.trunc(row / l.perRow) * l.rowHeight + (l.detail === 'heat' ? 0 : 4);
}

// Returns the position of a moving piece: along its row, raised where it passes over others.
export function flight(
  l: Layout,
  from: number,
  to: number,
  part: number,
): { x: number; y: number } {
  const eased = part * part * (3 - 2 * part);
  const lift = Math.abs(to - from) > 1 && l.detail !== 'heat' ? Math.sin(Math.PI * part) * 7 : 0;
  return { x: (columnOf(l, to) - columnOf(l, from)) * l.columnWidth * eased, y: -lift };
}
