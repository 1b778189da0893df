// Progress: with lanes of one message, every wait is known in advance, so a schedule finishes if
// and only if its waits have no cycle. A move is two events: 2m reads its source, 2m+1 writes its
// target. The rules are those of src/schedule/progress.cc.
import { INPUT, REDUCE, type Schedule } from '../schedule/types';
import type { Findings } from './finding';

const MOST_CELLS = 40_000_000;

// Edges as pairs: an event, and the event that it waits for.
class Edges {
  private list = new Int32Array(1024);
  count = 0;

  add(event: number, on: number): void {
    if (2 * this.count === this.list.length) {
      const longer = new Int32Array(4 * this.count);
      longer.set(this.list);
      this.list = longer;
    }
    this.list[2 * this.count] = event;
    this.list[2 * this.count + 1] = on;
    this.count++;
  }
  event(i: number): number {
    return this.list[2 * i]!;
  }
  on(i: number): number {
    return this.list[2 * i + 1]!;
  }
}

// Numbers the cells. For schedules with very many chunks a table of all cells would be too large,
// so only the used cells get numbers.
function numbering(schedule: Schedule): { count: number; of: (key: number) => number } {
  const { ranks, chunks, moves } = schedule;
  const all = 3 * ranks * chunks;
  if (all <= MOST_CELLS) return { count: all, of: (key) => key };
  const numbers = new Map<number, number>();
  let count = 0;
  for (let i = 0; i < moves.count; i++) count += 2 * moves.chunks[i]!;
  const of = (key: number) => {
    let number = numbers.get(key);
    if (number === undefined) numbers.set(key, (number = numbers.size));
    return number;
  };
  return { count, of };
}

// Walks through the accesses in the order of steps, reads before writes.
function dataEdges(schedule: Schedule, edges: Edges): void {
  const { moves, chunks } = schedule;
  const cells = numbering(schedule);
  const writer = new Int32Array(cells.count).fill(-1); // of an earlier step
  const wrote = new Int32Array(cells.count).fill(-1); // in the current step
  const readers = new Int32Array(cells.count).fill(-1); // since the write: the latest reader
  const reader: number[] = []; // events that read,
  const before: number[] = []; // and the reader before each of them
  const wait = (event: number, on: number) => {
    if (on < 0 || on === event) return;
    const move = event >> 1;
    if ((event & 1) === 0) edges.add(event, on);
    else if (on !== event - 1) {
      // A local move waits for its data and its target at the same time.
      edges.add(moves.from[move] === moves.to[move] ? event - 1 : event, on);
    }
  };
  const read = (rank: number, buffer: number, chunk: number, event: number) => {
    if (buffer === INPUT) return; // no move writes an input, so no event waits for it
    const cell = cells.of((rank * 3 + buffer) * chunks + chunk);
    if (writer[cell]! < 0) return; // reads the input instead
    wait(event, writer[cell]!);
    before.push(readers[cell]!);
    readers[cell] = reader.push(event) - 1;
  };
  for (let begin = 0; begin < moves.count;) {
    let end = begin;
    while (end < moves.count && moves.step[end] === moves.step[begin]) end++;
    for (let i = begin; i < end; i++) {
      for (let c = moves.chunk[i]!; c < moves.chunk[i]! + moves.chunks[i]!; c++) {
        read(moves.from[i]!, moves.source[i]!, c, 2 * i);
        if (moves.combine[i] === REDUCE) read(moves.to[i]!, moves.target[i]!, c, 2 * i + 1);
      }
    }
    const written: number[] = [];
    for (let i = begin; i < end; i++) {
      for (let c = moves.chunk[i]!; c < moves.chunk[i]! + moves.chunks[i]!; c++) {
        const cell = cells.of((moves.to[i]! * 3 + moves.target[i]!) * chunks + c);
        wait(2 * i + 1, wrote[cell]! >= 0 ? wrote[cell]! : writer[cell]!);
        for (let at = readers[cell]!; at >= 0; at = before[at]!) wait(2 * i + 1, reader[at]!);
        readers[cell] = -1;
        if (wrote[cell]! < 0) written.push(cell);
        wrote[cell] = 2 * i + 1;
      }
    }
    for (const cell of written) {
      writer[cell] = wrote[cell]!;
      wrote[cell] = -1;
    }
    begin = end;
  }
}

function orderEdges(schedule: Schedule, edges: Edges): void {
  const { moves } = schedule;
  const lastSend = new Map<number, number>();
  const lastOnLane = new Map<number, number>();
  for (let i = 0; i < moves.count; i++) {
    edges.add(2 * i + 1, 2 * i);
    const from = moves.from[i]!;
    const to = moves.to[i]!;
    if (from === to) continue;
    const sent = lastSend.get(from);
    if (sent !== undefined) edges.add(2 * i, 2 * sent);
    lastSend.set(from, i);
    const lane = from * schedule.ranks + to;
    const before = lastOnLane.get(lane);
    if (before !== undefined) edges.add(2 * i, 2 * before + 1);
    lastOnLane.set(lane, i);
  }
}

// By event: the number of its waits that never end.
function run(edges: Edges, events: number): Int32Array {
  const waitingFor = new Int32Array(events);
  const first = new Int32Array(events + 1);
  for (let i = 0; i < edges.count; i++) {
    waitingFor[edges.event(i)]!++;
    first[edges.on(i) + 1]!++;
  }
  for (let i = 0; i < events; i++) first[i + 1]! += first[i]!;
  const wakes = new Int32Array(edges.count);
  const next = first.slice();
  for (let i = 0; i < edges.count; i++) wakes[next[edges.on(i)]!++] = edges.event(i);
  const ready: number[] = [];
  for (let event = 0; event < events; event++) if (waitingFor[event] === 0) ready.push(event);
  for (let done = ready.pop(); done !== undefined; done = ready.pop()) {
    for (let i = first[done]!; i < first[done + 1]!; i++) {
      if (--waitingFor[wakes[i]!]! === 0) ready.push(wakes[i]!);
    }
  }
  return waitingFor;
}

export function checkProgress(schedule: Schedule, findings: Findings): void {
  const { moves } = schedule;
  const edges = new Edges();
  dataEdges(schedule, edges);
  orderEdges(schedule, edges);
  const waitingFor = run(edges, 2 * moves.count);
  const told = new Set<number>();
  for (let i = 0; i < moves.count && !findings.full(); i++) {
    const sending = waitingFor[2 * i]! > 0;
    if (!sending && waitingFor[2 * i + 1]! === 0) continue;
    const rank = sending ? moves.from[i]! : moves.to[i]!;
    if (told.has(rank)) continue;
    told.add(rank);
    const chunk = moves.chunk[i]!;
    const isLocal = moves.from[i] === moves.to[i];
    findings.add({
      kind: 'progress',
      mistake: isLocal ? 'cannot_copy' : sending ? 'cannot_send' : 'cannot_receive',
      step: moves.step[i]!,
      rank,
      chunk,
      line: moves.line[i]!,
      arguments: isLocal ? [] : [sending ? moves.to[i]! : moves.from[i]!],
    });
  }
}
