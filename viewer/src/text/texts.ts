// All texts of the page, in both languages. {name} stands for a value. {name|one|more} stands for
// the first words if the value is 1, otherwise for the second; # in them is the value.
import { ARTICLE_TEXTS } from './article';
import { LEARN_TEXTS } from './learn';
import { ORDER_TEXTS } from './order';
import { OVERLAP_TEXTS } from './overlap';
import { PARALLEL_TEXTS } from './parallel';
import { PIPELINE_TEXTS } from './pipelines';
import { PLAN_TEXTS } from './plan';
import { RESHARD_TEXTS } from './reshard';
import { STEP_TEXTS } from './step';
import { STORY_TEXTS } from './stories';
import { TOGETHER_TEXTS } from './together';
import { TOOL_TEXTS } from './tools';
import { WORKED_TEXTS } from './worked';

export type Lang = 'en' | 'zh';

const PAGE_TEXTS = {
  title: ['unisono: collective communication, step by step', 'unisono：逐步看懂集合通信'],
  tabs: ['Views', '视图'],
  tab_learn: ['Learn', '入门'],
  tab_steps: ['Steps', '逐步'],
  tab_compare: ['Compare', '比较'],
  tab_time: ['Time', '时序'],
  tab_traffic: ['Traffic', '通信量'],
  tab_run: ['Run', '运行'],
  tab_moe: ['MoE', 'MoE'],
  tab_layer: ['Layer', 'Transformer 层'],
  theme: ['Theme', '主题'],
  theme_auto: ['System', '跟随系统'],
  theme_light: ['light', '浅色'],
  theme_dark: ['dark', '深色'],
  language: ['中文', 'English'],
  help: ['Shortcuts', '快捷键'],
  close: ['Close', '关闭'],
  open_file: ['Open a file', '打开文件'],
  drop_here: [
    'Drop a schedule, a recording, a step or a topology here',
    '把调度表、运行记录、模型步骤或拓扑拖到这里',
  ],
  not_read: ['This file was not read. {what}', '未能读取此文件。{what}'],
  file_missing: [
    'This link was made with the file {name} open. Open it, or drop it here, to see the same.',
    '生成此链接时打开了文件 {name}。请打开它或拖到这里以看到相同内容。',
  ],
  no_data: [
    'This page carries no schedules ({why}). `unisono view` writes one that does; or drop a schedule file here.',
    '此页没有内置调度表（{why}）。请用 `unisono view` 生成，或把调度表文件拖到这里。',
  ],
  skip: ['To the content', '跳到内容'],

  collective: ['Collective', '集合操作'],
  algorithm: ['Algorithm', '算法'],
  ranks: ['Ranks', 'rank 数'],
  bytes: ['Bytes', '字节数'],
  bytes_wrong: ['a size such as 64MiB', '例如 64MiB'],
  root: ['Root', 'root'],
  v_form: [
    'Parts of {collective} have sizes of their own; they are moved by the schedule of {plain}. Here all are alike.',
    '{collective} 的各部分大小可以不同，使用 {plain} 的调度表。此处各部分等大。',
  ],
  from_file: ['from a file', '来自文件'],
  verified: ['proved right', '已证明正确'],
  wrong: ['{count|1 finding|# findings}', '{count} 处错误'],
  at_end: ['end', '结束时'],

  first: ['To the beginning', '回到开头'],
  back: ['One step back', '后退一步'],
  play: ['Play', '播放'],
  pause: ['Pause', '暂停'],
  next: ['One step on', '前进一步'],
  last: ['To the end', '跳到末尾'],
  speed: ['Speed', '速度'],
  base: ['Time base', '时间基准'],
  base_step: ['equal steps', '每步等长'],
  base_model: ['predicted time', '预测时间'],
  base_recorded: ['recorded time', '实测时间'],
  position: ['Step', '步'],
  phase_within: ['{name} in groups', '组内 {name}'],
  phase_between: ['{name} between', '组间 {name}'],
  step_of: ['Step {step} of {steps}', '第 {step} 步，共 {steps} 步'],
  at_start: ['before step 1', '第 1 步之前'],
  finished: ['after the last step', '最后一步之后'],
  form: ['Arrangement', '排列方式'],
  form_row: ['Row', '一行'],
  form_ring: ['Ring', '环'],
  form_tree: ['Tree', '树'],
  segments: ['Segments', '分段数'],
  segments_label: ['{count|1 segment|# segments}', '{count} 段'],
  segments_chart: [
    'Predicted time by number of segments: {list}. At the best one can do, {least}, every byte is sent once.',
    '按分段数预测的用时：{list}。下限 {least}：每个字节只发送一次。',
  ],
  segments_formula: [
    'n = {ranks} ranks pass D = {bytes} on, in S segments. That is S + n − 2 = {steps|1 step|# steps} of D/S each: D (S + n − 2)/(S·B) = {time}, and α = {alpha} for each step.',
    'n = {ranks} 个 rank 依次传递 D = {bytes}，分 S 段：共 S + n − 2 = {steps} 步，每步 D/S，即 D (S + n − 2)/(S·B) = {time}，另加每步 α = {alpha}。',
  ],
  segments_trees: [
    '{steps|1 step|# steps} of {bytes} each: more segments keep more ports busy, until the {alpha} of every step weigh more.',
    '{steps} 步，每步 {bytes}：段数越多，越多端口同时工作，直到每步 {alpha} 的开销占上风。',
  ],
  segments_least: ['D/B = {time}', 'D/B = {time}'],
  segments_bound: ['the least possible is {time}', '下界为 {time}'],
  segments_compare: ['Compare with one segment', '与不分段对比'],
  got_copy: ['the copy', '副本'],
  got_part: ['part {rank}', '第 {rank} 份'],
  got_all: ['all parts', '全部'],
  got_sum: ['the whole sum', '完整总和'],
  got_scan: ['the sum up to here', '到此为止的和'],
  got_part_sum: ['sum of part {rank}', '第 {rank} 份的和'],
  got_blocks: ['all for {rank}', '给 {rank} 的全部'],
  got_everyone: ['all are here', '全部到齐'],
  stage: ['Who has what', '谁有什么'],
  stage_label: [
    '{name}, {ranks|1 rank|# ranks}, {where}. The table below says the same.',
    '{name}，{ranks} 个 rank，{where}。下表内容相同。',
  ],
  legend_counts: [
    'Blocks are as wide as they are long: {least} to {most} elements of {size}. Bytes and times are theirs; unisono sim --counts has the times on a machine.',
    '块的宽度即其长度：{least} 到 {most} 个元素，每个 {size}。字节数和时间均按实际长度计算；unisono sim --counts 给出在某台机器上的时间。',
  ],
  copy_svg: ['Copy as SVG', '复制为 SVG'],
  save_film: ['Save as animation', '保存为动画'],
  copied: ['Copied.', '已复制。'],
  not_copied: ['The browser did not allow it.', '浏览器不允许。'],
  table_moves: ['Moves of this step', '本步的移动'],
  table_state: ['Who has what, as a table', '谁有什么（表格）'],
  column_from: ['from', '从'],
  column_to: ['to', '到'],
  column_chunks: ['chunks', '块'],
  column_what: ['how', '方式'],
  column_parts: ['parts of ranks', '含有的 rank'],
  column_bytes: ['bytes', '字节'],
  column_predicted: ['predicted time', '预测时间'],
  column_recorded: ['recorded time', '实测时间'],
  column_line: ['line', '行'],
  column_chunk: ['chunk', '块'],
  replaces: ['copy', '替换'],
  adds: ['add', '累加'],
  rank_n: ['rank {rank}', 'rank {rank}'],
  code: ['Made by', '生成于'],
  source: ['Source', '出处'],
  per_rank: ['{bytes} sent by the busiest rank in this step', '本步中最忙的 rank 发送 {bytes}'],
  sent_all: [
    '{bytes} sent or received by the busiest rank in all steps; the least possible is {bound}',
    '全部步骤中最忙的 rank 发送或接收 {bytes}；下界为 {bound}',
  ],
  model_time: [
    '{time} on a network with {alpha} a message and {gb} GB/s',
    '在每条消息 {alpha}、{gb} GB/s 的网络上用时 {time}',
  ],
  semicolon: [';', '；'],
  pairs: ['{count|1 pair of ranks talks|# pairs of ranks talk}', '{count} 对 rank 通信'],
  phase: ['Phase', '阶段'],

  legend_sum: [
    'A row is a chunk, a column a rank. Stripe i of a tile: the part of rank i is in the sum. Σ: complete; a blue frame: it sends this now.',
    '一行是一个块，一列是一个 rank。格中第 i 条：rank i 的贡献已加入和。Σ：已完整；蓝框：本步正在发送。',
  ],
  legend_one: [
    'A row is a chunk, a column a rank. The number says whose data it is{who}. A frame: it is where it must be.',
    '一行是一个块，一列是一个 rank。数字表示数据属于谁{who}。有边框：已到达应在之处。',
  ],
  legend_for: [' for', '（目的 rank）'],
  legend_a2a: [
    'A row is a destination, a column a rank. A filled slot i: the rank holds what rank i sends there. A frame: row r is complete on rank r.',
    '一行是一个目的地，一列是一个 rank。第 i 格填充：该 rank 持有 rank i 发往此处的数据。有边框：第 r 行在 rank r 上完整。',
  ],
  legend_share: ['The number counts the parts that are in.', '数字表示已计入的份数。'],
  legend_heat: [
    'A row is a chunk, a column a rank; too many ranks for strips: the stronger the blue of a cell, the more parts are in. Purple: on its way in this step.',
    '一行是一个块，一列是一个 rank；rank 太多，无法画条带：蓝色越浓，已计入的份数越多。紫色：本步正在传送。',
  ],
  legend_shared: [
    'A cell is {ranks|1 rank|# ranks} and {rows|1 chunk|# chunks}: their mean.',
    '一格代表 {ranks} 个 rank、{rows} 个块的平均值。',
  ],
  legend_across: [
    'Dashed: to another node, of {count|1 rank|# ranks} each.',
    '虚线：跨节点（每节点 {count} 个 rank）。',
  ],
  chose: ['Rank {rank}, {row}: {parts}', 'rank {rank}，{row}：{parts}'],
  nothing_there: ['nothing', '无'],
  twice: ['rank {rank} {times} times', 'rank {rank} 计入 {times} 次'],

  say_ring: [
    'Each rank sends {chunks} to the rank {far}{adds}.',
    '每个 rank 把{chunks}发给{far}的 rank{adds}。',
  ],
  far_right: ['on its right', '右边'],
  far_left: ['on its left', '左边'],
  far_right_n: ['{d} to its right', '右边第 {d} 个'],
  far_left_n: ['{d} to its left', '左边第 {d} 个'],
  chunks_1: ['one chunk', '一个块'],
  chunks_n: ['{count} chunks', ' {count} 个块'],
  chunks_some: ['up to {count} chunks', '最多 {count} 个块'],
  and_adds: [', which adds it to its own', '，对方把它累加到自己的数据上'],
  say_pairs: [
    'Pairs of ranks {d} apart exchange {chunks}{both}.',
    '相距 {d} 的 rank 两两交换{chunks}{both}。',
  ],
  and_both_add: [' and both add', '，双方都累加'],
  say_mutual: ['Ranks exchange {chunks} in pairs{both}.', 'rank 两两交换{chunks}{both}。'],
  say_from_one: ['Rank {rank} sends {chunks} to {peers}.', 'rank {rank} 把{chunks}发给 {peers}。'],
  say_to_one: [
    '{peers} send {chunks} to rank {rank}{adds}.',
    '{peers} 把{chunks}发给 rank {rank}{adds}。',
  ],
  say_all: [
    'Every rank sends {chunks} to every other{adds}.',
    '每个 rank 把{chunks}发给其他每个 rank{adds}。',
  ],
  say_some: [
    '{senders} ranks send {chunks} each to {receivers} ranks{adds}.',
    '{senders} 个 rank 各发送{chunks}，{receivers} 个 rank 接收{adds}。',
  ],
  say_local: ['Ranks move chunks within their own memory.', '各 rank 在自己的内存中移动块。'],
  say_none: ['Nothing moves.', '没有移动。'],
  say_whole: [
    '{done} of {needed|1 result is|# results are} complete now.',
    '现在 {needed} 个结果中有 {done} 个完整。',
  ],
  say_end: [
    '{needed|The only result is|All # results are} complete.',
    '全部 {needed} 个结果都已完整。',
  ],
  say_end_wrong: [
    'Only {done} of {needed|1 result is|# results are} complete.',
    '{needed} 个结果中只有 {done} 个完整。',
  ],
  peer_list: ['{count|rank|ranks} {list}', 'rank {list}'],
  peer_many: ['{count|1 rank|# ranks}', '{count} 个 rank'],

  predict: ['Quiz me', '先让我猜'],
  predict_question: ['Which chunk will rank {rank} send next?', 'rank {rank} 下一步会发送哪个块？'],
  predict_right: ['Right: {chunks} to {peers}.', '正确：{chunks} 发给 {peers}。'],
  predict_wrong: ['No: it sends {chunks} to {peers}.', '不对：它把 {chunks} 发给 {peers}。'],
  follow: ['Follow a chunk', '跟踪一个块'],
  follow_none: ['none', '不跟踪'],
  follow_path: ['The way of {chunk}', '{chunk} 的路径'],
  follow_hop: ['step {step}: {from} → {to}', '第 {step} 步：{from} → {to}'],
  follow_add: ['added', '累加'],

  break_it: ['Break it', '故意弄坏一步'],
  break_hint: [
    'Grab an arrow and let it go over another rank, or beside all of them. Or choose a move of this step, remove it or send it elsewhere: the checker says at once what is wrong then.',
    '抓住一个箭头，拖到别的 rank 上，或拖到空白处。也可以选择本步的一个移动，删去它或改发到别处：检查器会立刻说明哪里出错。',
  ],
  break_drop: ['Remove', '删去'],
  break_to: ['Send to', '改发到'],
  break_undo: ['Undo', '撤销'],
  break_reset: ['Undo all', '全部复原'],
  break_none: ['No move of this step is left.', '本步没有可选的移动。'],
  break_move: ['Move', '移动'],
  break_done: ['{count|1 change|# changes}', '{count} 处改动'],
  break_still_right: [
    'Still right: the result is the same without it, though it is no longer the algorithm that it was.',
    '结果仍然正确：不过它已不再是原来的算法。',
  ],
  findings: ['What the checker says', '检查器的结论'],
  findings_words: [
    'In the words of `unisono verify`, which says the same of the same schedule.',
    '与 `unisono verify` 对同一调度表的说法相同。',
  ],
  findings_more: ['… and {count} more', '……以及另外 {count} 处'],

  keys_title: ['Shortcuts', '快捷键'],
  key_steps: ['one step back, one step on', '后退一步，前进一步'],
  key_play: ['play or pause', '播放或暂停'],
  key_ends: ['to the beginning, to the end', '到开头，到末尾'],
  key_phase: ['to the phase before, to the next one', '上一阶段，下一阶段'],
  key_tabs: ['another view', '切换视图'],
  key_table: ['open or close the tables', '打开或关闭表格'],
  key_follow: ['follow the next chunk', '跟踪下一个块'],
  key_zoom: ['zoom the time (Time, Run)', '缩放时间（时序、运行）'],
  key_move: ['earlier, later (Time, Run)', '更早，更晚（时序、运行）'],
  key_help: ['these keys', '显示快捷键'],
} as const satisfies Record<string, readonly [string, string]>;

