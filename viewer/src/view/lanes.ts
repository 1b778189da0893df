// Draws the lanes of a time-space diagram as paths: one path for everything that looks the same,
// because thousands of elements would be slow.
import type { Doing, Job } from '../model/activity';
import { LEVELS, stretches, type Window } from '../model/density';

export interface LanePath {
  doing: Doing;
  level: number; // 1..LEVELS: the share of the time
  d: string;
}

// Offsets above and below the middle of a lane, in parts of its height. A rank may send and receive
// at the same time. A waiting rank does neither, and its lane is a thin line there.
const PLACE: Record<Doing, [number, number]> = {
  ...{ sends: [-0.22, 0], receives: [0, 0.22], adds: [0, 0.22] },
  ...{ waits: [-0.08, 0.08], inside: [-0.16, 0.16] },
};

export function lanePaths(
  jobs: Job[],
  ranks: number,
  window: Window,
  { left, lane, y }: { left: number; lane: number; y: (rank: number) => number },
  exact: boolean, // draws each activity separately
): LanePath[] {
  const paths = new Map<string, LanePath>();
  const draw = (rank: number, doing: Doing, level: number, begin: number, end: number) => {
    const [above, below] = PLACE[doing];
    const key = `${doing} ${level}`;
    const path = paths.get(key) ?? { doing, level, d: '' };
    const high = ((below - above) * lane).toFixed(1);
    const wide = (end - begin).toFixed(1);
    path.d += `M${(left + begin).toFixed(1)},${(y(rank) + above * lane).toFixed(1)}h${wide}v${high}h-${wide}z`;
    paths.set(key, path);
  };
  if (exact) {
    const { first, span, pixels } = window;
    const at = (us: number) => Math.max(-1, Math.min(pixels + 1, ((us - first) / span) * pixels));
    for (const { rank, doing, start, end } of jobs) {
      const begin = at(start);
      draw(rank, doing, LEVELS, begin, Math.max(begin + 0.5, at(end)));
    }
  } else {
    for (const { rank, doing, level, begin, end } of stretches(jobs, ranks, window)) {
      draw(rank, doing, level, begin, end);
    }
  }
  return [...paths.values()];
}
