// Plays a schedule once and keeps every version of every cell. The state at any step is then a
// look-up, so going back costs as much as going forward.
//
// The content of a cell is a set of contributors: one bit per rank, or a single bit if chunks are
// not summed. If a rank's part is included twice, exact counts are kept beside the set; they stop
// at 255. Findings and the final state are those of the C++ verifier.
import { contributes, countsEveryone, hasInput, needsOutput } from '../schedule/collective';
import { BUFFERS, INPUT, OUTPUT, REDUCE, SCRATCH, type Schedule } from '../schedule/types';
import type { Argument, Findings, Mistake } from './finding';

const MOST_COUNT = 255;
const NOTHING = -2; // instead of a version: the cell cannot be read

export class Replay {
  readonly width: number; // contributors that a cell can hold
  readonly words: number; // 32-bit words of a set
  // Versions, in the order in which they were written.
  private bits: Uint32Array;
  private writtenIn: Int32Array; // the step
  private before: Int32Array; // the previous version of the same cell; -1: none
  private count = 0;
  private readonly counts = new Map<number, Uint8Array>();
  private readonly last: Int32Array; // by cell: its latest version
  // The versions of each place (chunk * ranks + rank), oldest first.
  private readonly place: Int32Array; // by version
  private readonly first: Int32Array; // by place: the index of its first version in `ordered`
  private readonly ordered: Int32Array;
  private readonly wroteIn: Int32Array; // by cell: the last step that wrote it

  constructor(
    readonly schedule: Schedule,
    findings: Findings,
  ) {
    this.width = countsEveryone(schedule.collective) ? schedule.ranks : 1;
    this.words = Math.ceil(this.width / 32);
    const { moves } = schedule;
    let versions = 0;
    for (let i = 0; i < moves.count; i++) versions += moves.chunks[i]!;
    this.bits = new Uint32Array(versions * this.words);
    this.writtenIn = new Int32Array(versions);
    this.before = new Int32Array(versions);
    this.place = new Int32Array(versions);
    this.last = new Int32Array(2 * schedule.ranks * schedule.chunks).fill(-1);
    this.wroteIn = new Int32Array(this.last.length).fill(-1);
    const byChunk = movesByChunk(schedule);
    for (let chunk = 0; chunk < schedule.chunks; chunk++) this.play(chunk, byChunk, findings);
    this.first = new Int32Array(schedule.ranks * schedule.chunks + 1);
    this.ordered = new Int32Array(this.count);
    this.index();
  }

  private cell(rank: number, buffer: number, chunk: number): number {
    return 2 * (chunk * this.schedule.ranks + rank) + (buffer === SCRATCH ? 1 : 0);
  }

  private play(chunk: number, byChunk: ChunkMoves, findings: Findings): void {
    const { moves } = this.schedule;
    const end = byChunk.first[chunk + 1]!;
    for (let begin = byChunk.first[chunk]!; begin < end;) {
      const step = moves.step[byChunk.moves[begin]!]!;
      const fresh = this.count;
      const cells: number[] = [];
      while (begin < end && moves.step[byChunk.moves[begin]!] === step) {
        this.playMove(byChunk.moves[begin]!, chunk, fresh, cells, findings);
        begin++;
      }
      // All reads of a step come before its writes.
      cells.forEach((cell, i) => (this.last[cell] = fresh + i));
    }
    if (!findings.full()) this.checkEnd(chunk, findings);
  }

  private playMove(
    index: number,
    chunk: number,
    fresh: number,
    cells: number[],
    findings: Findings,
  ): void {
    const { moves } = this.schedule;
    const step = moves.step[index]!;
    const to = moves.to[index]!;
    const target = moves.target[index]!;
    const cell = this.cell(to, target, chunk);
    if (this.wroteIn[cell] === step) {
      this.blame(findings, 'hazard', 'two_writes', index, chunk, to, BUFFERS[target]!);
      return;
    }
    this.wroteIn[cell] = step;
    cells.push(cell);
    const version = fresh + cells.length - 1;
    this.count = version + 1;
    this.writtenIn[version] = step;
    this.before[version] = this.last[cell]!;
    this.place[version] = chunk * this.schedule.ranks + to;
    const from = moves.from[index]!;
    const source = this.read(from, moves.source[index]!, chunk, index, findings);
    if (source !== NOTHING) this.copy(version, source, from);
    if (moves.combine[index] !== REDUCE) return;
    const other = this.read(to, target, chunk, index, findings);
    if (other === NOTHING) return;
    for (const rank of this.addTo(version, other, to)) {
      this.blame(findings, 'data_flow', 'counted_twice', index, chunk, to, rank);
    }
  }

