// Plays a pipeline event by event: computes when each action starts and ends, and the position of
// every rank in a deadlock. The rules are those of src/pipeline/run.h, and a test compares all
// spans.
import {
  after,
  isCompute,
  isForwardLane,
  isReceive,
  isSend,
  neighbours,
  partnerOf,
  type Action,
  type Pipeline,
} from './types';

export interface Span {
  start: number; // negative: not reached
  end: number;
}

// The state of a rank that did not finish.
export interface Waiting {
  rank: number;
  action: number; // the current action; the number of actions: the rank has finished
  peer: number; // the rank that it waits for; -1: no rank can help
  head: number; // the transfer at the front of its queue to the peer; -1: none
}

export interface Played {
  makespan: number;
  spans: Span[][]; // by rank and action
  busy: number[];
  waiting: Waiting[]; // empty: all ranks finished
}

export interface PlayOptions {
  capacity?: number; // default: the capacity that the pipeline declares
  slowStage?: number;
  slowFactor?: number;
}

// One rank's end of a lane.
interface Queue {
  rank: number;
  peer: number;
  lane: number;
  other: number;
  posted: { action: number; time: number }[];
  head: number;
  turn: number; // the earliest start of the head
  arrivals: number[]; // arrival times at the peer of the messages that this rank sent
  received: number[]; // times at which this rank received the messages of the peer
}

interface Rank {
  next: number;
  now: number;
  queues: number[];
  stirred: number[]; // ranks that may be able to proceed
  isAwake: boolean;
}

