// The catalogue schedule that a story shows for a collective, and its cost.
import { timing, type Network } from '../model/cost';
import { check } from '../replay/check';
import type { Replay } from '../replay/replay';
import { chunkBytes } from '../schedule/collective';
import type { Schedule } from '../schedule/types';
import { mostSent } from '../stories/exchange';
import { algorithmsOf, findAlgorithm, scheduleOf } from './data';
import { page } from './state.svelte';

export interface Played {
  schedule: Schedule;
  replay: Replay;
}

const played = new Map<Schedule, Played>();

// Prefers a ring, which libraries use for large messages. Undefined: the page has no schedule of
// the collective for this number of ranks.
export function collectiveOf(collective: string, ranks: number): Played | undefined {
  const first = collective === 'all_to_all' ? 'pairwise' : 'ring';
  const found =
    findAlgorithm(page.data, collective, first) ?? algorithmsOf(page.data, collective)[0];
  if (!found || ranks < 2) return undefined;
  const schedule = scheduleOf(found, ranks, 0);
  if (schedule.ranks !== ranks) return undefined;
  let known = played.get(schedule);
  if (!known) {
    const { replay } = check(schedule);
    if (!replay) return undefined;
    played.set(schedule, (known = { schedule, replay }));
  }
  return known;
}

export interface Cost {
  us: number;
  sent: number; // bytes sent by the busiest rank
}

// Returns the cost of one call with this number of bytes.
export function costOf(collective: string, ranks: number, bytes: number, network: Network): Cost {
  if (ranks < 2) return { us: 0, sent: 0 };
  if (collective === 'send_recv') {
    const { alphaUs, gbPerS } = network;
    return { us: alphaUs + bytes / (gbPerS * 1000), sent: bytes };
  }
  const schedule = collectiveOf(collective, ranks)?.schedule;
  if (!schedule) return { us: 0, sent: 0 };
  return {
    us: timing(schedule, bytes, network).total,
    sent: mostSent(schedule) * chunkBytes(schedule, bytes),
  };
}