  // Returns the version that a cell reads as; -1: the input of its rank.
  private read(
    rank: number,
    buffer: number,
    chunk: number,
    reader: number,
    findings: Findings,
  ): number {
    const written = buffer === INPUT ? -1 : this.last[this.cell(rank, buffer, chunk)]!;
    if (written >= 0 || hasInput(this.schedule, rank, chunk)) return written;
    const mistake = buffer === INPUT ? 'no_input' : 'reads_unwritten';
    this.blame(findings, 'hazard', mistake, reader, chunk, rank, BUFFERS[buffer]!);
    return NOTHING;
  }

  private blame(
    findings: Findings,
    kind: 'hazard' | 'data_flow',
    mistake: Mistake,
    index: number,
    chunk: number,
    rank: number,
    argument: Argument,
  ): void {
    const { moves } = this.schedule;
    const [step, line] = [moves.step[index]!, moves.line[index]!];
    findings.add({ kind, mistake, step, rank, chunk, line, arguments: [argument] });
  }

  // A version below 0 is the input of `rank`.
  private word(version: number, rank: number, word: number): number {
    if (version >= 0) return this.bits[version * this.words + word]!;
    const bit = this.width === 1 ? 0 : rank;
    return bit >> 5 === word ? (1 << (bit & 31)) >>> 0 : 0;
  }

  private copy(to: number, from: number, rank: number): void {
    if (from >= 0) {
      this.bits.copyWithin(to * this.words, from * this.words, (from + 1) * this.words);
    } else {
      for (let i = 0; i < this.words; i++) this.bits[to * this.words + i] = this.word(-1, rank, i);
    }
    const counts = this.counts.get(from);
    if (counts) this.counts.set(to, counts);
  }

  // Returns the contributors that are now included twice and were not before.
  private addTo(to: number, other: number, rank: number): number[] {
    let overlap = this.counts.has(to) || this.counts.has(other);
    for (let i = 0; i < this.words && !overlap; i++) {
      overlap = (this.bits[to * this.words + i]! & this.word(other, rank, i)) !== 0;
    }
    const twice: number[] = [];
    if (overlap) {
      const a = this.countsOf(to, rank);
      const b = this.countsOf(other, rank);
      const sum = a.map((count, i) => Math.min(count + b[i]!, MOST_COUNT));
      if (this.schedule.collective !== 'barrier') {
        sum.forEach((count, i) => {
          if (count > 1 && a[i]! <= 1 && b[i]! <= 1) twice.push(i);
        });
      }
      this.counts.set(to, sum);
    }
    for (let i = 0; i < this.words; i++) {
      this.bits[to * this.words + i]! |= this.word(other, rank, i);
    }
    return twice;
  }

  private countsOf(version: number, rank: number): Uint8Array {
    const known = version >= 0 ? this.counts.get(version) : undefined;
    if (known) return known;
    const counts = new Uint8Array(this.width);
    for (let i = 0; i < this.width; i++) {
      counts[i] = (this.word(version, rank, i >> 5) >>> (i & 31)) & 1;
    }
    return counts;
  }

  // Returns true if all contributors are included.
  private isFull(version: number): boolean {
    if (version < 0) return false;
    for (let i = 0; i < this.words; i++) {
      const bits = Math.min(32, this.width - 32 * i);
      if (this.bits[version * this.words + i] !== 2 ** bits - 1) return false;
    }
    return true;
  }

  private checkEnd(chunk: number, findings: Findings): void {
    const { ranks, collective } = this.schedule;
    for (let rank = 0; rank < ranks && !findings.full(); rank++) {
      if (!needsOutput(this.schedule, rank, chunk)) continue;
      const version = this.last[this.cell(rank, OUTPUT, chunk)]!;
      // Checks whole words first, because single bits take long with many ranks.
      if (contributes(collective, ranks - 1, rank) && this.isFull(version)) continue;
      const empty = version < 0 && !hasInput(this.schedule, rank, chunk);
      const wrong: Record<'lacks' | 'has_others', number[]> = { lacks: [], has_others: [] };
      for (let i = 0; i < this.width; i++) {
        const has = !empty && ((this.word(version, rank, i >> 5) >>> (i & 31)) & 1) !== 0;
        const belongs = contributes(collective, i, rank);
        if (has !== belongs) {
          wrong[has ? 'has_others' : 'lacks'].push(this.width === 1 ? this.owner(chunk) : i);
        }
      }
      const at = { step: -1, rank, chunk, line: 0 };
      for (const mistake of ['lacks', 'has_others'] as const) {
        if (wrong[mistake].length === 0) continue;
        findings.add({ kind: 'data_flow', mistake, ...at, arguments: wrong[mistake] });
      }
    }
  }

  private owner(chunk: number): number {
    let rank = 0;
    while (rank + 1 < this.schedule.ranks && !hasInput(this.schedule, rank, chunk)) rank++;
    return rank;
  }

