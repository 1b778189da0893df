// Rings and trees of the stage, and the settings that the page carries.
import { describe, expect, it } from 'vitest';
import { readFileSync } from 'node:fs';
import { timing } from '../../src/model/cost';
import { check } from '../../src/replay/check';
import {
  algorithmAt,
  baseName,
  findAlgorithm,
  readPageData,
  scheduleOf,
  settingsOf,
} from '../../src/view/data';
import { flightsOf } from '../../src/view/primitive';
import { resultOf } from '../../src/view/results';
import { cardAt, edge, ring, trees, type Round } from '../../src/view/round';
import { childrenOf, depthsOf, treesOf } from '../../src/view/trees';
import { run, writePage } from '../program';
import { schedule } from '../schedules';

function overlaps({ cards, cardWidth, cardHeight }: Round): number {
  let count = 0;
  cards.forEach((a, i) =>
    cards.slice(i + 1).forEach((b) => {
      if (Math.abs(a.x - b.x) < cardWidth && Math.abs(a.y - b.y) < cardHeight) count++;
    }),
  );
  return count;
}

describe('trees', () => {
  it.each([3, 5, 8, 13, 16])('a binomial one of %i ranks is as deep as its steps', (ranks) => {
    const one = schedule('broadcast/binomial', ranks);
    const [tree, ...rest] = treesOf(one);
    expect(rest).toEqual([]);
    expect(Math.max(...depthsOf(tree!.parent)!)).toBeLessThanOrEqual(one.steps);
    const { moves } = one;
    // Every parent is the rank that sends, and everybody but the root has one.
    for (let i = 0; i < moves.count; i++) {
      if (moves.from[i] !== moves.to[i]) expect(tree!.parent[moves.to[i]!]).toBe(moves.from[i]);
    }
    expect(tree!.parent.filter((each) => each < 0)).toEqual([-1]);
  });

  it('of a reduction lead to the root', () => {
    const [tree] = treesOf(schedule('reduce/binomial', 8, '--root', '3'));
    expect(tree!.parent[3]).toBe(-1);
    expect(childrenOf(tree!.parent)[3]!.length).toBeGreaterThan(1);
  });

  it.each(['broadcast', 'all_reduce', 'reduce'])('%s has two that share the chunks', (name) => {
    for (const ranks of [4, 8, 16]) {
      const one = schedule(`${name}/double_tree`, ranks);
      const list = treesOf(one);
      expect(list, `${ranks}`).toHaveLength(2);
      const rows = list.flatMap((tree) => tree.rows).sort((a, b) => a - b);
      expect(rows).toEqual(Array.from({ length: one.chunks }, (_, row) => row));
    }
  });

  it('are not seen where there are none', () => {
    for (const name of [
      'all_reduce/ring',
      'all_to_all/pairwise',
      'all_reduce/recursive_doubling',
    ]) {
      expect(treesOf(schedule(name, 8)), name).toEqual([]);
    }
  });
});

describe('cards', () => {
  const shapes = run(['list', '--names']).trim().split('\n');
  it('never lie on each other, and each row has its place', { timeout: 60_000 }, () => {
    for (const name of shapes) {
      for (const ranks of [4, 16]) {
        const one = schedule(name, ranks);
        for (const width of [360, 880]) {
          const l = ring(one, width);
          expect(overlaps(l), name).toBe(0);
          expect(l.cards).toHaveLength(ranks);
          const found = treesOf(one);
          if (found.length === 0) continue;
          const list = trees(one, found, width);
          expect(list.cards).toHaveLength(ranks * found.length);
          expect(overlaps(list), `${name} ${width}`).toBe(0);
          for (const card of list.cards) {
            expect(list.cardOf(card.rank, card.rows[0]!)).toBe(card);
          }
        }
      }
    }
  });

  it('of eight ranks around a ring fit a laptop’s screen', () => {
    expect(ring(schedule('all_reduce/ring', 8), 880).height).toBeLessThan(520);
    // Neighbours on a phone stay near each other.
    const cards = ring(schedule('all_reduce/ring', 8), 334);
    const gaps = cards.cards.map((card, rank) => {
      const next = cards.cards[(rank + 1) % 8]!;
      return Math.abs(card.y - next.y) - cards.cardHeight;
    });
    expect(Math.max(...gaps)).toBeLessThan(cards.cardHeight);
  });

  it('are found under a pointer, and arrows end at their edges', () => {
    const l = ring(schedule('all_reduce/ring', 8), 880);
    const [a, b] = [l.cards[0]!, l.cards[4]!];
    expect(cardAt(l, a.x + 5, a.y + 5)).toBe(0);
    expect(cardAt(l, -10, -10)).toBe(-1);
    expect(edge(l, a, b, 0).y).toBeCloseTo(a.y + l.cardHeight);
  });
});

