// Blocks of all_to_all_v that differ: read from files, and how wide they are drawn.
import { describe, expect, test } from 'vitest';
import { boundOf } from '../../src/model/bounds';
import { timing } from '../../src/model/cost';
import { totals } from '../../src/model/traffic';
import { bytesOfMoves, endOf, mostMoved, readCounts, spansOf } from '../../src/schedule/counts';
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
  test('are the bytes and the times of moves, whatever a call is said to have', () => {
    const schedule = parseSchedule(document({ send: SEND, element_bytes: 100 }));
    const bytesOf = bytesOfMoves(schedule, 2 ** 20);
    expect([0, 1].map(bytesOf)).toEqual([200, 0]);
    expect(totals(schedule, 2 ** 20)).toEqual({
      ...{ sent: [200, 0], received: [0, 200], most: 200, total: 200 },
    });
    const { messages, total } = timing(schedule, 2 ** 20, { alphaUs: 3, gbPerS: 0.1 });
    expect(messages.map(({ bytes, end }) => [bytes, end])).toEqual([
      [200, 5],
      [0, 3],
    ]);
    expect(total).toBe(5);
    expect(mostMoved(schedule.counts!, true)).toBe(800); // rank 1 receives 2 and keeps 6
    expect(boundOf(schedule, 2 ** 20).bytes).toBe(200);
    const equal = parseSchedule(document(undefined));
    expect([0, 1].map(bytesOfMoves(equal, 100))).toEqual([50, 50]);
  });
  test('of blocks in several chunks are cut to whole elements', () => {
    const cut = parseSchedule({ ...document({ send: SEND, element_bytes: 10 }), chunks: 8 });
    cut.counts!.send[0]![0] = 7; // chunks 0 and 1
    cut.moves.chunk[0] = 1;
    expect(bytesOfMoves(cut, 0)(0)).toBe(40);
    cut.moves.chunk[0] = 0;
    expect(bytesOfMoves(cut, 0)(0)).toBe(30);
    cut.moves.chunks[0] = 3; // and the first of the block to rank 1
    expect(bytesOfMoves(cut, 0)(0)).toBe(80);
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
