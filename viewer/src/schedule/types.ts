// A schedule in the page's form: the moves in columns, as in `unisono.schedule/1`.

export const BUFFERS = ['input', 'output', 'scratch'] as const;
export const COMBINES = ['replace', 'reduce'] as const;
export const INPUT = 0;
export const OUTPUT = 1;
export const SCRATCH = 2;
export const REDUCE = 1;

export interface Moves {
  count: number;
  step: Int32Array;
  from: Int32Array;
  to: Int32Array;
  chunk: Int32Array; // the first chunk
  chunks: Int32Array;
  source: Uint8Array; // index in BUFFERS, on `from`
  target: Uint8Array; // index in BUFFERS, on `to`
  combine: Uint8Array; // index in COMBINES
  line: Int32Array; // source line of the move; 0: unknown
}

export interface Phase {
  name: string;
  firstStep: number;
}

// The sizes of the blocks of all_to_all_v, in elements.
export interface Counts {
  elementBytes: number;
  send: number[][]; // [from][to]
}

export interface Schedule {
  collective: string;
  algorithm: string;
  ranks: number;
  root: number;
  chunks: number;
  steps: number;
  file: string;
  phases: Phase[];
  moves: Moves; // by step
  counts?: Counts; // undefined: all blocks are equal
}

export interface Move {
  step: number;
  from: number;
  to: number;
  chunk: number;
  chunks: number;
  source: number;
  target: number;
  combine: number;
  line: number;
}

export function emptyMoves(count: number): Moves {
  return {
    count,
    step: new Int32Array(count),
    from: new Int32Array(count),
    to: new Int32Array(count),
    chunk: new Int32Array(count),
    chunks: new Int32Array(count),
    source: new Uint8Array(count),
    target: new Uint8Array(count),
    combine: new Uint8Array(count),
    line: new Int32Array(count),
  };
}

export function moveAt(moves: Moves, index: number): Move {
  return {
    step: moves.step[index]!,
    from: moves.from[index]!,
    to: moves.to[index]!,
    chunk: moves.chunk[index]!,
    chunks: moves.chunks[index]!,
    source: moves.source[index]!,
    target: moves.target[index]!,
    combine: moves.combine[index]!,
    line: moves.line[index]!,
  };
}

export function setMove(moves: Moves, index: number, move: Move): void {
  moves.step[index] = move.step;
  moves.from[index] = move.from;
  moves.to[index] = move.to;
  moves.chunk[index] = move.chunk;
  moves.chunks[index] = move.chunks;
  moves.source[index] = move.source;
  moves.target[index] = move.target;
  moves.combine[index] = move.combine;
  moves.line[index] = move.line;
}

// Returns where the moves of each step begin: steps + 1 numbers.
export function stepStarts(schedule: Schedule): Int32Array {
  const starts = new Int32Array(schedule.steps + 1);
  const { count, step } = schedule.moves;
  let at = 0;
  for (let i = 0; i <= schedule.steps; i++) {
    while (at < count && step[at]! < i) at++;
    starts[i] = at;
  }
  return starts;
}
