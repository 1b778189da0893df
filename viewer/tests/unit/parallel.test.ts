// The drawn stories move what schedules move, and say the bytes of the layer.
import { describe, expect, it } from 'vitest';
import { check } from '../../src/replay/check';
import { progressAt } from '../../src/stories/beat';
import { exchangeAt, mostSent } from '../../src/stories/exchange';
import {
  blockOf,
  contextLayer,
  contextPlans,
  duration,
  givers,
  METHODS,
  partsOf,
  ringMoves,
  tiles,
  work,
} from '../../src/stories/context';
import {
  BUCKETS,
  bytesKept,
  dataPlans,
  exposed,
  reduction,
  stateAt,
  timeline,
  type DataShape,
} from '../../src/stories/data';
import { comms } from '../../src/stories/layer';
import { layerShape, tensorPlans, type TensorShape } from '../../src/stories/tensor';
import { crossing, sentBy, ulyssesLayer, ulyssesPlans } from '../../src/stories/ulysses';
import { schedule } from '../schedules';

const RANKS = [2, 3, 4, 6, 8, 12, 16];

describe('what flies', () => {
  it.each(['all_reduce/ring', 'reduce_scatter/ring', 'all_gather/ring', 'all_to_all/pairwise'])(
    'is what %s moves, and arrives',
    (name) => {
      for (const ranks of RANKS) {
        const of = schedule(name, ranks);
        const replay = check(of).replay!;
        let flown = 0;
        for (let step = 0; step < of.steps; step++) {
          const { flights } = exchangeAt(of, replay, step + 0.5);
          flown += flights.length;
          const after = exchangeAt(of, replay, step + 1);
          for (const { to, chunk, parts } of flights) {
            const cell = after.cells.find((each) => each.rank === to && each.chunk === chunk);
            expect(parts.length).toBeGreaterThan(0);
            expect(cell!.parts).toEqual(expect.arrayContaining(parts));
          }
          expect(exchangeAt(of, replay, step).flights).toEqual([]);
        }
        const moved = [...Array(of.moves.count).keys()]
          .filter((i) => of.moves.from[i] !== of.moves.to[i])
          .reduce((sum, i) => sum + of.moves.chunks[i]!, 0);
        expect(flown).toBe(moved);
      }
    },
  );

  it('ends with every part of the sum on every rank', () => {
    for (const ranks of RANKS) {
      const of = schedule('all_reduce/ring', ranks);
      const { cells } = exchangeAt(of, check(of).replay!, of.steps);
      expect(cells).toHaveLength(ranks * of.chunks);
      expect(cells.every(({ parts }) => parts.length === ranks)).toBe(true);
      expect(mostSent(of) / of.chunks).toBeCloseTo((2 * (ranks - 1)) / ranks);
    }
  });
});

const TENSOR: TensorShape = {
  ...{ ranks: 4, sequenceParallel: false, hidden: 8192, tokens: 8192, vocabulary: 131072 },
};

describe('tensor parallelism', () => {
  const shape = TENSOR;

  it.each([false, true])('says the bytes of the layer (sequence parallel: %s)', (sp) => {
    for (const ranks of RANKS) {
      const at = { ...shape, ranks, sequenceParallel: sp };
      const plans = tensorPlans(at);
      const total = (list: { bytes: number; times: number }[]) =>
        list.reduce((sum, each) => sum + each.bytes * each.times, 0);
      const block = plans.find((plan) => plan.id.startsWith('block'))!;
      expect(total(block.comms!)).toBe(total(comms(layerShape(at))));
      const middle = plans.filter(({ id }) => ['gather', 'sum', 'scatter'].includes(id));
      expect(middle.flatMap((plan) => plan.comms!.map((each) => each.collective))).toEqual(
        sp ? ['all_gather', 'reduce_scatter'] : ['all_reduce'],
      );
      for (const plan of middle) expect(plan.comms![0]!.bytes).toBe(2 * 8192 * 8192);
    }
  });

  it('knows how far each step is', () => {
    const plans = tensorPlans(shape);
    expect(progressAt(plans, 1.5, 'cut')).toBe(1);
    expect(progressAt(plans, 1.5, 'columns')).toBe(0.5);
    expect(progressAt(plans, 1.5, 'rows')).toBe(0);
    expect(progressAt(plans, 1.5, 'none')).toBe(0);
  });
});

