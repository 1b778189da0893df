// Who is in a group of a recording, and what its members sent in vain.
import { labelOf, type RecordedMessage, type Recording } from './recording';

// A message that was sent and not taken: it has no end.
export type Lost = Omit<RecordedMessage, 'end'>;

// The ranks of the world that a group has, in its order; undefined: the recording does not say.
export function membersOf(recording: Recording, group: string): number[] | undefined {
  const known = recording.groups.get(group);
  if (known) return known;
  if (!/^ranks \d+([,-]\d+)*$/.test(group)) return undefined;
  const members: number[] = [];
  for (const part of group.slice(6).split(',')) {
    const [first, last = first] = part.split('-').map(Number) as [number, number?];
    if (last < first || last >= recording.ranks) return undefined;
    for (let rank = first; rank <= last; rank++) members.push(rank);
  }
  return members;
}

// Of operations that did not end everywhere: what was sent, and not taken.
export function lostOf(recording: Recording): Lost[] {
  const { ops, events, messages, ranks } = recording;
  const open = new Set(ops.filter((op) => op.open).map(labelOf));
  if (open.size === 0) return [];
  const taken = new Set(
    messages.filter(({ op }) => open.has(op)).map((m) => `${m.op} ${m.from} ${m.to} ${m.start}`),
  );
  const everyone = Array.from({ length: ranks }, (_, rank) => rank);
  return events.flatMap(({ op: row, kind, peer, start, step, bytes }) => {
    const { rank: from, group } = ops[row]!;
    const op = labelOf(ops[row]!);
    if (kind !== 'send' || !open.has(op)) return [];
    return (peer >= 0 ? [peer] : (membersOf(recording, group) ?? everyone))
      .filter((to) => to !== from && !taken.has(`${op} ${from} ${to} ${start}`))
      .map((to) => ({ op, step, from, to, bytes, start }));
  });
}
