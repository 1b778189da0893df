import { describe, expect, it } from 'vitest';
import { boundUs, lowerBound } from '../../src/model/bounds';
import { timing } from '../../src/model/cost';
import { linkLoads } from '../../src/model/links';
import { positionAt, quickest, sizes, stepEnds } from '../../src/model/sweep';
import { byteMatrix, totals } from '../../src/model/traffic';
import { bytesText, parseBytes, timeText } from '../../src/model/units';
import { run } from '../program';
import { schedule } from '../schedules';

const NETWORK = { alphaUs: 5, gbPerS: 12.5 };

interface Row {
  algorithm: string;
  time_us: number;
  steps: number;
  sent_bytes: number;
}

function plan(collective: string, ranks: number, bytes: number) {
  const words = ['plan', collective, '-n', String(ranks), '--bytes', String(bytes), '--json'];
  return JSON.parse(run([...words, '--link', 'alpha=5us,beta=12.5GB/s']));
}

describe('the model agrees with unisono plan', () => {
  for (const collective of [
    'broadcast',
    'all_reduce',
    'all_gather',
    'reduce_scatter',
    'all_to_all',
  ]) {
    it.each([5, 8])(`${collective} of %i ranks`, (ranks) => {
      const bytes = 2 ** 20;
      const answer = plan(collective, ranks, bytes);
      const rows: Row[] = answer.candidates;
      expect(rows.length).toBeGreaterThan(2);
      for (const row of rows) {
        const one = schedule(`${collective}/${row.algorithm}`, ranks);
        // The program prints six digits.
        expect(timing(one, bytes, NETWORK).total / row.time_us, row.algorithm).toBeCloseTo(1, 5);
        expect(one.steps).toBe(row.steps);
        expect(totals(one, bytes).most).toBeCloseTo(row.sent_bytes, 0);
      }
    });
  }

  it('the lower bound', () => {
    const bound = lowerBound('all_reduce', 8, 2 ** 26);
    expect(bound.bytes).toBe((2 * 7 * 2 ** 26) / 8);
    expect(boundUs(bound, NETWORK)).toBeCloseTo(9395.24, 1);
  });
});

describe('clock and curves', () => {
  it('ends with the last message, and the critical path leads there', () => {
    const ring = schedule('all_reduce/ring', 8);
    const times = timing(ring, 2 ** 23, NETWORK);
    expect(times.critical.size).toBe(14);
    expect(stepEnds(ring, 2 ** 23, NETWORK).at(-1)).toBe(times.total);
  });

  it('finds step and fraction of a time', () => {
    const ends = Float64Array.from([10, 20, 40]);
    expect(positionAt(ends, 0)).toEqual({ step: 0, fraction: 0 });
    expect(positionAt(ends, 30)).toEqual({ step: 2, fraction: 0.5 });
    expect(positionAt(ends, 40)).toEqual({ step: 3, fraction: 0 });
  });

  it('says who is quickest from which size on', () => {
    const at = sizes(0, 3);
    const list = [
      { name: 'a', us: [1, 2, 4, 8] },
      { name: 'b', us: [3, 3, 3, 3] },
    ];
    expect(quickest(list, at)).toEqual([
      { name: 'a', from: 1 },
      { name: 'b', from: 4 },
    ]);
  });
});

describe('traffic', () => {
  it('adds up to what is sent', () => {
    const ring = schedule('all_reduce/ring', 8);
    const matrix = byteMatrix(ring, 8 * 2 ** 20);
    expect(matrix[1]).toBe(14 * 2 ** 20);
    expect(matrix[2]).toBe(0);
    const loads = linkLoads(matrix, 8, 4);
    expect(loads.across).toBe(2 * 14 * 2 ** 20);
    expect(loads.busiest).toMatchObject({ kind: 'node', bytes: 14 * 2 ** 20 });
  });
});

describe('units', () => {
  it('reads and writes sizes and times', () => {
    expect(parseBytes('64MiB')).toBe(2 ** 26);
    expect(parseBytes('1.5 g')).toBe(1.5 * 2 ** 30);
    expect(parseBytes('8 apples')).toBeUndefined();
    expect(bytesText(2 ** 26)).toBe('64 MiB');
    expect(timeText(9470)).toBe('9.47 ms');
    expect(timeText(0.25)).toBe('250 ns');
  });
});
