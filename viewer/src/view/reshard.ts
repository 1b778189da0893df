// Places the blocks of a reshard: two grids, side by side or one above the other.
import type { Cell, Grid } from '../stories/reshard';

const TOP = 46; // space above a grid for its layout and the columns' ranges
const LEFT = 68; // space for the rows' ranges
const GAP = 2;

export function reshardFrame({ rows, columns }: Grid, width: number) {
  const isNarrow = width < 640;
  const tall = isNarrow ? 30 : 58;
  const room = isNarrow ? width : (width - 48) / 2;
  const wide = (room - LEFT) / columns.length;
  const side = TOP + rows.length * tall;
  const sides = [
    { x: 0, y: TOP },
    isNarrow ? { x: 0, y: TOP + side + 10 } : { x: room + 48, y: TOP },
  ];
  // Returns the place of a rank's block: ranks that have the same cell share its width.
  const box = (which: number, cell: Cell, rank: number) => {
    const ranks = which === 0 ? cell.held : cell.wanted;
    const place = sides[which]!;
    const each = (wide - GAP) / ranks.length;
    return {
      x: place.x + LEFT + cell.column * wide + ranks.indexOf(rank) * each + GAP,
      y: place.y + cell.row * tall + GAP,
      width: each - GAP,
      height: tall - 2 * GAP,
    };
  };
  return { left: LEFT, wide, tall, sides, box, height: isNarrow ? 2 * side + 14 : side + 4 };
}
