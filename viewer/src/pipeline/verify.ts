// Verifies a pipeline across its ranks by the rules of src/pipeline/verify.cc and order_check.cc. A
// test compares the findings of both, word by word, also for mutants.
import { play, type Played, type Waiting } from './play';
import { hasTransfers, addTransfers } from './transfers';
import {
  after,
  hasMicrobatch,
  isCompute,
  isForwardLane,
  isSend,
  neighbours,
  partnerOf,
  type Action,
  type Kind,
  type Pipeline,
} from './types';

export interface Wait {
  rank: number;
  action: Action;
  peer: number;
  head?: Action; // the action at the front of its queue to the peer
  isThrough: boolean; // all its actions except `head` are done
}

export interface PipelineFinding {
  kind: 'missing' | 'twice' | 'misplaced' | 'too_early' | 'unpaired' | 'lane_order' | 'deadlock';
  rank: number;
  index: number; // index among the actions of the rank; -1: none
  action?: Action;
  otherRank: number;
  other?: Action;
  waits: Wait[]; // of a deadlock: a cycle, or a path to a rank that others wait for in vain
}

export interface Verdict {
  findings: PipelineFinding[]; // at most 100
  leastCapacity: number; // without a deadlock; -1: none, or the order is invalid
  peakBytes: number[]; // by rank
  peakActivations: number[];
}

const MOST_FINDINGS = 100;
const MOST_CAPACITY = 4 << 20;

const make = (kind: Kind, stage: number, microbatch = -1): Action => ({
  ...{ kind, stage, microbatch, parts: 0 },
});

