// The contents of the heat map: the number of contributors in each cell, summed over the ranks and
// rows that share it. A step to a nearby position examines only cells written in between, in either
// direction, so stepping back costs the same as stepping forward.
import type { Replay } from '../replay/replay';
import { stepStarts } from '../schedule/types';
import { placeOf, type Layout } from './layout';

export class HeatSizes {
  private readonly sums: Float64Array; // by cell: row * columns + column
  private readonly starts: Int32Array;
  private at = -1; // the step that `sums` describes

  constructor(
    private readonly replay: Replay,
    private readonly layout: Layout,
  ) {
    this.sums = new Float64Array(layout.rows * layout.columns);
    this.starts = stepStarts(replay.schedule);
  }

  // Returns, by cell, a value from 0 (nothing) to 1 (all parts of all ranks and rows that share
  // it).
  shares(step: number): Float64Array {
    const { schedule } = this.replay;
    const { slots, perColumn, perRow, rows, columns } = this.layout;
    this.go(step);
    const chunksOfRow = schedule.chunks / this.layout.allRows;
    return this.sums.map((sum, cell) => {
      const row = Math.trunc(cell / columns);
      const ranks = Math.min(perColumn, schedule.ranks - (cell % columns) * perColumn);
      const own = row + 1 < rows ? perRow : this.layout.allRows - row * perRow;
      // A row of all_to_all has a slot for each origin, with one or more chunks.
      const full = slots === 1 ? own : Math.max(slots, chunksOfRow) * own;
      return sum / (full * ranks);
    });
  }

  private go(step: number): void {
    if (this.at === step) return;
    const { schedule } = this.replay;
    const low = this.starts[Math.min(step, this.at)] ?? 0;
    const high = this.starts[Math.max(step, this.at)] ?? 0;
    if (this.at < 0 || high - low > schedule.ranks * schedule.chunks) {
      this.sums.fill(0);
      for (let chunk = 0; chunk < schedule.chunks; chunk++) {
        for (let rank = 0; rank < schedule.ranks; rank++) {
          this.add(rank, chunk, this.replay.size(rank, chunk, step));
        }
      }
    } else {
      this.change(low, high, this.at, step);
    }
    this.at = step;
  }

  // Returns the places that the moves low..high-1 write, each once.
  private change(low: number, high: number, before: number, after: number): void {
    const { moves, chunks } = this.replay.schedule;
    const seen = new Set<number>();
    for (let i = low; i < high; i++) {
      const rank = moves.to[i]!;
      for (let chunk = moves.chunk[i]!; chunk < moves.chunk[i]! + moves.chunks[i]!; chunk++) {
        const place = rank * chunks + chunk;
        if (seen.has(place)) continue;
        seen.add(place);
        const more = this.replay.size(rank, chunk, after) - this.replay.size(rank, chunk, before);
        this.add(rank, chunk, more);
      }
    }
  }

  private add(rank: number, chunk: number, size: number): void {
    const { perColumn, perRow, columns } = this.layout;
    const row = Math.trunc(placeOf(this.replay.schedule, chunk).row / perRow);
    this.sums[row * columns + Math.trunc(rank / perColumn)]! += size;
  }
}
