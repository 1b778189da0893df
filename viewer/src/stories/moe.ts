// Mixture of experts: the expert and the rank of each token, and the two all_to_alls that follow
// from it. Pure. The router is a toy that can be skewed, or counts come from a file.
import { BadInput, isObject } from '../schedule/parse';

export interface MoeShape {
  ranks: number; // expert-parallel ranks
  perRank: number; // experts per rank
  tokens: number; // tokens per rank
  k: number; // experts that a token goes to
  skew: number; // 0: all experts alike; 1: most tokens choose the first experts
  capacity: number; // the most copies of an expert, as a factor of the even share; 0: no limit
  replicas: number; // replicas of the most wanted experts, on other ranks, one per rank
}

// A place of an expert. The experts come first, in order, then the replicas.
export interface Slot {
  expert: number;
  rank: number;
}

// One copy of a token on its way to one of its experts.
export interface Copy {
  rank: number; // the token's home
  token: number; // index on its rank
  choice: number; // 0..k-1
  expert: number;
  weight: number; // weight of this expert's output in the sum
  slot: number; // the place of the expert that receives it
  place: number; // index in the queue there; -1: dropped, because the expert was full
}

export interface Routing {
  shape: MoeShape;
  slots: Slot[];
  copies: Copy[];
  load: number[]; // by slot: copies that it accepts
  wanted: number[]; // by slot: copies that were sent to it
  limit: number; // the most copies of a slot; Infinity: no limit
  dropped: number;
  sends: number[][]; // copies from rank to rank, [from][to]
}

// A generator with the same numbers on every machine.
function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

function pick(weights: number[], at: number): number {
  const sum = weights.reduce((a, b) => a + b, 0);
  let left = at * sum;
  for (let i = 0; i < weights.length; i++) {
    left -= weights[i]!;
    if (left < 0) return i;
  }
  return weights.length - 1;
}

export function route(shape: MoeShape, seed = 1): Routing {
  const next = random(seed);
  const experts = shape.ranks * shape.perRank;
  const likes = Array.from({ length: experts }, (_, e) =>
    Math.exp((-3.5 * shape.skew * e) / experts),
  );
  const copies: Copy[] = [];
  for (let rank = 0; rank < shape.ranks; rank++) {
    for (let token = 0; token < shape.tokens; token++) {
      const left = [...likes];
      const scores: number[] = [];
      const chosen: number[] = [];
      for (let choice = 0; choice < Math.min(shape.k, experts); choice++) {
        const expert = pick(left, next());
        left[expert] = 0;
        chosen.push(expert);
        scores.push(0.3 + next());
      }
      const sum = scores.reduce((a, b) => a + b, 0);
      chosen.forEach((expert, choice) =>
        copies.push({
          rank,
          token,
          choice,
          expert,
          weight: scores[choice]! / sum,
          slot: -1,
          place: -1,
        }),
      );
    }
  }
  return settle(shape, copies);
}

// Adds one replica after the other for the expert with the most copies per slot, on the rank with
// the least work that has space for one.
function slotsOf(shape: MoeShape, copies: Copy[]): Slot[] {
  const experts = shape.ranks * shape.perRank;
  const homeOf = (expert: number) => Math.trunc(expert / shape.perRank);
  const slots: Slot[] = Array.from({ length: experts }, (_, expert) => ({
    ...{ expert, rank: homeOf(expert) },
  }));
  const wanted = new Array<number>(experts).fill(0);
  for (const { expert } of copies) wanted[expert]!++;
  const placesOf = (expert: number) => slots.filter((slot) => slot.expert === expert).length;
  const share = (expert: number) => wanted[expert]! / placesOf(expert);
  for (let i = 0; i < Math.min(shape.replicas, shape.ranks); i++) {
    const work = new Array<number>(shape.ranks).fill(0);
    for (const { expert, rank } of slots) work[rank]! += share(expert);
    const taken = new Set(slots.slice(experts).map(({ rank }) => rank));
    const order = [...wanted.keys()].sort((a, b) => share(b) - share(a) || a - b);
    const ranksFor = (expert: number) =>
      [...work.keys()]
        .filter((rank) => !taken.has(rank))
        .filter((rank) => slots.every((slot) => slot.expert !== expert || slot.rank !== rank))
        .sort((a, b) => work[a]! - work[b]! || a - b);
    const expert = order.find((each) => ranksFor(each).length > 0);
    if (expert === undefined) break;
    slots.push({ expert, rank: ranksFor(expert)[0]! });
  }
  return slots;
}