export function checkOrder(pipeline: Pipeline): PipelineFinding[] {
  const { stages, chains } = pipeline;
  const around = neighbours(pipeline);
  const findings: PipelineFinding[] = [];
  const done = new Set<string>();
  const left = stages.map((_, i) => chains[around.chain[i]!]?.count ?? 0); // W still to come
  const reduced = stages.map(() => false); // by stage: its gradients are reduced
  const gathered = stages.map(() => true); // by stage: its parameters are gathered
  let reduces = false; // any stage
  for (const { kind, stage } of pipeline.actions.flat()) {
    if (kind === 'UNSHARD' || kind === 'RESHARD') gathered[stage] = false; // until UNSHARD
    reduces ||= kind === 'REDUCE_GRAD';
  }
  const sent = new Map<string, Action[]>();
  const received = new Map<string, Action[]>();

  const add = (finding: Partial<PipelineFinding> & Pick<PipelineFinding, 'kind' | 'rank'>) => {
    if (findings.length < MOST_FINDINGS) {
      findings.push({ index: -1, otherRank: -1, waits: [], ...finding });
    }
  };
  const key = ({ kind, stage, microbatch }: Action) => `${kind} ${stage} ${microbatch}`;
  const has = (kind: Kind, stage: number, microbatch: number) =>
    done.has(key(make(kind, stage, microbatch)));

  type Place = { rank: number; index: number; action: Action };
  const require = (at: Place, needed: Action) => {
    if (!done.has(key(needed))) add({ kind: 'too_early', ...at, other: needed });
  };
  // Returns B or I, whichever this pipeline has for the microbatch of the stage.
  const requireGradient = (at: Place, stage: number) => {
    const { microbatch } = at.action;
    if (!has('B', stage, microbatch)) require(at, make('I', stage, microbatch));
  };
  // Requires the output of `stage`: computed on this rank, or received.
  const requireInput = (at: Place, stage: number, receive: Kind) => {
    const { action, rank } = at;
    if (stage < 0) return;
    if (stages[stage] !== rank) require(at, make(receive, action.stage, action.microbatch));
    else if (receive === 'RECV_F') require(at, make('F', stage, action.microbatch));
    else requireGradient(at, stage);
  };
  const isSecondGradient = ({ kind, stage, microbatch }: Action) =>
    kind === 'B'
      ? has('I', stage, microbatch) || has('W', stage, microbatch)
      : (kind === 'I' || kind === 'W') && has('B', stage, microbatch);

  const requireParameters = (at: Place) => {
    const { stage } = at.action;
    if (!gathered[stage]) add({ kind: 'too_early', ...at, other: make('UNSHARD', stage) });
  };

  const note = (at: Place) => {
    const { action, rank } = at;
    if (isCompute(action.kind)) {
      requireParameters(at);
      if (action.kind === 'B' || action.kind === 'W') left[action.stage]!--;
      return;
    }
    const partner = partnerOf(around, action);
    if (partner < 0 || stages[partner] === rank) {
      add({ kind: 'unpaired', ...at });
      return;
    }
    const lane = pipeline.lanes === 2 && !isForwardLane(action.kind) ? 1 : 0;
    const out = isSend(action.kind);
    const [from, to] = out ? [rank, stages[partner]!] : [stages[partner]!, rank];
    const lanes = out ? sent : received;
    const name = [from, to, lane].join(' ');
    const list = lanes.get(name);
    if (list) list.push(action);
    else lanes.set(name, [action]);
  };

  const lookAtStage = (at: Place) => {
    const { stage, kind } = at.action;
    if (kind === 'RESHARD') {
      requireParameters(at);
      gathered[stage] = false;
      return;
    }
    const isReduction = kind === 'REDUCE_GRAD';
    const done = isReduction ? reduced : gathered;
    if (done[stage]) add({ kind: 'twice', ...at });
    else if (isReduction && left[stage]! > 0) {
      add({ kind: 'too_early', ...at, other: make('W', stage) });
    }
    done[stage] = true;
  };

  const lookAt = (at: Place) => {
    const { action, rank } = at;
    const { kind, stage, microbatch } = action;
    if (stages[stage] !== rank) {
      add({ kind: 'misplaced', ...at, otherRank: stages[stage]! });
      return;
    }
    if (!hasMicrobatch(kind)) {
      lookAtStage(at);
      return;
    }
    const chain = chains[around.chain[stage]!]!;
    const isIn = microbatch >= chain.first && microbatch < chain.first + chain.count;
    if (!isIn || done.has(key(action)) || isSecondGradient(action)) {
      add({ kind: 'twice', ...at });
      return;
    }
    if (kind === 'F') requireInput(at, around.before[stage]!, 'RECV_F');
    if (kind === 'B' || kind === 'I' || kind === 'SEND_F')
      require(at, make('F', stage, microbatch));
    if (kind === 'B' || kind === 'I') requireInput(at, around.next[stage]!, 'RECV_B');
    if (kind === 'W') require(at, make('I', stage, microbatch));
    if (kind === 'SEND_B') requireGradient(at, stage);
    done.add(key(action));
    note(at);
  };

  pipeline.actions.forEach((row, rank) => {
    row.forEach((action, index) => {
      if (action.parts === 0) lookAt({ rank, index, action });
    });
  });

  const need = (kind: Kind, stage: number, microbatch: number) => {
    if (has(kind, stage, microbatch)) return;
    add({ kind: 'missing', rank: stages[stage]!, action: make(kind, stage, microbatch) });
  };
  for (const { stages: own, first, count } of chains) {
    for (const stage of own) {
      for (let i = first; i < first + count; i++) {
        need('F', stage, i);
        need(has('I', stage, i) ? 'W' : 'B', stage, i);
      }
      if (reduces && !reduced[stage]) {
        add({ kind: 'missing', rank: stages[stage]!, action: make('REDUCE_GRAD', stage) });
      }
    }
  }

  // Returns the action that receives a send.
  const arriving = (action: Action) =>
    make(
      action.kind === 'SEND_F' ? 'RECV_F' : 'RECV_B',
      partnerOf(around, action),
      action.microbatch,
    );
  const numbers = (name: string) => name.split(' ').map(Number) as [number, number, number];
  const lanes = [...new Set([...sent.keys(), ...received.keys()])].sort((a, b) => {
    const [x, y] = [numbers(a), numbers(b)];
    return x[0] - y[0] || x[1] - y[1] || x[2] - y[2];
  });
  for (const name of lanes) {
    const sends = sent.get(name) ?? [];
    const receives = received.get(name) ?? [];
    const [from, to] = numbers(name);
    for (let i = 0; i < Math.max(sends.length, receives.length); i++) {
      const [send, receive] = [sends[i], receives[i]];
      if (send && receive && key(arriving(send)) === key(receive)) continue;
      if (!receive) add({ kind: 'unpaired', rank: from, action: send!, otherRank: to });
      else if (!send) add({ kind: 'unpaired', rank: to, action: receive, otherRank: from });
      else add({ kind: 'lane_order', rank: from, action: send, otherRank: to, other: receive });
      break;
    }
  }
  return findings;
}

