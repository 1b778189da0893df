// The texts around the chapters of the article; a chapter contains its own texts.

export const ARTICLE_TEXTS = {
  tk_one: [
    'One token, two copies: each road as wide as its weight',
    '一个 token，两份副本：路宽就是权重',
  ],
  tk_crowd: [
    'all_to_all 1 of 2, dispatch: {copies} copies, {roads} roads between ranks',
    '第 1 次 all_to_all（共 2 次），dispatch：{copies} 份副本，rank 之间 {roads} 条路',
  ],
  tk_hot: [
    'All wait for the fullest expert: {most} copies, mean {mean}, {hot} times as long',
    '都在等最满的专家：{most} 份，平均 {mean} 份，慢到 {hot} 倍',
  ],
  tk_home: [
    'all_to_all 2 of 2, combine: results come home, rank {rank} adds up its own',
    '第 2 次 all_to_all（共 2 次），combine：结果回家，rank {rank} 给自己的求和',
  ],
  tk_key: [
    'a road for one copy; numbers: copies of an expert; dashes: their mean',
    '一份副本的路宽；数字：专家收到的份数；虚线：平均',
  ],
  ms_twice: ['With twice the bandwidth', '带宽加倍'],
  lp_sent: ['Sent by each of n ranks, of the vector D', 'n 个 rank 中每个发送的量，D 为整个向量'],
  tab_article: ['Article', '文章'],
  article_contents: ['Chapters', '章节'],
  article_how: [
    'Scroll: the picture moves with the text. Underlined numbers can be dragged. Every message, byte and time is that of a real schedule.',
    '向下滚动，图随文字移动。带下划线的数字可以拖动。每条消息、每个字节、每个时间都来自真实的调度表。',
  ],
  article_paid: ['What is paid', '代价'],
  article_lab: ['Take it apart in the lab', '到实验室里拆开看'],
  article_link: ['Link to this chapter', '本章链接'],
  art_steps: ['steps', '步'],
  art_gone: ['stopped here', '停在这里'],
  quiz_title: ['Quiz me: five questions', '考考我：五个问题'],
  quiz_right: ['Right.', '正确。'],
  quiz_wrong: ['No. Drag the numbers above and look again.', '不对。拖动上面的数字再看看。'],
  quiz_sum: ['{right} of {all} right.', '{all} 题答对 {right} 题。'],
  kn_title: ['How models that run on many GPUs communicate', '跑在多张 GPU 上的模型如何通信'],
  kn_state: [
    '70B parameters: {all} GB of weights, gradients and optimiser state. A GPU has {card}.',
    '700 亿参数：权重、梯度和优化器状态共 {all} GB，一张 GPU 只有 {card} GB。',
  ],
  kn_needs: ['Each GPU needs {gb} GB.', '每张 GPU 需要 {gb} GB。'],
  kn_fits: ['{gb} GB a GPU: it fits.', '每张 GPU {gb} GB：放得下。'],
  kn_pay: ['You pay: {what}', '代价：{what}'],
  kn_read: ['Read the chapter', '阅读这一章'],
  kn_gpus: ['GPUs', 'GPU 数'],
  kn_tokens: ['tokens', 'token'],
  kn_hidden: ['hidden', '隐藏维度'],
  kn_batch: ['batch', '批次'],
  kn_none: ['uncut', '不切'],
  kn_none_words: ['It does not fit: something must be cut. Where?', '放不下，必须切开。切哪里？'],
  kn_none_pay: ['nothing, for it does not run', '没有代价，因为根本跑不起来'],
  kn_cut_batch: ['batch (data)', '批次（数据并行）'],
  kn_batch_words: [
    'Cut the sequences of the batch. Every GPU keeps the whole model and must agree with the others on its gradients.',
    '按批次中的序列切。每张 GPU 都有整个模型，因此必须就梯度达成一致。',
  ],
  kn_batch_pay: ['all_reduce of all gradients, once a step', '每步一次全部梯度的 all_reduce'],
  kn_cut_state: ['batch and state (ZeRO)', '批次和状态（ZeRO）'],
  kn_state_words: [
    'Cut what is kept, too. Weights visit a GPU only while a layer needs them.',
    '连保存的状态也切开。权重只在某层用到时才来到 GPU。',
  ],
  kn_state_pay: [
    'all_gather of weights and reduce_scatter of gradients, in every layer',
    '每一层都要 all_gather 权重、reduce_scatter 梯度',
  ],
  kn_cut_hidden: ['hidden (tensor)', '隐藏维度（张量并行）'],
  kn_hidden_words: [
    'Cut every matrix. A GPU then has a part of every sum, and sums must be completed.',
    '把每个矩阵切开。每张 GPU 只有每个和的一部分，必须再加起来。',
  ],
  kn_hidden_pay: [
    '2 all_reduces of activations in the forward pass of every layer',
    '每一层前向有 2 次激活的 all_reduce',
  ],
  kn_cut_sequence: ['sequence (context)', '序列（上下文并行）'],
  kn_sequence_words: [
    'Cut the text. Activations shrink, the model does not; and attention must still see what came before.',
    '把文本切开。激活变小，模型不变；注意力仍要看到前文。',
  ],
  kn_sequence_pay: [
    'keys and values around a ring, or all_to_all, in every layer',
    '每一层都要沿环传递 K、V，或做 all_to_all',
  ],
  kn_cut_layers: ['layers (pipeline)', '层（流水线并行）'],
  kn_layers_words: [
    'Cut the model into stages. Only the border between two stages is sent, but stages wait for each other.',
    '把模型切成若干级。只在级与级之间传数据，但各级要互相等待。',
  ],
  kn_layers_pay: [
    'send_recv of activations at each border, and the bubble',
    '每个边界一次激活的 send_recv，以及气泡',
  ],
  kn_cut_experts: ['experts', '专家（专家并行）'],
  kn_experts_words: [
    'Make experts of the MLPs, 80 % of the weights, and give each GPU some of them. Tokens travel to their experts.',
    '把占权重 80 % 的 MLP 变成专家，分给各张 GPU。token 要去找自己的专家。',
  ],
  kn_experts_pay: ['2 all_to_alls of tokens in every layer', '每一层有 2 次 token 的 all_to_all'],
} as const satisfies Record<string, readonly [string, string]>;
