// The texts of the story of overlap and fusion, and of all_to_all beside all_gather.

export const OVERLAP_TEXTS = {
  story_overlap: ['Overlap and fusion', '重叠与融合'],
  ov_apart: ['One after the other', '先算后传'],
  ov_apart_words: [
    'The backward pass of a model with {billions} · 10⁹ parameters, and then one all_reduce of all gradients over {n} ranks. While one works, the other stands still.',
    '先完成一个 {billions} · 10⁹ 参数模型的反向传播，再在 {n} 个 rank 间对全部梯度做一次 all_reduce。一方工作时，另一方闲着。',
  ],
  ov_buckets: ['Buckets leave while the rest is computed', '分桶：边算边发'],
  ov_buckets_words: [
    'The gradients of the last layers are ready first. Cut into {buckets|1 bucket, it|# buckets, each} leaves as soon as it is computed. What still sticks out at the end is the exposed part: {hidden}.',
    '最后几层的梯度最先算好。切成 {buckets} 个桶，每个桶一算好就发出。末尾仍露在外面的部分是未被掩盖的通信：{hidden}。',
  ],
  ov_sweep: ['How many buckets?', '分多少桶？'],
  ov_sweep_words: [
    'The last bucket is never hidden, so more and smaller ones expose less, until each is so small that its latency takes longer than what is computed meanwhile. Each call also takes 20 µs to launch. Beyond {enough|1 bucket|# buckets} the step gains less than 1 %.',
    '最后一个桶总无法掩盖，因此桶越多越小，暴露的通信越少；直到桶小得连延迟都比同时的计算更长。每次调用还要 20 µs 的启动开销。超过 {enough} 个桶后，收益不到 1 %。',
  ],
  ov_unfused: ['all_reduce, residual, norm', 'all_reduce、残差、归一化'],
  ov_unfused_words: [
    'After a tensor parallel block the sum of {bytes} activations goes through memory again and again: the residual reads two and writes one, the norm reads one and writes one.',
    '张量并行块之后，{bytes} 的激活反复经过显存：残差读两份写一份，归一化再读一份写一份。',
  ],
  ov_fused: ['Fused: one pass over memory', '融合：只过一遍显存'],
  ov_fused_words: [
    'Residual and norm in one kernel: what the residual gives is not read again. {won} less.',
    '残差和归一化合成一个内核：残差的结果不必再读一遍。节省 {won}。',
  ],
  ov_between: ['Between the halves: each rank its tokens', '放在两半之间：各算各的 token'],
  ov_between_words: [
    'An all_reduce is a reduce_scatter and an all_gather. In between, each rank has the sums of its own tokens alone: 1/{n} of the work, and the bytes sent stay the same. {won} less than apart.',
    'all_reduce 等于 reduce_scatter 加 all_gather。两半之间每个 rank 只有自己那部分 token 的和：只做 1/{n} 的工作，通信量不变。比分开做节省 {won}。',
  ],
  ov_row_apart: ['one after the other', '先算后传'],
  ov_row_buckets: ['in {buckets|1 bucket|# buckets}', '分 {buckets} 个桶'],
  ov_row_unfused: ['apart', '分开'],
  ov_row_fused: ['fused', '融合'],
  ov_row_between: ['between the halves', '两半之间'],
  ov_exposed: ['exposed: {time}', '未掩盖：{time}'],
  ov_not_hidden: ['exposed communication', '未被计算掩盖的通信'],
  ov_buckets_field: ['Buckets', '桶数'],
  ov_backward: ['backward', '反向'],
  ov_over_network: [
    'over the network (▲: here it goes through memory)',
    '经网络（▲：此处读写内存）',
  ],
  ov_through_memory: ['through memory, drawn {times} times as wide', '读写内存，放大 {times} 倍'],
  ov_in_all: ['{time} in all', '共 {time}'],
  ov_residual: ['residual', '残差'],
  ov_norm: ['norm', '归一化'],
  ov_residual_norm: ['residual + norm', '残差+归一化'],
  ov_memory: [
    'Computing: 400 TFLOP/s; memory: 3350 GB/s, as an H100 has it; tokens of 8192 activations of 2 bytes.',
    '计算：400 TFLOP/s；显存：3350 GB/s（H100）；每个 token 8192 个 2 字节的激活。',
  ],
  beside: ['all_to_all beside all_gather', 'all_to_all 与 all_gather 对照'],
  beside_words: [
    'Either way every rank receives n−1 blocks. With all_gather everybody gets the same block of a rank: all end up with everything. With all_to_all each gets another one: rows become columns, and nobody has more than before.',
    '两者中每个 rank 都收到 n−1 块。all_gather 中所有人从某个 rank 得到同一块，最后人人拥有全部；all_to_all 中每人得到的块不同：行变成列，谁也没有变多。',
  ],
  beside_at: ['{at} % of the way', '进度 {at} %'],
  beside_gather: ['all_gather: 1 block before, {n} after', 'all_gather：之前 1 块，之后 {n} 块'],
  beside_all: ['all_to_all: {n} blocks before, {n} after', 'all_to_all：之前 {n} 块，之后 {n} 块'],
  beside_sent: [
    'A rank sends {gather} for a vector of 1 MiB with all_gather, {all} with all_to_all.',
    '1 MiB 的向量，每个 rank 在 all_gather 中发送 {gather}，在 all_to_all 中发送 {all}。',
  ],
} as const;
