// A pipeline schedule as data: the rank of each stage, the order of its actions, and the messages
// between them, as in src/pipeline/pipeline.h.

export const KINDS = [
  ...['F', 'B', 'I', 'W', 'SEND_F', 'RECV_F', 'SEND_B', 'RECV_B'],
  ...['REDUCE_GRAD', 'UNSHARD', 'RESHARD', 'OVERLAP_F_B'],
] as const;
export type Kind =
  | 'F'
  | 'B'
  | 'I'
  | 'W'
  | 'SEND_F'
  | 'RECV_F'
  | 'SEND_B'
  | 'RECV_B'
  | 'REDUCE_GRAD'
  | 'UNSHARD'
  | 'RESHARD'
  | 'OVERLAP_F_B';

export interface Action {
  kind: Kind;
  stage: number; // -1: an overlap
  microbatch: number; // -1: an action on a whole stage
  parts: number; // of an overlap: the number of the following actions that it contains
}

// Microbatches first, ..., first + count - 1 pass these stages in order.
export interface Chain {
  stages: number[];
  first: number;
  count: number;
}

export interface Costs {
  forward: number[]; // by stage
  input: number[];
  weight: number[];
  transfer: number[]; // from the stage to the next one of its chain
}

export interface Pipeline {
  name: string;
  ranks: number;
  microbatches: number;
  stages: number[]; // by stage: its rank
  chains: Chain[];
  costs: Costs;
  activationBytes: number[]; // bytes that a microbatch of a stage holds from F on
  keptBytes: number[]; // the part of these bytes that is kept between I and W
  lanes: 1 | 2;
  capacity: number;
  actions: Action[][]; // by rank, in order
}

export const isCompute = (kind: Kind) => 'FBIW'.includes(kind);
export const isSend = (kind: Kind) => kind === 'SEND_F' || kind === 'SEND_B';
export const isReceive = (kind: Kind) => kind === 'RECV_F' || kind === 'RECV_B';
export const isForwardLane = (kind: Kind) => kind === 'SEND_F' || kind === 'RECV_F';
export const hasMicrobatch = (kind: Kind) => isCompute(kind) || isSend(kind) || isReceive(kind);

// The neighbours of each stage, and its chain; -1: none.
export interface Neighbours {
  before: number[];
  next: number[];
  chain: number[];
}

export function neighbours({ stages, chains }: Pipeline): Neighbours {
  const none = () => new Array<number>(stages.length).fill(-1);
  const around: Neighbours = { before: none(), next: none(), chain: none() };
  chains.forEach((chain, index) => {
    chain.stages.forEach((stage, i) => {
      around.before[stage] = chain.stages[i - 1] ?? -1;
      around.next[stage] = chain.stages[i + 1] ?? -1;
      around.chain[stage] = index;
    });
  });
  return around;
}

// Returns the stage at the other end of a transfer; -1: the chain ends there.
export function partnerOf(around: Neighbours, { kind, stage }: Action): number {
  return (kind === 'SEND_F' || kind === 'RECV_B' ? around.next : around.before)[stage]!;
}

// Returns the index after the action at `index`: after its parts if it is an overlap.
export function after(actions: Action[], index: number): number {
  return index + 1 + actions[index]!.parts;
}

// The times of one microbatch on one rank, over all its stages.
export interface Times {
  forward: number;
  input: number;
  weight: number;
  transfer: number;
}

// Divides a rank's times between its stages. In DualPipe, the two stages of a rank are the same part
// of the model, for different microbatches, so each takes the full time.
export function costsOf(pipeline: Pick<Pipeline, 'stages' | 'chains'>, times: Times): Costs {
  const onRank = new Map<number, number>();
  for (const rank of pipeline.stages) onRank.set(rank, (onRank.get(rank) ?? 0) + 1);
  const shares = pipeline.stages.map((rank) => pipeline.chains.length / onRank.get(rank)!);
  return {
    forward: shares.map((share) => times.forward * share),
    input: shares.map((share) => times.input * share),
    weight: shares.map((share) => times.weight * share),
    transfer: shares.map(() => times.transfer),
  };
}
