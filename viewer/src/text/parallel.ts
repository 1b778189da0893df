// The texts of the drawn stories of parallelism.

export const PARALLEL_TEXTS = {
  story_step: ['Step {step} of {steps}: {name}', '第 {step} 步，共 {steps} 步：{name}'],
  story_comm: [
    'among {ranks} ranks, {bytes}: each sends {sent}, {time}',
    '{ranks} 个 rank，{bytes}：每个发送 {sent}，{time}',
  ],
  story_times: [', {times} times', '，共 {times} 次'],
  story_silent: ['No message.', '没有消息。'],
  story_link: ['Link', '链路'],
  story_link_0: ['Ethernet, 12.5 GB/s', '以太网，12.5 GB/s'],
  story_link_1: ['InfiniBand, 50 GB/s', 'InfiniBand，50 GB/s'],
  story_link_2: ['NVLink, 450 GB/s', 'NVLink，450 GB/s'],
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
    'The first matrix A is cut by columns, the second matrix B by rows. Rank r keeps only A{r} and B{r}: one part of {n}. A colour is a rank; grey is the same on every rank.',
    '第一个矩阵 A 按列切，第二个矩阵 B 按行切。rank r 只保留 A{r} 和 B{r}，即 {n} 份中的一份。颜色代表 rank，灰色表示每个 rank 都相同。',
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
  tp_block: ['A layer: two all_reduces forward', '一层：前向两次 all_reduce'],
  tp_block_words: [
    'Attention is cut by heads, the MLP as you saw. Each ends with one all_reduce, and backward there are two more. Norms and residuals (grey) are computed on every rank alike.',
    '注意力按头切，MLP 如前所示。各以一次 all_reduce 结束，反向还有两次。归一化和残差（灰色）在每个 rank 上重复计算。',
  ],
  tp_block_sp: ['A layer with sequence parallelism', '带序列并行的一层'],
  tp_block_sp_words: [
    'Between the blocks every rank works on its own tokens: norms are not repeated, and each rank keeps 1/{n} of these activations. The bytes sent stay the same.',
    '在两个块之间，每个 rank 只处理自己的 token：归一化不再重复，这些激活每个 rank 只保留 1/{n}。通信量不变。',
  ],
  tp_vocabulary: ['Logits: cut by the vocabulary', 'logits：按词表切分'],
  tp_vocabulary_words: [
    'Each rank has the logits of its words. For the loss it is enough to agree on two numbers for each token: the largest logit and the sum of exponents. Two small all_reduces do it.',
    '每个 rank 持有自己那部分词的 logits。计算损失只需对每个 token 统一两个数：最大 logit 和指数之和，两次很小的 all_reduce 即可。',
  ],
  tp_z_all: ['Z, everywhere', '完整的 Z'],
  tp_z_parts: ['Z, in parts', 'Z，各持一段'],
  tp_qkv: ['Q K V', 'Q K V'],
  tp_out: ['O', 'O'],
  tp_f: ['before', '之前'],
  tp_g: ['after', '之后'],
  tp_computing: ['computing', '计算'],
  tp_sending: ['communicating', '通信'],
  tp_keeps: ['a rank keeps', '每个 rank 保留'],
  tp_logits: ['logits: a row is a token, a column a word', 'logits：一行一个 token，一列一个词'],
  tp_instead: [
    'Gathering the logits instead would move {bytes} and take {time}.',
    '如果改为收集 logits，需要移动 {bytes}，用时 {time}。',
  ],
} as const satisfies Record<string, readonly [string, string]>;