// Experts accept copies in the order of ranks and tokens until they are full. If an expert has
// several places, a copy goes to the place on its own rank, or to the place with the fewest copies
// so far.
function settle(shape: MoeShape, copies: Copy[]): Routing {
  const experts = shape.ranks * shape.perRank;
  const even = copies.length / experts;
  const limit = shape.capacity > 0 ? Math.ceil(shape.capacity * even) : Infinity;
  const slots = slotsOf(shape, copies);
  const load = new Array<number>(slots.length).fill(0);
  const wanted = new Array<number>(slots.length).fill(0);
  const sends = Array.from({ length: shape.ranks }, () => new Array<number>(shape.ranks).fill(0));
  let dropped = 0;
  for (const copy of copies) {
    const places = [...slots.keys()].filter((slot) => slots[slot]!.expert === copy.expert);
    copy.slot =
      places.find((slot) => slots[slot]!.rank === copy.rank) ??
      places.reduce((best, slot) => (wanted[slot]! < wanted[best]! ? slot : best));
    wanted[copy.slot]!++;
    if (load[copy.slot]! >= limit) {
      dropped++;
      continue;
    }
    copy.place = load[copy.slot]!++;
    sends[copy.rank]![slots[copy.slot]!.rank]!++;
  }
  return { shape, slots, copies, load, wanted, limit, dropped, sends };
}

export function isRouting(document: Record<string, unknown>): boolean {
  return typeof document.format === 'string' && document.format.startsWith('unisono.routing/');
}

// `unisono.routing/1`: {"counts": [[tokens of rank 0 for expert 0, ...], ...]}.
export function routeCounts(document: unknown, capacity: number, replicas = 0): Routing {
  if (!isObject(document) || document.format !== 'unisono.routing/1') {
    throw new BadInput('/format: this reads unisono.routing/1');
  }
  const counts = document.counts;
  if (!Array.isArray(counts) || counts.length < 1 || counts.length > 16) {
    throw new BadInput('/counts: one row for each of 1 to 16 ranks');
  }
  const experts = Array.isArray(counts[0]) ? counts[0].length : 0;
  if (experts < 1 || experts > 64 || experts % counts.length !== 0) {
    throw new BadInput('/counts/0: as many experts as ranks, or a multiple, and at most 64');
  }
  const copies: Copy[] = [];
  counts.forEach((row: unknown, rank) => {
    if (!Array.isArray(row) || row.length !== experts) {
      throw new BadInput(`/counts/${rank}: ${experts} numbers`);
    }
    let token = 0;
    row.forEach((count: unknown, expert) => {
      if (typeof count !== 'number' || !Number.isInteger(count) || count < 0 || count > 200) {
        throw new BadInput(`/counts/${rank}/${expert}: a whole number from 0 to 200`);
      }
      for (let i = 0; i < count; i++) {
        copies.push({ rank, token: token++, choice: 0, expert, weight: 1, slot: -1, place: -1 });
      }
    });
  });
  const tokens = Math.max(1, ...counts.map((row: number[]) => row.reduce((a, b) => a + b, 0)));
  const shape = { ranks: counts.length, perRank: experts / counts.length, tokens };
  return settle({ ...shape, k: 1, skew: 0, capacity, replicas }, copies);
}

// Returns the load of the fullest place divided by the mean load of the experts.
export function imbalance(routing: Routing): number {
  const { ranks, perRank } = routing.shape;
  const mean = routing.load.reduce((a, b) => a + b, 0) / (ranks * perRank);
  return mean === 0 ? 1 : Math.max(...routing.load) / mean;
}

// Returns the progress of a copy when `part` of the flight is over. Copies leave one after the
// other, in the order of tokens, so that an eye can follow them.
export function wayOf(routing: Routing, copy: Copy, part: number): number {
  const { tokens, k } = routing.shape;
  const turn = (copy.token * k + copy.choice) / Math.max(1, tokens * k);
  return Math.max(0, Math.min(1, 2 * part - turn));
}

// Returns the copies that have arrived, as [home][rank of the expert].
export function landed(routing: Routing, part: number): number[][] {
  const counts = routing.sends.map((row) => row.map(() => 0));
  for (const copy of routing.copies) {
    if (copy.place < 0 || wayOf(routing, copy, part) < 1) continue;
    counts[copy.rank]![routing.slots[copy.slot]!.rank]!++;
  }
  return counts;
}

// Returns the copies that the busiest rank sends to others or receives from them.
export function busiest({ sends }: Routing): number {
  const others = (list: number[], own: number) =>
    list.reduce((sum, count, i) => sum + (i === own ? 0 : count), 0);
  return Math.max(
    ...sends.flatMap((row, rank) => [
      others(row, rank),
      others(
        sends.map((each) => each[rank]!),
        rank,
      ),
    ]),
  );
}
