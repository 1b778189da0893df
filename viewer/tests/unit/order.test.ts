// The sums that the story of the same bits shows.
import { describe, expect, it } from 'vitest';
import { bitsOf, chainSum, LEAVES, rankOf, sumsOf, textOf, treeSum } from '../../src/stories/order';

const LAYOUTS = [1, 2, 3, 4, 8];

describe('one sum under two layouts', () => {
  it('the tree is the same under every layout, and so are the bits', () => {
    for (const ranks of LAYOUTS) {
      expect(textOf(treeSum(ranks))).toBe('(((0+1)+(2+3))+((4+5)+(6+7)))');
      expect(bitsOf(treeSum(ranks).value)).toBe(bitsOf(treeSum(1).value));
    }
  });

  it('in rank order, layouts make other additions, with other bits', () => {
    expect(textOf(chainSum(2))).toBe('((((0+1)+2)+3)+(((4+5)+6)+7))');
    const bits = [1, 2, 3, 4].map((ranks) => bitsOf(chainSum(ranks).value));
    expect(new Set(bits).size).toBe(4);
    expect(textOf(chainSum(8))).toBe(textOf(chainSum(1)));
  });

  it('every sum is of terms of its rank, or of several', () => {
    for (const ranks of LAYOUTS) {
      for (const root of [treeSum(ranks), chainSum(ranks)]) {
        const sums = sumsOf(root);
        expect(sums.length).toBe(2 * LEAVES - 1);
        for (const { first, end, rank } of sums) {
          const all = Array.from({ length: end - first }, (_, i) => rankOf(first + i, ranks));
          expect(rank).toBe(new Set(all).size === 1 ? all[0] : -1);
        }
      }
    }
  });
});
