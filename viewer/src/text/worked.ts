// The texts of the worked examples.

export const WORKED_TEXTS = {
  worked: ['Worked examples: move the sliders', '算例：拖动滑块'],
  worked_intro: [
    'A message costs a latency α, however short it is, and its bytes over the bandwidth B. All times here are of that model, the same as those of {plan}.',
    '每条消息无论长短都要花一个延迟 α，再加上字节数除以带宽 B。此处所有时间都来自该模型，与 {plan} 的结果相同。',
  ],
  worked_chain: ['A broadcast through a chain', '沿链的广播'],
  worked_ring: ['A ring all_reduce', '环形全规约'],
  worked_tensor: ['Tensor parallel GPT-3', '张量并行的 GPT-3'],
  worked_latency: ['Many ranks, few bytes', '众多 rank，少量字节'],
  worked_gather: ['Weights of ZeRO-3', 'ZeRO-3 的权重'],
  worked_experts: ['Tokens to experts', 'token 发往专家'],
  worked_chain_words: [
    'The vector is cut into S segments that follow each other. The first needs n−1 hops, each other one a hop more: with many segments the chain costs hardly more than the wire. Too many, and their latencies take over.',
    '把向量切成 S 段依次发送。第一段经过 n−1 跳，之后每段只多一跳：段数多时，链几乎不比一条线慢；段数过多，延迟又会占上风。',
  ],
  worked_ring_words: [
    'The bytes of a ring are nearly 2·D/B on any number of ranks; only the messages grow. Make the vector short or n large, and see the latency (hatched) take over.',
    '无论多少个 rank，环的字节时间都接近 2·D/B；增长的只有消息数。把向量变短或把 n 变大，看延迟（斜纹）如何占上风。',
  ],
  worked_tensor_words: [
    'One all_reduce of a GPT-3 layer sums 32 · 2048 · 12288 activations of 2 bytes over 8 GPUs: 1.61 GB. With so many bytes latency does not matter, and the algorithms that send the least are alike.',
    'GPT-3 一层中的一次 all_reduce 要在 8 张 GPU 间求和 32 · 2048 · 12288 个 2 字节的激活：1.61 GB。字节如此之多，延迟可忽略，发送最少的算法彼此相当。',
  ],
  worked_latency_words: [
    'Each rank has a mebibyte, and there are a thousand of them: 2046 messages in a row make the ring slow. Algorithms with lg n steps win by far.',
    '每个 rank 只有 1 MiB，却有上千个 rank：连续 2046 条消息让环很慢，只需 lg n 步的算法遥遥领先。',
  ],
  worked_gather_words: [
    'Before a layer is computed, its weights are collected from all ranks. D is the whole layer; each rank sends its part on n−1 times.',
    '计算一层之前，先从所有 rank 收集它的权重。D 是整层的大小；每个 rank 转发 n−1 次。',
  ],
  worked_experts_words: [
    'Every rank has a different block for each other rank, of D/n, which is short. Pairwise sends each once; Bruck sends half of everything lg n times, in few messages.',
    '每个 rank 给其他每个 rank 的数据都不同：D/n 的小块。pairwise 每块只发一次；Bruck 把一半数据发 lg n 次，消息很少。',
  ],
  worked_segments: ['Segments S', '段数 S'],
  worked_best: ['best: {segments}', '最佳：{segments}'],
  worked_ranks: ['Ranks n', 'rank 数 n'],
  worked_bytes: ['Data D', '数据 D'],
  worked_alpha: ['Latency α', '延迟 α'],
  worked_bandwidth: ['Bandwidth B', '带宽 B'],
  worked_latency_part: ['latency', '延迟'],
  worked_bytes_part: ['bytes', '字节'],
  worked_wins: ['{name} wins: {time}.', '{name} 最快：{time}。'],
  worked_tie: ['{names} are alike: {time}.', '{names} 相同：{time}。'],
  worked_factor: ['{name} takes {times} times as long.', '{name} 是它的 {times} 倍。'],
  worked_powers: [
    'Others hold for powers of two: move n to 2, 4, 8, 16, …',
    '其他公式仅适用于 2 的幂：把 n 移到 2、4、8、16……',
  ],
  worked_all: ['All algorithms, in a terminal:', '在终端中比较所有算法：'],
  worked_table: ['The same as a table', '同样内容（表格）'],
  worked_formula: ['Formula', '公式'],
  worked_messages: ['Messages in a row', '连续消息数'],
  worked_layer: ['What the layer takes', '整层用时'],
  worked_layer_both: [
    '{both} GB/s: both directions counted, half of the truth',
    '{both} GB/s：双向带宽当单向用，只算出一半',
  ],
  worked_layer_one: ['one all_reduce, {gb} GB/s one way', '一次 all_reduce，单向 {gb} GB/s'],
  worked_layer_two: ['forward pass: two all_reduces', '前向：两次 all_reduce'],
  worked_layer_computes: ['forward pass: computing', '前向：计算'],
  worked_layer_share: [
    'A layer computes for {compute} at {flops} TFLOP/s a GPU (A100), so communication takes {share} % of its forward pass.',
    '每张 GPU 以 {flops} TFLOP/s（A100）计算这一层要 {compute}，因此通信占前向的 {share} %。',
  ],
  worked_picture: ['Bars of the times: {rows}', '各算法用时条形图：{rows}'],
} as const;
