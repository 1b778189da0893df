// The formulas of the worked examples against `unisono plan`, and the sliders' places.
import { describe, expect, it } from 'vitest';
import { bestSegments, costs, FORMULAS } from '../../src/model/formulas';
import { BYTES, layerOfGpt3, settingsOf, WORKED } from '../../src/model/worked';
import { run } from '../program';

interface Row {
  algorithm: string;
  time_us: number;
}

function plan(collective: string, ranks: number, bytes: number, alphaUs: number, gbPerS: number) {
  const words = ['plan', collective, '-n', String(ranks), '--bytes', String(bytes), '--json'];
  const link = `alpha=${alphaUs}us,beta=${gbPerS}GB/s`;
  // By itself it compares Bruck's algorithm with the best radix.
  const asked = collective === 'all_to_all' ? ['--algorithm', 'bruck:radix=2'] : [];
  return JSON.parse(run([...words, '--link', link, ...asked])).candidates as Row[];
}

// Compares all formulas with `plan`. Returns how many formulas `plan` has an answer for.
function compare(collective: string, ranks: number, bytes: number, alphaUs = 5, gbPerS = 12.5) {
  const rows = plan(collective, ranks, bytes, alphaUs, gbPerS);
  let compared = 0;
  for (const row of rows) {
    const [base, setting] = row.algorithm.split(':');
    const segments = setting?.startsWith('segments=') ? Number(setting.split('=')[1]) : 1;
    const list = costs({ collective, ranks, bytes, segments }, { alphaUs, gbPerS });
    const own = list.find(({ formula }) => formula.algorithm === base);
    if (!own || setting?.startsWith('radix=')) continue;
    compared++;
    // The program prints six digits.
    expect(own.us / row.time_us, `${collective}/${row.algorithm} n=${ranks}`).toBeCloseTo(1, 5);
    if (base === 'chain') expect(bestSegments(ranks, bytes, { alphaUs, gbPerS })).toBe(segments);
  }
  return compared;
}

describe('the formulas agree with unisono plan', () => {
  it.each(Object.keys(FORMULAS))('%s', (collective) => {
    for (const ranks of [2, 4, 5, 8, 13, 16]) {
      for (const bytes of [2 ** 13, 3 * 2 ** 25]) {
        const found = compare(collective, ranks, bytes);
        const isPower = Number.isInteger(Math.log2(ranks));
        expect(found, `n=${ranks}`).toBeGreaterThanOrEqual(isPower ? 2 : 1);
      }
    }
  });

  it.each(WORKED)('where the example $id begins', (example) => {
    const { collective, ranks, bytes, alphaUs, gbPerS } = example;
    expect(compare(collective, ranks, bytes, alphaUs, gbPerS)).toBeGreaterThan(0);
    expect(settingsOf(example).every((place) => place >= 0)).toBe(true);
  });

  it('says what the layer of GPT-3 takes, not only one of its calls', () => {
    const example = WORKED.find((each) => each.id === 'tensor')!;
    const own = costs({ ...example, segments: 1 }, example).find(
      ({ formula }) => formula.algorithm === 'ring',
    )!;
    const layer = layerOfGpt3(own.us, own.bytesUs, example.ranks);
    const ms = (us: number) => Number((us / 1000).toFixed(1));
    expect([layer.doubled, layer.one, layer.sending].map(ms)).toEqual([4.7, 9.4, 18.9]);
    expect(Math.round(100 * layer.share)).toBe(13);
    expect(example.bytes).toBe(32 * 2048 * 12288 * 2);
  });

  it('names the quickest first', () => {
    const network = { alphaUs: 5, gbPerS: 12.5 };
    const call = { collective: 'all_reduce', ranks: 16, segments: 1 };
    const quickest = (bytes: number) => costs({ ...call, bytes }, network)[0]!.formula.algorithm;
    expect(quickest(1024)).toBe('recursive_doubling');
    expect(quickest(2 ** 26)).toBe('halving_doubling');
    expect(costs({ ...call, ranks: 6, bytes: 1024 }, network)).toHaveLength(1);
  });

  it('has sizes that grow', () => {
    expect([...BYTES].sort((a, b) => a - b)).toEqual(BYTES);
    expect(bestSegments(2, 2 ** 30, { alphaUs: 5, gbPerS: 12.5 })).toBe(1);
    expect(bestSegments(8, 2 ** 30, { alphaUs: 0, gbPerS: 12.5 })).toBe(1);
  });
});