describe('data parallelism', () => {
  const shape: DataShape = { ranks: 4, stage: 0, billions: 7, tokens: 16384 };
  const costs = (name: string) => (name === 'all_reduce' ? 200_000 : 100_000); // us

  it('keeps what Rajbhandari et al. say', () => {
    // 7.5 billion parameters, 64 ranks: 120, 31.4, 16.6 and 1.9 GB.
    const gb = [0, 1, 2, 3].map((stage) => bytesKept(stage, 64, 7.5e9) / 1e9);
    expect(gb.map((each) => Number(each.toFixed(1)))).toEqual([120, 31.4, 16.6, 1.9]);
  });

  it.each([0, 1, 2, 3] as const)('of stage %i calls what the layer calls', (stage) => {
    for (const ranks of RANKS) {
      const at = { ...shape, ranks, stage };
      const layer = comms({ ...layerShape({ ...TENSOR, ranks: 1 }), dp: ranks, zero: stage });
      const weights = 12 * TENSOR.hidden ** 2 * 2;
      const ours = dataPlans(at).flatMap((plan) =>
        (plan.comms ?? []).map(({ collective, bytes, times }) => [
          collective,
          (bytes * times) / (2e9 * shape.billions),
        ]),
      );
      expect(ours).toEqual(layer.map(({ collective, bytes }) => [collective, bytes / weights]));
      // The picture's own jobs are the same calls.
      const jobs = timeline(at, costs);
      const sent = jobs.filter((job) => job.lane === 'network').length;
      expect(sent).toBe(BUCKETS * ours.length);
    }
  });

  it('hides what is sent behind what is computed, and never goes before it', () => {
    for (const stage of [0, 1, 2, 3] as const) {
      const jobs = timeline({ ...shape, stage }, costs);
      for (const lane of ['compute', 'network']) {
        const own = jobs.filter((job) => job.lane === lane).sort((a, b) => a.start - b.start);
        own
          .slice(1)
          .forEach((job, i) => expect(job.start).toBeGreaterThanOrEqual(own[i]!.end - 1e-6));
      }
      for (const job of jobs.filter(({ what }) => what === reduction(stage))) {
        const back = jobs.find((each) => each.what === 'B' && each.bucket === job.bucket)!;
        expect(job.start).toBeGreaterThanOrEqual(back.end - 1e-6);
      }
      expect(exposed(jobs)).toBeGreaterThan(0);
      expect(exposed(timeline({ ...shape, stage }, () => 0))).toBeCloseTo(0);
    }
  });

  it('says what a rank has at each moment', () => {
    const jobs = timeline({ ...shape, stage: 3 }, costs);
    const at = (time: number) => stateAt({ ...shape, stage: 3 }, jobs, time);
    expect(at(0).every((each) => each.weights === 'shard' && each.gradients === 'none')).toBe(true);
    const first = jobs.find((job) => job.what === 'F')!;
    expect(at(first.start)[0]!.weights).toBe('all');
    expect(at(first.end)[0]!.weights).toBe('shard');
    // Two layers at most are whole at any time.
    for (const { end } of jobs) {
      expect(at(end).filter((each) => each.weights === 'all').length).toBeLessThanOrEqual(2);
    }
    const last = at(Infinity);
    expect(last.every((each) => each.isSummed && each.gradients === 'shard')).toBe(true);
  });
});

