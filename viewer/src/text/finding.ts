// The sentences of findings, in both languages, without the step. {rank} and {chunk} stand for
// these fields of the finding, {0}, {1} and so on for its arguments, {all} for all arguments, and
// {ranks} for the arguments as a list of ranks. The English sentences are those of
// src/schedule/finding_text.cc.
import type { Finding, Mistake } from '../replay/finding';
import type { Lang } from './texts';

export const SENTENCES: Record<Mistake, readonly [string, string]> = {
  shape: ['shape: {0} ranks, {1} chunks, {2} steps', '形状：{0} 个 rank，{1} 个块，{2} 步'],
  root: ['shape: root {0} of {1} ranks', '形状：{1} 个 rank 中的 root {0}'],
  chunk_unit: ['shape: {0} chunks are not a multiple of {1}', '形状：{0} 个块不是 {1} 的倍数'],
  barrier_chunks: [
    'shape: a barrier has 1 chunk, not {0}',
    '形状：barrier 只有 1 个块，而不是 {0} 个',
  ],
  phase_order: [
    'phase {0}: first step {1} is out of order or beyond the {2} steps',
    '阶段 {0}：起始步 {1} 次序不对，或超出 {2} 步',
  ],
  move_ranks: ['move {0}->{1}: there are {2} ranks', '移动 {0}->{1}：只有 {2} 个 rank'],
  move_chunks: ['move {0}->{1}: chunks {2}+{3} of {4}', '移动 {0}->{1}：块 {2}+{3}，共 {4} 个'],
  move_step: [
    'move {0}->{1}: step is out of order or beyond the {2} steps',
    '移动 {0}->{1}：步的次序不对，或超出 {2} 步',
  ],
  writes_input: ['move {0}->{1} writes the input', '移动 {0}->{1} 写入了输入'],
  cannot_reduce: ['move {0}->{1} reduces, but {2} does not', '移动 {0}->{1} 做归约，但 {2} 不归约'],
  onto_itself: [
    'move {0}->{1} moves cells onto themselves',
    '移动 {0}->{1} 把数据移到它自己所在之处',
  ],
  no_output: ['rank {rank} has no output chunk {0}', 'rank {rank} 没有输出块 {0}'],
  two_writes: [
    'two moves write the {0} of rank {rank} chunk {chunk}',
    '两个移动写入 rank {rank} 块 {chunk} 的 {0}',
  ],
  no_input: [
    'rank {rank} reads chunk {chunk} of its input, which it has not',
    'rank {rank} 读取其输入的块 {chunk}，但它没有该块',
  ],
  reads_unwritten: [
    'rank {rank} reads chunk {chunk} of its {0}, which nobody wrote',
    'rank {rank} 读取其 {0} 的块 {chunk}，但无人写过',
  ],
  counted_twice: [
    'rank {0} counted twice at rank {rank} chunk {chunk}',
    'rank {0} 在 rank {rank} 的块 {chunk} 中被计入两次',
  ],
  lacks: [
    'chunk {chunk} lacks {ranks} {all} on rank {rank}',
    'rank {rank} 上的块 {chunk} 缺少 rank {all} 的贡献',
  ],
  has_others: [
    'chunk {chunk} has {ranks} {all} on rank {rank}, which it must not have',
    'rank {rank} 上的块 {chunk} 有不该有的 rank {all} 的贡献',
  ],
  cannot_copy: [
    'rank {rank} cannot copy chunk {chunk}: waits for ever with one message a lane',
    'rank {rank} 无法复制块 {chunk}：每条通道一条消息时会永远等待',
  ],
  cannot_send: [
    'rank {rank} cannot send chunk {chunk} to rank {0}: waits for ever with one message a lane',
    'rank {rank} 无法把块 {chunk} 发给 rank {0}：每条通道一条消息时会永远等待',
  ],
  cannot_receive: [
    'rank {rank} cannot receive chunk {chunk} from rank {0}: waits for ever with one message a lane',
    'rank {rank} 无法从 rank {0} 接收块 {chunk}：每条通道一条消息时会永远等待',
  ],
};

export function sentence(finding: Finding, lang: Lang = 'en'): string {
  const { rank, chunk, arguments: given } = finding;
  const ranks = given.length === 1 ? 'rank' : 'ranks';
  const values: Record<string, unknown> = { rank, chunk, ranks, all: given.join(' '), ...given };
  return SENTENCES[finding.mistake][lang === 'zh' ? 1 : 0].replace(
    /\{(\w+)\}/g,
    (_, name: string) => String(values[name]),
  );
}

// Formats a finding as `unisono verify` does, with its step counted from 1.
export function toText(finding: Finding): string {
  if (finding.step >= 0) return `step ${finding.step + 1}: ${sentence(finding)}`;
  return finding.step < 0 && finding.kind === 'data_flow'
    ? `end: ${sentence(finding)}`
    : sentence(finding);
}
