// Progress: with lanes of one message, every wait is known in advance, so a schedule finishes
// exactly if its waits have no cycle. A move is two events: 2m reads its source, 2m+1 writes its
// target. The rules are those of src/schedule/progress.cc.
import { INPUT, REDUCE, type Schedule } from '../schedule/types';
import type { Findings } from './finding';

// Edges (event, what it waits for), in pairs.
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

// A cell while its accesses are walked in order of steps, reads before writes.
interface Access {
  writer: number; // of an earlier step, -1: none
  readers: number[]; // since then
  wrote: number; // in the step at hand, -1: nobody
  wroteIn: number;
}

function dataEdges(schedule: Schedule, edges: Edges): void {
  const { moves, chunks } = schedule;
  const cells = new Map<number, Access>();
  const key = (rank: number, buffer: number, chunk: number) => (rank * 3 + buffer) * chunks + chunk;
  const at = (cell: number): Access => {
    let access = cells.get(cell);
    if (!access) cells.set(cell, (access = { writer: -1, readers: [], wrote: -1, wroteIn: -1 }));
    return access;
  };
  const wait = (event: number, on: number) => {
    if (on >= 0 && on !== event) edges.add(event, on);
  };
  const read = (rank: number, buffer: number, chunk: number, event: number) => {
    if (buffer === INPUT) return; // nobody writes it, so nobody waits for it
    const access = at(key(rank, buffer, chunk));
    if (access.writer < 0) return; // falls through to the input
    wait(event, access.writer);
    access.readers.push(event);
  };
  for (let begin = 0; begin < moves.count;) {
    let end = begin;
    while (end < moves.count && moves.step[end] === moves.step[begin]) end++;
    const written: Access[] = [];
    for (let i = begin; i < end; i++) {
      for (let c = moves.chunk[i]!; c < moves.chunk[i]! + moves.chunks[i]!; c++) {
        read(moves.from[i]!, moves.source[i]!, c, 2 * i);
        if (moves.combine[i] === REDUCE) read(moves.to[i]!, moves.target[i]!, c, 2 * i + 1);
      }
    }
    for (let i = begin; i < end; i++) {
      for (let c = moves.chunk[i]!; c < moves.chunk[i]! + moves.chunks[i]!; c++) {
        const access = at(key(moves.to[i]!, moves.target[i]!, c));
        wait(2 * i + 1, access.wrote >= 0 ? access.wrote : access.writer);
        for (const reader of access.readers) wait(2 * i + 1, reader);
        access.readers = [];
        if (access.wrote < 0) written.push(access);
        access.wrote = 2 * i + 1;
      }
    }
    for (const access of written) {
      access.writer = access.wrote;
      access.wrote = -1;
    }
    begin = end;
  }
}

// A local move waits for its data and its target at once.
function redirectLocal(schedule: Schedule, data: Edges, edges: Edges): void {
  const { moves } = schedule;
  for (let i = 0; i < data.count; i++) {
    const event = data.event(i);
    const move = event >> 1;
    const on = data.on(i);
    if ((event & 1) === 1 && on === event - 1) continue;
    const isLocal = moves.from[move] === moves.to[move];
    edges.add((event & 1) === 1 && isLocal ? event - 1 : event, on);
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

// By event: how many of its waits are never over.
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
  const data = new Edges();
  dataEdges(schedule, data);
  const edges = new Edges();
  redirectLocal(schedule, data, edges);
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
    let what = `cannot copy chunk ${chunk}`;
    if (moves.from[i] !== moves.to[i]) {
      what = sending
        ? `cannot send chunk ${chunk} to rank ${moves.to[i]}`
        : `cannot receive chunk ${chunk} from rank ${moves.from[i]}`;
    }
    findings.add({
      kind: 'progress',
      step: moves.step[i]!,
      rank,
      chunk,
      line: moves.line[i]!,
      text: `rank ${rank} ${what}: waits for ever with one message a lane`,
    });
  }
}
