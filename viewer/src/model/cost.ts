// Computes when each message of a schedule starts and ends on the reference network: the one-port
// model of src/cost/cost.h. A test compares it with `unisono plan`.
import { bytesOfMoves } from '../schedule/counts';
import { INPUT, REDUCE, type Schedule } from '../schedule/types';

export interface Network {
  alphaUs: number; // latency of a message
  gbPerS: number; // bandwidth in one direction
  reduceGbPerS?: number; // speed of reduction; 0 or undefined: reduction takes no time
}

// All moves from one rank to another in one step.
export interface Message {
  step: number;
  from: number;
  to: number;
  bytes: number;
  reduced: number; // the bytes of these that are reduced into the target
  start: number; // us
  sent: number; // when the last byte has arrived and the sending port is free again
  end: number; // when the reduction is complete: the data is ready
  waitedFor: number; // index of the message that it waited for last; -1: none
}

export interface Timing {
  messages: Message[];
  messageOf: Int32Array; // by move; -1: local
  total: number; // us
  critical: Set<number>; // indices of messages on the critical path
}

export function timing(schedule: Schedule, bytes: number, network: Network): Timing {
  const { moves, ranks, chunks } = schedule;
  const bytesOf = bytesOfMoves(schedule, bytes);
  const usPerByte = 1 / (network.gbPerS * 1000);
  const usPerReduced = network.reduceGbPerS ? 1 / (network.reduceGbPerS * 1000) : 0;
  const messages: Message[] = [];
  const messageOf = new Int32Array(moves.count).fill(-1);
  const out = new Float64Array(ranks); // when each port is free
  const into = new Float64Array(ranks);
  const lastOut = new Int32Array(ranks).fill(-1);
  const lastIn = new Int32Array(ranks).fill(-1);
  const ready = new Map<number, number>(); // cell -> index of the message that wrote it
  const key = (rank: number, buffer: number, chunk: number) => (rank * 3 + buffer) * chunks + chunk;
  // Messages of local moves only pass on their sources, unless they reduce.
  const endOf = (message: number) => (message < 0 ? 0 : messages[message]!.end);

  for (let begin = 0; begin < moves.count;) {
    const step = moves.step[begin]!;
    let end = begin;
    while (end < moves.count && moves.step[end] === step) end++;
    const inStep = new Map<number, number>();
    const needs: number[] = []; // by message of this step: the message that it waits for
    const first = messages.length;
    const of: number[] = [];
    for (let i = begin; i < end; i++) {
      const from = moves.from[i]!;
      const to = moves.to[i]!;
      const pair = from === to ? -1 - i : from * ranks + to;
      let at = inStep.get(pair);
      if (at === undefined) {
        at = messages.length;
        inStep.set(pair, at);
        messages.push({
          ...{ step, from, to, bytes: 0, reduced: 0 },
          ...{ start: 0, sent: 0, end: 0, waitedFor: -1 },
        });
        needs.push(-1);
      }
      of.push(at);
      if (from !== to) messageOf[i] = at;
      const carried = bytesOf(i);
      messages[at]!.bytes += carried;
      if (moves.combine[i] === REDUCE) messages[at]!.reduced += carried;
      if (moves.source[i] === INPUT) continue;
      for (let c = moves.chunk[i]!; c < moves.chunk[i]! + moves.chunks[i]!; c++) {
        const writer = ready.get(key(from, moves.source[i]!, c)) ?? -1;
        if (endOf(writer) > endOf(needs[at - first]!)) needs[at - first] = writer;
      }
    }
    for (let at = first; at < messages.length; at++) {
      const message = messages[at]!;
      let waited = needs[at - first]!;
      let start = endOf(waited);
      const consider = (time: number, last: number) => {
        if (time > start) {
          start = time;
          waited = last;
        }
      };
      const adding = message.reduced * usPerReduced;
      if (message.from === message.to) {
        if (adding > 0) consider(into[message.to]!, lastIn[message.to]!);
        message.start = message.sent = start;
        message.end = start + adding;
        message.waitedFor = waited;
        if (adding > 0) {
          into[message.to] = message.end;
          lastIn[message.to] = at;
        }
        continue;
      }
      consider(out[message.from]!, lastOut[message.from]!);
      consider(into[message.to]!, lastIn[message.to]!);
      message.start = start;
      message.sent = start + network.alphaUs + message.bytes * usPerByte;
      message.end = message.sent + adding;
      message.waitedFor = waited;
      out[message.from] = message.sent;
      into[message.to] = message.end;
      lastOut[message.from] = lastIn[message.to] = at;
    }
    for (let i = begin; i < end; i++) {
      for (let c = moves.chunk[i]!; c < moves.chunk[i]! + moves.chunks[i]!; c++) {
        ready.set(key(moves.to[i]!, moves.target[i]!, c), of[i - begin]!);
      }
    }
    begin = end;
  }
  return { messages, messageOf, ...ending(messages) };
}

function ending(messages: Message[]): { total: number; critical: Set<number> } {
  let last = -1;
  messages.forEach((message, i) => {
    if (last < 0 || message.end > messages[last]!.end) last = i;
  });
  const total = last < 0 ? 0 : messages[last]!.end;
  const critical = new Set<number>();
  for (; last >= 0; last = messages[last]!.waitedFor) critical.add(last);
  return { total, critical };
}
