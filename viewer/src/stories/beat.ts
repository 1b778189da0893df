// The steps of a drawn story, and the progress of each. Pure.

export interface BeatComm {
  pass?: 'forward' | 'backward'; // if a beat has calls of both passes
  collective: string; // of the catalogue, or send_recv
  ranks: number;
  bytes: number; // of one call, counted as on the command line
  times: number;
}

// A step without its texts.
export interface Plan {
  id: string;
  length: number; // duration on the clock
  comms?: BeatComm[];
}

export interface Beat extends Plan {
  name: string;
  words: string;
}

// Returns the progress of step `id` at a time, 0 to 1; also 0 if there is no such step.
export function progressAt(plans: Plan[], time: number, id: string): number {
  let begin = 0;
  for (const plan of plans) {
    if (plan.id === id) return Math.max(0, Math.min(1, (time - begin) / plan.length));
    begin += plan.length;
  }
  return 0;
}

// Motion that begins and ends gently.
export function ease(part: number): number {
  return part * part * (3 - 2 * part);
}
