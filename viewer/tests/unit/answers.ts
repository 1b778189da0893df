// The answers to the questions of the article's chapters, in their order, as the page computes what it draws.
import { CLASSIC, percent } from '../../src/article/chapters/last';
import { ETHERNET, fastest, messageUs, MIB, ringUs } from '../../src/article/chapters/first';
import { first, gb } from '../../src/article/chapters/models';
import { moeShape } from '../../src/article/experts';
import { halfBytes, sizeText } from '../../src/article/messages';
import { chainUs } from '../../src/model/formulas';
import { bytesText, timeText } from '../../src/model/units';
import { bubbleOf } from '../../src/pipeline/picture';
import type { Played } from '../../src/pipeline/play';
import type { Pipeline } from '../../src/pipeline/types';
import { verify } from '../../src/pipeline/verify';
import { check } from '../../src/replay/check';
import type { Schedule } from '../../src/schedule/types';
import { contextPlans, duration } from '../../src/stories/context';
import { bytesKept, dataPlans } from '../../src/stories/data';
import { mostSent } from '../../src/stories/exchange';
import type { Comm } from '../../src/stories/layer';
import { imbalance, route } from '../../src/stories/moe';
import { callBytes } from '../../src/stories/scale';
import { stopAt } from '../../src/stories/stuck_ring';
import { tensorPlans } from '../../src/stories/tensor';
import { partsOf, PLANS, rankedFirst } from '../../src/stories/together';
import { sentBy } from '../../src/stories/ulysses';
import { costOf } from '../../src/view/collective';
import { LINKS } from '../../src/view/stories';
import { contextShape, dataShape, tensorShape, ulyssesShape } from '../../src/view/picture';

export interface Known {
  schedule: (collective: string, ranks: number) => Schedule;
  pipeline: (
    name: string,
    ranks: number,
    microbatches: number,
  ) => { pipeline: Pipeline; played: Played } | undefined;
  comms: Comm[]; // of a layer with experts
}

const played = ({ pipeline }: Known, name: string) => pipeline(name, 4, 8)!;
const hottest = (skew: number) => imbalance(route(moeShape(skew)));
const NVLINK = LINKS[2]!;
const callUs = () => costOf('all_reduce', 8, callBytes(PLANS[CLASSIC]!), NVLINK).us;
const ringOf = ({ schedule }: Known) => schedule('all_reduce', 8);

