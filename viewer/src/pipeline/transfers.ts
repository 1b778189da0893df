// Derives sends and receives from the order of the computations, by the rule of
// src/pipeline/transfers.cc. A test compares the two.
import {
  after,
  isReceive,
  isSend,
  neighbours,
  type Action,
  type Kind,
  type Neighbours,
  type Pipeline,
} from './types';

interface Lane {
  messages: Action[]; // the receives of the messages
  received: number;
}

export function hasTransfers({ actions }: Pipeline): boolean {
  return actions.some((row) => row.some(({ kind }) => isSend(kind) || isReceive(kind)));
}

const isBackward = (kind: Kind) => kind === 'B' || kind === 'I';

// Returns the stage that needs the result of an action, or provides its input, if it is on another
// rank.
function stageOf(pipeline: Pipeline, toward: number[], away: number[], action: Action): number {
  let stage = -1;
  if (action.kind === 'F') stage = toward[action.stage]!;
  else if (isBackward(action.kind)) stage = away[action.stage]!;
  return stage >= 0 && pipeline.stages[stage] === pipeline.stages[action.stage] ? -1 : stage;
}

// Adds a send after each computation whose result another rank needs. Adds a receive before the
// first use of each message, together with the messages that were sent before it.
export function addTransfers(pipeline: Pipeline): void {
  const around: Neighbours = neighbours(pipeline);
  const target = (action: Action) => stageOf(pipeline, around.next, around.before, action);
  const source = (action: Action) => stageOf(pipeline, around.before, around.next, action);
  const lanes = new Map<string, Lane>();
  const place = new Map<string, number>(); // index of a message among those of its lane
  const nameOf = ({ kind, stage, microbatch }: Action) => `${kind} ${stage} ${microbatch}`;
  const laneOf = (from: number, to: number): Lane => {
    const key = `${from} ${to}`;
    if (!lanes.has(key)) lanes.set(key, { messages: [], received: 0 });
    return lanes.get(key)!;
  };
  pipeline.actions.forEach((row, rank) => {
    for (const action of row) {
      const stage = target(action);
      if (stage < 0) continue;
      const kind = action.kind === 'F' ? 'RECV_F' : 'RECV_B';
      const receive: Action = { kind, stage, microbatch: action.microbatch, parts: 0 };
      const { messages } = laneOf(rank, pipeline.stages[stage]!);
      if (!place.has(nameOf(receive))) place.set(nameOf(receive), messages.length);
      messages.push(receive);
    }
  });
  pipeline.actions = pipeline.actions.map((row, rank) => {
    const placed: Action[] = [];
    for (let i = 0; i < row.length; i = after(row, i)) {
      const all = row.slice(i, after(row, i));
      for (const action of all) {
        const stage = source(action);
        if (stage < 0) continue;
        const lane = laneOf(pipeline.stages[stage]!, rank);
        const kind = action.kind === 'F' ? 'RECV_F' : 'RECV_B';
        // Adds nothing if the message is already received or no rank computes it: verify reports
        // this.
        const found = place.get(nameOf({ ...action, kind })) ?? -1;
        for (; lane.received <= found; lane.received++) placed.push(lane.messages[lane.received]!);
      }
      placed.push(...all);
      for (const { kind, stage, microbatch } of all.filter((each) => target(each) >= 0)) {
        placed.push({ kind: kind === 'F' ? 'SEND_F' : 'SEND_B', stage, microbatch, parts: 0 });
      }
    }
    return placed;
  });
}
