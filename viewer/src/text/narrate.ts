// One sentence about a step, made from its moves.
import type { Schedule } from '../schedule/types';
import { text, type Lang, type TextKey } from './texts';

interface Messages {
  list: { from: number; to: number; chunks: number }[];
  adds: boolean;
  local: boolean;
}

function messagesOf(schedule: Schedule, begin: number, end: number): Messages {
  const { moves, ranks } = schedule;
  const pairs = new Map<number, number>();
  let adds = end > begin;
  for (let i = begin; i < end; i++) {
    if (moves.from[i] === moves.to[i]) continue;
    const key = moves.from[i]! * ranks + moves.to[i]!;
    pairs.set(key, (pairs.get(key) ?? 0) + moves.chunks[i]!);
    adds &&= moves.combine[i] === 1;
  }
  const list = [...pairs].map(([key, chunks]) => ({
    from: Math.trunc(key / ranks),
    to: key % ranks,
    chunks,
  }));
  return { list, adds, local: end > begin && list.length === 0 };
}

export function peersText(lang: Lang, peers: number[]): string {
  const list = [...new Set(peers)].sort((a, b) => a - b);
  if (list.length > 6) return text(lang, 'peer_many', { count: list.length });
  return text(lang, 'peer_list', { count: list.length, list: list.join(', ') });
}

function chunksText(lang: Lang, counts: number[]): string {
  const most = Math.max(...counts);
  if (most === 1) return text(lang, 'chunks_1');
  const even = counts.every((count) => count === most);
  return text(lang, even ? 'chunks_n' : 'chunks_some', { count: most });
}

function farText(lang: Lang, distance: number, ranks: number): string {
  const left = distance > ranks / 2;
  const d = left ? ranks - distance : distance;
  const key: TextKey = left ? 'far_left' : 'far_right';
  return d === 1 ? text(lang, key) : text(lang, `${key}_n`, { d });
}

function whatMoves(lang: Lang, schedule: Schedule, { list, adds }: Messages): string {
  const { ranks } = schedule;
  const chunks = chunksText(
    lang,
    list.map((each) => each.chunks),
  );
  const tail = adds ? text(lang, 'and_adds') : '';
  const senders = [...new Set(list.map((each) => each.from))];
  const receivers = [...new Set(list.map((each) => each.to))];
  const distance = (list[0]!.to - list[0]!.from + ranks) % ranks;
  const isRing =
    senders.length === ranks &&
    list.length === ranks &&
    list.every(({ from, to }) => (to - from + ranks) % ranks === distance);
  const apart = Math.abs(list[0]!.from - list[0]!.to);
  const isApart = list.every(({ from, to }) => Math.abs(from - to) === apart);
  const isMutual = list.every(({ from, to }) => list.some((b) => b.from === to && b.to === from));
  if (isApart && isMutual && list.length === senders.length && list.length > 1) {
    const both = adds ? text(lang, 'and_both_add') : '';
    return text(lang, 'say_pairs', { d: apart, chunks, both });
  }
  if (isMutual && list.length > 2 && !isRing && list.length === senders.length) {
    return text(lang, 'say_mutual', { chunks, both: adds ? text(lang, 'and_both_add') : '' });
  }
  if (isRing) {
    return text(lang, 'say_ring', { chunks, far: farText(lang, distance, ranks), adds: tail });
  }
  if (senders.length === 1) {
    const peers = peersText(lang, receivers);
    return text(lang, 'say_from_one', { rank: senders[0]!, chunks, peers });
  }
  if (receivers.length === 1) {
    const peers = peersText(lang, senders);
    const first = lang === 'en' ? peers[0]!.toUpperCase() + peers.slice(1) : peers;
    return text(lang, 'say_to_one', { rank: receivers[0]!, chunks, peers: first, adds: tail });
  }
  if (list.length === ranks * (ranks - 1)) return text(lang, 'say_all', { chunks, adds: tail });
  return text(lang, 'say_some', {
    senders: senders.length,
    receivers: receivers.length,
    chunks,
    adds: tail,
  });
}

// `begin` and `end`: the range of the step's moves.
export function narrate(lang: Lang, schedule: Schedule, begin: number, end: number): string {
  const messages = messagesOf(schedule, begin, end);
  if (messages.local) return text(lang, 'say_local');
  if (messages.list.length === 0) return text(lang, 'say_none');
  return whatMoves(lang, schedule, messages);
}
