// Reads an untrusted `unisono.schedule/1` from a file that was dropped on the page. An error states
// its place.
import { isCollective, isRooted, plainForm } from './collective';
import { readCounts } from './counts';
import { BUFFERS, COMBINES, emptyMoves, type Schedule } from './types';

export const FORMAT = 'unisono.schedule/1';
const MOST_MOVES = 2_000_000;
const MOST_CELLS = 64_000_000;

export class BadInput extends Error {}

function fail(place: string, message: string): never {
  throw new BadInput(`${place}: ${message}`);
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function number(value: unknown, place: string, least: number, most: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value)) fail(place, 'no whole number');
  if (value < least || value > most) fail(place, `${value} is not in ${least}..${most}`);
  return value;
}

function name(value: unknown, place: string): string {
  // eslint-disable-next-line no-control-regex
  if (typeof value !== 'string' || value.length > 1024 || /[\x00-\x1f\x7f]/.test(value)) {
    fail(place, 'no name of at most 1024 characters');
  }
  return value;
}

function column(
  group: Record<string, unknown>,
  path: string,
  key: string,
  count?: number,
): unknown[] {
  const value = group[key];
  if (!Array.isArray(value)) fail(`${path}/${key}`, value === undefined ? 'missing' : 'no array');
  if (count !== undefined && value.length !== count) {
    fail(`${path}/${key}`, `${value.length} values, but ${path}/step has ${count}`);
  }
  return value;
}

function refuseOthers(object: Record<string, unknown>, path: string, keys: string[]): void {
  for (const key of Object.keys(object)) {
    if (!keys.includes(key)) fail(path === '' ? '/' : path, `unknown key "${key.slice(0, 40)}"`);
  }
}

const KEYS = 'format collective algorithm ranks root chunks steps file phases moves counts'.split(
  ' ',
);
const COLUMNS = 'step from to chunk chunks source target combine line'.split(' ');

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new BadInput('this is not JSON, or only the beginning of it');
  }
}

export function parseSchedule(document: unknown): Schedule {
  if (!isObject(document)) throw new BadInput('/: no object');
  if (document.format !== FORMAT) {
    const found = typeof document.format === 'string' ? document.format.slice(0, 40) : '';
    fail('/format', `unknown version "${found}", this page reads ${FORMAT}`);
  }
  refuseOthers(document, '', KEYS);
  const collective = name(document.collective, '/collective');
  if (!isCollective(collective)) fail('/collective', `"${collective}" is not a collective`);
  const ranks = number(document.ranks, '/ranks', 1, 4096);
  const chunks = number(document.chunks, '/chunks', 1, 2 ** 24);
  const steps = number(document.steps, '/steps', 0, 1_000_000);
  const root = document.root === undefined ? 0 : number(document.root, '/root', 0, ranks - 1);
  if (isRooted(collective) && document.root === undefined) fail('/root', 'missing');
  if (!isRooted(collective) && root !== 0) fail('/root', `${collective} has no root`);
  const schedule: Schedule = {
    collective,
    algorithm: document.algorithm === undefined ? '' : name(document.algorithm, '/algorithm'),
    ranks,
    root,
    chunks,
    steps,
    file: document.file === undefined ? '' : name(document.file, '/file'),
    phases: [],
    moves: emptyMoves(0),
  };
  if (document.counts !== undefined) {
    if (!isObject(document.counts)) fail('/counts', 'no object');
    const counts = readCounts(document.counts, ranks);
    if (typeof counts === 'string') fail('/counts', counts);
    if (plainForm(collective) !== 'all_to_all') fail('/counts', `${collective} has equal blocks`);
    schedule.counts = counts;
  }
  readPhases(document.phases, schedule);
  readMoves(document.moves, schedule);
  return schedule;
}

function readPhases(value: unknown, schedule: Schedule): void {
  if (value === undefined) return;
  if (!isObject(value)) fail('/phases', 'no object');
  const names = column(value, '/phases', 'name');
  const first = column(value, '/phases', 'first_step');
  if (names.length !== first.length) fail('/phases', 'columns of unequal length');
  schedule.phases = names.map((each, i) => ({
    name: name(each, `/phases/name/${i}`),
    firstStep: number(first[i], `/phases/first_step/${i}`, 0, Math.max(0, schedule.steps - 1)),
  }));
}

function word(value: unknown, words: readonly string[], place: string): number {
  const index = typeof value === 'string' ? words.indexOf(value) : -1;
  if (index < 0) fail(place, `none of ${words.join(', ')}`);
  return index;
}

function readMoves(value: unknown, schedule: Schedule): void {
  if (!isObject(value)) fail('/moves', value === undefined ? 'missing' : 'no object');
  refuseOthers(value, '/moves', COLUMNS);
  const steps = column(value, '/moves', 'step');
  const count = steps.length;
  if (count > MOST_MOVES) fail('/moves', `more than ${MOST_MOVES} moves`);
  const of = (key: string) => column(value, '/moves', key, count);
  const optional = (key: string, fallback: number) =>
    value[key] === undefined ? new Array<unknown>(count).fill(fallback) : of(key);
  const columns = {
    from: of('from'),
    to: of('to'),
    chunk: of('chunk'),
    chunks: optional('chunks', 1),
    source: of('source'),
    target: of('target'),
    combine: of('combine'),
    line: optional('line', 0),
  };
  const moves = emptyMoves(count);
  let before = 0;
  let cells = 0;
  for (let i = 0; i < count; i++) {
    const at = (key: string) => `/moves/${key}/${i}`;
    before = number(steps[i], at('step'), before, schedule.steps - 1);
    moves.step[i] = before;
    moves.from[i] = number(columns.from[i], at('from'), 0, schedule.ranks - 1);
    moves.to[i] = number(columns.to[i], at('to'), 0, schedule.ranks - 1);
    const chunk = number(columns.chunk[i], at('chunk'), 0, schedule.chunks - 1);
    moves.chunk[i] = chunk;
    moves.chunks[i] = number(columns.chunks[i], at('chunks'), 1, schedule.chunks - chunk);
    moves.source[i] = word(columns.source[i], BUFFERS, at('source'));
    moves.target[i] = word(columns.target[i], BUFFERS, at('target'));
    moves.combine[i] = word(columns.combine[i], COMBINES, at('combine'));
    moves.line[i] = number(columns.line[i], at('line'), 0, 2 ** 30);
    cells += moves.chunks[i]!;
    if (cells > MOST_CELLS) fail('/moves', `more than ${MOST_CELLS} chunks are moved`);
  }
  schedule.moves = moves;
}
