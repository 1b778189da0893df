// Schedules for tests, as `unisono show --json` prints them.
import { parseSchedule } from '../src/schedule/parse';
import type { Schedule } from '../src/schedule/types';
import { run } from './program';

export function schedule(name: string, ranks: number, ...words: string[]): Schedule {
  return parseSchedule(JSON.parse(run(['show', name, '-n', String(ranks), '--json', ...words])));
}
