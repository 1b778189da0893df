// Chapters 1 to 5: messages, collectives, and their cost.
import { costs, chainUs } from '../../model/formulas';
import { bytesText, timeText } from '../../model/units';
import { LINKS } from '../../view/stories';
import { halfBytes, sizeText } from '../messages';
import type { Chapter, Dial } from '../types';

export const ETHERNET = LINKS[0]!;
export const MIB = 2 ** 20;
const BYTES: Dial = {
  ...{ key: 'bytes', name: ['Data D', '数据 D'], first: 64 * MIB },
  choices: [4096, 65536, MIB, 8 * MIB, 64 * MIB, 512 * MIB],
  text: bytesText,
};
const RANKS: Dial = {
  ...{ key: 'ranks', name: ['Ranks n', 'rank 数 n'], choices: [2, 4, 8, 16], first: 8 },
};
export const messageUs = (bytes: number) => ETHERNET.alphaUs + bytes / (ETHERNET.gbPerS * 1000);
export const fastest = (bytes: number, ranks: number) =>
  costs({ collective: 'all_reduce', ranks, bytes, segments: 1 }, ETHERNET)[0]!;
export const ringUs = (bytes: number, ranks: number) =>
  costs({ collective: 'all_reduce', ranks, bytes, segments: 1 }, ETHERNET).find(
    ({ formula }) => formula.algorithm === 'ring',
  )!;

