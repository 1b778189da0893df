// The texts of the two stories.

export const STORY_TEXTS = {
  stories: ['Stories of parallelism', '并行方式'],
  tab_parallel: ['Parallelism', '并行'],
  story_tensor: ['Tensor', '张量'],
  story_data: ['Data and ZeRO', '数据与 ZeRO'],
  story_context: ['Context', '上下文'],
  story_ulysses: ['Ulysses', 'Ulysses'],
  story_experts: ['Experts', '专家'],
  moe_intro: [
    'A mixture of experts: a router sends every token to its best k experts, which are spread over the ranks. That takes two all_to_alls: dispatch carries token copies to the experts, combine carries the results back into their own rows, where they are added up with the router’s weights.',
    '专家混合：路由器把每个 token 发给最合适的 k 个专家，专家分布在不同 rank 上。这需要两次 all_to_all：dispatch 把 token 副本送到专家处，combine 把结果送回原来的行，再按路由权重加权求和。',
  ],
  moe_ranks: ['Ranks', 'rank 数'],
  moe_per_rank: ['Experts of a rank', '每 rank 专家数'],
  moe_tokens: ['Tokens of a rank', '每 rank token 数'],
  moe_k: ['k', 'k'],
  moe_skew: ['Skew', '偏斜'],
  moe_capacity: ['Capacity', '容量系数'],
  moe_no_limit: ['no limit', '不限'],
  moe_load: ['Counts from a file', '从文件读取计数'],
  moe_reset: ['Toy router', '使用示例路由器'],
  moe_stage_0: ['1 Router: every token chooses its experts.', '1 路由：每个 token 选择专家。'],
  moe_stage_1: [
    '2 Dispatch: the first all_to_all. Copies fly to the ranks of their experts.',
    '2 Dispatch：第一次 all_to_all，副本飞往专家所在的 rank。',
  ],
  moe_stage_2: [
    '3 Experts compute. The fullest one decides how long all of them wait.',
    '3 专家计算。最满的专家决定所有人等多久。',
  ],
  moe_stage_3: [
    '4 Combine: the second all_to_all. Results fly back to their own rows.',
    '4 Combine：第二次 all_to_all，结果飞回各自的行。',
  ],
  moe_stage_4: [
    '5 Weighted sum: each token adds up the outputs of its experts. No communication.',
    '5 加权求和：每个 token 把各专家的输出按权重相加，没有通信。',
  ],
  moe_stage: ['Stage', '阶段'],
  moe_label: [
    '{ranks} ranks with {tokens} tokens each, {experts} experts. {stage}',
    '{ranks} 个 rank，每个 {tokens} 个 token，共 {experts} 个专家。{stage}',
  ],
  moe_expert: ['expert {expert}', '专家 {expert}'],
  moe_e: ['e{expert}', 'e{expert}'],
  moe_balance: [
    'The fullest expert takes {times} times the mean.',
    '最满的专家承担平均值的 {times} 倍。',
  ],
  moe_dropped: [
    '{count} of {all} copies are dropped: their experts are full. The token goes on with what is left, or only with its residual.',
    '{all} 个副本中有 {count} 个被丢弃：专家已满。该 token 只用剩余的专家输出，或仅保留残差。',
  ],
  moe_none_dropped: ['Nothing is dropped.', '没有副本被丢弃。'],
  moe_matrix: ['Copies from rank (row) to rank (column)', '副本：从 rank（行）到 rank（列）'],
  moe_loads: ['Load of the experts', '各专家的负载'],
  moe_limit: ['limit {count}', '上限 {count}'],
  moe_open: ['This all_to_all, step by step', '逐步查看这个 all_to_all'],
  moe_uneven: [
    'In a real run the blocks are uneven, which is what all_to_all_v is for; the schedule is the same.',
    '实际运行中各块大小不等，因此使用 all_to_all_v；schedule 相同。',
  ],
  moe_legend: [
    'Colour: the rank whose token it is. Crossed out: dropped.',
    '颜色：token 所属的 rank。划掉：被丢弃。',
  ],
  moe_legend_sum: [
    'Full colour, from below: the weight of an expert’s output in the sum of its token. Crossed out: dropped, so the sum lacks it.',
    '自下而上的深色：该专家输出在 token 求和中的权重。划掉：被丢弃，求和中缺少它。',
  ],
  moe_table: ['Who goes where, as a table', '去向（表格）'],
  moe_token: ['token', 'token'],
  moe_weight: ['weight', '权重'],
  moe_is_dropped: ['dropped', '被丢弃'],

  layer_intro: [
    'One layer of a transformer on a grid of ranks. Choose a rank to see its groups; every communication of the layer is listed in its order, with its group and size, and opens on Steps; one of more than 16 ranks shows the command that draws it.',
    '一个 transformer 层在 rank 网格上的通信。选择一个 rank 查看它所在的组；每次通信按先后顺序列出组和大小，并可在“步骤”中打开；超过 16 个 rank 的，则给出绘制它的命令。',
  ],
  axis_tp: ['tensor parallel', '张量并行'],
  axis_cp: ['context parallel', '上下文并行'],
  axis_dp: ['data parallel', '数据并行'],
  axis_pp: ['pipeline', '流水线'],
  axis_ep: ['expert parallel', '专家并行'],
  layer_hidden: ['Hidden size', '隐藏维度'],
  layer_sequence: ['Sequence', '序列长度'],
  layer_batch: ['Micro-batch', '微批大小'],
  layer_micro: ['Micro-batches', '微批数'],
  layer_sp: ['sequence parallel', '序列并行'],
  layer_context: ['Context', '上下文方式'],
  layer_ring: ['ring attention', '环形注意力'],
  layer_ulysses: ['Ulysses', 'Ulysses'],
  layer_zero: ['ZeRO stage', 'ZeRO 阶段'],
  layer_grid: ['{count} ranks', '{count} 个 rank'],
  layer_too_many: [
    '{count} ranks are too many for the grid: choose at most 256.',
    '{count} 个 rank 太多，网格最多 256。',
  ],
  layer_groups: ['Groups of rank {rank}', 'rank {rank} 所在的组'],
  layer_members: ['with rank {rank}: {list}', '与 rank {rank} 一组：{list}'],
  layer_alone: ['alone', '单独'],
  pass_forward: ['Forward', '前向'],
  pass_backward: ['Backward', '反向'],
  pass_step: ['Once for all micro-batches', '每个全局步一次'],
  layer_nothing: ['Nothing is communicated.', '没有通信。'],
  layer_chip: ['{collective} of {bytes}', '{collective}，{bytes}'],
  layer_times: ['{times} times', '{times} 次'],
  layer_open: ['Steps', '步骤'],
  layer_as: ['{open}: as {what}', '{open}：同 {what}'],
  layer_as_hint: [
    'A send of its own has no schedule: this one makes the same moves.',
    '单独的发送没有 schedule：此 schedule 的移动与之相同。',
  ],
  layer_large: ['`unisono view {what}`', '`unisono view {what}`'],
  layer_axes: [
    'To the right: TP, then CP. Downwards: DP; ranks of an EP group are neighbours there. Blocks: stages of PP.',
    '向右：TP，然后 CP。向下：DP，同一 EP 组的 rank 在其中相邻。分块：PP 的各级。',
  ],
  layer_sizes: [
    'Two bytes an element. Activations of a rank: batch · sequence/CP · hidden · 2 = {activations}. Its weights: 12 · hidden²/TP · 2, of which attention has 4 and the MLP 8 (with EP: one expert on each rank of its group) = {weights}. Keys and values are as wide as the hidden size.',
    '每个元素 2 字节。一个 rank 的激活：批 · 序列/CP · 隐藏 · 2 = {activations}。它的权重：12 · 隐藏²/TP · 2，其中注意力占 4，MLP 占 8（有 EP 时：组内每个 rank 一个专家）= {weights}。键和值与隐藏维度同宽。',
  ],
  zero_0: [
    'ZeRO 0: every replica keeps all weights, gradients and optimiser state.',
    'ZeRO 0：每个副本都保留全部权重、梯度和优化器状态。',
  ],
  zero_1: [
    'ZeRO 1: each replica keeps a shard of the optimiser state, updates that part of the weights, and all collect the new weights.',
    'ZeRO 1：每个副本只保留优化器状态的一个分片，更新对应部分的权重，再收集全部新权重。',
  ],
  zero_2: [
    'ZeRO 2: also only a shard of the gradients, so they are added up after every micro-batch, not once.',
    'ZeRO 2：梯度也只保留一个分片，因此每个微批之后就要求和，而不是只做一次。',
  ],
  zero_3: [
    'ZeRO 3 (FSDP): also only a shard of the weights, so they are collected before each use, forward and backward, and dropped after it.',
    'ZeRO 3（FSDP）：权重也只保留一个分片，因此前向和反向每次使用前收集，用后丢弃。',
  ],
  at_zero3_weights: [
    'before the layer: collect its weights (ZeRO-3, FSDP)',
    '进入该层之前：收集权重（ZeRO-3、FSDP）',
  ],
  at_attention_out: [
    'after the output projection (row parallel): add up the partial sums',
    '输出投影（行并行）之后：累加部分和',
  ],
  at_attention_in_sp: [
    'before Q, K, V (column parallel): collect the sequence',
    'Q、K、V（列并行）之前：收集序列',
  ],
  at_attention_out_sp: [
    'after the output projection: add up, and split the sequence again',
    '输出投影之后：累加并重新切分序列',
  ],
  at_mlp_out: [
    'after the second linear (row parallel); nothing between the two linears',
    '第二个线性层（行并行）之后；两个线性层之间没有通信',
  ],
  at_mlp_in_sp: [
    'before the first linear (column parallel): collect the sequence',
    '第一个线性层（列并行）之前：收集序列',
  ],
  at_mlp_out_sp: [
    'after the second linear: add up, and split the sequence again',
    '第二个线性层之后：累加并重新切分序列',
  ],
  at_attention_back: [
    'gradient of the attention’s input: add up over Q, K, V’s shards',
    '注意力输入的梯度：跨 Q、K、V 分片累加',
  ],
  at_mlp_back: ['gradient of the MLP’s input: add up', 'MLP 输入的梯度：累加'],
  at_attention_in_back: [
    'gradient of the attention’s output: collect the sequence',
    '注意力输出的梯度：收集序列',
  ],
  at_attention_out_back: [
    'gradient of the attention’s input: add up, and split the sequence again',
    '注意力输入的梯度：累加并重新切分序列',
  ],
  at_mlp_in_back: [
    'gradient of the MLP’s output: collect the sequence',
    'MLP 输出的梯度：收集序列',
  ],
  at_mlp_out_back: [
    'gradient of the MLP’s input: add up, and split the sequence again',
    'MLP 输入的梯度：累加并重新切分序列',
  ],
  at_ulysses: [
    'Q, K, V and the output: from parts of the sequence to heads, and back',
    'Q、K、V 和输出：在序列切分与头切分之间转换',
  ],
  at_ring_attention: [
    'keys and values travel around the ring while attention is computed',
    '计算注意力的同时，键和值沿环传递',
  ],
  at_ring_back: ['keys and values travel around the ring once more', '键和值再次沿环传递'],
  at_ring_gradients: [
    'their gradients follow, are added to at every rank, and come home',
    '它们的梯度随后传递，在每个 rank 上累加，最后回到原处',
  ],
  at_zero3_experts: [
    'before the experts: collect the weights of this expert (ZeRO-3, FSDP)',
    '进入专家之前：收集该专家的权重（ZeRO-3、FSDP）',
  ],
  at_experts_out: [
    'after combine: add up what the parts of an expert (row parallel) made',
    'combine 之后：累加专家各部分（行并行）的结果',
  ],
  at_experts_back: [
    'gradient of the experts’ input: add up over the parts of an expert',
    '专家输入的梯度：跨专家各部分累加',
  ],
  at_experts_in_sp: [
    'an expert is split over these ranks: collect its tokens on all of them',
    '一个专家切分在这些 rank 上：把它的 token 收集到每个 rank',
  ],
  at_experts_out_sp: [
    'after the second linear of the experts: add up, and split the tokens again',
    '专家的第二个线性层之后：累加并重新切分 token',
  ],
  at_experts_in_back: [
    'gradient of the experts’ output: collect the tokens',
    '专家输出的梯度：收集 token',
  ],
  at_experts_out_back: [
    'gradient of the experts’ input: add up, and split the tokens again',
    '专家输入的梯度：累加并重新切分 token',
  ],
  at_gradients_each: [
    'gradients, after every micro-batch: each rank keeps its shard only',
    '梯度，每个微批之后：每个 rank 只保留自己的分片',
  ],
  at_experts_each: [
    'gradients of one expert, after every micro-batch: each of its replicas keeps its shard only',
    '一个专家的梯度，每个微批之后：每个副本只保留自己的分片',
  ],
  at_dispatch: ['dispatch: tokens to their experts', 'dispatch：token 发往专家'],
  at_combine: ['combine: results back to their rows', 'combine：结果回到原来的行'],
  at_combine_back: ['gradients of combine: out to the experts', 'combine 的梯度：发往专家'],
  at_dispatch_back: ['gradients of dispatch: back to the rows', 'dispatch 的梯度：回到原来的行'],
  at_pipeline: ['activations to the next stage', '激活传给下一级'],
  at_pipeline_back: ['gradients to the stage before', '梯度传给上一级'],
  at_gradients: ['gradients, over all replicas', '所有副本的梯度'],
  at_gradients_zero: ['gradients: each rank keeps its shard', '梯度：每个 rank 保留自己的分片'],
  at_experts: [
    'gradients of one expert, over the replicas that have it',
    '一个专家的梯度，在持有它的副本之间',
  ],
  at_experts_zero: [
    'gradients of one expert: each of its replicas keeps its shard',
    '一个专家的梯度：每个副本保留自己的分片',
  ],
  at_weights_zero: ['new weights, after the optimiser', '优化器更新之后的新权重'],
  pipeline_title: ['The pipeline', '流水线'],
  pipeline_gpipe: ['GPipe: all forward, then all backward', 'GPipe：先全部前向，再全部反向'],
  pipeline_1f1b: ['1F1B: back as soon as possible', '1F1B：尽早反向'],
  pipeline_stage: ['stage {stage}', '第 {stage} 级'],
  pipeline_legend: [
    'Light: forward. Strong: backward, which takes twice as long. Grey: the bubble, nothing to do.',
    '浅色：前向。深色：反向，用时两倍。灰色：气泡，无事可做。',
  ],
  pipeline_words: [
    'Both leave a stage idle for {share} % of the time, (p−1)/(m+p−1). GPipe keeps the activations of {gpipe} micro-batches, 1F1B of at most {onef}.',
    '两者每级的空闲时间都占 {share} %，即 (p−1)/(m+p−1)。GPipe 要保留 {gpipe} 个微批的激活，1F1B 最多 {onef} 个。',
  ],
  pipeline_label: [
    '{kind}: {stages} stages, {micro} micro-batches, done after {end} units; forward takes 1, backward 2.',
    '{kind}：{stages} 级，{micro} 个微批，{end} 个单位完成；前向为 1，反向为 2。',
  ],
} as const satisfies Record<string, readonly [string, string]>;
