// Blocks of all_to_all_v that differ: read from files, and how wide they are drawn.
import { describe, expect, test } from 'vitest';
import { endOf, readCounts, spansOf } from '../../src/schedule/counts';
import { parseSchedule } from '../../src/schedule/parse';

const SEND = [
  [1, 2],
  [0, 6],
];

function document(counts: unknown, collective = 'all_to_all') {
  return {
    format: 'unisono.schedule/1',
    ...{ collective, ranks: 2, chunks: 4, steps: 1, counts },
    moves: {
      ...{ step: [0, 0], from: [0, 1], to: [1, 0], chunk: [1, 2] },
      ...{ source: ['input', 'input'], target: ['output', 'output'] },
      combine: ['replace', 'replace'],
    },
  };
}

describe('counts of blocks', () => {
  test('are read with a schedule', () => {
    const schedule = parseSchedule(document({ send: SEND, element_bytes: 2112 }));
    expect(schedule.counts).toEqual({ elementBytes: 2112, send: SEND });
    expect(parseSchedule(document(undefined)).counts).toBeUndefined();
  });
  test('that cannot be are refused with their place', () => {
    for (const [counts, problem] of [
      [{ send: [[1, 2]] }, '/counts: send: no 2 rows'],
      [{ send: [[1], [2, 3]] }, '/counts: send: a row without 2 counts'],
      [
        {
          send: [
            [1, -1],
            [2, 3],
          ],
        },
        '/counts: send: no count',
      ],
      [
        {
          send: [
            [1, 'x'],
            [2, 3],
          ],
        },
        '/counts: send: no count',
      ],
      [{ send: SEND, element_bytes: 0 }, '/counts: element_bytes: no size'],
      [7, '/counts: no object'],
    ] as const) {
      expect(() => parseSchedule(document(counts))).toThrow(problem);
    }
    expect(readCounts({ send: SEND }, 3)).toBe('send: no 3 rows');
  });
  test('are the widths of a row, and the longest row is the whole strip', () => {
    const schedule = parseSchedule(document({ send: SEND }));
    expect(spansOf(schedule, 1, 80)).toEqual([
      { x: 0, width: 20 },
      { x: 20, width: 60 },
    ]);
    const short = spansOf(schedule, 0, 80)!;
    expect(short).toEqual([
      { x: 0, width: 10 },
      { x: 10, width: 0 },
    ]);
    expect(endOf(short)).toBe(10);
  });
  test('of nothing at all are no widths', () => {
    const schedule = parseSchedule(
      document({
        send: [
          [0, 0],
          [0, 0],
        ],
      }),
    );
    expect(spansOf(schedule, 0, 80)!.every((span) => span.width === 0)).toBe(true);
  });
});
