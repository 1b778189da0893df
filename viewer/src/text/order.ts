// The texts of the story of one sum under two layouts.

export const ORDER_TEXTS = {
  story_order: ['Same bits', '相同的位'],
  or_left: ['Ranks on the left', '左边的 rank 数'],
  or_right: ['Ranks on the right', '右边的 rank 数'],
  or_layout: ['{ranks|1 rank|# ranks}', '{ranks} 个 rank'],
  or_bits: ['bits of the sum: {bits}', '和的位：{bits}'],
  or_leaves: ['Leaves', '叶子'],
  or_leaves_words: [
    'Leaves are the smallest units that exist under every layout, such as the gradient of a microbatch. Both layouts have the same 8, numbered in one order. A colour is a rank.',
    '叶子是各种布局下都有的最小单元，例如一个微批次的梯度。两种布局有同样的 8 片叶子，按同一次序编号。一种颜色是一个 rank。',
  ],
  or_own: ['Each rank adds its part of the tree', '每个 rank 相加树中属于它的部分'],
  or_own_words: [
    'The tree over the leaves is fixed. A rank computes every sum whose leaves it has, and no other.',
    '叶子上的树是固定的。一个 rank 计算叶子全在自己这里的每个和，不计算别的和。',
  ],
  or_join: ['Ranks join their sums', '各 rank 合并它们的和'],
  or_join_words: [
    'A sum over the leaves of several ranks (no colour) is computed once, from sums that were sent (dashed). Both layouts make the same 7 additions, so the results have the same bits.',
    '跨多个 rank 的叶子的和（无颜色）只计算一次，用发送来的和（虚线）。两种布局做同样的 7 次加法，所以结果的位相同。',
  ],
  or_chain: ['Rank order does not compose', '按 rank 次序求和不能拆开'],
  or_chain_words: [
    'Here each rank adds its leaves one after the other, and then the sums of the ranks are added in rank order: {left} on the left, {right} on the right. {same|These are the same additions|These are other additions, and rounding differs}.',
    '这里每个 rank 依次相加它的叶子，然后依次相加各 rank 的和：左边 {left}，右边 {right}。{same|这是相同的加法|这是不同的加法，舍入也不同}。',
  ],
} as const;
