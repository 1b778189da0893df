// The texts of the step of a model.

export const STEP_TEXTS = {
  tab_step: ['A model’s step', '模型单步的计算与通信'],
  step_sample: [
    'A sample: what every rank of a model computes and moves for one prompt. For your model: `unisono step show llama3-70b --layout pp=2,tp=4 --prompt 512 --json > step.json`, then `unisono view step.json`, or drop the file on this page.',
    '示例：模型的每个 rank 为一个提示计算什么、移动什么。查看你自己的模型：`unisono step show llama3-70b --layout pp=2,tp=4 --prompt 512 --json > step.json`，再用 `unisono view step.json` 打开，或把文件拖到本页。',
  ],
  step_microbatches: [
    'Each stage does this for {count|the only microbatch|each of # microbatches}: the first one is drawn. The bytes of the axes are those of all.',
    '每个阶段对 {count} 个微批次各做一遍：图中是第一个。各并行维度的字节数是全部微批次的。',
  ],
  step_intro: [
    'Every column is a node of the model, every lane a rank. Grey computes; a colour communicates, and ranks in a group have the same stripe. Play, or press →.',
    '一列是模型的一个节点，一行是一个 rank。灰色为计算，彩色为通信，同组的 rank 有相同的条纹。播放或按 → 前进。',
  ],
  step_right: ['proved right', '已证明正确'],
  step_wrong: ['Not right: {count|1 finding|# findings}', '不正确：{count} 处错误'],
  step_no_calls: [
    'What is wrong has no calls to show. This file is only about the proof.',
    '没有可显示的调用：此文件只包含证明的结果，或该步骤不正确。',
  ],
  step_layer: ['{section}, layer {layer}', '{section}，第 {layer} 层'],
  step_block: ['Part of the step', '步骤的部分'],
  step_lanes: [
    'What {ranks|1 rank does|# ranks do} in {block}: {nodes}',
    '{ranks} 个 rank 在 {block} 中做什么：{nodes}',
  ],
  step_now: ['{node}: {words}', '{node}：{words}'],
  step_computes: [
    '{ranks|1 rank computes|# ranks compute}, {work}{ranks|| each}',
    '{ranks} 个 rank 各计算 {work}',
  ],
  step_reads: [
    '{ranks|1 rank works|# ranks work} on {work}{ranks|| each}',
    '{ranks} 个 rank 各处理 {work}',
  ],
  step_moves: [
    '{what} in {groups|1 group|# groups} of {size} ranks, {bytes} each',
    '{what}：{groups} 个组，每组 {size} 个 rank，每次 {bytes}',
  ],
  step_more: ['and {count|1 rank|# ranks} more, in the table', '以及另外 {count} 个 rank，见表格'],
  step_table: ['This part as a table', '此部分（表格）'],
  step_node: ['Node of the model', '模型节点'],
  step_does: ['What it does', '做什么'],
  step_groups: ['Groups', '组'],
  step_work: ['Work or bytes', '计算量或字节'],
  step_wires: ['Which axis goes over which wire', '哪个并行维度走哪条线路'],
  step_wires_words: [
    'A frame is a node with its ranks. Bytes are those of all ranks over the whole step: plain inside a node, striped between nodes.',
    '同一节点的 rank 在一个框里。整个步骤中所有 rank 的字节：实色为节点内，斜纹为节点间。',
  ],
  step_per_node: ['Ranks per node', '每节点 rank 数'],
  step_axis: ['Axis', '并行维度'],
  step_calls: ['Calls', '调用次数'],
  step_inside: ['inside a node', '节点内'],
  step_between: ['between nodes', '节点间'],
  step_memory: [
    'The fullest rank keeps {all}: weights {weights}, cache {cache}, activations {activations}.',
    '占用最多的 rank 保留 {all}：权重 {weights}，缓存 {cache}，激活 {activations}。',
  ],
} as const;