describe('context parallelism', () => {
  it.each(METHODS)('%s computes every tile of the triangle once', (method) => {
    for (const ranks of RANKS) {
      const all = tiles(ranks, method);
      expect(new Set(all.map(({ query, key }) => `${query} ${key}`)).size).toBe(all.length);
      expect(all).toHaveLength((2 * ranks * (2 * ranks + 1)) / 2);
      for (const { rank, query, key, step } of all) {
        expect(partsOf(rank, ranks, method)).toContain(query);
        expect(partsOf(blockOf(rank, step, ranks), ranks, method)).toContain(key);
      }
    }
  });

  it('is even with zigzag, and nearly twice as slow in order', () => {
    for (const ranks of RANKS) {
      for (const row of work(ranks, 'zigzag')) expect(new Set(row).size).toBe(1);
      expect(duration(ranks, 'zigzag')).toBe(2 * ranks);
      expect(duration(ranks, 'gather')).toBe(2 * ranks);
      expect(duration(ranks, 'ring')).toBe(4 * ranks - 2);
    }
  });

  it('sends each block around, one at a time, as often as the layer says', () => {
    for (const ranks of RANKS) {
      const has = Array.from({ length: ranks }, (_, rank) => rank);
      const moves = ringMoves(ranks);
      for (let step = 0; step < ranks - 1; step++) {
        const now = moves.filter((move) => move.step === step);
        for (const { from, block } of now) expect(has[from]).toBe(block);
        for (const { to, block } of now) has[to] = block;
        has.forEach((block, rank) => expect(block).toBe(blockOf(rank, step + 1, ranks)));
      }
      // Backwards whoever used a block adds to its gradient, and n hops bring it home.
      for (const rank of Array(ranks).keys()) {
        expect(blockOf(rank, ranks, ranks)).toBe(rank);
        for (const method of METHODS) {
          const users = tiles(ranks, method)
            .filter((tile) => blockOf(tile.rank, tile.step, ranks) === rank)
            .map((tile) => tile.rank);
          expect(givers(rank, ranks, ranks, method).sort()).toEqual([...new Set(users)].sort());
        }
      }
      const shape = { ranks, method: 'zigzag' as const, sequence: 32768, hidden: 4096, kvHeads: 8 };
      const ring = contextPlans(shape).flatMap((plan) => plan.comms ?? []);
      const layer = comms(contextLayer(shape)).filter((each) => each.axis === 'cp');
      expect(ring.map(({ bytes, times }) => [bytes, times])).toEqual(
        layer.map(({ bytes, times }) => [bytes, times]),
      );
      expect(moves).toHaveLength(ranks * ring[0]!.times);
    }
  });
});

describe('Ulysses', () => {
  it('turns rows into columns with the all_to_all of the catalogue, and says its bytes', () => {
    for (const ranks of RANKS) {
      const of = schedule('all_to_all/pairwise', ranks);
      const { cells } = exchangeAt(of, check(of).replay!, of.steps);
      for (let rank = 0; rank < ranks; rank++) {
        const own = cells.filter((cell) => cell.rank === rank);
        expect(own.map(({ chunk }) => chunk % ranks)).toEqual(Array(ranks).fill(rank));
        expect(own.map(({ parts }) => parts[0])).toEqual([...Array(ranks).keys()]);
      }
      for (const kvHeads of [0, 8, 1]) {
        const shape = { ranks, sequence: 32768, hidden: 8192, kvHeads };
        const calls = ulyssesPlans(shape).flatMap((plan) => plan.comms ?? []);
        const layer = comms(ulyssesLayer(shape)).filter((each) => each.pass === 'forward');
        const bytes = (list: { bytes: number; times: number }[]) =>
          list.reduce((sum, each) => sum + each.bytes * each.times, 0);
        expect(bytes(calls)).toBe(bytes(layer));
        // The bytes that the busiest rank sends by the schedule.
        const sent = (mostSent(of) / of.chunks) * bytes(layer) * ranks;
        expect(sentBy('ulysses', shape) / sent).toBeCloseTo(1, 9);
      }
    }
  });

  it('crosses the ring where few heads have keys and values', () => {
    // Llama 3 70B: 64 heads of queries, 8 of keys and values.
    const shape = { ranks: 4, sequence: 32768, hidden: 8192, kvHeads: 8 };
    const mib = (method: 'ulysses' | 'ring', kvHeads: number) =>
      [2, 4, 8, 16].map((ranks) => sentBy(method, { ...shape, ranks, kvHeads }) / 2 ** 20);
    expect(mib('ulysses', 0)).toEqual([512, 384, 224, 120]);
    expect(mib('ring', 0)).toEqual([512, 768, 896, 960]);
    expect(mib('ulysses', 8).slice(0, 3)).toEqual([288, 216, 126]);
    expect(mib('ring', 8).slice(0, 3)).toEqual([64, 96, 112]);
    // With more ranks than such heads, each head goes to two.
    expect(mib('ulysses', 8)[3]).toBe(75);
    const counts = [2, 4, 8, 16, 32, 64, 128];
    expect(crossing(shape, counts)).toBe(16);
    expect(crossing({ ...shape, kvHeads: 0 }, counts)).toBe(4);
    expect(crossing({ ...shape, kvHeads: 1 }, counts)).toBeUndefined();
  });
});
