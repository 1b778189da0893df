// The way from a cluster to a chunk of one rank. Pure.
import type { Plan } from './together';

export interface View {
  x: number;
  y: number;
  width: number;
}

// Returns the part of the drawing that is seen `at` views after the first one. Its width shrinks by the same factor
// in each moment, and one point stands still.
export function viewAt(views: View[], at: number): View {
  const index = Math.min(views.length - 2, Math.floor(at));
  const [a, b] = [views[index]!, views[index + 1]!];
  const width = a.width * (b.width / a.width) ** (at - index);
  const part = (a.width - width) / (a.width - b.width);
  return { x: a.x + (b.x - a.x) * part, y: a.y + (b.y - a.y) * part, width };
}

// Bytes of one call of tensor parallelism.
export function callBytes({ wires }: Plan): number {
  const { inside, between, calls, size } = wires.find(({ axis }) => axis === 'tp')!;
  return (inside + between) / (calls * size);
}
