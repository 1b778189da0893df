// Reads the packed form of schedules in the page (docs/formats/view.md).
import { emptyMoves, type Moves, type Schedule } from './types';

export interface Packed {
  ranks: number;
  root: number;
  chunks: number;
  steps: number;
  phases: [string, number][];
  moves: string;
}

class Bytes {
  private at = 0;
  constructor(private readonly bytes: Uint8Array) {}

  next(): number {
    let value = 0;
    let scale = 1;
    for (;;) {
      const byte = this.bytes[this.at++];
      if (byte === undefined || scale > 2 ** 49) throw new Error('the packed moves end too early');
      value += (byte & 127) * scale;
      if (byte < 128) return value;
      scale *= 128;
    }
  }
}

function unzigzag(value: number): number {
  return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
}

// Reads pairs of a difference from the previous value and a number of repetitions.
function readColumn(bytes: Bytes, column: Int32Array | Uint8Array): void {
  let value = 0;
  for (let at = 0; at < column.length;) {
    const difference = unzigzag(bytes.next());
    const end = at + bytes.next();
    if (end > column.length || end === at) throw new Error('the packed moves do not fit');
    while (at < end) column[at++] = value += difference;
  }
}

export function unpackMoves(text: string): Moves {
  const bytes = new Bytes(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)));
  const count = bytes.next();
  if (count > 5e6) throw new Error('too many moves for a page');
  const moves = emptyMoves(count);
  const code = new Uint8Array(count);
  for (const column of [moves.step, moves.from, moves.to, moves.chunk, moves.chunks, code]) {
    readColumn(bytes, column);
  }
  readColumn(bytes, moves.line);
  for (let i = 0; i < count; i++) {
    moves.source[i] = Math.trunc(code[i]! / 6);
    moves.target[i] = Math.trunc(code[i]! / 2) % 3;
    moves.combine[i] = code[i]! % 2;
  }
  return moves;
}

export function unpack(
  packed: Packed,
  names: { collective: string; algorithm: string; file: string },
): Schedule {
  return {
    ...names,
    ranks: packed.ranks,
    root: packed.root,
    chunks: packed.chunks,
    steps: packed.steps,
    phases: packed.phases.map(([name, firstStep]) => ({ name, firstStep })),
    moves: unpackMoves(packed.moves),
  };
}
