// Reads untrusted documents: an error states its place in the document.
import { BadInput, isObject } from '../schedule/parse';

const MOST_ROWS = 500_000;

export type Json = Record<string, unknown>;

export function fail(place: string, message: string): never {
  throw new BadInput(`${place}: ${message}`);
}
export function num(value: unknown, place: string, least = 0, most = 1e15): number {
  if (typeof value !== 'number' || !Number.isFinite(value)) fail(place, 'this is not a number');
  if (value < least || value > most)
    fail(
      place,
      most < 1e15
        ? `${value} is not between ${least} and ${most}`
        : `${value} is less than ${least}`,
    );
  return value;
}
export function int(value: unknown, place: string, least: number, most: number): number {
  const result = num(value, place, least, most);
  return Number.isInteger(result) ? result : fail(place, 'this is not a whole number');
}
export function str(value: unknown, place: string): string {
  return typeof value === 'string' ? value.slice(0, 2000) : fail(place, 'this is not a text');
}
export function list(value: unknown, place: string): unknown[] {
  if (!Array.isArray(value)) fail(place, value === undefined ? 'missing' : 'this is not a list');
  if (value.length > MOST_ROWS) fail(place, `more than ${MOST_ROWS} values`);
  return value;
}

// Returns the columns of a group as rows; all columns must have the same length.
export function rows(
  group: unknown,
  place: string,
  keys: string[],
  optional: string[] = [],
): Json[] {
  if (!isObject(group)) fail(place, group === undefined ? 'missing' : 'this is not an object');
  const count = list(group[keys[0]!], `${place}/${keys[0]}`).length;
  const columns = [...keys, ...optional.filter((key) => group[key] !== undefined)].map((key) => {
    const column = list(group[key], `${place}/${key}`);
    if (column.length !== count) {
      fail(`${place}/${key}`, `${column.length} values, but ${place}/${keys[0]} has ${count}`);
    }
    return [key, column] as const;
  });
  return Array.from({ length: count }, (_, i) =>
    Object.fromEntries(columns.map(([key, column]) => [key, column[i]])),
  );
}