export const FIRST: Chapter[] = [
  {
    id: 'message',
    title: ['One to one', '一对一'],
    lead: [
      'A rank is one process with one GPU. Everything ranks do together is made of one thing: a message. What does it cost?',
      '一个 rank 就是一张 GPU 上的一个进程。多卡之间的一切都由一件事组成：一条消息。它要花多久？',
    ],
    dials: [BYTES],
    facts: ({ bytes }) => ({
      alpha: timeText(ETHERNET.alphaUs),
      short: timeText(messageUs(4096)),
      own: timeText(messageUs(bytes!)),
      half: sizeText(halfBytes(ETHERNET)),
      share: Math.round((100 * ETHERNET.alphaUs) / messageUs(bytes!)),
    }),
    beats: [
      {
        ...{ figure: 'message', id: 'short' },
        title: ['A short message', '一条短消息'],
        text: [
          'A message of 4 KiB takes {short} on Ethernet. Nearly all of it is the latency α (hatched): {alpha} pass before the first byte arrives, however short the message is.',
          '在以太网上，一条 4 KiB 的消息用时 {short}，几乎全是延迟 α（斜纹）：无论消息多短，第一个字节到达之前都要等 {alpha}。',
        ],
      },
      {
        ...{ figure: 'message', id: 'long' },
        title: ['A long message', '一条长消息'],
        text: [
          'A message of [bytes] takes {own}. Now the bytes count: D over the bandwidth B, 12.5 GB/s one way. The latency is {share} % of it. Drag the number.',
          '一条 [bytes] 的消息用时 {own}。现在起决定作用的是字节：D 除以带宽 B（单向 12.5 GB/s），延迟只占 {share} %。拖动这个数字试试。',
        ],
      },
      {
        ...{ figure: 'message', id: 'half' },
        title: ['Where they are equal', '两者相等之处'],
        text: [
          'At D = α·B = {half} both parts are equal. Shorter messages should be fewer; longer ones should be sent over more links at once. Everything below is a way to do one or the other.',
          '当 D = α·B = {half} 时两部分相等。比它短的消息应当减少条数，比它长的应当同时走更多链路。后面的一切都是在做这两件事之一。',
        ],
      },
    ],
    paid: [
      'α + D/B for each message: a latency, and the bytes over the bandwidth.',
      '每条消息 α + D/B：一个延迟，加上字节数除以带宽。',
    ],
    questions: [
      {
        ask: [
          'What is most of the time of a 4 KiB message on Ethernet?',
          '以太网上 4 KiB 消息的时间主要花在哪里？',
        ],
        options: [
          ['latency', '延迟'],
          ['bytes', '字节'],
        ],
        right: 0,
      },
      {
        ask: ['How long does a message of 64 MiB take?', '64 MiB 的消息用时多久？'],
        options: ['5.33 µs', '537 µs', '5.37 ms'],
        right: 2,
      },
      {
        ask: [
          'At how many bytes do latency and bytes take equally long?',
          '多少字节时延迟与字节用时相等？',
        ],
        options: ['4 KiB', '62.5 kB', '1 MiB'],
        right: 1,
      },
      {
        ask: [
          'Twice the bandwidth: which message becomes nearly twice as fast?',
          '带宽加倍，哪条消息快将近一倍？',
        ],
        options: ['4 KiB', '64 MiB'],
        right: 1,
      },
      {
        ask: [
          '1000 messages of 4 KiB, or one of 4 MB: how many times longer do the 1000 take?',
          '1000 条 4 KiB 消息与一条同样总量的消息相比，慢几倍？',
        ],
        options: ['1', '4', '16'],
        right: 2,
      },
    ],
    lab: { tab: 'time', collective: 'broadcast', algorithm: 'flat' },
  },
  {
    id: 'broadcast',
    title: ['One to all', '一对多'],
    lead: [
      'Rank 0 has 64 MiB that everybody needs. Passing them on from rank to rank sounds slow. Must it be?',
      'rank 0 有 64 MiB 数据，人人都要。一个传一个听起来很慢，一定如此吗？',
    ],
    dials: [
      RANKS,
      {
        ...{ key: 'segments', name: ['Segments S', '段数 S'], first: 8 },
        choices: [1, 2, 4, 8, 16, 32],
      },
      { ...BYTES, choices: [64 * MIB] },
    ],
    facts: ({ ranks, segments }) => ({
      whole: timeText(chainUs(ranks!, 1, 64 * MIB, ETHERNET)),
      cut: timeText(chainUs(ranks!, segments!, 64 * MIB, ETHERNET)),
      steps: segments! + ranks! - 2,
      hops: ranks! - 1,
      wire: timeText((64 * MIB) / (ETHERNET.gbPerS * 1000)),
    }),
    beats: [
      {
        ...{ figure: 'stairs', id: 'whole' },
        title: ['The naive chain: S = 1', '朴素的链：S = 1'],
        text: [
          'Each of [ranks] ranks waits for the whole box, then passes it on: {hops} hops one after another, {whole}. In the staircase below, time goes to the right; only one rank works at any moment.',
          '[ranks] 个 rank 中每一个都等整箱数据到齐再往下传：{hops} 跳依次进行，共 {whole}。下方的阶梯图中时间向右，任何时刻都只有一个 rank 在干活。',
        ],
      },
      {
        ...{ figure: 'stairs', id: 'cut' },
        title: ['Cut the box', '把箱子切开'],
        text: [
          'With S = [segments] segments a rank passes the first one on while the second arrives. The stairs become steep: {cut} instead of {whole}. Drag S and watch the staircase melt.',
          '切成 S = [segments] 段，一个 rank 在收第二段的同时就转发第一段。阶梯变陡：{whole} 变成 {cut}。拖动 S，看阶梯融化。',
        ],
      },
      {
        ...{ figure: 'stairs', id: 'cut' },
        title: ['Count the steps', '数一数台阶'],
        text: [
          'The last segment leaves after S − 1 steps and needs n − 1 hops: S + n − 2 = {steps} steps of D/S each. With many segments that comes close to {wire}, the time of the bytes on one wire, whatever n is. Too many segments, and their latencies take over.',
          '最后一段在 S − 1 步后出发，还要走 n − 1 跳：共 S + n − 2 = {steps} 步，每步 D/S。段数多时接近 {wire}，即这些字节走一条线的时间，与 n 无关。段数过多，延迟又会占上风。',
        ],
      },
    ],
    paid: [
      '(S + n − 2) · (α + D/(S·B)): with enough segments hardly more than D/B.',
      '(S + n − 2) · (α + D/(S·B))：段数足够时几乎只需 D/B。',
    ],
    questions: [
      {
        ask: [
          'How many steps do 8 segments take through 8 ranks?',
          '8 段经过 8 个 rank 需要几步？',
        ],
        options: ['8', '14', '64'],
        right: 1,
      },
      {
        ask: [
          'How long does the naive chain of 8 ranks take for 64 MiB?',
          '8 个 rank 的朴素链传 64 MiB 要多久？',
        ],
        options: ['5.4 ms', '9.5 ms', '37.6 ms'],
        right: 2,
      },
      {
        ask: ['And in 8 segments?', '切成 8 段呢？'],
        options: ['5.4 ms', '9.5 ms', '37.6 ms'],
        right: 1,
      },
      {
        ask: [
          'Which rank of the naive chain waits longest before its first byte?',
          '朴素链中哪个 rank 等第一个字节最久？',
        ],
        options: ['1', '4', '7'],
        right: 2,
      },
      {
        ask: [
          '16 ranks instead of 8, 32 segments: how much longer?',
          '从 8 个 rank 增到 16 个，32 段：慢多少？',
        ],
        options: ['21 %', '50 %', '100 %'],
        right: 0,
      },
    ],
    lab: { tab: 'steps', collective: 'broadcast', algorithm: 'chain', root: 0, step: 0, edits: '' },
  },
  {
    id: 'sums',
    title: ['Sums and places', '求和与位置'],
    lead: [
      'Four operations look alike when everybody ends with four boxes. Which of them add, and which only collect?',
      '最后人人都有四个格子时，四种操作看起来很像。哪些在求和，哪些只是收集？',
    ],
    dials: [{ ...RANKS, choices: [2, 4, 8], first: 4 }],
    facts: ({ ranks }) => ({ others: ranks! - 1 }),
    beats: [
      {
        ...{ figure: 'sums', id: 'reduce_scatter' },
        title: ['reduce_scatter: add, and keep a part', 'reduce_scatter：求和，各留一份'],
        text: [
          'Each of [ranks] ranks has a whole vector in its own colour. Pieces land on each other and melt into stripes: a stripe for each rank that is in the sum. In the end every rank keeps one complete piece, marked Σ.',
          '[ranks] 个 rank 各有一个完整向量，用自己的颜色表示。块叠到块上，融成条纹：和里有几个 rank 就有几种条纹。最后每个 rank 保留一块完整的和，标 Σ。',
        ],
      },
      {
        ...{ figure: 'sums', id: 'all_reduce' },
        title: ['all_reduce: add, and give to all', 'all_reduce：求和，人人得到'],
        text: [
          'The same sums, and then every rank gets all of them. All boxes of all ranks end striped: one vector, the sum, everywhere.',
          '同样的和，再让每个 rank 得到全部。所有 rank 的所有格子最后都是条纹：到处都是同一个向量，即总和。',
        ],
      },
      {
        ...{ figure: 'sums', id: 'all_gather' },
        title: ['all_gather: only collect', 'all_gather：只收集'],
        text: [
          'Here a rank begins with one box. In the end everybody has [ranks] boxes in [ranks] plain colours: nothing was added. Each rank receives {others} boxes.',
          '这里每个 rank 开始只有一格。最后人人都有 [ranks] 格、[ranks] 种纯色：什么都没加。每个 rank 收到 {others} 格。',
        ],
      },
      {
        ...{ figure: 'sums', id: 'all_to_all' },
        title: ['all_to_all: everybody something else', 'all_to_all：给每人不同的块'],
        text: [
          'Every rank has a different block for each other rank. Blocks change places, rows become columns; nobody has more than before, and nothing is added.',
          '每个 rank 给其他每个 rank 的块都不同。块交换位置，行变成列；谁也没有变多，也没有求和。',
        ],
      },
    ],
    paid: [
      '(n − 1)/n · D sent by each rank; all_reduce pays it twice.',
      '每个 rank 发送 (n − 1)/n · D；all_reduce 付两次。',
    ],
    questions: [
      {
        ask: [
          'Which operation ends with plain colours on every rank?',
          '哪种操作结束时每个 rank 上都是纯色？',
        ],
        options: ['all_reduce', 'all_gather', 'reduce_scatter'],
        right: 1,
      },
      {
        ask: [
          'How many complete sums does a rank keep after reduce_scatter?',
          'reduce_scatter 后一个 rank 保留几块完整的和？',
        ],
        options: ['1', '4', '16'],
        right: 0,
      },
      {
        ask: [
          'Of a vector of 4 chunks, how many does a rank send in all_reduce?',
          '向量分 4 块，all_reduce 中一个 rank 发送几块？',
        ],
        options: ['3', '4', '6'],
        right: 2,
      },
      {
        ask: ['And in reduce_scatter?', 'reduce_scatter 中呢？'],
        options: ['3', '4', '6'],
        right: 0,
      },
      {
        ask: [
          'How many stripes has a finished box of 4 ranks?',
          '4 个 rank 的完整格子有几种条纹？',
        ],
        options: ['1', '2', '4'],
        right: 2,
      },
    ],
    lab: { tab: 'learn' },
  },
  {
    id: 'laps',
    title: ['all_reduce is two halves', 'all_reduce 由两半组成'],
    lead: [
      'The most used operation of training is no operation of its own. Where is its middle?',
      '训练中最常用的操作其实不是一个独立的操作。它的中点在哪里？',
    ],
    dials: [{ ...RANKS, choices: [4, 8], first: 4 }],
    facts: ({ ranks: n }) => ({
      lap: n! - 1,
      all: 2 * (n! - 1),
      share: `${2 * (n! - 1)}/${n}`,
    }),
    beats: [
      {
        ...{ figure: 'laps', id: 'lap1' },
        title: ['First lap: reduce_scatter', '第一圈：reduce_scatter'],
        text: [
          '[ranks] ranks stand in a ring. In each step a rank sends one piece to the right and adds the one that arrives from the left. After {lap} steps every rank has one complete sum: a reduce_scatter.',
          '[ranks] 个 rank 围成环。每一步，每个 rank 把一块发给右边，并把左边来的一块加到自己的上面。{lap} 步之后每个 rank 有一块完整的和：这就是 reduce_scatter。',
        ],
      },
      {
        ...{ figure: 'laps', id: 'lap2' },
        title: ['Second lap: all_gather', '第二圈：all_gather'],
        text: [
          'The complete pieces go around once more, and now nothing is added: an all_gather. After {all} steps all have all. Each rank has sent {share} of the vector, and no algorithm can send less.',
          '完整的块再绕一圈，这次不再相加：就是 all_gather。{all} 步之后人人都有全部。每个 rank 发送了向量的 {share}，没有算法能发得更少。',
        ],
      },
    ],
    paid: [
      '2(n − 1) steps and 2(n − 1)/n · D bytes. ZeRO and sequence parallelism put work between the halves, at no extra bytes.',
      '2(n − 1) 步，2(n − 1)/n · D 字节。ZeRO 和序列并行在两半之间插入工作，不增加字节。',
    ],
    questions: [
      {
        ask: [
          'How many steps has a ring all_reduce of 4 ranks?',
          '4 个 rank 的环形 all_reduce 有几步？',
        ],
        options: ['4', '6', '8'],
        right: 1,
      },
      {
        ask: ['After which step is the first half over?', '前一半在第几步之后结束？'],
        options: ['2', '3', '4'],
        right: 1,
      },
      {
        ask: ['How much of D does each of 8 ranks send?', '8 个 rank 中每个发送 D 的多少？'],
        options: ['1.75 D', '2 D', '8 D'],
        right: 0,
      },
      {
        ask: ['What is the second half alone?', '单独看后一半是什么操作？'],
        options: ['reduce_scatter', 'all_gather', 'broadcast'],
        right: 1,
      },
      {
        ask: [
          '16 ranks instead of 8: how many more bytes does a rank send?',
          '16 个 rank 比 8 个，每个 rank 多发多少字节？',
        ],
        options: ['7 %', '50 %', '100 %'],
        right: 0,
      },
    ],
    lab: { tab: 'steps', collective: 'all_reduce', algorithm: 'ring', step: 0, edits: '' },
  },
  {
    id: 'cost',
    title: ['Ring or tree: what it costs', '环还是树：代价'],
    lead: [
      'The ring sends the fewest bytes. Why does anybody use anything else?',
      '环发送的字节最少，为什么还有人用别的算法？',
    ],
    dials: [
      { ...RANKS, first: 16 },
      { ...BYTES, first: MIB },
    ],
    facts: ({ ranks, bytes }) => ({
      first: fastest(bytes!, ranks!).formula.algorithm,
      time: timeText(fastest(bytes!, ranks!).us),
      ring: timeText(ringUs(bytes!, ranks!).us),
      messages: 2 * (ranks! - 1),
      few: Math.ceil(Math.log2(ranks!)),
    }),
    beats: [
      {
        ...{ figure: 'costs', id: 'short' },
        title: ['Short vectors count messages', '短向量看消息数'],
        text: [
          'For 8 KiB on [ranks] ranks, bytes hardly matter. The ring needs {messages} messages in a row, recursive doubling only {few}: it sends everything in each, and wins by far.',
          '[ranks] 个 rank 上的 8 KiB，字节几乎不算什么。环要连续 {messages} 条消息，递归倍增只要 {few} 条：每条都发全部数据，却遥遥领先。',
        ],
      },
      {
        ...{ figure: 'costs', id: 'long' },
        title: ['Long vectors count bytes', '长向量看字节数'],
        text: [
          'At 64 MiB the hatched latencies vanish. Recursive doubling now sends D in each of {few} steps; ring and halving_doubling send 2(n − 1)/n · D in all, the least there is.',
          '到 64 MiB，斜纹的延迟消失了。递归倍增在 {few} 步中每步都发 D；环和 halving_doubling 总共只发 2(n − 1)/n · D，已是最少。',
        ],
      },
      {
        ...{ figure: 'costs', id: 'own' },
        title: ['Find the crossing', '找到交叉点'],
        text: [
          '[bytes] on [ranks] ranks: {first} is fastest, {time}; the ring takes {ring}. Drag the size until the winner changes. `unisono plan` does this for every algorithm.',
          '[ranks] 个 rank 上的 [bytes]：最快的是 {first}，{time}；环要 {ring}。拖动大小，直到胜者改变。`unisono plan` 会比较所有算法。',
        ],
      },
    ],
    paid: [
      'Messages in a row times α, plus the bytes of the busiest rank over B. Short: fewer messages. Long: fewer bytes.',
      '连续消息数乘 α，加上最忙 rank 的字节数除以 B。短则减少消息，长则减少字节。',
    ],
    questions: [
      {
        ask: [
          'Which algorithm is fastest for 8 KiB on 16 ranks?',
          '16 个 rank 上 8 KiB，哪个算法最快？',
        ],
        options: ['ring', 'recursive_doubling', 'halving_doubling'],
        right: 1,
      },
      {
        ask: ['And for 64 MiB?', '64 MiB 呢？'],
        options: ['ring', 'recursive_doubling', 'halving_doubling'],
        right: 2,
      },
      {
        ask: [
          'How many messages in a row has the ring on 16 ranks?',
          '16 个 rank 的环要连续多少条消息？',
        ],
        options: ['4', '15', '30'],
        right: 2,
      },
      {
        ask: [
          'Latency of the ring on 16 ranks with α = 5 µs?',
          'α = 5 µs 时，16 个 rank 的环延迟多少？',
        ],
        options: ['5 µs', '80 µs', '150 µs'],
        right: 2,
      },
      {
        ask: [
          '1000 times the bytes: how much longer does the latency part get?',
          '字节数变成 1000 倍，延迟部分变长多少？',
        ],
        options: [
          ['not at all', '不变'],
          ['1000 times', '1000 倍'],
        ],
        right: 0,
      },
    ],
    lab: { tab: 'compare', collective: 'all_reduce', algorithm: 'ring', clock: 0 },
  },
];
