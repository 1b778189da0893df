// Finds where an unfinished operation is stuck: what each rank waits for, and since when.
import { SCRATCH, type Schedule } from '../schedule/types';
import { knowledgeOf, lostOf } from './groups';
import { plannedSteps } from './planned';
import { labelOf, type RecordedOp, type Recording } from './recording';
import type { OpSummary } from './operations';

export interface Place {
  rank: number; // of the world, as are `peers`
  // stands: all data that the rank needs was sent to it, and it does not continue. open: unknown.
  // other: the rank made a different call under this number.
  is: 'ended' | 'missing' | 'other' | 'waits' | 'stands' | 'open';
  step: number; // of the schedule; -1: unknown
  steps: number; // of the schedule; 0: unknown
  since: number; // us: the last activity of the rank
  lasted: number; // us, until its process or the recording ended
  peers: number[]; // the ranks whose data it waits for
  in?: RecordedOp; // missing: the last operation that it entered; other: the call that it made
  unknown?: true; // missing: the record of that time was dropped
}

interface Due {
  step: number; // the step in which it is sent
  taken: number; // the step in which it is used
  from: number;
}

// Returns, by rank of the group, the data that other ranks send to it, in the order of use.
function duesOf({ ranks, moves }: Schedule): Due[][] {
  const dues: Due[][] = Array.from({ length: ranks }, () => []);
  const { from, to, step, chunk, chunks, source, target } = moves;
  for (let i = 0; i < moves.count; i++) {
    if (from[i] === to[i]) continue;
    let taken = step[i]!;
    if (target[i] === SCRATCH) {
      // Staged data is waited for in the step that reads it.
      for (let k = i + 1; k < moves.count; k++) {
        if (from[k] !== to[i] || source[k] !== SCRATCH || step[k]! <= step[i]!) continue;
        if (chunk[k]! >= chunk[i]! + chunks[i]! || chunk[i]! >= chunk[k]! + chunks[k]!) continue;
        taken = step[k]!;
        break;
      }
    }
    dues[to[i]!]!.push({ step: step[i]!, taken, from: from[i]! });
  }
  for (const list of dues) list.sort((a, b) => a.taken - b.taken || a.step - b.step);
  return dues;
}

// `schedule`: the schedule of the operation, if the page has it.
export function placesOf(recording: Recording, op: OpSummary, schedule?: Schedule): Place[] {
  const own = new Map<number, { row: number; op: RecordedOp }>();
  recording.ops.forEach((each, row) => {
    if (labelOf(each) === op.label) own.set(each.rank, { row, op: each });
  });
  // Without events it is unknown which data was sent.
  const isKnown = recording.events.length > 0 && schedule?.ranks === op.size;
  const fits = isKnown ? schedule : undefined;
  const index = (rank: number) => op.members.indexOf(rank);
  const messages = recording.messages.filter((each) => each.op === op.label);
  const lost = lostOf(recording).filter((each) => each.op === op.label);
  const inGroup = messages.map((m) => ({ ...m, from: index(m.from), to: index(m.to) }));
  const stepOf = fits ? plannedSteps(fits, inGroup) : () => -1;
  const key = (step: number, from: number, to: number) => `${step} ${from} ${to}`;
  const taken = new Set(inGroup.map((m) => key(stepOf(m), m.from, m.to)));
  const sent = new Set(lost.map((m) => key(m.step, index(m.from), index(m.to))));
  const dues = fits ? duesOf(fits) : [];
  const isHere = knowledgeOf(recording);

  return op.members.map((rank, i): Place => {
    const mine = own.get(rank);
    if (!mine) return isHere(rank, op) ? missing(recording, rank) : unknown(rank);
    const place = {
      rank,
      step: -1,
      steps: fits?.steps ?? 0,
      since: mine.op.end,
      lasted: 0,
      peers: [],
    };
    if (!mine.op.open) return { ...place, is: 'ended' };
    place.since = mine.op.start;
    for (const { op: row, end } of recording.events) {
      if (row === mine.row) place.since = Math.max(place.since, end);
    }
    for (const m of messages) {
      if (m.to === rank) place.since = Math.max(place.since, m.end);
    }
    place.lasted = Math.max(0, mine.op.end - place.since);
    if (mine.op.collective !== op.collective) return { ...place, is: 'other', in: mine.op };
    if (!fits) return { ...place, is: 'open', peers: op.missing };
    const pending = dues[i]!.filter((due) => !taken.has(key(due.step, due.from, i)));
    const next = pending.filter((due) => due.taken === pending[0]!.taken);
    const unsent = next.filter((due) => !sent.has(key(due.step, due.from, i)));
    if (unsent.length === 0) {
      return { ...place, is: 'stands', step: next[0]?.taken ?? lastStep(recording, mine.row) };
    }
    const peers = [...new Set(unsent.map((due) => op.members[due.from]!))];
    return { ...place, is: 'waits', step: unsent[0]!.taken, peers };
  });
}

function unknown(rank: number): Place {
  const place = { rank, step: -1, steps: 0, since: 0, lasted: 0, peers: [] };
  return { ...place, is: 'missing', unknown: true };
}

function missing(recording: Recording, rank: number): Place {
  const last = recording.ops.reduce<RecordedOp | undefined>(
    (latest, each) => (each.rank === rank && each.start >= (latest?.start ?? 0) ? each : latest),
    undefined,
  );
  const since = last === undefined ? 0 : last.open ? last.start : last.end;
  const place = { rank, is: 'missing' as const, step: -1, steps: 0, since, lasted: 0, peers: [] };
  return last ? { ...place, in: last } : place;
}

// No further data is sent to the rank: it is where it was last active.
function lastStep(recording: Recording, row: number): number {
  return recording.events.reduce(
    (last, { op, step }) => (op === row ? Math.max(last, step) : last),
    -1,
  );
}

// Returns the step that the page shows first: the earliest in which a rank is stuck.
export function stuckStep(places: Place[]): number {
  const steps = places
    .filter(({ is, step }) => is !== 'ended' && step >= 0)
    .map(({ step }) => step);
  return steps.length > 0 ? Math.min(...steps) : 0;
}
