// Recordings for tests, row by row.
import type { Schedule } from '../src/schedule/types';

export type Row = Record<string, unknown>;

export function columns(names: string, rows: Row[]): Record<string, unknown[]> {
  return Object.fromEntries(
    names.split(' ').map((name) => [name, rows.map((row) => row[name] ?? null)]),
  );
}

const OPS = 'rank number group collective algorithm bytes start_us end_us waiting_us';
const EVENTS = 'op kind step peer bytes start_us end_us waited_us';
const MESSAGES = 'from to step bytes start_us end_us op';

// Operation #1 of all ranks is whole, 100 us each. Of #2 `gone` has no record; the others have sent what
// they must in its step 0 and wait until 5000 us.
export function oneMissing(schedule: Schedule, gone: number): Row {
  const { collective, algorithm, ranks, moves } = schedule;
  const ops: Row[] = [];
  const events: Row[] = [];
  const messages: Row[] = [];
  const what = { group: 'world', collective, algorithm, bytes: 4096, waiting_us: 0 };
  for (let rank = 0; rank < ranks; rank++) {
    for (const number of rank === gone ? [1] : [1, 2]) {
      const start_us = number === 1 ? rank : 1000 + rank;
      const end_us = number === 1 ? 100 : null;
      ops.push({ ...what, rank, number, start_us, end_us });
      for (let i = 0; i < moves.count; i++) {
        const to = moves.to[i]!;
        if (moves.from[i] !== rank || to === rank || (number === 2 && moves.step[i]! > 0)) continue;
        const step = moves.step[i]!;
        const begin = start_us + 10 * step;
        const sent = { step, bytes: 1024, start_us: begin };
        events.push({
          ...{ ...sent, op: ops.length - 1, kind: 'send', peer: to },
          ...{ end_us: begin + 2, waited_us: 8 },
        });
        const isTaken = number === 1 || (to !== gone && moves.step[i] === 0);
        if (isTaken) {
          messages.push({ ...sent, from: rank, to, end_us: begin + 9, op: `world #${number}` });
        }
      }
    }
  }
  return {
    ...{ format: 'unisono.trace/1', name: `${collective}/${algorithm}`, ranks },
    until_us: Array.from({ length: ranks }, (_, rank) => (rank === gone ? 800 : 5000)),
    ops: columns(OPS, ops),
    events: columns(EVENTS, events),
    messages: columns(MESSAGES, messages),
  };
}

// Returns what `unisono view FILE --op 2` makes of the recording.
export function secondOf(document: Row): Row {
  const ops = document.ops as Record<string, unknown[]>;
  const rows = [...ops.number!.keys()].filter((row) => ops.number![row] === 2);
  const pick = (group: Record<string, unknown[]>, kept: number[]) =>
    Object.fromEntries(Object.entries(group).map(([k, list]) => [k, kept.map((i) => list[i])]));
  const events = document.events as Record<string, unknown[]>;
  const messages = document.messages as Record<string, unknown[]>;
  const own = [...events.op!.keys()].filter((i) => rows.includes(events.op![i] as number));
  const sent = [...messages.op!.keys()].filter((i) => messages.op![i] === 'world #2');
  const part = pick(events, own);
  part.op = part.op!.map((row) => rows.indexOf(row as number));
  return { ...document, ops: pick(ops, rows), events: part, messages: pick(messages, sent) };
}
