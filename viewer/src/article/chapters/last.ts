// Chapters 9 to 12: pipelines, experts, everything together, and what happens when a rank stops.
import { bytesText, timeText } from '../../model/units';
import { callBytes } from '../../stories/scale';
import { costOf } from '../../view/collective';
import { LINKS } from '../../view/stories';
import { bubble } from '../../stories/layer';
import { imbalance, route } from '../../stories/moe';
import { layoutText, partsOf, PLANS, rankedFirst } from '../../stories/together';
import { moeShape, THE_TOKEN } from '../experts';
import type { Chapter } from '../types';

export const percent = (part: number) => `${Math.round(100 * part)} %`;
const NVLINK = LINKS[2]!;
const SKEWS = [0, 30, 60, 100];
export const CLASSIC = PLANS.findIndex(({ asked }) => asked !== '');

export const LAST: Chapter[] = [
  {
    id: 'pipeline',
    title: ['Pipeline', '流水线并行'],
    lead: [
      'Cut the model into stages, one on each GPU. Only activations cross a border, so the bytes are few. Then what is the price?',
      '把模型切成若干级，每张 GPU 一级。只有激活跨过边界，字节很少。那么代价是什么？',
    ],
    dials: [
      { key: 'stages', name: ['Stages p', '级数 p'], choices: [2, 4, 6], first: 4 },
      {
        key: 'times',
        name: ['Microbatches for each stage', '每级的微批数'],
        choices: [1, 2, 3],
        first: 2,
      },
    ],
    facts: ({ stages: p, times }) => ({
      m: p! * times!,
      naive: percent((p! - 1) / p!),
      bubble: percent(bubble(p!, p! * times!)),
      gpipe: p! * times!,
    }),
    beats: [
      {
        ...{ figure: 'pipes', id: 'naive' },
        title: ['One batch at a time', '一次一个批次'],
        text: [
          'A batch goes forward through [stages] stages and back. Grey is waiting: each rank waits {naive} of the time.',
          '一个批次依次前向通过 [stages] 级，再反向回来。灰色是等待：每个 rank 有 {naive} 的时间在等。',
        ],
      },
      {
        ...{ figure: 'pipes', id: 'gpipe' },
        title: ['Microbatches: GPipe', '微批：GPipe'],
        text: [
          'Cut the batch into {m} microbatches, [times] for each stage, and stages work at the same time. The bubble is (p − 1)/(m + p − 1) = {bubble}. But the first rank holds the activations of all {gpipe} microbatches (the curves).',
          '把批次切成 {m} 个微批（每级 [times] 个），各级同时工作。气泡是 (p − 1)/(m + p − 1) = {bubble}。但第一个 rank 要存全部 {gpipe} 个微批的激活（曲线）。',
        ],
      },
      {
        ...{ figure: 'pipes', id: '1f1b' },
        title: ['1F1B: go back as soon as you can', '1F1B：尽早反向'],
        text: [
          'Each rank turns back as soon as it can. The bubble stays {bubble}, the memory falls: at most [stages] microbatches are held, however many there are.',
          '每个 rank 尽早开始反向。气泡仍是 {bubble}，内存降下来了：无论有多少微批，最多只存 [stages] 个。',
        ],
      },
      {
        ...{ figure: 'pipes', id: 'zb-h1' },
        title: ['Split the backward pass', '拆开反向'],
        text: [
          'The backward pass is two jobs: I, the gradient that the stage before waits for, and W (striped), the gradient of the weights, which nobody waits for. W slides into the holes, and the bubble shrinks at no memory.',
          '反向其实是两件事：I 是前一级等着要的梯度；W（斜纹）是权重的梯度，没有人等它。把 W 塞进空隙，气泡变小，内存不变。',
        ],
      },
    ],
    paid: [
      'One send_recv of activations at each border, forward and back, and the bubble: (p − 1)/(m + p − 1) of the time.',
      '每个边界前向、反向各一次激活的 send_recv，以及气泡：占时间的 (p − 1)/(m + p − 1)。',
    ],
    questions: [
      {
        ask: [
          '4 stages, 8 microbatches: how large is the bubble of 1F1B?',
          '4 级、8 个微批：1F1B 的气泡多大？',
        ],
        options: ['27 %', '50 %', '75 %'],
        right: 0,
      },
      {
        ask: ['And of GPipe?', 'GPipe 呢？'],
        options: ['27 %', '50 %', '75 %'],
        right: 0,
      },
      {
        ask: [
          'How many microbatches does a rank hold at most with 1F1B?',
          '1F1B 中一个 rank 最多存几个微批？',
        ],
        options: ['1', '4', '8'],
        right: 1,
      },
      {
        ask: ['And with GPipe?', 'GPipe 呢？'],
        options: ['1', '4', '8'],
        right: 2,
      },
      {
        ask: ['Which of these has the smallest bubble?', '哪个气泡最小？'],
        options: ['gpipe', '1f1b', 'zb-h1'],
        right: 2,
      },
    ],
    lab: { tab: 'pipeline', pipes: ['1f1b', 'zb-h1'], cuts: '' },
  },
  {
    id: 'experts',
    title: ['Experts', '专家并行'],
    lead: [
      'A layer has many MLPs, experts, and a router sends each token to two of them. They live on other GPUs. Follow one token.',
      '一层里有许多 MLP，即专家；路由器把每个 token 发给其中两个，而它们住在别的 GPU 上。先跟着一个 token 走。',
    ],
    dials: [{ key: 'skew', name: ['Skew, %', '负载倾斜（%）'], choices: SKEWS, first: 30 }],
    facts: ({ skew }) => {
      const routing = route(moeShape(skew!));
      const own = routing.copies.filter(
        ({ rank, token }) => rank === THE_TOKEN.rank && token === THE_TOKEN.token,
      );
      return {
        token: THE_TOKEN.token,
        rank: THE_TOKEN.rank,
        experts: own.map(({ expert }) => expert).join(' / '),
        weights: own.map(({ weight }) => weight.toFixed(1)).join(' / '),
        roads: routing.sends.flatMap((row, a) => row.filter((count, b) => a !== b && count > 0))
          .length,
        copies: routing.copies.length,
        hot: imbalance(routing).toFixed(1),
      };
    },
    beats: [
      {
        ...{ figure: 'token', id: 'one' },
        title: ['One token, two copies', '一个 token，两份副本'],
        text: [
          'Token {token} of rank {rank} goes to experts {experts}, with weights {weights}: its roads are as wide as these. The token itself stays at home, as the residual.',
          'rank {rank} 的 token {token} 去找专家 {experts}，权重 {weights}：路的宽度就是权重。token 自己留在家里，作为残差。',
        ],
      },
      {
        ...{ figure: 'token', id: 'crowd' },
        title: ['The crowd: an all_to_all', '人群：一次 all_to_all'],
        text: [
          'All tokens at once: {copies} copies, bundled into {roads} roads from GPU to GPU, each as wide as its bytes. That is an all_to_all: every rank has a different block for each other rank.',
          '所有 token 同时出发：{copies} 份副本，汇成 {roads} 条 GPU 之间的路，路宽就是字节数。这就是 all_to_all：每个 rank 给其他每个 rank 的块都不同。',
        ],
      },
      {
        ...{ figure: 'token', id: 'hot' },
        title: ['A hot expert', '热门专家'],
        text: [
          'With a skew of [skew] % the fullest expert has {hot} times the mean. Everybody waits for it (orange): the step is as long as its longest bar. Drag the skew.',
          '倾斜 [skew] % 时，最满的专家是平均值的 {hot} 倍。所有人都在等它（橙色）：这一步有多长，取决于最长的那根条。拖动倾斜试试。',
        ],
      },
      {
        ...{ figure: 'token', id: 'home' },
        title: ['And home again', '再回家'],
        text: [
          'A second all_to_all carries results (circles) back along the same roads. At home each token adds up its two results by their weights, and its own residual. No message for that.',
          '第二次 all_to_all 沿同样的路把结果（圆形）送回。在家里，每个 token 按权重把两个结果和自己的残差加起来，这一步无需通信。',
        ],
      },
    ],
    paid: [
      '2 all_to_alls of k copies of every token in each layer, and the wait for the fullest expert.',
      '每层 2 次 all_to_all，每个 token 发 k 份副本；再加上等待最满的专家。',
    ],
    questions: [
      {
        ask: ['How many copies does a token send?', '一个 token 发出几份副本？'],
        options: ['1', '2', '8'],
        right: 1,
      },
      {
        ask: [
          'How many all_to_alls does the forward pass of a layer take?',
          '一层的前向要几次 all_to_all？',
        ],
        options: ['1', '2', '4'],
        right: 1,
      },
      {
        ask: [
          '4 GPUs: how many roads between GPUs are there at most?',
          '4 张 GPU：GPU 之间最多有几条路？',
        ],
        options: ['6', '12', '48'],
        right: 1,
      },
      {
        ask: [
          'Every expert wanted alike, or a skew of 100 %: when is the step longer?',
          '各专家同样受欢迎，或倾斜 100 %：哪种更慢？',
        ],
        options: [
          ['alike', '同样'],
          ['skewed', '倾斜'],
        ],
        right: 1,
      },
      {
        ask: [
          'Which rank computes the weighted sum of a token’s results?',
          'token 的加权求和在哪里算？',
        ],
        options: [
          ['its own', '自己的 rank'],
          ['that of its first expert', '第一个专家的 rank'],
        ],
        right: 0,
      },
    ],
    lab: { tab: 'moe' },
  },
  {
    id: 'together',
    title: ['All at once', '全部一起用'],
    lead: [
      'Real models use all knives at once. Which cut goes over which wire?',
      '真实的模型把这些刀同时用上。哪一刀走哪条线？',
    ],
    dials: [
      {
        ...{ key: 'plan', name: ['Layout', '布局'], choices: [CLASSIC], first: CLASSIC },
      },
    ],
    facts: ({ plan: at }) => {
      const plan = PLANS[at!]!;
      const first = rankedFirst(plan)!;
      const [longest, next] = partsOf(plan);
      const sends = (name: string) => {
        const { inside, between } = plan.wires.find(({ axis }) => axis === name)!;
        return bytesText(inside + between);
      };
      return {
        ...{ model: plan.model, devices: plan.devices, nodes: plan.devices / plan.perNode },
        ...{ layout: layoutText(plan), time: timeText(plan.stepS * 1e6) },
        ...{ first: layoutText(first), best: timeText(first.stepS * 1e6) },
        ...{ near: plan.insideGbPerS, far: plan.betweenGbPerS },
        ...{ tp: sends('tp'), pp: sends('pp'), dp: sends('dp') },
        share: percent(longest!.seconds / plan.stepS),
        second: percent(next!.seconds / plan.stepS),
      };
    },
    beats: [
      {
        ...{ figure: 'together', id: 'nodes' },
        title: ['Nodes and wires', '节点与线路'],
        text: [
          '{model} on {devices} GPUs: {nodes} nodes of 8. Inside a node a GPU sends {near} GB/s, between nodes {far} GB/s.',
          '{model} 跑在 {devices} 张 GPU 上：{nodes} 个节点，每个 8 张。节点内每张 GPU {near} GB/s，节点间 {far} GB/s。',
        ],
      },
      {
        ...{ figure: 'together', id: 'wire0' },
        title: ['Tensor parallelism inside', '张量并行在节点内'],
        text: [
          'The classic layout is {layout}. Tensor parallelism sends by far the most, {tp} in a round of the pipeline, so its groups of 8 lie inside nodes.',
          '经典布局是 {layout}。张量并行发得最多，流水线一轮就有 {tp}，所以它的 8 个一组放在节点内。',
        ],
      },
      {
        ...{ figure: 'together', id: 'wire2' },
        title: ['The others outside', '其余的走节点间'],
        text: [
          'Pipeline and data parallelism send {pp} and {dp} (striped) over the slower wires between nodes: little enough.',
          '流水线并行和数据并行只发 {pp} 和 {dp}（斜纹），走较慢的节点间线路也无妨。',
        ],
      },
      {
        ...{ figure: 'together', id: 'time' },
        title: ['What a step is made of', '一步由什么组成'],
        text: [
          'A step takes {time}: matrix products {share}, then tensor parallelism {second}. Everything else is small here.',
          '一步用时 {time}：矩阵乘占 {share}，其次是张量并行 {second}，其余都很小。',
        ],
      },
      {
        ...{ figure: 'together', id: 'nodes', set: { plan: CLASSIC + 1 } },
        title: ['Ranked first', '排名第一'],
        text: [
          'The planner tries every layout. Ranked first is {first}: {best} a step instead of {time}. Bytes of context parallelism are not drawn, their time is below. Ask for yours: `unisono plan-model llama3-70b --on dgx_h100:nodes=8 --train`.',
          '规划器会试遍所有布局。排名第一的是 {first}：每步 {best}，而不是 {time}。上下文并行的字节没有画出，用时见下一幅。查看你自己的：`unisono plan-model llama3-70b --on dgx_h100:nodes=8 --train`。',
        ],
      },
      {
        ...{ figure: 'together', id: 'time', set: { plan: CLASSIC + 1 } },
        title: ['What the first one avoids', '它省下了什么'],
        text: [
          'The bill of tensor parallelism has gone: less is cut inside the layers, and what is exposed shrinks.',
          '张量并行的账单没有了：层内切得更少，未掩盖的部分也变小了。',
        ],
      },
    ],
    paid: [
      'Every axis its own bill, each on the wire that the layout gives it. The most bytes belong on the fastest wire.',
      '每个并行维度各付各的账，走布局分给它的线路。字节最多的放在最快的线上。',
    ],
    questions: [
      {
        ask: [
          'Which axis sends the most bytes in the classic layout?',
          '经典布局中哪个并行维度发得最多？',
        ],
        options: ['tp', 'pp', 'dp'],
        right: 0,
      },
      {
        ask: ['Over which wires does it go?', '它走哪些线？'],
        options: [
          ['inside nodes', '节点内'],
          ['between nodes', '节点间'],
        ],
        right: 0,
      },
      {
        ask: [
          'Which layout is faster: the classic one, or the one ranked first?',
          '哪个布局更快：经典的，还是排名第一的？',
        ],
        options: [
          ['classic', '经典的'],
          ['ranked first', '排名第一的'],
        ],
        right: 1,
      },
      {
        ask: ['What takes most of a step in the classic layout?', '经典布局一步中什么最耗时？'],
        options: ['matrix_products', 'tensor', 'bubble'],
        right: 0,
      },
      {
        ask: [
          'How many GPUs does a tensor parallel group have there?',
          '其中一个张量并行组有几张 GPU？',
        ],
        options: ['2', '4', '8'],
        right: 2,
      },
    ],
    lab: { tab: 'parallel', story: 'together' },
  },
  {
    id: 'scale',
    title: ['Powers of ten', '十的次方'],
    lead: [
      'From 64 GPUs to a chunk of one message: how often does a step of training contain the smallest thing that you have seen?',
      '从 64 张 GPU 到一条消息中的一块：训练的一步里，装得下多少个你见过的最小动作？',
    ],
    dials: [{ key: 'plan', name: ['Layout', '布局'], choices: [CLASSIC], first: CLASSIC }],
    facts: ({ plan: at }) => {
      const plan = PLANS[at!]!;
      const call = costOf('all_reduce', plan.layout.tp, callBytes(plan), NVLINK).us;
      return {
        ...{ step: timeText(plan.stepS * 1e6), call: timeText(call), hop: timeText(call / 14) },
        ...{ bytes: bytesText(callBytes(plan)), chunk: bytesText(callBytes(plan) / 8) },
        share: percent((14 * NVLINK.alphaUs) / call),
        times: Number(((plan.stepS * 1e6) / call).toPrecision(2)),
        more: timeText((plan.seconds.tensor! * 1e6 * 14) / call),
      };
    },
    beats: [
      {
        ...{ figure: 'scale', id: 'cluster' },
        title: ['The cluster: seconds', '集群：秒'],
        text: [
          '8 nodes of 8 GPUs share one step of {step}. The bar below is that step: computing in grey, tensor parallelism in pink.',
          '8 个节点，每个 8 张 GPU，一起走完 {step} 的一步。下方的条就是这一步：灰色是计算，粉色是张量并行。',
        ],
      },
      {
        ...{ figure: 'scale', id: 'node' },
        title: ['A node: under a millisecond', '节点：不到一毫秒'],
        text: [
          'A node is one group of tensor parallelism. Its ring runs one all_reduce of {bytes} in {call}; about {times} of them would fill the step.',
          '一个节点就是一个张量并行组。它的环用 {call} 完成一次 {bytes} 的 all_reduce；约 {times} 次才填满一步。',
        ],
      },
      {
        ...{ figure: 'scale', id: 'rank' },
        title: ['A rank: microseconds', 'rank：几十微秒'],
        text: [
          'A rank cuts its vector into 8 chunks and passes one on in each of 14 steps: {hop} a step.',
          '一个 rank 把向量切成 8 块，14 步里每步传出一块：每步 {hop}。',
        ],
      },
      {
        ...{ figure: 'scale', id: 'chunk' },
        title: ['A chunk', '一块'],
        text: [
          'A chunk of {chunk} arrives and is added: eight stripes, a complete sum. The latency (orange) is {share} of this step.',
          '一块 {chunk} 到达并相加：八种条纹，一个完整的和。延迟（橙色）占这一步的 {share}。',
        ],
      },
    ],
    paid: [
      'One more microsecond in each hop costs {more} in every step of training.',
      '每一跳多花一微秒，训练的每一步就多花 {more}。',
    ],
    questions: [
      {
        ask: [
          'How many GPUs take part in one all_reduce of tensor parallelism?',
          '一次张量并行的 all_reduce 有几张 GPU 参加？',
        ],
        options: ['8', '16', '64'],
        right: 0,
      },
      {
        ask: ['How long does it take?', '它用时多久？'],
        options: ['53.2 µs', '744 µs', '33.5 s'],
        right: 1,
      },
      {
        ask: ['How many of them would fill a step?', '多少次能填满一步？'],
        options: ['45', '4500', '45000'],
        right: 2,
      },
      {
        ask: ['How large is a chunk?', '一块多大？'],
        options: ['2 MiB', '16 MiB', '128 MiB'],
        right: 1,
      },
      {
        ask: ['How much of a ring’s step is latency?', '环的一步中延迟占多少？'],
        options: ['4 %', '25 %', '50 %'],
        right: 0,
      },
    ],
    lab: { tab: 'step' },
  },
  {
    id: 'broken',
    title: ['When it breaks', '当它坏掉时'],
    lead: [
      'One rank of a ring stops. All others hang, too. Which of them is to blame, and how can anybody tell?',
      '环中一个 rank 停了，其他的也全都卡住。该怪谁？怎么看得出来？',
    ],
    dials: [
      {
        key: 'dead',
        name: ['The rank that stops', '停下的 rank'],
        choices: [0, 1, 2, 3, 4, 5, 6, 7],
        first: 3,
      },
      { key: 'step', name: ['Its last step', '停在第几步'], choices: [0, 2, 4, 6], first: 4 },
      { key: 'ranks', name: ['Ranks', 'rank 数'], choices: [8], first: 8 },
    ],
    facts: ({ dead }) => ({ next: (dead! + 1) % 8, last: (dead! + 7) % 8 }),
    beats: [
      {
        ...{ figure: 'stuck', id: 'runs' },
        title: ['All is well', '一切正常'],
        text: [
          'A ring all_reduce on 8 ranks: a row is a rank, a column a step. Everybody sends to the right in every step.',
          '8 个 rank 的环形 all_reduce：一行是一个 rank，一列是一步。每一步人人都往右边发。',
        ],
      },
      {
        ...{ figure: 'stuck', id: 'stops' },
        title: ['Rank [dead] stops after step [step]', 'rank [dead] 在第 [step] 步后停下'],
        text: [
          'Rank {next} misses its message at once. The rank behind it still gets one, then misses the next, and so on: the halt runs around the ring as a staircase. Rank {last} gets farthest.',
          'rank {next} 马上就缺一条消息。它后面的 rank 还能再收一条，然后也缺了，如此类推：停顿像阶梯一样绕环传播，rank {last} 走得最远。',
        ],
      },
      {
        ...{ figure: 'stuck', id: 'found' },
        title: ['Follow who waits for whom', '顺着“谁等谁”找'],
        text: [
          'Everybody waits, and everybody reports a timeout. Only one rank is waited for and waits for nobody: that is the cause. `unisono trace why` follows the arrows in a recording and names it.',
          '人人都在等，人人都报超时。只有一个 rank 被人等，自己却谁也不等：它就是原因。`unisono trace why` 会在记录中沿箭头找到它并点名。',
        ],
      },
    ],
    paid: [
      'All of the job, until somebody notices: a timeout on every rank but the one that is to blame.',
      '整个作业，直到有人发现：每个 rank 都报超时，唯独肇事的那个不报。',
    ],
    questions: [
      {
        ask: [
          'Rank 3 of 8 stops. Which rank misses a message first?',
          '8 个 rank 中 rank 3 停了，哪个 rank 最先缺消息？',
        ],
        options: ['2', '4', '7'],
        right: 1,
      },
      {
        ask: ['Which rank gets farthest?', '哪个 rank 走得最远？'],
        options: ['2', '4', '7'],
        right: 0,
      },
      {
        ask: ['Whom does rank 7 wait for?', 'rank 7 在等谁？'],
        options: ['3', '6', '0'],
        right: 1,
      },
      {
        ask: ['How many ranks wait for rank 3 itself?', '有几个 rank 直接在等 rank 3？'],
        options: ['1', '3', '7'],
        right: 0,
      },
      {
        ask: ['How many ranks wait for nobody?', '有几个 rank 谁也不等？'],
        options: ['0', '1', '7'],
        right: 1,
      },
    ],
    lab: {
      tab: 'steps',
      collective: 'all_reduce',
      algorithm: 'ring',
      ranks: 8,
      step: 4,
      edits: '',
    },
  },
];
