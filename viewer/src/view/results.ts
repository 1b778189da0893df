// Describes the final contents of a rank by name.
import { needsOutput, plainForm } from '../schedule/collective';
import type { Replay } from '../replay/replay';
import type { TextKey } from '../text/texts';

const NAMES: Record<string, TextKey> = {
  ...{ broadcast: 'got_copy', scatter: 'got_part', gather: 'got_all', reduce: 'got_sum' },
  ...{ all_reduce: 'got_sum', all_gather: 'got_all', reduce_scatter: 'got_part_sum' },
  ...{ all_to_all: 'got_blocks', barrier: 'got_everyone' },
  ...{ scan: 'got_scan', exclusive_scan: 'got_scan' },
};

// undefined: the rank gets no result, or a part of it is missing.
export function resultOf(replay: Replay, rank: number): TextKey | undefined {
  const { schedule } = replay;
  let needed = 0;
  for (let chunk = 0; chunk < schedule.chunks; chunk++) {
    if (!needsOutput(schedule, rank, chunk)) continue;
    needed++;
    if (!replay.isWhole(rank, chunk, schedule.steps)) return undefined;
  }
  return needed > 0 ? NAMES[plainForm(schedule.collective)] : undefined;
}
