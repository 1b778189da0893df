// Chapters 6 to 8: data, tensor and context parallelism.
import { costs } from '../../model/formulas';
import { bytesText, timeText } from '../../model/units';
import { duration } from '../../stories/context';
import { bytesKept, exposed } from '../../stories/data';
import { computeUs, tensorPlans } from '../../stories/tensor';
import { crossing, sentBy } from '../../stories/ulysses';
import { costOf } from '../../view/collective';
import { dataShape, jobsOf, tensorShape, ulyssesShape } from '../../view/picture';
import { firstValues, LINKS, storyOf } from '../../view/stories';
import type { Chapter, Dial } from '../types';

const [ETHERNET, NVLINK] = [LINKS[0]!, LINKS[2]!];
export const first = (name: 'data' | 'tensor' | 'context' | 'ulysses') =>
  firstValues(storyOf(name));
const RANKS: Dial = {
  ...{ key: 'ranks', name: ['Ranks n', 'rank 数 n'], choices: [2, 4, 8], first: 4 },
};
// Settings that the reader cannot change in a chapter.
const fixed = (values: Record<string, number>, ...dialled: string[]): Dial[] =>
  Object.entries(values)
    .filter(([key]) => !dialled.includes(key))
    .map(([key, value]) => ({ key, name: [key, key] as const, choices: [value], first: value }));
export const gb = (bytes: number) => `${Math.round(bytes / 1e8) / 10} GB`;
const GPT_ALPHA_US = 3;
// A number from the calculation of GPT-3's layer; the figures do not use it.
const gpt = (key: string, name: Dial['name'], choices: number[], first: number): Dial => ({
  ...{ key: `gpt_${key}`, name, choices, first },
});

