// Defines the collectives: which rank has which chunk as input, and which must have it at the end.
// These are the rules of the C++ library, written independently.
import type { Schedule } from './types';

export const COLLECTIVES = [
  'broadcast',
  'scatter',
  'gather',
  'reduce',
  'all_reduce',
  'all_gather',
  'reduce_scatter',
  'all_to_all',
  'barrier',
] as const;

export const SCANS = ['scan', 'exclusive_scan'];

export const V_FORMS = [
  'scatter_v',
  'gather_v',
  'all_gather_v',
  'reduce_scatter_v',
  'all_to_all_v',
];

export function isCollective(name: string): boolean {
  return [...COLLECTIVES, ...SCANS, ...V_FORMS].includes(name);
}

export function plainForm(collective: string): string {
  // Called for every cell, so it searches no list.
  return collective.endsWith('_v') ? collective.slice(0, -2) : collective;
}

export function isRooted(collective: string): boolean {
  return ['broadcast', 'scatter', 'gather', 'reduce'].includes(plainForm(collective));
}

export function reduces(collective: string): boolean {
  return ['reduce', 'all_reduce', 'reduce_scatter', ...SCANS].includes(plainForm(collective));
}

// Returns whether the result of rank `to` contains the input of rank `from`.
export function contributes(collective: string, from: number, to: number): boolean {
  return !SCANS.includes(collective) || from < to || (from === to && collective === 'scan');
}

// Returns whether one chunk can contain contributions of several ranks.
export function countsEveryone(collective: string): boolean {
  return reduces(collective) || collective === 'barrier';
}

function groupSize(schedule: Schedule): number {
  return Math.max(1, Math.trunc(schedule.chunks / schedule.ranks));
}

// The number of chunks from one rank to another in all_to_all.
export function pairSize(schedule: Schedule): number {
  return Math.max(1, Math.trunc(schedule.chunks / (schedule.ranks * schedule.ranks)));
}

export function hasInput(schedule: Schedule, rank: number, chunk: number): boolean {
  switch (plainForm(schedule.collective)) {
    case 'broadcast':
    case 'scatter':
      return rank === schedule.root;
    case 'gather':
    case 'all_gather':
      return Math.trunc(chunk / groupSize(schedule)) === rank;
    case 'all_to_all':
      return Math.trunc(chunk / pairSize(schedule) / schedule.ranks) === rank;
    default:
      return true;
  }
}

export function needsOutput(schedule: Schedule, rank: number, chunk: number): boolean {
  switch (plainForm(schedule.collective)) {
    case 'reduce':
    case 'gather':
      return rank === schedule.root;
    case 'scatter':
    case 'reduce_scatter':
      return Math.trunc(chunk / groupSize(schedule)) === rank;
    case 'all_to_all':
      return Math.trunc(chunk / pairSize(schedule)) % schedule.ranks === rank;
    case 'exclusive_scan':
      return rank > 0;
    default:
      return true;
  }
}

// Returns the rank whose data a chunk contains, if chunks are not summed.
export function originOf(schedule: Schedule, chunk: number): number {
  switch (plainForm(schedule.collective)) {
    case 'gather':
    case 'all_gather':
    case 'all_to_all':
      return Math.trunc(chunk / Math.max(1, Math.trunc(schedule.chunks / schedule.ranks)));
    default:
      return schedule.root;
  }
}

// Returns the number of which the chunks must be a multiple.
export function chunkUnit(collective: string, ranks: number): number {
  switch (plainForm(collective)) {
    case 'scatter':
    case 'gather':
    case 'all_gather':
    case 'reduce_scatter':
      return ranks;
    case 'all_to_all':
      return ranks * ranks;
    default:
      return 1;
  }
}

// Returns the bytes of one chunk. `bytes` is the size of the call (the larger of what a rank sends
// and receives in total).
export function chunkBytes(schedule: Schedule, bytes: number): number {
  switch (plainForm(schedule.collective)) {
    case 'barrier':
      return 0;
    case 'all_to_all':
      return (bytes * schedule.ranks) / schedule.chunks;
    default:
      return bytes / schedule.chunks;
  }
}
