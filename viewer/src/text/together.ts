// The texts of the story of all axes together.

export const TOGETHER_TEXTS = {
  story_together: ['All together', '混合并行（3D/4D）'],
  to_nodes: ['A model on a machine', '一台机器上的模型'],
  to_node: ['node {node}', '节点 {node}'],
  to_node_inside: ['node 0: {near} GB/s', '节点 0：{near} GB/s'],
  to_inside: ['in a node {near} GB/s', '节点内 {near} GB/s'],
  to_between: ['between nodes {far} GB/s', '节点之间 {far} GB/s'],
  to_nodes_words: [
    '{model} is trained on {devices} GPUs in {nodes|1 node|# nodes} of {each}: {layout}. A frame is a node: {near} GB/s a GPU inside.',
    '{model} 在 {devices} 个 GPU（{nodes} 个节点，每个 {each} 个）上训练：{layout}。一个框是一个节点：节点内每个 GPU {near} GB/s。',
  ],
  to_nodes_far: [
    ' The line below the nodes is the network between them: {far} GB/s a GPU.',
    '节点下方的线是节点之间的网络：每个 GPU {far} GB/s。',
  ],
  to_wire: ['{axis}: {what}', '{axis}：{what}'],
  to_wire_words: [
    'Groups of {size} ranks; coloured: that of rank 0. In a round of the pipeline: {calls} calls, {inside} inside nodes and {between} between them, of all ranks together.',
    '每组 {size} 个 rank；着色的是 rank 0 所在的组。流水线一轮中：{calls} 次调用，所有 rank 合计节点内 {inside}，节点间 {between}。',
  ],
  to_pair_words: [
    'Coloured: stages that pass activations on, and gradients back. In a round of the pipeline: {calls|1 message|# messages}, {inside} inside nodes and {between} between them.',
    '着色的流水级依次传递激活，并回传梯度。流水线一轮中：{calls} 条消息，节点内 {inside}，节点间 {between}。',
  ],
  to_time: ['What a step is made of', '一步由什么组成'],
  to_time_words: [
    'A step takes {time}. Communication here is what nothing hides. The more bytes an axis has, the more it gains from links inside nodes.',
    '一步用时 {time}。这里的通信是未掩盖的部分。字节越多的并行维度，放在节点内收益越大。',
  ],
  to_legend: [
    'Frame: a node; line below: the network. A colour is an axis: it lights the wires that it uses, and the group of rank 0. Bars: bytes of all ranks, plain inside nodes, striped between them.',
    '框：节点；下方的线：网络。一种颜色代表一个并行维度：它所用的线路和 rank 0 所在的组会点亮。条形：所有 rank 的字节，实色为节点内，斜纹为节点间。',
  ],
  to_choice: ['Model and machine', '模型与机器'],
  to_step: ['{layout}: {time} a step', '{layout}：每步 {time}'],
  to_ranked: ['ranked first', '排名第一'],
  to_source: [
    'From `unisono plan-model {model} --on {machine} --train{explain}`. What context parallelism sends is in its time only.',
    '来自 `unisono plan-model {model} --on {machine} --train{explain}`。上下文并行的通信只计入时间。',
  ],
  to_classic: [
    'This is the classic layout, {layout}: {time} a step. Ranked first is {first}: {best}.',
    '这是经典布局 {layout}：每步 {time}。排名第一的是 {first}：{best}。',
  ],
  to_table: ['All axes as a table', '所有并行维度（表格）'],
  to_part_matrix_products: ['matrix products', '矩阵乘法'],
  to_part_device_memory: ['device memory', '显存访问'],
  to_part_recompute: ['recompute', '重计算'],
  to_part_tensor: ['tensor parallel', '张量并行'],
  to_part_context: ['context parallel', '上下文并行'],
  to_part_experts: ['expert parallel', '专家并行'],
  to_part_pipeline: ['pipeline', '流水线'],
  to_part_data: ['data parallel', '数据并行'],
  to_part_bubble: ['bubble', '气泡'],
  to_part_optimiser: ['optimiser', '优化器'],
  to_part_offload: ['offload to the host', '卸载到主机内存'],
} as const;