  // Versions are ordered by chunk and step, so those of a place are already in order.
  private index(): void {
    for (let v = 0; v < this.count; v++) this.first[this.place[v]! + 1]!++;
    for (let i = 0; i + 1 < this.first.length; i++) this.first[i + 1]! += this.first[i]!;
    const next = this.first.slice();
    for (let v = 0; v < this.count; v++) this.ordered[next[this.place[v]!]!++] = v;
  }

  // Returns the version of a chunk that a rank shows before step `step`: its latest write. -1: its
  // input, if it has one.
  versionAt(rank: number, chunk: number, step: number): number {
    const place = chunk * this.schedule.ranks + rank;
    const begin = this.first[place]!;
    let low = begin;
    let high = this.first[place + 1]!;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.writtenIn[this.ordered[middle]!]! < step) low = middle + 1;
      else high = middle;
    }
    return low === begin ? -1 : this.ordered[low - 1]!;
  }

  // Returns how often each contributor is in a rank's copy of a chunk before step `step`;
  // undefined: it holds none.
  countsAt(rank: number, chunk: number, step: number): Uint8Array | undefined {
    const version = this.versionAt(rank, chunk, step);
    if (version < 0 && !hasInput(this.schedule, rank, chunk)) return undefined;
    return this.countsOf(version, rank);
  }

  // Returns the number of contributors in the set: the share that a heat map shows.
  size(rank: number, chunk: number, step: number): number {
    const version = this.versionAt(rank, chunk, step);
    if (version < 0) return hasInput(this.schedule, rank, chunk) ? 1 : 0;
    let size = 0;
    for (let i = 0; i < this.words; i++) {
      let word = this.bits[version * this.words + i]!;
      word -= (word >>> 1) & 0x55555555;
      word = (word & 0x33333333) + ((word >>> 2) & 0x33333333);
      size += (((word + (word >>> 4)) & 0x0f0f0f0f) * 0x01010101) >>> 24;
    }
    return size;
  }

  // Returns the contributors that a move carries. The source is read as it was before the step.
  sourceCounts(index: number, chunk: number): Uint8Array | undefined {
    const { moves } = this.schedule;
    const from = moves.from[index]!;
    const version = this.cellVersion(from, moves.source[index]!, chunk, moves.step[index]!);
    if (version < 0 && !hasInput(this.schedule, from, chunk)) return undefined;
    return this.countsOf(version, from);
  }

  private cellVersion(rank: number, buffer: number, chunk: number, step: number): number {
    if (buffer === INPUT) return -1;
    let version = this.last[this.cell(rank, buffer, chunk)]!;
    while (version >= 0 && this.writtenIn[version]! >= step) version = this.before[version]!;
    return version;
  }

  // Returns whether the rank has, before step `step`, everything that it must have of the chunk at
  // the end.
  isWhole(rank: number, chunk: number, step: number): boolean {
    if (!needsOutput(this.schedule, rank, chunk)) return false;
    const version = this.cellVersion(rank, OUTPUT, chunk, step);
    if (version < 0 && !hasInput(this.schedule, rank, chunk)) return false;
    const { collective } = this.schedule;
    return this.countsOf(version, rank).every(
      (count, from) => count === Number(contributes(collective, from, rank)),
    );
  }

  // FNV-1a over all cells, as defined in src/schedule/final_state.h.
  finalState(): string {
    const { ranks, chunks } = this.schedule;
    let hash = 2166136261;
    const add = (byte: number) => (hash = Math.imul(hash ^ byte, 16777619));
    for (let slot = 0; slot < 2 * ranks * chunks; slot++) {
      const version = this.last[slot]!;
      add(version < 0 ? 0 : 1);
      if (version >= 0) this.countsOf(version, 0).forEach(add);
    }
    return (hash >>> 0).toString(16).padStart(8, '0');
  }
}

interface ChunkMoves {
  first: Int32Array;
  moves: Int32Array;
}

// Lists the moves of each chunk, in order.
function movesByChunk(schedule: Schedule): ChunkMoves {
  const { moves } = schedule;
  const first = new Int32Array(schedule.chunks + 1);
  const each = (visit: (chunk: number, index: number) => void) => {
    for (let i = 0; i < moves.count; i++) {
      for (let j = 0; j < moves.chunks[i]!; j++) visit(moves.chunk[i]! + j, i);
    }
  };
  each((chunk) => first[chunk + 1]!++);
  for (let i = 0; i < schedule.chunks; i++) first[i + 1]! += first[i]!;
  const next = first.slice();
  const list = new Int32Array(first[schedule.chunks]!);
  each((chunk, index) => (list[next[chunk]!++] = index));
  return { first, moves: list };
}