export function play(pipeline: Pipeline, options: PlayOptions = {}): Played {
  const { stages, microbatches, costs } = pipeline;
  const capacity = options.capacity ?? pipeline.capacity;
  const around = neighbours(pipeline);
  const cells = stages.length * microbatches;
  // When each stage has finished a microbatch, and when its input has arrived; negative: not yet.
  const [forward, backward, input, gradient] = Array.from({ length: 4 }, () =>
    new Float64Array(cells).fill(-1),
  ) as [Float64Array, Float64Array, Float64Array, Float64Array];
  const cellOf = ({ stage, microbatch }: Action) => stage * microbatches + microbatch;
  const ranks: Rank[] = pipeline.actions.map(() => ({
    ...{ next: 0, now: 0, queues: [], stirred: [], isAwake: false },
  }));
  const queues: Queue[] = [];
  const index = new Map<number, number>();
  const awake: number[] = [];
  const result: Played = {
    makespan: 0,
    spans: pipeline.actions.map((row) => row.map(() => ({ start: -1, end: -1 }))),
    busy: pipeline.actions.map(() => 0),
    waiting: [],
  };

  function wake(rank: number): void {
    if (ranks[rank]!.isAwake) return;
    ranks[rank]!.isAwake = true;
    awake.push(rank);
  }
  function stir(queue: number): void {
    const { rank } = queues[queue]!;
    ranks[rank]!.stirred.push(queue);
    wake(rank);
  }

  function queueOf(rank: number, peer: number, isForward: boolean): number {
    const lane = pipeline.lanes === 2 && !isForward ? 1 : 0;
    const key = (from: number, to: number) => (from * ranks.length + to) * 2 + lane;
    const known = index.get(key(rank, peer));
    if (known !== undefined) return known;
    const mine = queues.length;
    const fresh = { head: 0, turn: 0 };
    queues.push({
      ...{ rank, peer, lane, other: mine + 1, ...fresh },
      ...{ posted: [], arrivals: [], received: [] },
    });
    queues.push({
      ...{ rank: peer, peer: rank, lane, other: mine, ...fresh },
      ...{ posted: [], arrivals: [], received: [] },
    });
    index.set(key(rank, peer), mine);
    index.set(key(peer, rank), mine + 1);
    ranks[rank]!.queues.push(mine);
    ranks[peer]!.queues.push(mine + 1);
    return mine;
  }

  const actionAt = (queue: Queue, posted: number) =>
    pipeline.actions[queue.rank]![queue.posted[posted]!.action]!;

  // Returns when the lane has space for the message that the head sends; negative: not yet.
  function roomAt(queue: Queue): number {
    const message = queue.arrivals.length;
    const other = queues[queue.other]!;
    if (message < capacity) return 0;
    if (capacity > 0) return other.received[message - capacity] ?? -1;
    const isTaking =
      other.head < other.posted.length && isReceive(actionAt(other, other.head).kind);
    if (!isTaking || other.received.length !== message) return -1;
    return Math.max(other.turn, other.posted[other.head]!.time);
  }

  function transfer(queue: Queue): boolean {
    const head = queue.posted[queue.head]!;
    const action = actionAt(queue, queue.head);
    const begun = Math.max(queue.turn, head.time);
    const span = result.spans[queue.rank]![head.action]!;
    if (isSend(action.kind)) {
      const room = roomAt(queue);
      if (room < 0) return false;
      queue.turn = Math.max(begun, room);
      const stage = action.kind === 'SEND_F' ? action.stage : partnerOf(around, action);
      const arrival = queue.turn + costs.transfer[stage]!;
      queue.arrivals.push(arrival);
      Object.assign(span, { start: queue.turn, end: arrival });
    } else {
      const arrival = queues[queue.other]!.arrivals[queue.received.length];
      if (arrival === undefined) return false;
      queue.turn = Math.max(begun, arrival);
      queue.received.push(queue.turn);
      Object.assign(span, { start: begun, end: queue.turn });
      (action.kind === 'RECV_F' ? input : gradient)[cellOf(action)] = queue.turn;
    }
    queue.head++;
    stir(queue.other);
    return true;
  }

  function post(rank: number, at: number, action: Action): void {
    const stage = partnerOf(around, action);
    const peer = stage < 0 ? rank : stages[stage]!;
    if (peer === rank) return; // verify reports this
    const mine = queueOf(rank, peer, isForwardLane(action.kind));
    const queue = queues[mine]!;
    queue.posted.push({ action: at, time: ranks[rank]!.now });
    if (queue.head + 1 !== queue.posted.length) return;
    ranks[rank]!.stirred.push(mine);
    stir(queue.other); // its send may wait for a receive
  }

  // Returns when the input of a computation is available; negative: not yet.
  function ready(rank: number, action: Action): number {
    const here = cellOf(action);
    const from = (stage: number, made: Float64Array, received: Float64Array) => {
      if (stage < 0) return 0;
      return stages[stage] === rank
        ? made[stage * microbatches + action.microbatch]!
        : received[here]!;
    };
    if (action.kind === 'F') return from(around.before[action.stage]!, forward, input);
    if (action.kind === 'W') return backward[here]!;
    const given = from(around.next[action.stage]!, backward, gradient);
    return forward[here]! < 0 || given < 0 ? -1 : Math.max(forward[here]!, given);
  }

  function duration({ kind, stage }: Action): number {
    let time = costs.forward[stage]!;
    if (kind === 'B') time = costs.input[stage]! + costs.weight[stage]!;
    else if (kind !== 'F') time = kind === 'I' ? costs.input[stage]! : costs.weight[stage]!;
    return stage === options.slowStage ? time * (options.slowFactor ?? 1) : time;
  }

  // Returns the computations from `first` to `end`: one, or the parts of an overlap.
  function compute(rank: number, first: number, end: number): boolean {
    const own = pipeline.actions[rank]!.slice(first, end);
    let now = ranks[rank]!.now;
    for (const action of own) {
      const given = ready(rank, action);
      if (given < 0) return false;
      now = Math.max(now, given);
    }
    own.forEach((action, i) => {
      const time = duration(action);
      result.spans[rank]![first + i] = { start: now, end: now + time };
      result.busy[rank]! += time;
      now += time;
    });
    for (const action of own) {
      if (action.kind === 'F') forward[cellOf(action)] = now;
      else if (action.kind !== 'W') backward[cellOf(action)] = now;
    }
    ranks[rank]!.now = now;
    result.makespan = Math.max(result.makespan, now);
    return true;
  }

  function step(rank: number): boolean {
    const state = ranks[rank]!;
    const actions = pipeline.actions[rank]!;
    const action = actions[state.next]!;
    const end = after(actions, state.next);
    if (isSend(action.kind) || isReceive(action.kind)) {
      post(rank, state.next, action);
    } else if (isCompute(action.kind) || action.parts > 0) {
      const first = state.next + (action.parts > 0 ? 1 : 0);
      if (!compute(rank, first, end)) return false;
      const { start } = result.spans[rank]![first]!;
      result.spans[rank]![state.next] = { start, end: state.now };
    } else {
      result.spans[rank]![state.next] = { start: state.now, end: state.now };
    }
    state.next = end;
    return true;
  }

  function advance(rank: number): void {
    const state = ranks[rank]!;
    for (let moved = true; moved;) {
      moved = false;
      for (let at = state.stirred.pop(); at !== undefined; at = state.stirred.pop()) {
        const queue = queues[at]!;
        while (queue.head < queue.posted.length && transfer(queue)) moved = true;
      }
      while (state.next < pipeline.actions[rank]!.length && step(rank)) moved = true;
    }
  }

  function noteWaiting(rank: number): void {
    const state = ranks[rank]!;
    const actions = pipeline.actions[rank]!;
    const headOf = ({ posted, head }: Queue) => posted[head]?.action ?? -1;
    if (state.next < actions.length) {
      let blocked = state.next;
      while (actions[blocked]!.parts > 0 || ready(rank, actions[blocked]!) >= 0) blocked++;
      const action = actions[blocked]!;
      const isForward = action.kind === 'F';
      const stage = (isForward ? around.before : around.next)[action.stage]!;
      const waiting: Waiting = { rank, action: blocked, peer: -1, head: -1 };
      if (action.kind !== 'W' && stage >= 0 && stages[stage] !== rank) {
        waiting.peer = stages[stage]!;
        waiting.head = headOf(queues[queueOf(rank, waiting.peer, isForward)]!);
      }
      result.waiting.push(waiting);
      return;
    }
    const [queue] = state.queues
      .map((at) => queues[at]!)
      .filter((each) => each.head < each.posted.length)
      .sort((a, b) => a.peer - b.peer || a.lane - b.lane);
    if (queue) {
      const { peer } = queue;
      result.waiting.push({ rank, action: actions.length, peer, head: headOf(queue) });
    }
  }

  for (let rank = 0; rank < ranks.length; rank++) wake(rank);
  for (let at = 0; at < awake.length; at++) {
    ranks[awake[at]!]!.isAwake = false;
    advance(awake[at]!);
  }
  for (let rank = 0; rank < ranks.length; rank++) noteWaiting(rank);
  return result;
}