export const ANSWERS: Record<string, ((known: Known) => string)[]> = {
  message: [
    () => (ETHERNET.alphaUs > messageUs(4096) / 2 ? 'latency' : 'bytes'),
    () => timeText(messageUs(64 * MIB)),
    () => sizeText(halfBytes(ETHERNET)),
    () => {
      const gain = (bytes: number) =>
        messageUs(bytes) / (ETHERNET.alphaUs + bytes / (2 * ETHERNET.gbPerS * 1000));
      return gain(64 * MIB) > 1.9 && gain(4096) < 1.1 ? '64 MiB' : '4 KiB';
    },
    () => String(Math.round((1000 * messageUs(4096)) / messageUs(4096e3))),
  ],
  broadcast: [
    ({ schedule }) => String(8 + schedule('broadcast', 8).ranks - 2),
    () => `${(chainUs(8, 1, 64 * MIB, ETHERNET) / 1000).toFixed(1)} ms`,
    () => `${(chainUs(8, 8, 64 * MIB, ETHERNET) / 1000).toFixed(1)} ms`,
    ({ schedule }) => String(schedule('broadcast', 8).ranks - 1),
    () => {
      const us = (n: number) => chainUs(n, 32, 64 * MIB, ETHERNET);
      return `${Math.round(100 * (us(16) / us(8) - 1))} %`;
    },
  ],
  sums: [
    ({ schedule }) => {
      const { replay } = check(schedule('all_gather', 4));
      return replay!.width === 1 ? 'all_gather' : 'all_reduce';
    },
    ({ schedule }) => {
      const of = schedule('reduce_scatter', 4);
      const { replay } = check(of);
      const chunks = Array.from({ length: of.chunks }, (_, chunk) => chunk);
      return String(chunks.filter((chunk) => replay!.isWhole(0, chunk, of.steps)).length);
    },
    ({ schedule }) => String(mostSent(schedule('all_reduce', 4))),
    ({ schedule }) => String(mostSent(schedule('reduce_scatter', 4))),
    ({ schedule }) => {
      const of = schedule('all_reduce', 4);
      const counts = check(of).replay!.countsAt(0, 0, of.steps)!;
      return String(counts.filter((count) => count > 0).length);
    },
  ],
  laps: [
    ({ schedule }) => String(schedule('all_reduce', 4).steps),
    ({ schedule }) => {
      const of = schedule('all_reduce', 4);
      const { replay } = check(of);
      const step = Array.from({ length: of.steps + 1 }, (_, s) => s).find((s) =>
        [0, 1, 2, 3].some((chunk) => replay!.isWhole(0, chunk, s)),
      );
      return String(step);
    },
    ({ schedule }) => `${mostSent(schedule('all_reduce', 8)) / 8} D`,
    ({ schedule }) => {
      const { moves, steps } = schedule('all_reduce', 4);
      const late = [...moves.step].map((step, i) => [step, moves.combine[i]] as const);
      const adds = late.some(([step, how]) => step >= steps / 2 && how === 1);
      return adds ? 'reduce_scatter' : 'all_gather';
    },
    ({ schedule }) => {
      const sent = (n: number) => mostSent(schedule('all_reduce', n)) / n;
      return `${Math.round(100 * (sent(16) / sent(8) - 1))} %`;
    },
  ],
  cost: [
    () => fastest(8192, 16).formula.algorithm,
    () => fastest(64 * MIB, 16).formula.algorithm,
    ({ schedule }) => String(schedule('all_reduce', 16).steps),
    () => timeText(ringUs(8192, 16).latencyUs),
    () =>
      ringUs(8192, 16).latencyUs === ringUs(8192e3, 16).latencyUs ? 'not at all' : '1000 times',
  ],
  data: [
    () => gb(bytesKept(0, 4, 7e9)),
    () => gb(bytesKept(3, 4, 7e9)),
    () =>
      dataPlans({ ...dataShape(first('data')), stage: 3 })
        .find(({ id }) => id === 'backward')!
        .comms!.at(-1)!.collective,
    () => {
      // An all_reduce moves what a reduce_scatter and an all_gather move.
      const halves = (stage: 0 | 3) =>
        dataPlans({ ...dataShape(first('data')), stage })
          .flatMap(({ comms }) => comms ?? [])
          .reduce((sum, { collective }) => sum + (collective === 'all_reduce' ? 2 : 1), 0);
      return String(halves(3) / halves(0));
    },
    () => {
      const optimizer = (n: number) => (12 / n) * 7e9;
      const rest = (n: number) => bytesKept(1, n, 7e9) - optimizer(n);
      return rest(4) === rest(8) ? 'not at all' : 'by half';
    },
  ],
  tensor: [
    () =>
      String(
        tensorPlans(tensorShape(first('tensor'))).find(({ id }) => id === 'columns')!.comms
          ?.length ?? 0,
      ),
    () =>
      String(
        tensorPlans(tensorShape(first('tensor')))
          .find(({ id }) => id === 'block')!
          .comms!.filter(({ pass }) => pass === 'forward')
          .reduce((sum, { times }) => sum + times, 0),
      ),
    () => {
      const [sum] = tensorPlans(tensorShape(first('tensor'))).find(
        ({ id }) => id === 'sum',
      )!.comms!;
      return sum!.collective === 'all_reduce' && sum!.bytes === 2 * 8192 * 8192
        ? 'a quarter of every sum'
        : 'a quarter of the result';
    },
    () => {
      const [gather] = tensorPlans(tensorShape({ ...first('tensor'), sp: 1 })).find(
        ({ id }) => id === 'gather',
      )!.comms!;
      return `1/${gather!.ranks}`;
    },
    () => {
      const bytes = (sp: number) =>
        tensorPlans(tensorShape({ ...first('tensor'), sp }))
          .find(({ id }) => id.startsWith('block'))!
          .comms!.reduce((sum, { collective, times, bytes: each }) => {
            return sum + times * each * (collective === 'all_reduce' ? 2 : 1);
          }, 0);
      return bytes(0) === bytes(1) ? 'they stay the same' : 'they halve';
    },
  ],
  context: [
    () =>
      String(
        contextPlans(contextShape(first('context'))).find(({ id }) => id === 'ring')!.comms![0]!
          .times,
      ),
    () => `${Math.round((100 * duration(4, 'ring')) / 8 - 100)} %`,
    () => `${Math.round((100 * duration(4, 'zigzag')) / 8 - 100)} %`,
    () => {
      const shape = ulyssesShape(first('ulysses'));
      return sentBy('ring', shape) < sentBy('ulysses', shape) ? 'the ring' : 'Ulysses';
    },
    () => {
      const shape = { ...ulyssesShape(first('ulysses')), kvHeads: 0 };
      return sentBy('ring', shape) < sentBy('ulysses', shape) ? 'the ring' : 'Ulysses';
    },
  ],
  pipeline: [
    (known) => percent(bubbleOf(played(known, '1f1b').played)),
    (known) => percent(bubbleOf(played(known, 'gpipe').played)),
    (known) => String(Math.max(...verify(played(known, '1f1b').pipeline).peakBytes)),
    (known) => String(Math.max(...verify(played(known, 'gpipe').pipeline).peakBytes)),
    (known) =>
      ['gpipe', '1f1b', 'zb-h1'].reduce((best, name) =>
        bubbleOf(played(known, name).played) < bubbleOf(played(known, best).played) - 1e-9
          ? name
          : best,
      ),
  ],
  experts: [
    () => String(moeShape(30).k),
    ({ comms }) =>
      String(
        comms.filter(({ collective, pass }) => collective === 'all_to_all' && pass === 'forward')
          .length,
      ),
    () => {
      const { ranks } = moeShape(0);
      return String(ranks * (ranks - 1));
    },
    () => (hottest(100) > hottest(0) ? 'skewed' : 'alike'),
    ({ comms }) =>
      comms.filter(({ where }) => where === 'combine').length === 1
        ? 'its own'
        : 'that of its first expert',
  ],
  together: [
    () =>
      PLANS[CLASSIC]!.wires.reduce((a, b) => (b.inside + b.between > a.inside + a.between ? b : a))
        .axis,
    () => {
      const { inside, between } = PLANS[CLASSIC]!.wires.find(({ axis }) => axis === 'tp')!;
      return inside > between ? 'inside nodes' : 'between nodes';
    },
    () => {
      const classic = PLANS[CLASSIC]!;
      return rankedFirst(classic)!.stepS < classic.stepS ? 'ranked first' : 'classic';
    },
    () => partsOf(PLANS[CLASSIC]!)[0]!.name,
    () => String(PLANS[CLASSIC]!.layout.tp),
  ],
  scale: [
    () => String(PLANS[CLASSIC]!.wires.find(({ axis }) => axis === 'tp')!.size),
    () => timeText(callUs()),
    () => String(Number(((PLANS[CLASSIC]!.stepS * 1e6) / callUs()).toPrecision(2))),
    ({ schedule }) => bytesText(callBytes(PLANS[CLASSIC]!) / schedule('all_reduce', 8).chunks),
    ({ schedule }) => percent((schedule('all_reduce', 8).steps * NVLINK.alphaUs) / callUs()),
  ],
  broken: [
    (known) => {
      const { done } = stopAt(ringOf(known), 3, 4);
      const others = [...done.keys()].filter((rank) => rank !== 3);
      return String(others.reduce((a, b) => (done[b]! < done[a]! ? b : a)));
    },
    (known) => {
      const { done } = stopAt(ringOf(known), 3, 4);
      return String([...done.keys()].reduce((a, b) => (done[b]! > done[a]! ? b : a)));
    },
    (known) => String(stopAt(ringOf(known), 3, 4).waits[7]),
    (known) => String(stopAt(ringOf(known), 3, 4).waits.filter((other) => other === 3).length),
    (known) => String(stopAt(ringOf(known), 3, 4).waits.filter((other) => other < 0).length),
  ],
};
