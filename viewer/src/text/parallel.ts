// The texts of the drawn stories of parallelism.

export const PARALLEL_TEXTS = {
  story_step: ['Step {step} of {steps}: {name}', '第 {step} 步，共 {steps} 步：{name}'],
  story_comm: [
    'among {ranks} ranks, {bytes}: each sends {sent}, {time}',
    '{ranks} 个 rank，{bytes}：每个发送 {sent}，{time}',
  ],
  story_times: [', {times} times', '，共 {times} 次'],
  story_silent: ['No message.', '这一步无需通信。'],
  story_link: ['Link', '链路'],
  story_link_0: ['Ethernet, 12.5 GB/s', '以太网，12.5 GB/s'],
  story_link_1: ['InfiniBand, 50 GB/s', 'InfiniBand，50 GB/s'],
  story_link_2: ['NVLink of an H100, 328 of 450 GB/s', 'NVLink（H100），450 GB/s 中实测 328'],
  story_table: ['All steps as a table', '全部步骤（表格）'],
  story_col_step: ['step', '步骤'],
  story_col_sent: ['each rank sends', '每个 rank 发送'],
  story_col_times: ['times', '次数'],
  story_model: [
    'Times are predicted for {alpha} a message and {gb} GB/s in each direction, with the schedules of the catalogue.',
    '时间按每条消息 {alpha}、每个方向 {gb} GB/s 以及内置调度表预测。',
  ],
  story_picture: [
    '{name}: {beat}. The table below has the figures.',
    '{name}：{beat}。数字见下表。',
  ],
  story_tokens: ['Tokens', 'token 数'],

  tp_cut: ['Cut the weights', '切分权重'],
  tp_cut_words: [
    'The first matrix A is cut by columns, the second matrix B by rows. Rank r keeps only Ar and Br: one part of {n}. A colour is a rank; grey is the same on every rank.',
    '第一个矩阵 A 按列切，第二个矩阵 B 按行切。rank r 只保留 Ar 和 Br，即 {n} 份中的一份。颜色代表 rank，灰色表示每个 rank 都相同。',
  ],
  tp_gather: ['Collect the sequence', '收集序列'],
  tp_gather_words: [
    'With sequence parallelism each rank has a part of the tokens. The product needs all of them: an all_gather brings them together.',
    '使用序列并行时，每个 rank 只有一部分 token。矩阵乘需要全部 token：用 all_gather 收集。',
  ],
  tp_columns: ['X · A: columns fit', 'X · A：按列正好'],
  tp_columns_words: [
    'Every rank multiplies the whole X with its own columns and gets its own columns of Y. Nothing has to be sent: the next cut, by rows, wants exactly these columns.',
    '每个 rank 用完整的 X 乘自己的列，得到 Y 的对应列。不需要通信：下一个矩阵按行切，正好需要这些列。',
  ],
  tp_rows: ['Y · B: partial sums', 'Y · B：部分和'],
  tp_rows_words: [
    'Every rank multiplies its columns of Y with its rows of B. That gives a matrix of full size on each rank, but only one part of the sum: Z is Z0 + … over all {n} ranks.',
    '每个 rank 用自己的 Y 列乘自己的 B 行。每个 rank 得到一个完整大小的矩阵，但只是和的一部分：Z 是 {n} 个 rank 的结果之和。',
  ],
  tp_sum: ['all_reduce adds them up', 'all_reduce 求和'],
  tp_sum_words: [
    'The {n} partial sums become one, piece by piece, and every rank ends with all of Z. One all_reduce pays for two matrix products.',
    '{n} 个部分和逐块合并，最后每个 rank 都有完整的 Z。两次矩阵乘只需一次 all_reduce。',
  ],
  tp_scatter: ['reduce_scatter: add up and cut', 'reduce_scatter：求和并切分'],
  tp_scatter_words: [
    'The partial sums are added up, and each rank keeps only its part of the sequence. all_gather and reduce_scatter together move as much as one all_reduce.',
    '部分和相加后，每个 rank 只保留自己的那段序列。all_gather 加 reduce_scatter 的通信量等于一次 all_reduce。',
  ],
  tp_block: [
    'A layer: two all_reduces forward, two backward',
    '一个 Transformer 层：前向两次 all_reduce，反向两次',
  ],
  tp_block_words: [
    'Attention is cut by heads, the MLP as you saw. Each ends with one all_reduce, and the backward pass has two more. Every rank computes norms and residuals (grey) for all tokens. Times are those of the forward pass.',
    '注意力按头切，MLP 如前所示。各以一次 all_reduce 结束，反向再有两次。归一化和残差（灰色）在每个 rank 上重复计算。下方是前向的时间。',
  ],
  tp_block_sp: ['A layer with sequence parallelism', '带序列并行的 Transformer 层'],
  tp_block_sp_words: [
    'Between the blocks every rank works on its own tokens: norms are not repeated, and each rank keeps 1/{n} of these activations. The bytes sent stay the same.',
    '在两个块之间，每个 rank 只处理自己的 token：归一化不再重复，这些激活每个 rank 只保留 1/{n}。通信量不变。',
  ],
  tp_vocabulary: ['Logits: cut by the vocabulary', 'logits：按词表切分'],
  tp_vocabulary_words: [
    'Each rank has the logits of its words. For the loss it is enough to agree on three numbers for each token: the largest logit, the sum of exponentials and the logit of the word that comes next. Two small all_reduces do it.',
    '每个 rank 持有自己那部分词的 logits。计算损失只需对每个 token 统一三个数：最大 logit、指数之和、下一个词的 logit。两次很小的 all_reduce 即可。',
  ],
  tp_holds_x_parts: ['parts of X', 'X 的若干段'],
  tp_holds_z_parts: ['parts of the sum', '和的若干段'],
  tp_holds_z_part: ['its part of Z', 'Z 的一段'],
  tp_z_all: ['Z, everywhere', '完整的 Z'],
  tp_z_parts: ['Z, in parts', 'Z，各持一段'],
  tp_attention: ['attention', '注意力'],
  tp_computing: ['computing', '计算'],
  tp_sending: ['communicating', '通信'],
  tp_keeps: ['a rank keeps', '每个 rank 保留'],
  tp_logits: ['logits: a row is a token, a column a word', 'logits：一行一个 token，一列一个词'],
  tp_three_numbers: [
    'two all_reduces: three numbers a token, on every rank',
    '两次 all_reduce：每个 token 三个数，每个 rank 都有',
  ],
  tp_instead: ['All logits instead: {bytes}, {time}.', '若收集全部 logits：{bytes}，{time}。'],
  ul_cut: ['Cut along the sequence', '沿序列切分'],
  ul_cut_words: [
    'The grid of tokens (down) and heads (across) lies on {n} ranks: each has a row of tiles, its tokens with all heads. Attention needs whole columns: all tokens of a head.',
    'token（纵向）与注意力头（横向）构成的网格分布在 {n} 个 rank 上：每个 rank 有一行，即自己的 token 的所有头。注意力需要整列：一个头的全部 token。',
  ],
  ul_out: ['all_to_all: rows become columns', 'all_to_all：行变成列'],
  ul_out_words: [
    'Every rank keeps one tile of its row and sends one to each other rank. Done for Q, K and V. Nothing is added up and nobody gets everything: that is what tells all_to_all from all_gather.',
    '每个 rank 保留本行的一块，把其余各块分别发给其他 rank，Q、K、V 各做一次。不求和，也没有 rank 得到全部数据：这正是 all_to_all 与 all_gather 的区别。',
  ],
  ul_attend: ['Attention: whole sequence, own heads', '注意力：完整序列，各自的头'],
  ul_attend_words: [
    'Now each rank has all tokens of its heads, and computes attention for them as if it were alone. No message.',
    '现在每个 rank 有自己那些头的全部 token，像单机一样计算注意力，不需要通信。',
  ],
  ul_home: ['And back: columns become rows', '再变回来：列变成行'],
  ul_home_words: [
    'The output goes the other way, with a fourth all_to_all: each rank has its own tokens again, with all heads. Every tile is back where it began.',
    '输出用第四次 all_to_all 沿反方向返回：每个 rank 又有自己的 token 的所有头，每一块都回到原位。',
  ],
  ul_limit: ['As many ranks as heads, at most', 'rank 数不超过头数'],
  ul_limit_words: [
    'A rank sends only 1/{n} of its tiles to each other rank, so the bytes of a rank shrink as ranks are added. But there have to be {n} heads to share out: where they run out Ulysses ends, and ring attention goes on.',
    '每个 rank 只把 1/{n} 的块发给其他每个 rank，因此 rank 越多，单个 rank 的通信量越小。但至少要有 {n} 个头可分：头不够时 Ulysses 到此为止，环形注意力还可以继续扩展。',
  ],
  ul_kv: ['KV heads', 'KV 头数'],
  ul_kv_all: ['all', '全部'],
  ul_limit_cross: [
    'Ring attention sends keys and values only, so few KV heads make it cheap: below {ranks} ranks it sends less than Ulysses, from {ranks} on more.',
    '环形注意力只传 K、V，KV 头越少越便宜：{ranks} 个 rank 以下它比 Ulysses 发得少，从 {ranks} 个起更多。',
  ],
  ul_limit_never: [
    'Ring attention sends keys and values only, and with so few KV heads less than Ulysses on any number of ranks.',
    '环形注意力只传 K、V；KV 头如此之少时，无论多少个 rank 都比 Ulysses 发得少。',
  ],
  ul_axes: [
    'down: tokens · across: heads · colour: whose tokens they are',
    '纵向：token · 横向：头 · 颜色：token 属于哪个 rank',
  ],
  ul_sends_ulysses: ['a rank sends: Ulysses', '每个 rank 发送：Ulysses'],
  ul_sends_ring: ['ring attention', '环形注意力'],
  ul_ranks: ['{ranks} ranks', '{ranks} 个 rank'],
  ul_heads_end: ['a model of {heads} heads: no more ranks', '{heads} 个头的模型：rank 数到此为止'],
  ul_heads: ['heads {part}', '头 {part}'],
  ul_tokens: ['tokens {part}', 'token {part}'],

  cp_cut: ['Cut the sequence', '切分序列'],
  cp_cut_ring_words: [
    'Each of {n} ranks has a part of the sequence: its queries, keys and values. A token attends to all tokens before it, so only the lower triangle is computed. A colour is the rank that computes.',
    '{n} 个 rank 各有序列的一段：自己的 Q、K、V。每个 token 只关注它之前的 token，因此只计算下三角。颜色代表负责计算的 rank。',
  ],
  cp_cut_zigzag_words: [
    'The sequence is cut into twice as many parts as there are ranks ({n}), and each rank gets an early and a late one. Only the lower triangle is computed. A colour is the rank that computes.',
    '序列切成 rank 数（{n}）两倍的段，每个 rank 分到一段靠前的和一段靠后的。只计算下三角。颜色代表负责计算的 rank。',
  ],
  cp_cut_gather_words: [
    'Each of {n} ranks has an early and a late part of the sequence. Only the lower triangle is computed. A colour is the rank that computes.',
    '{n} 个 rank 各有一段靠前和一段靠后的序列。只计算下三角。颜色代表负责计算的 rank。',
  ],
  cp_ring: ['Queries stay, keys and values travel', 'Q 不动，K、V 传递'],
  cp_ring_words: [
    'Each rank computes with the block that it has, while the block goes on to the next rank: {last|1 hop|# hops}. A rank never holds more than the block in use and the one that arrives. Nothing piles up, unlike in all_gather.',
    '每个 rank 用手头的块计算，同时把它传给下一个 rank，共 {last} 跳。任何时刻一个 rank 只持有正在使用的块和正在到达的块，不会像 all_gather 那样堆积。',
  ],
  cp_balance: ['How much work each rank has', '各 rank 的计算量'],
  cp_balance_ring_words: [
    'The first rank has the short rows of the triangle, the last one the long ones. In every step all wait for the slowest: it takes {percent} % longer than if the work were even.',
    '第一个 rank 负责三角形中短的行，最后一个负责长的行。每一步都要等最慢的 rank：比均匀分配多用 {percent} % 的时间。',
  ],
  cp_balance_zigzag_words: [
    'An early and a late part together are the same for all: in every step each rank has as much to do as any other. It takes {percent} % longer than if the work were even.',
    '一段靠前加一段靠后，对所有 rank 都一样：每一步各 rank 的计算量相等。比均匀分配多用 {percent} % 的时间。',
  ],
  cp_balance_gather_words: [
    'An early and a late part together are the same for all. It takes {percent} % longer than if the work were even; but each rank held the keys and values of the whole sequence.',
    '一段靠前加一段靠后，对所有 rank 都一样。比均匀分配多用 {percent} % 的时间；但每个 rank 都存过整个序列的 K 和 V。',
  ],
  cp_gather: ['all_gather: everybody gets all keys and values', 'all_gather：人人得到全部 K、V'],
  cp_gather_words: [
    'One all_gather before attention, as Llama 3 does: simple, and cheap where few heads have keys and values. The blocks pile up: each rank holds all {n}.',
    '在注意力之前做一次 all_gather（Llama 3 的做法）：简单，键值头少时代价小。块会堆积：每个 rank 持有全部 {n} 块。',
  ],
  cp_attend: ['Attention', '注意力'],
  cp_attend_words: [
    'With all keys and values at hand each rank computes its rows without waiting for others.',
    '手头有全部 K、V，每个 rank 独立计算自己的行，无需等待。',
  ],
  cp_back: ['Backward', '反向'],
  cp_back_words: [
    'Keys and values are needed once more, and their gradients have to come home: every rank that used a block adds its part.',
    'K、V 还要再用一次，它们的梯度要回到原处：每个用过该块的 rank 都累加自己的贡献。',
  ],
  cp_keys: ['keys →', '键 →'],
  cp_queries: ['← queries', '← 查询'],
  cp_had: ['has seen {had} of {n} blocks, one at a time', '已见过 {n} 块中的 {had} 块，每次一块'],
  cp_half: ['pale: half of it is masked', '浅色：一半被掩码'],
  cp_work: ['computed so far', '已完成的计算'],
  cp_time: ['time →', '时间 →'],
  cp_squares: ['{count} squares', '{count} 格'],
  cp_gradients: ['gradients of keys and values', '键和值的梯度'],
  cp_back_key: [
    'dKV: in the colours of the ranks that added their part; grey: of those whose queries come before these keys.',
    'dKV：颜色为已加入自己那份的 rank；灰色：查询在这些键之前的 rank，没有贡献。',
  ],
  cp_all_kv: ['keys and values', '键和值'],
  cp_method_ring: ['ring, in order', '环形，顺序切分'],
  cp_method_zigzag: ['ring, zigzag', '环形，zigzag'],
  cp_method_gather: ['all_gather', 'all_gather'],

  dp_replicas: ['Replicas', '副本'],
  dp_replicas_words: [
    'Each of {n} ranks reads other data with the same model. With ZeRO stage {stage} and {billions} billion parameters a rank keeps {kept} GB: grey is the same on every rank, a colour is what only this rank has.',
    '{n} 个 rank 用同一个模型读取不同的数据。ZeRO 阶段 {stage}、{billions}0 亿参数时，每个 rank 保留 {kept} GB：灰色是每个 rank 都相同的部分，颜色是只有该 rank 才有的部分。',
  ],
  dp_forward: ['Forward', '前向'],
  dp_forward_words0: [
    'Layer after layer. Nobody has to talk: weights are everywhere.',
    '逐层前向。权重到处都有，无需通信。',
  ],
  dp_forward_words1: [
    'Layer after layer. Nobody has to talk: weights are everywhere.',
    '逐层前向。权重到处都有，无需通信。',
  ],
  dp_forward_words2: [
    'Layer after layer. Nobody has to talk: weights are everywhere.',
    '逐层前向。权重到处都有，无需通信。',
  ],
  dp_forward_words3: [
    'A rank has only its shard of the weights. Before a layer is used an all_gather collects it, while the layer before is computed; after use it is dropped again.',
    '每个 rank 只有权重的一个分片。用到某层之前，在计算前一层的同时用 all_gather 收集该层；用完即丢弃。',
  ],
  dp_backward: ['Backward: gradients leave in buckets', '反向：梯度分桶发出'],
  dp_backward_words0: [
    'The last layers are done first. As soon as a bucket of gradients is complete, its all_reduce starts and runs while the layers before are computed. {hidden} of the step stay exposed: no rank computes.',
    '最后的层最先完成。一个桶的梯度一就绪，它的 all_reduce 立即开始，与前面各层的计算重叠。整步中有 {hidden} 的通信未被掩盖：此时没有 rank 在计算。',
  ],
  dp_backward_words1: [
    'As soon as a bucket is complete, its reduce_scatter starts: the sum of each part is needed only where the optimiser’s state of that part is. {hidden} of the step stay exposed: no rank computes.',
    '一个桶的梯度一就绪，reduce_scatter 立即开始：每一部分的和只需要送到持有对应优化器状态的 rank。整步中有 {hidden} 的通信未被掩盖：此时没有 rank 在计算。',
  ],
  dp_backward_words2: [
    'As soon as a bucket is complete, its reduce_scatter starts, and then each rank drops what is not its shard. {hidden} of the step stay exposed: no rank computes.',
    '一个桶的梯度一就绪，reduce_scatter 立即开始，随后每个 rank 丢弃不属于自己分片的梯度。整步中有 {hidden} 的通信未被掩盖：此时没有 rank 在计算。',
  ],
  dp_backward_words3: [
    'Weights are collected once more, layer by layer, those of the last one at once after they were dropped, and gradients leave as sums of shards: 1.5 times the bytes of plain data parallelism. {hidden} of the step stay exposed: no rank computes.',
    '权重再次逐层收集（最后一层刚丢弃又立即收集），梯度以分片之和的形式发出：通信量是普通数据并行的 1.5 倍。整步中有 {hidden} 的通信未被掩盖：此时没有 rank 在计算。',
  ],
  dp_update: ['Update', '更新'],
  dp_update_words0: [
    'Every rank updates all weights, with the same result everywhere.',
    '每个 rank 更新全部权重，结果处处相同。',
  ],
  dp_update_words1: [
    'Each rank updates only its shard, and an all_gather gives everybody the new weights. reduce_scatter and all_gather together move what one all_reduce moves.',
    '每个 rank 只更新自己的分片，再用 all_gather 让所有 rank 得到新权重。reduce_scatter 加 all_gather 的通信量等于一次 all_reduce。',
  ],
  dp_update_words2: [
    'Each rank updates only its shard, and an all_gather gives everybody the new weights. reduce_scatter and all_gather together move what one all_reduce moves.',
    '每个 rank 只更新自己的分片，再用 all_gather 让所有 rank 得到新权重。reduce_scatter 加 all_gather 的通信量等于一次 all_reduce。',
  ],
  dp_update_words3: [
    'Each rank updates its shard. Nobody needs the others’ weights before the next step.',
    '每个 rank 更新自己的分片。下一步之前不需要其他 rank 的权重。',
  ],
  dp_memory: ['What a rank keeps', '每个 rank 保留多少'],
  dp_memory_words: [
    'Weights 2 bytes, gradients 2, the optimiser’s state 12 for each parameter. As ranks are added, what is sharded shrinks; what is copied does not.',
    '每个参数：权重 2 字节，梯度 2 字节，优化器状态 12 字节。rank 增加时，分片的部分变小，复制的部分不变。',
  ],
  dp_weights: ['weights', '权重'],
  dp_gradients: ['gradients', '梯度'],
  dp_optimizer: ['optimiser', '优化器'],
  dp_network: ['sending', '通信'],
  dp_key: [
    'Grey: the same on every rank; a colour: only there. F: forward, B: backward. Stripes: the ranks whose gradients are in the sum.',
    '灰色：各 rank 相同；彩色：只在该 rank。F：前向，B：反向。条纹：已加入和的各 rank 梯度。',
  ],
  dp_parameters: ['Parameters (10⁹)', '参数（10⁹）'],
  dp_tokens: ['Tokens of a rank', '每个 rank 的 token'],
  dp_more: ['and {count|1 rank|# ranks} more', '以及另外 {count} 个 rank'],
  dp_sent: ['bytes sent:', '发送的字节：'],
  dp_plain: ['data parallel', '数据并行'],
  dp_each_of: [
    'each of {ranks} ranks, {billions} billion parameters',
    '{ranks} 个 rank 中的每一个，{billions}0 亿参数',
  ],
} as const satisfies Record<string, readonly [string, string]>;
