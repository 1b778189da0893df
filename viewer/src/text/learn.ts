// The texts of the primitives' page.

export const LEARN_TEXTS = {
  learn_title: ['How ranks talk to each other', '多卡之间如何通信（rank 即一张卡上的进程）'],
  learn_story: [
    'Or see what language models do with them: the stories',
    '或看语言模型如何使用它们：动画故事',
  ],
  start_here: ['start here', '从这里开始'],
  family_one_to_all: ['One to all', '一对多'],
  family_all_to_one: ['All to one', '多对一'],
  family_all_to_all: ['All to all', '多对多'],
  family_two: ['Two ranks', '两个 rank'],
  learn_intro: [
    'Nine operations that all ranks of a group call together. Read them by number. Each picture is a real schedule: point at it, and what ranks have before flies to where it is after. Open one to see the way there.',
    '一组 rank 共同调用的九种操作。请按编号阅读。每幅图都来自真实的调度表：指向它，各 rank 之前的数据就会飞到之后所在之处。打开任意一个即可看到过程。',
  ],
  learn_legend: [
    'A column is a rank, a row a chunk of the vector. Tiles that stand apart were collected; stripes in one tile were summed, and Σ says that the sum of all ranks is complete.',
    '一列是一个 rank，一行是向量的一个块。分开的格子是收集来的；同一格里的条纹已经求和，Σ 表示所有 rank 的和已完整。',
  ],
  before: ['before', '之前'],
  after: ['after', '之后'],
  open_steps: ['Step by step', '逐步查看'],
  call: ['Call', '调用'],
  carries: ['Busiest rank', '最忙的 rank'],
  used_for: ['Used for', '用途'],
  carries_words: ['one way, at least', '（单向，至少）'],
  learn_table: ['All of this as a table', '全部内容（表格）'],
  is_broadcast: ['The root gives everybody a copy.', 'root 把同一份数据发给所有 rank。'],
  is_scatter: ['The root gives every rank its own part.', 'root 把各部分分别发给各 rank。'],
  is_gather: ['Every rank gives its part to the root.', '每个 rank 把自己的部分交给 root。'],
  is_reduce: [
    'All vectors are added up, element by element; the root gets the sum.',
    '所有向量逐元素相加，root 得到总和。',
  ],
  is_all_reduce: [
    'All vectors are added up, element by element; everybody gets the whole sum.',
    '所有向量逐元素相加，每个 rank 都得到完整的总和。',
  ],
  is_scan: [
    'Rank r gets the sum of the vectors of ranks 0 to r.',
    'rank r 得到 rank 0 到 rank r 的向量之和。',
  ],
  is_exclusive_scan: [
    'Rank r gets the sum of the vectors of ranks 0 to r − 1; rank 0 gets zeros.',
    'rank r 得到 rank 0 到 rank r − 1 的向量之和；rank 0 得到零。',
  ],
  is_all_gather: [
    'Every rank gives its part to everybody; all have the whole in the end.',
    '每个 rank 把自己的部分交给所有人，最后人人都有全部。',
  ],
  is_reduce_scatter: [
    'All vectors are added up, element by element, and the sum is cut into n parts: rank r gets part r, with what every rank gave in it.',
    '所有向量逐元素相加，总和切成 n 份：rank r 得到第 r 份，其中包含每个 rank 的贡献。',
  ],
  is_all_to_all: [
    'Every rank has a different block for each other rank: blocks change places, nothing is added up. 0→2 is what rank 0 has for rank 2.',
    '每个 rank 给其他每个 rank 不同的数据：块交换位置（转置），不求和。0→2 是 rank 0 给 rank 2 的块。',
  ],
  is_barrier: [
    'Nobody goes on before everybody has arrived. No data, only a token.',
    '所有 rank 都到达之前，谁也不继续。没有数据，只有令牌。',
  ],
  use_broadcast: [
    'weights and settings from rank 0 at the start',
    '启动时从 rank 0 广播权重和配置',
  ],
  use_scatter: ['batches or shards from a reader', '由读数据的进程散播批次或分片'],
  use_gather: ['results and metrics on one rank', '把结果和指标收集到一个 rank'],
  use_reduce: ['a loss or a norm for one rank to print', '由一个 rank 打印的损失或范数'],
  use_all_reduce: [
    'gradients of data parallelism; the sums behind row-parallel layers',
    '数据并行的梯度；行并行层之后的求和',
  ],
  use_all_gather: [
    'ZeRO-3 and FSDP: the weights of the layer that comes next',
    'ZeRO-3 和 FSDP：收集下一层的权重',
  ],
  use_reduce_scatter: [
    'ZeRO and FSDP: gradients, each rank keeps its shard',
    'ZeRO 和 FSDP：梯度，每个 rank 保留自己的分片',
  ],
  use_all_to_all: [
    'MoE: tokens to their experts, and once more back; Ulysses: heads for sequence parts',
    'MoE：token 发往专家，再发回来；Ulysses：在头与序列之间转换',
  ],
  use_barrier: ['before a time is taken or a file is written', '计时或写文件之前'],
  send_recv: ['send and recv', 'send 和 recv'],
  is_send_recv: [
    'One rank sends, one receives; the others take no part.',
    '一个 rank 发送，一个接收，其他 rank 不参与。',
  ],
  use_send_recv: [
    'pipeline stages: activations forward, gradients back',
    '流水线各级：前向传激活，反向传梯度',
  ],
  is_v: [
    'scatter, gather, all_gather, reduce_scatter and all_to_all also come as …_v, where every part has a size of its own: the same schedule moves them.',
    'scatter、gather、all_gather、reduce_scatter 和 all_to_all 还有 …_v 形式，各部分大小可以不同：调度表相同。',
  ],
  letters: [
    'n: ranks. D: bytes of the whole vector (of all_to_all: what one rank has for all).',
    'n：rank 数。D：整个向量的字节数（all_to_all：一个 rank 发给所有 rank 的总量）。',
  ],
  identities: ['Identities', '相互关系'],
  identity_all_reduce: [
    'all_reduce = reduce_scatter, then all_gather. The ring shows it: two laps of n−1 steps.',
    'all_reduce = reduce_scatter + all_gather。环算法就是这样：两圈，各 n−1 步。',
  ],
  identity_broadcast: [
    'broadcast of a long vector = scatter, then all_gather: every link works, not only those of the root.',
    '长向量的 broadcast = scatter + all_gather：所有链路都在工作，而不只是 root 的链路。',
  ],
  identity_chain: [
    'A broadcast of D bytes through a chain of n ranks in S segments takes (S + n − 2) · D/(S·B): with many segments, more ranks cost almost nothing.',
    '经过 n 个 rank 的链式 broadcast，D 字节分 S 段，用时 (S + n − 2) · D/(S·B)：段数多时，rank 多也几乎不增加时间。',
  ],
  myths: ['Common misconceptions', '常见误解'],
  myth_a2a: [
    '“all_to_all is an all_gather, then a scatter.”',
    '“all_to_all 就是先 all_gather 再 scatter。”',
  ],
  truth_a2a: [
    'That would send everything to everybody: n times the bytes. In all_to_all a block travels to the one rank that it is for.',
    '那样会把所有数据发给所有人，字节数是 n 倍。all_to_all 中每个块只去它的目的 rank。',
  ],
  myth_moe: [
    '“Dispatch and combine of MoE are two phases of one all_to_all.”',
    '“MoE 的 dispatch 和 combine 是同一个 all_to_all 的两个阶段。”',
  ],
  truth_moe: [
    'They are two all_to_alls with the experts between them, and combine ends with a weighted sum of the k expert outputs of each token.',
    '它们是两次 all_to_all，中间是专家计算；combine 最后还要对每个 token 的 k 个专家输出做加权求和。',
  ],
  myth_tree: ['“A tree takes 2 lg n (D/B + latency).”', '“树算法用时 2 lg n (D/B + 延迟)。”'],
  truth_tree: [
    'Only without pipelining. In enough segments a double tree takes about 2 D/B plus 4 lg n latencies (see double_tree under Compare; `unisono plan` says how many segments are best).',
    '这只在不分段流水时成立。分段足够多时，双树约为 2 D/B 加 4 lg n 个延迟（见“比较”中的 double_tree；`unisono plan` 给出最佳段数）。',
  ],
  myth_nvlink: [
    '“NVLink has 600 GB/s, so a ring gets 600 GB/s.”',
    '“NVLink 有 600 GB/s，所以环能达到 600 GB/s。”',
  ],
  truth_nvlink: [
    '600 GB/s counts both directions. One rank sends at most 300 GB/s, and that is the B of every formula here.',
    '600 GB/s 是双向之和。一个 rank 最多以 300 GB/s 发送，这里所有公式中的 B 都是单向。',
  ],
  myth_qkv: ['“Attention all_reduces Q, K and V.”', '“注意力要对 Q、K、V 做 all_reduce。”'],
  truth_qkv: [
    'They are never summed. Tensor parallelism splits heads: each rank has its own Q, K and V, and the sum comes after the output projection.',
    '它们从不求和。张量并行按头切分：每个 rank 有自己的 Q、K、V，求和发生在输出投影之后。',
  ],
  myth_mlp: [
    '“A tensor-parallel MLP communicates between its two linears.”',
    '“张量并行的 MLP 在两个线性层之间要通信。”',
  ],
  truth_mlp: [
    'Nothing is communicated there: the first is split by columns, the second by rows, so each rank goes on with what it has. One all_reduce follows the second.',
    '那里没有通信：第一层按列切分，第二层按行切分，各 rank 直接使用自己的部分。第二层之后才有一次 all_reduce。',
  ],
  myth_cheaper: [
    '“reduce_scatter is twice as cheap as all_reduce.”',
    '“reduce_scatter 比 all_reduce 便宜一半。”',
  ],
  truth_cheaper: [
    'In bytes, yes: it is the first half of a ring all_reduce. A short vector costs messages, not bytes: all_reduce by recursive doubling needs lg n of them, a ring reduce_scatter n−1.',
    '就字节而言是的：它是环 all_reduce 的前一半。短向量的开销在于消息数而非字节：recursive doubling 的 all_reduce 只需 lg n 条，环 reduce_scatter 需要 n−1 条。',
  ],
  myth_scalar: ['“A box that reads A+B+C+D is one number.”', '“图中写着 A+B+C+D 的方框是一个数。”'],
  truth_scalar: [
    'It is a chunk: thousands of elements, each summed with its own counterpart on the other ranks.',
    '它是一个块：成千上万个元素，各自与其他 rank 上的对应元素相加。',
  ],
} as const satisfies Record<string, readonly [string, string]>;
