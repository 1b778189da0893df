// Positions of arrows and moving pieces on a stage whose ranks are in a row. Pure.
import { columnCentre, flight, rowY, stripX, type Layout } from './layout';
import type { Piece } from './scene';

// Arrows run above the names of two ranks. An arriving arrow ends near the middle of a rank, and a
// leaving arrow begins farther out, so that no line seems to have the head of another.
export function arc(l: Layout, from: number, to: number): string {
  const x1 = columnCentre(l, from);
  const x2 = columnCentre(l, to);
  const height = Math.min(2 * l.arcs - 16, 16 + 9 * Math.abs(to - from));
  const side = Math.sign(x2 - x1);
  const out = side * Math.min(14, 0.2 * l.columnWidth);
  const into = side * Math.min(3, 0.05 * l.columnWidth);
  return `M${x1 + out},${l.arcs - 2} Q${(x1 + x2) / 2},${l.arcs - 2 - height} ${x2 - into},${l.arcs - 3}`;
}

// At the ends of a ring, a piece leaves at one edge and enters at the other.
function isWrapped(piece: Piece, ring: boolean): boolean {
  return ring && Math.abs(piece.to - piece.from) > 1;
}

export function places(
  l: Layout,
  piece: Piece,
  ring: boolean,
  part: number, // progress
): { x: number; y: number }[] {
  const y = rowY(l, piece.row);
  if (isWrapped(piece, ring)) {
    const side = piece.to < piece.from ? 1 : -1;
    const out = flight(l, piece.from, piece.from + side, part);
    return [
      { x: stripX(l, piece.from) + out.x, y },
      { x: stripX(l, piece.to) - side * l.columnWidth + out.x, y },
    ];
  }
  const at = flight(l, piece.from, piece.to, part);
  return [{ x: stripX(l, piece.from) + at.x, y: y + at.y }];
}

// Returns the path of a piece: below the row, or between neighbours from strip to strip.
export function line(l: Layout, piece: Piece, ring: boolean): string {
  const wrapped = isWrapped(piece, ring);
  const y = rowY(l, piece.row);
  const side = Math.sign(piece.to - piece.from) * (wrapped ? -1 : 1);
  const edge = (rank: number, right: boolean) => stripX(l, rank) + (right ? l.stripWidth : 0);
  const middle = y + l.stripHeight / 2;
  const gap = l.columnWidth - l.stripWidth;
  const start = edge(piece.from, side > 0) + side * 2;
  const end = edge(piece.to, side < 0) - side * 3;
  if (wrapped) {
    const stub = side * Math.min(10, gap / 2);
    return `M${start},${middle} h${stub} M${end - stub},${middle} L${end},${middle}`;
  }
  if (Math.abs(piece.to - piece.from) === 1 && gap >= 14) {
    return `M${start},${middle} L${end},${middle}`;
  }
  const below = y + l.stripHeight;
  const [from, to] = [columnCentre(l, piece.from), columnCentre(l, piece.to)];
  return `M${from},${below + 1} V${below + 6} H${to} V${below + 2}`;
}