describe('settings', () => {
  const page = readFileSync(writePage(), 'utf8');
  const data = readPageData(/id="unisono-data">(.*?)<\/script>/s.exec(page)![1]);

  it('are the schedules that the command line shows', () => {
    const chain = findAlgorithm(data, 'broadcast', 'chain')!;
    expect(settingsOf(chain).map((each) => each.algorithm)).toContain('chain:segments=16');
    for (const ranks of [2, 8, 16]) {
      const entry = findAlgorithm(data, 'broadcast', 'chain:segments=4')!;
      expect(scheduleOf(entry, ranks, 0).moves).toEqual(
        schedule('broadcast/chain:segments=4', ranks).moves,
      );
    }
    expect(findAlgorithm(data, 'broadcast', 'chain:segments=5')).toBeUndefined();
    expect(baseName('chain:segments=4')).toBe('chain');
  });

  it('take N (S + k - 2)/(S B) on a chain, and fall to N/B', () => {
    const [bytes, gbPerS, ranks] = [64 * 2 ** 20, 12.5, 8];
    const times = settingsOf(findAlgorithm(data, 'broadcast', 'chain')!).map((entry) => {
      const segments = Number(entry.algorithm.split('=')[1]);
      const { total } = timing(scheduleOf(entry, ranks, 0), bytes, { alphaUs: 0, gbPerS });
      const formula = (bytes * (segments + ranks - 2)) / (segments * gbPerS * 1000);
      expect(total).toBeCloseTo(formula, 3);
      return total;
    });
    expect(times).toEqual([...times].sort((a, b) => b - a));
    expect(times.at(-1)!).toBeLessThan((1.2 * bytes) / (gbPerS * 1000));
  });

  it('of a hierarchy follow the ranks of a node', () => {
    const at = (ranks: number, node: number) =>
      algorithmAt(data, 'all_reduce', 'hierarchical', ranks, node)!.algorithm;
    expect(at(8, 4)).toBe('hierarchical:local=4');
    expect(at(16, 8)).toBe('hierarchical:local=8');
    expect(at(6, 4)).toBe('hierarchical');
    expect(at(8, 8)).toBe('hierarchical');
  });
});

describe('results', () => {
  it('have names where they are complete', () => {
    const replayOf = (name: string) => check(schedule(name, 4)).replay!;
    expect(resultOf(replayOf('all_reduce/ring'), 2)).toBe('got_sum');
    expect(resultOf(replayOf('reduce_scatter/ring'), 2)).toBe('got_part_sum');
    expect(resultOf(replayOf('reduce/binomial'), 0)).toBe('got_sum');
    expect(resultOf(replayOf('reduce/binomial'), 1)).toBeUndefined();
  });
});

describe('what flies in the primitives', () => {
  const flights = (name: string) => flightsOf(check(schedule(name, 4)).replay!);

  it('comes from who had it, and goes to who needs it', () => {
    // Everybody's part of every chunk to everybody.
    const sums = flights('all_reduce/ring');
    expect(sums).toHaveLength(4 * 4 * 4);
    expect(sums.every(({ from, slot }) => from === slot)).toBe(true);
    expect(flights('reduce/reduce_scatter_gather').every(({ to }) => to === 0)).toBe(true);
    expect(flights('broadcast/binomial')).toHaveLength(4);
    expect(flights('broadcast/binomial').every(({ from }) => from === 0)).toBe(true);
    const scattered = flights('scatter/binomial');
    expect(scattered.map(({ to, row }) => [to, row])).toEqual([0, 1, 2, 3].map((r) => [r, r]));
    const gathered = flights('gather/binomial');
    expect(gathered.map(({ from, row }) => [from, row])).toEqual([0, 1, 2, 3].map((r) => [r, r]));
  });

  it('changes places in all_to_all', () => {
    const blocks = flights('all_to_all/pairwise');
    expect(blocks).toHaveLength(16);
    for (const { from, to, row, target } of blocks) expect([row, target]).toEqual([to, from]);
  });
});