export const MODELS: Chapter[] = [
  {
    id: 'data',
    title: ['Data parallelism and ZeRO', '数据并行与 ZeRO'],
    lead: [
      'Every GPU reads other data with the same model. Which rank will be idle, and what is kept twice?',
      '每张 GPU 用同一个模型读不同的数据。谁会闲下来？什么东西存了不止一份？',
    ],
    dials: [
      { ...RANKS, choices: [2, 4, 8, 16] },
      {
        ...{
          key: 'billions',
          name: ['Parameters, 10⁹', '参数（10⁹）'],
          choices: [1, 7, 70],
          first: 7,
        },
      },
      ...fixed(first('data'), 'ranks', 'billions'),
    ],
    facts: (v) => {
      const shape = dataShape(v);
      const keeps = (stage: number) => gb(bytesKept(stage, v.ranks!, v.billions! * 1e9));
      return {
        plain: keeps(0),
        three: keeps(3),
        hidden: timeText(exposed(jobsOf({ ...shape, stage: 0 }, ETHERNET))),
        hidden3: timeText(exposed(jobsOf({ ...shape, stage: 3 }, ETHERNET))),
        gradients: gb(2e9 * v.billions!),
      };
    },
    beats: [
      {
        ...{ figure: 'data', id: 'replicas', set: { stage: 0 } },
        title: ['The same model everywhere', '到处都是同一个模型'],
        text: [
          'A model of [billions] billion parameters takes 2 bytes a parameter for weights, 2 for gradients and 12 for the optimiser. Each of [ranks] ranks keeps all of it: {plain}. Grey is what all ranks have alike.',
          '一个 [billions]0 亿参数的模型，每个参数权重 2 字节、梯度 2 字节、优化器 12 字节。[ranks] 个 rank 各存全部：{plain}。灰色表示各 rank 相同的部分。',
        ],
      },
      {
        ...{ figure: 'data', id: 'backward', set: { stage: 0 } },
        title: ['Gradients leave in buckets', '梯度分桶发出'],
        text: [
          'The backward pass finishes the last layers first, so their gradients can leave while the rest is computed. {gradients} of gradients go through all_reduce on Ethernet; {hidden} of the step stay exposed: no rank computes.',
          '反向传播先算完最后几层，它们的梯度可以边算边发。{gradients} 的梯度在以太网上做 all_reduce；整步中有 {hidden} 未被掩盖：此时没有 rank 在计算。',
        ],
      },
      {
        ...{ figure: 'data', id: 'memory', set: { stage: 0 } },
        title: ['Cut what is kept twice', '切掉重复保存的'],
        text: [
          'ZeRO gives each rank a shard: of the optimiser (stage 1), of gradients too (2), of weights too (3). Watch the bars while ranks double up to 64: what is sharded shrinks, what is copied does not.',
          'ZeRO 让每个 rank 只存一个分片：阶段 1 切优化器，阶段 2 再切梯度，阶段 3 再切权重。看 rank 数翻倍到 64 时的条形：分片的部分变小，复制的部分不变。',
        ],
      },
      {
        ...{ figure: 'data', id: 'forward', set: { stage: 3 } },
        title: ['Stage 3: weights visit', '阶段 3：权重只是来访'],
        text: [
          'With stage 3 a rank keeps {three} instead of {plain}. Before a layer is used, an all_gather brings its weights; after use they are dropped.',
          '阶段 3 下每个 rank 只存 {three}，而不是 {plain}。用到某层之前，all_gather 把它的权重取来；用完就丢。',
        ],
      },
      {
        ...{ figure: 'data', id: 'backward', set: { stage: 3 } },
        title: ['… and pay half again as much', '……通信多付一半'],
        text: [
          'Backward they are collected once more, and gradients leave by reduce_scatter: 1.5 times the bytes of plain data parallelism, {hidden3} exposed instead of {hidden} on this link.',
          '反向时再收集一次，梯度用 reduce_scatter 发出：字节数是普通数据并行的 1.5 倍，在这条链路上未掩盖的时间从 {hidden} 变成 {hidden3}。',
        ],
      },
    ],
    paid: [
      'One all_reduce of all gradients a step. ZeRO-3: all_gather of weights twice and a reduce_scatter, 1.5 times the bytes, for 16/n bytes a parameter.',
      '每步一次全部梯度的 all_reduce。ZeRO-3：两次权重的 all_gather 加一次 reduce_scatter，字节是 1.5 倍，换来每个参数只占 16/n 字节。',
    ],
    questions: [
      {
        ask: [
          'How much does a rank keep of 7 billion parameters without ZeRO?',
          '不用 ZeRO，70 亿参数时每个 rank 存多少？',
        ],
        options: ['14 GB', '28 GB', '112 GB'],
        right: 2,
      },
      {
        ask: ['And with ZeRO-3 on 4 ranks?', '4 个 rank 上用 ZeRO-3 呢？'],
        options: ['28 GB', '38.5 GB', '112 GB'],
        right: 0,
      },
      {
        ask: [
          'Which collective takes the place of all_reduce in ZeRO-3’s backward pass?',
          'ZeRO-3 反向中用什么代替 all_reduce？',
        ],
        options: ['reduce_scatter', 'broadcast', 'all_to_all'],
        right: 0,
      },
      {
        ask: [
          'Bytes of ZeRO-3 beside plain data parallelism?',
          'ZeRO-3 的通信量是普通数据并行的几倍？',
        ],
        options: ['1', '1.5', '3'],
        right: 1,
      },
      {
        ask: [
          'From 4 to 8 ranks with ZeRO-1: by how much does the weights’ part shrink?',
          'ZeRO-1 从 4 个 rank 到 8 个：权重部分缩小多少？',
        ],
        options: [
          ['not at all', '不变'],
          ['by half', '一半'],
        ],
        right: 0,
      },
    ],
    lab: { tab: 'parallel', story: 'data' },
  },
  {
    id: 'tensor',
    title: ['Tensor parallelism', '张量并行'],
    lead: [
      'A matrix is too large: cut it. Which cut needs no message at all, and where does the bill come?',
      '矩阵太大，就切开。哪种切法完全不用通信？账单在哪里？',
    ],
    dials: [
      RANKS,
      ...fixed(first('tensor'), 'ranks'),
      gpt('batch', ['Sequences', '序列数'], [1, 2, 4, 8, 16, 32, 64], 32),
      gpt('tokens', ['Tokens per sequence', '每个序列的 token 数'], [1024, 2048, 4096, 8192], 2048),
      gpt('hidden', ['Hidden size', '隐藏维度'], [4096, 8192, 12288, 16384], 12288),
      gpt('gpus', ['GPUs', 'GPU 数'], [2, 4, 8], 8),
      gpt('link', ['Bandwidth, GB/s', '带宽（GB/s）'], [12.5, 50, 300, 450, 900], 300),
    ],
    facts: (v) => {
      const shape = tensorShape({ ...v, sp: 0 });
      const block = tensorPlans(shape).find(({ id }) => id === 'block')!;
      const sending = block
        .comms!.filter(({ pass }) => pass === 'forward')
        .reduce(
          (sum, each) => {
            const us = (network: typeof NVLINK) =>
              each.times * costOf(each.collective, each.ranks, each.bytes, network).us;
            return { fast: sum.fast + us(NVLINK), slow: sum.slow + us(ETHERNET) };
          },
          { fast: 0, slow: 0 },
        );
      const bytes = 2 * v.gpt_batch! * v.gpt_tokens! * v.gpt_hidden!;
      const ring = costs(
        { collective: 'all_reduce', ranks: v.gpt_gpus!, bytes, segments: 1 },
        { alphaUs: GPT_ALPHA_US, gbPerS: v.gpt_link! },
      ).find(({ formula }) => formula.algorithm === 'ring')!;
      return {
        compute: timeText(computeUs(shape)),
        ...{ fast: timeText(sending.fast), slow: timeText(sending.slow) },
        alpha: timeText(GPT_ALPHA_US),
        gpt3: `${(bytes / 1e9).toFixed(2)} GB`,
        ...{ once: timeText(ring.us), twice: timeText(2 * ring.us) },
      };
    },
    beats: [
      {
        ...{ figure: 'tensor', id: 'cut', set: { sp: 0 } },
        title: ['A by columns, B by rows', 'A 按列切，B 按行切'],
        text: [
          'An MLP multiplies by two matrices. The first is cut by columns, the second by rows, over [ranks] ranks. A colour is a rank; grey is the same on all.',
          'MLP 要乘两个矩阵。第一个按列切，第二个按行切，分给 [ranks] 个 rank。颜色是 rank，灰色是各 rank 相同的部分。',
        ],
      },
      {
        ...{ figure: 'tensor', id: 'columns', set: { sp: 0 } },
        title: ['No message between the two', '两个矩阵之间无需通信'],
        text: [
          'Every rank multiplies all of X with its own columns and gets its own columns of Y. The next cut wants exactly these columns, so nothing is sent.',
          '每个 rank 用完整的 X 乘自己的列，得到 Y 中自己的列。下一刀正好需要这些列，所以什么都不用发。',
        ],
      },
      {
        ...{ figure: 'tensor', id: 'rows', set: { sp: 0 } },
        title: ['Then partial sums', '接着是部分和'],
        text: [
          'Its columns of Y times its rows of B: a result of full size on every rank, but only one of [ranks] parts of each sum.',
          '自己的 Y 列乘自己的 B 行：每个 rank 得到完整大小的结果，但每个和都只是 [ranks] 份中的一份。',
        ],
      },
      {
        ...{ figure: 'tensor', id: 'sum', set: { sp: 0 } },
        title: ['The bill: one all_reduce', '账单：一次 all_reduce'],
        text: [
          'The parts are added up, and every rank gets the sum. One all_reduce pays for two matrix products.',
          '把各部分加起来，每个 rank 都得到总和。两次矩阵乘，付一次 all_reduce。',
        ],
      },
      {
        ...{ figure: 'tensor', id: 'block', set: { sp: 0 } },
        title: ['Twice in every layer', '每层两次'],
        text: [
          'Attention is cut by heads and ends with the same bill. Forward, a layer computes for {compute} and communicates for {fast} on NVLink. On Ethernet it would be {slow}: tensor parallelism stays inside a node.',
          '注意力按头切，最后是同样的账单。前向时一层计算 {compute}，在 NVLink 上通信 {fast}；换成以太网就是 {slow}：所以张量并行留在节点内。',
        ],
      },
      {
        ...{ figure: 'tensor', id: 'block_sp', set: { sp: 1 } },
        title: ['Between the halves: sequence parallelism', '插在两半之间：序列并行'],
        text: [
          'Split each all_reduce into reduce_scatter and all_gather, and between the blocks a rank has only 1/[ranks] of the tokens: norms are not computed on every rank, activations shrink, and the bytes sent stay the same.',
          '把每次 all_reduce 拆成 reduce_scatter 和 all_gather，两个块之间每个 rank 就只有 1/[ranks] 的 token：归一化不再重复计算，激活变小，发送的字节不变。',
        ],
      },
    ],
    sum: [
      'With GPT-3’s sizes: [gpt_batch] sequences × [gpt_tokens] tokens × [gpt_hidden] hidden × 2 bytes = {gpt3}. Over [gpt_gpus] GPUs at [gpt_link] GB/s one way and {alpha} of latency a message, one ring all_reduce takes {once}. The forward pass of a layer pays twice: {twice}.',
      '代入 GPT-3 的尺寸：[gpt_batch] 个序列 × [gpt_tokens] 个 token × 隐藏维度 [gpt_hidden] × 2 字节 = {gpt3}。在 [gpt_gpus] 张 GPU 上、单向 [gpt_link] GB/s、每条消息延迟 {alpha}，一次环形 all_reduce 用时 {once}。一层的前向要付两次：{twice}。',
    ],
    paid: [
      '2 all_reduces of tokens × hidden × 2 bytes in the forward pass of every layer, and 2 backward. None of it can hide behind computing that needs the sum.',
      '每一层前向 2 次 all_reduce，反向 2 次，每次 token × 隐藏维度 × 2 字节。后面的计算等着这个和，因此很难掩盖。',
    ],
    questions: [
      {
        ask: [
          'How many messages are sent between the two matrices of the MLP?',
          'MLP 的两个矩阵之间发送几条消息？',
        ],
        options: ['0', '1', '2'],
        right: 0,
      },
      {
        ask: [
          'How many all_reduces has the forward pass of a layer?',
          '一层的前向有几次 all_reduce？',
        ],
        options: ['1', '2', '4'],
        right: 1,
      },
      {
        ask: [
          'On 4 ranks, what does a rank have before the all_reduce?',
          '4 个 rank 时，all_reduce 之前每个 rank 有什么？',
        ],
        options: [
          ['a quarter of the result', '四分之一的结果'],
          ['a quarter of every sum', '每个和的四分之一'],
        ],
        right: 1,
      },
      {
        ask: [
          'With sequence parallelism on 4 ranks, how much does a rank keep between the blocks?',
          '4 个 rank 用序列并行时，块之间每个 rank 存多少激活？',
        ],
        options: ['1', '1/2', '1/4'],
        right: 2,
      },
      {
        ask: ['And how do the bytes sent change?', '发送的字节怎么变？'],
        options: [
          ['they stay the same', '不变'],
          ['they halve', '减半'],
        ],
        right: 0,
      },
    ],
    lab: { tab: 'parallel', story: 'tensor' },
  },
  {
    id: 'context',
    title: ['Long text', '长文本'],
    lead: [
      'A text of 131,072 tokens fits no GPU: cut the text. But a token must see all tokens before it. What travels?',
      '131,072 个 token 的文本一张 GPU 放不下：把文本切开。可每个 token 都要看到前文，那么什么东西要传来传去？',
    ],
    dials: [
      RANKS,
      {
        ...{ key: 'kvHeads', name: ['KV heads', 'KV 头数'], choices: [1, 8, 0], first: 8 },
        text: (value) => (value === 0 ? '64' : String(value)),
      },
      ...fixed({ ...first('context'), ...first('ulysses') }, 'ranks', 'kvHeads'),
    ],
    facts: (v) => {
      const shape = ulyssesShape(v);
      const n = v.ranks!;
      return {
        hops: n - 1,
        waste: Math.round((100 * duration(n, 'ring')) / (2 * n) - 100),
        ulysses: bytesText(sentBy('ulysses', shape)),
        ring: bytesText(sentBy('ring', shape)),
        cross: crossing(shape, [2, 4, 8, 16, 32, 64]) ?? '∞',
      };
    },
    beats: [
      {
        ...{ figure: 'context', id: 'cut', set: { method: 0 } },
        title: ['The triangle', '三角形'],
        text: [
          'Rows are queries, columns keys: a token sees only what came before it, so half of the square is empty. Each of [ranks] ranks has the rows of its part of the text.',
          '行是查询，列是键：每个 token 只看前文，所以方块有一半是空的。[ranks] 个 rank 各有自己那段文本的行。',
        ],
      },
      {
        ...{ figure: 'context', id: 'ring', set: { method: 0 } },
        title: ['Queries stay, keys and values travel', 'Q 不动，K、V 传递'],
        text: [
          'Keys and values go around a ring in {hops} hops while attention is computed with the block at hand. A rank never holds more than two blocks.',
          'K、V 沿环走 {hops} 跳，同时用手头的块计算注意力。一个 rank 手里从不超过两块。',
        ],
      },
      {
        ...{ figure: 'context', id: 'balance', set: { method: 0 } },
        title: ['Who waits?', '谁在等？'],
        text: [
          'The first rank has the short rows, the last one the long ones. In every step all wait for the slowest: {waste} % longer than if the work were even.',
          '第一个 rank 的行短，最后一个的行长。每一步都要等最慢的：比均匀分配多用 {waste} %。',
        ],
      },
      {
        ...{ figure: 'context', id: 'balance', set: { method: 1 } },
        title: ['Zigzag deals the rows anew', 'zigzag 重新发牌'],
        text: [
          'Give each rank an early part and a late one. Now every rank has as much work as any other in every step, and not one byte more is sent.',
          '给每个 rank 一段靠前的和一段靠后的。现在每一步各 rank 的计算量都相等，而且一个字节也没有多发。',
        ],
      },
      {
        ...{ figure: 'ulysses', id: 'out' },
        title: ['Ulysses: rows become columns', 'Ulysses：行变成列'],
        text: [
          'The other way: an all_to_all turns parts of the text into heads. Each rank then has the whole text for its own heads, computes as if alone, and a second one turns it back.',
          '另一条路：all_to_all 把文本的段换成注意力头。之后每个 rank 有自己那些头的完整文本，像单机一样计算，再用一次 all_to_all 换回来。',
        ],
      },
      {
        ...{ figure: 'ulysses', id: 'limit' },
        title: ['Which sends less?', '哪个发得少？'],
        text: [
          'With [kvHeads] heads of keys and values of 64, [ranks] ranks send {ulysses} each with Ulysses and {ring} with the ring. The bars cross at {cross} ranks. Drag the heads.',
          '64 个头中有 [kvHeads] 个 K、V 头时，[ranks] 个 rank 各发送：Ulysses {ulysses}，环 {ring}。两者在 {cross} 个 rank 处交叉。拖动头数试试。',
        ],
      },
    ],
    paid: [
      'Ring: keys and values, n − 1 hops, hidden behind attention if the text is long. Ulysses: 4 all_to_alls, which shrink as ranks are added, up to the number of heads.',
      '环：K、V 走 n − 1 跳，文本足够长时能被注意力计算掩盖。Ulysses：4 次 all_to_all，rank 越多每个发得越少，直到头数用完。',
    ],
    questions: [
      {
        ask: [
          'With 4 ranks, how many hops does a block of keys and values make?',
          '4 个 rank 时，一块 K、V 走几跳？',
        ],
        options: ['3', '4', '6'],
        right: 0,
      },
      {
        ask: [
          'How much longer does the ring in order take with 4 ranks than even work?',
          '4 个 rank 顺序切分的环，比均匀分配慢多少？',
        ],
        options: ['25 %', '75 %', '100 %'],
        right: 1,
      },
      {
        ask: ['And zigzag?', 'zigzag 呢？'],
        options: ['0 %', '25 %', '75 %'],
        right: 0,
      },
      {
        ask: [
          'Which sends less on 4 ranks with 64 heads and 8 KV heads?',
          '64 个头、8 个 KV 头、4 个 rank：哪个发得少？',
        ],
        options: ['Ulysses', ['the ring', '环']],
        right: 1,
      },
      {
        ask: ['And if all 64 heads have keys and values?', '如果 64 个头都有自己的 K、V 呢？'],
        options: ['Ulysses', ['the ring', '环']],
        right: 0,
      },
    ],
    lab: { tab: 'parallel', story: 'context' },
  },
];