export const TEXTS = {
  ...PAGE_TEXTS,
  ...ARTICLE_TEXTS,
  ...LEARN_TEXTS,
  ...STORY_TEXTS,
  ...PLAN_TEXTS,
  ...STEP_TEXTS,
  ...TOOL_TEXTS,
  ...TOGETHER_TEXTS,
  ...PIPELINE_TEXTS,
  ...PARALLEL_TEXTS,
  ...ORDER_TEXTS,
  ...OVERLAP_TEXTS,
  ...RESHARD_TEXTS,
  ...WORKED_TEXTS,
};
export type TextKey = keyof typeof TEXTS;

export function text(
  lang: Lang,
  key: TextKey,
  values: Record<string, string | number> = {},
): string {
  return fill(lang, TEXTS[key], values);
}

// A text that is defined where it is used, such as in a chapter.
export function fill(
  lang: Lang,
  both: readonly [string, string],
  values: Record<string, string | number> = {},
): string {
  const places = /\{(\w+)(?:\|([^|}]*)\|([^}]*))?\}/g;
  return both[lang === 'zh' ? 1 : 0].replace(places, (whole, name: string, one, more) => {
    if (!(name in values)) return whole;
    const value = String(values[name]);
    return more === undefined ? value : (value === '1' ? one : more).replace('#', value);
  });
}
