// The groups of a recording, and the messages that nobody received.
import { labelOf, type RecordedMessage, type RecordedOp, type Recording } from './recording';

// A message that was sent but not received: it has no end.
export type Lost = Omit<RecordedMessage, 'end'>;

type Named = Pick<RecordedOp, 'group' | 'number'>;

// Returns the members of a group as ranks of the world, in the group's order; undefined: unknown.
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

// Returns whether a rank's activity in an operation is known. It is unknown for a rank without a
// recording, and for a recording whose beginning, with that operation, was dropped.
export function knowledgeOf(recording: Recording): (rank: number, op: Named) => boolean {
  const { ops, transfers, findings, uncertaintyUs, shortened } = recording;
  const firsts = new Map<string, number>();
  const here = new Set(transfers.map(({ rank }) => rank));
  for (const { rank, group, number } of ops) {
    here.add(rank);
    firsts.set(`${rank} ${group}`, Math.min(firsts.get(`${rank} ${group}`) ?? number, number));
  }
  const lacking = new Set(findings.flatMap((f) => (f.kind === 'missing' ? f.ranks : [])));
  // A document of a single operation has no rows for ranks that took part only in other operations.
  const isOne = new Set(ops.map(labelOf)).size === 1;
  return (rank, { group, number }) => {
    if (shortened[rank]) return number >= (firsts.get(`${rank} ${group}`) ?? Infinity);
    if (here.has(rank)) return true;
    if (lacking.has(rank)) return false;
    return uncertaintyUs.length > 0 ? uncertaintyUs[rank] !== null : isOne;
  };
}

// Returns messages of unfinished operations that were sent and never received, as far as known.
export function lostOf(recording: Recording): Lost[] {
  const { ops, events, messages, ranks } = recording;
  const open = new Set(ops.filter((op) => op.open).map(labelOf));
  if (open.size === 0) return [];
  const taken = new Set(
    messages.filter(({ op }) => open.has(op)).map((m) => `${m.op} ${m.from} ${m.to} ${m.start}`),
  );
  const isKnown = knowledgeOf(recording);
  const everyone = Array.from({ length: ranks }, (_, rank) => rank);
  return events.flatMap(({ op: row, kind, peer, start, step, bytes }) => {
    const { rank: from, group } = ops[row]!;
    const op = labelOf(ops[row]!);
    if (kind !== 'send' || !open.has(op)) return [];
    return (peer >= 0 ? [peer] : (membersOf(recording, group) ?? everyone))
      .filter((to) => to !== from && isKnown(to, ops[row]!))
      .filter((to) => !taken.has(`${op} ${from} ${to} ${start}`))
      .map((to) => ({ op, step, from, to, bytes, start }));
  });
}