// Returns the shortest cycle of ranks that wait for each other, starting at its first rank; without
// a cycle, a rank that others wait for in vain. A walk that marks its path finds every cycle once.
function shortestWait(waiting: Waiting[]): Waiting[] {
  const place = new Map(waiting.map(({ rank }, i) => [rank, i]));
  const next = (at: number) => place.get(waiting[at]!.peer);
  const walkOf = new Map<number, number>();
  let best: Waiting[] = [];
  for (let start = 0; start < waiting.length; start++) {
    let at: number | undefined = start;
    while (at !== undefined && !walkOf.has(at)) {
      walkOf.set(at, start);
      at = next(at);
    }
    if (at === undefined || walkOf.get(at) !== start) continue; // the end, or seen by another walk
    const circle = [waiting[at]!];
    for (let i = next(at)!; i !== at; i = next(i)!) circle.push(waiting[i]!);
    if (best.length === 0 || circle.length < best.length) best = circle;
  }
  if (best.length === 0) return waiting.filter(({ peer }) => !place.has(peer)).slice(0, 1);
  const first = best.findIndex(({ rank }) => best.every((each) => rank <= each.rank));
  return [...best.slice(first), ...best.slice(0, first)];
}

function deadlock(pipeline: Pipeline, { waiting }: Played): PipelineFinding {
  const waits = shortestWait(waiting).map((wait): Wait => {
    const actions = pipeline.actions[wait.rank]!;
    const isThrough = wait.action >= actions.length;
    const head = wait.head < 0 ? undefined : actions[wait.head];
    const action = isThrough ? head! : actions[wait.action]!;
    return { rank: wait.rank, peer: wait.peer, isThrough, action, ...(head ? { head } : {}) };
  });
  const first = waits[0];
  return {
    ...{ kind: 'deadlock', rank: first?.rank ?? -1, index: -1, waits },
    ...{ otherRank: first?.peer ?? -1, ...(first ? { action: first.action } : {}) },
  };
}

// A pipeline that works with a capacity also works with a larger one.
function leastCapacity(pipeline: Pipeline): number {
  const finishes = (capacity: number) => play(pipeline, { capacity }).waiting.length === 0;
  let works = 0;
  while (!finishes(works)) {
    if (works > MOST_CAPACITY) return -1;
    works = Math.max(1, 2 * works);
  }
  let fails = works >> 1;
  while (works > 1 && works - fails > 1) {
    const middle = (works + fails) >> 1;
    if (finishes(middle)) works = middle;
    else fails = middle;
  }
  return works;
}

function peaksOf(pipeline: Pipeline): Pick<Verdict, 'peakBytes' | 'peakActivations'> {
  const peakBytes: number[] = [];
  const peakActivations: number[] = [];
  for (const row of pipeline.actions) {
    let [bytes, peak, held, most] = [0, 0, 0, 0];
    const change = (action: Action) => {
      bytes += bytesChange(pipeline, action);
      held += heldChange(action.kind);
      peak = Math.max(peak, bytes);
      most = Math.max(most, held);
    };
    for (let i = 0; i < row.length; i = after(row, i)) {
      // The results of an overlap's F exist before the other parts have freed anything.
      const together = row.slice(i, after(row, i)).filter(({ kind }) => isCompute(kind));
      together.filter(({ kind }) => kind === 'F').forEach(change);
      together.filter(({ kind }) => kind !== 'F').forEach(change);
    }
    peakBytes.push(peak);
    peakActivations.push(most);
  }
  return { peakBytes, peakActivations };
}

// Returns the bytes that a computation adds to its rank's memory.
export function bytesChange(pipeline: Pipeline, { kind, stage }: Action): number {
  const all = pipeline.activationBytes[stage]!;
  const kept = pipeline.keptBytes[stage]!;
  if (kind === 'F') return all;
  if (kind === 'I') return kept - all;
  return kind === 'B' ? -all : -kept;
}

const heldChange = (kind: Kind) => (kind === 'F' ? 1 : kind === 'I' ? 0 : -1);

export function verify(given: Pipeline): Verdict {
  const pipeline = { ...given };
  if (!hasTransfers(pipeline)) addTransfers(pipeline);
  const verdict: Verdict = {
    ...{ findings: checkOrder(pipeline), leastCapacity: -1, ...peaksOf(pipeline) },
  };
  if (verdict.findings.length > 0) return verdict;
  const unlimited = play(pipeline, { capacity: Infinity });
  if (unlimited.waiting.length > 0) {
    verdict.findings.push(deadlock(pipeline, unlimited));
    return verdict;
  }
  verdict.leastCapacity = leastCapacity(pipeline);
  if (pipeline.capacity < verdict.leastCapacity) {
    verdict.findings.push(deadlock(pipeline, play(pipeline)));
  }
  return verdict;
}
