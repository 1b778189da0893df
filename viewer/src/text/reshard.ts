// The texts of the story of a model that moves from a trainer to an engine.

export const RESHARD_TEXTS = {
  story_reshard: ['Reshard', '重新分布'],
  rs_plan: ['From and to', '从哪里到哪里'],
  rs_before: ['The trainer’s layout', '训练程序的布局'],
  rs_before_words: [
    'A matrix of {bytes} in a trainer: {from}. A box is a block of the matrix, and the numbers in it are the ranks that have it.',
    '训练程序中一个 {bytes} 的矩阵：{from}。一个框是矩阵的一块，框里的数字是持有它的 rank。',
  ],
  rs_after: ['The layout that an engine needs', '推理引擎需要的布局'],
  rs_after_words: [
    'The engine answers with the same weights under another layout: {to}. Each number is a rank that needs this block.',
    '推理引擎以另一种布局使用同样的权重：{to}。每个数字是需要这一块的 rank。',
  ],
  rs_own: ['From own memory', '从自己的内存'],
  rs_own_words: [
    'A rank that already has a block copies it: {bytes} in all, and no message.',
    '已有某一块的 rank 直接复制：共 {bytes}，不发消息。',
  ],
  rs_far: ['Once to each host', '每台主机只收一次'],
  rs_far_words: [
    'Each block enters the engine’s host once, however many ranks need it there: {bytes} in all. If several ranks have a block, the one that has sent least sends it.',
    '无论那里有多少 rank 需要，每一块只进入引擎的主机一次：共 {bytes}。若多个 rank 持有同一块，由发送最少的那个发送。',
  ],
  rs_near: ['Within the host', '主机之内'],
  rs_near_words: [
    'Ranks of one host pass blocks on to each other: {bytes} in all. The network between hosts carries none of it.',
    '同一主机的 rank 互相传递各块：共 {bytes}。主机之间的网络不承担这些字节。',
  ],
  rs_bytes: ['Bytes', '字节'],
  rs_bytes_words: [
    'This plan moves {sent}. To gather the whole matrix on one rank and broadcast it takes {gathered}, and memory for the whole matrix on every rank.',
    '这个方案移动 {sent}。若先在一个 rank 上收集整个矩阵再广播，则要移动 {gathered}，且每个 rank 都要有放下整个矩阵的内存。',
  ],
  rs_trainer: ['before, host {host}: {layout}', '之前，主机 {host}：{layout}'],
  rs_engine: ['after, host {host}: {layout}', '之后，主机 {host}：{layout}'],
  rs_way_gather: ['gather, then broadcast', '先收集再广播'],
  rs_way_plan: ['this plan', '这个方案'],
  rs_way_least: ['fewest possible', '可能的最少'],
  rs_way: ['{sent}, {between} between hosts', '{sent}，主机之间 {between}'],
  rs_legend: [
    'A colour is the rank that had the block before. A frame without a colour: the rank still waits for this block.',
    '颜色表示之前持有该块的 rank。没有颜色的框：这个 rank 还在等这一块。',
  ],
  rs_legend_bytes: [
    'Plain: within a host. Striped: between hosts.',
    '实色：主机之内。斜纹：主机之间。',
  ],
  rs_source: [
    'From `{command}`. For a model: `unisono reshard verify llama3-70b "tp=8,pp=4,dp=2 -> tp=4,dp=4 on 64-79"`; for your program: `unisono.reshard`.',
    '来自 `{command}`。整个模型：`unisono reshard verify llama3-70b "tp=8,pp=4,dp=2 -> tp=4,dp=4 on 64-79"`；在程序中：`unisono.reshard`。',
  ],
  rs_table: ['All moves as a table', '所有移动（表格）'],
  rs_column_elements: ['elements', '元素'],
} as const;
