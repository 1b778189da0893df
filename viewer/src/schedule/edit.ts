// Edits of a schedule, for "Break it": a copy with one move dropped or changed.
import { emptyMoves, moveAt, setMove, type Move, type Schedule } from './types';

export type Edit = { move: number } & ({ drop: true } | Partial<Move>);

// `move` counts in the schedule before the edit.
export function apply(schedule: Schedule, edit: Edit): Schedule {
  const drop = 'drop' in edit;
  const old = schedule.moves;
  const moves = emptyMoves(old.count - (drop ? 1 : 0));
  for (let i = 0, to = 0; i < old.count; i++) {
    if (i === edit.move && drop) continue;
    const move = moveAt(old, i);
    setMove(moves, to++, i === edit.move && !drop ? { ...move, ...edit } : move);
  }
  return { ...schedule, moves };
}
