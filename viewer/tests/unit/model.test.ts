import { describe, expect, it } from 'vitest';
import { boundUs, lowerBound } from '../../src/model/bounds';
import { timing } from '../../src/model/cost';
import { linkLoads } from '../../src/model/links';
import { Router } from '../../src/model/routes';
import { nodesOf, parseTopology } from '../../src/model/topology';
import { bytesOf } from '../../src/model/planned';
import { positionAt, quickest, sizes, stepEnds, usAt } from '../../src/model/sweep';
import { byteMatrix, totals } from '../../src/model/traffic';
import { bytesText, parseBytes, speedText, timeText } from '../../src/model/units';
import { run } from '../program';
import { schedule } from '../schedules';

const NETWORK = { alphaUs: 5, gbPerS: 12.5 };

interface Row {
  algorithm: string;
  time_us: number;
  steps: number;
  sent_bytes: number;
}

function plan(collective: string, ranks: number, bytes: number, more = '') {
  const words = ['plan', collective, '-n', String(ranks), '--bytes', String(bytes), '--json'];
  return JSON.parse(run([...words, '--link', `alpha=5us,beta=12.5GB/s${more}`]));
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

  it.each(['all_reduce', 'reduce', 'reduce_scatter', 'barrier'])(
    '%s where adding up takes time',
    (collective) => {
      const bytes = collective === 'barrier' ? 0 : 2 ** 20;
      const rows: Row[] = plan(collective, 6, bytes, ',gamma=20GB/s').candidates;
      const network = { ...NETWORK, reduceGbPerS: 20 };
      for (const row of rows) {
        const one = schedule(`${collective}/${row.algorithm}`, 6);
        const { total } = timing(one, bytes, network);
        expect(total / row.time_us, row.algorithm).toBeCloseTo(1, 5);
        if (bytes > 0) expect(total).toBeGreaterThan(timing(one, bytes, NETWORK).total);
      }
      expect(rows.length).toBeGreaterThan(1);
    },
  );

  it('the lower bound', () => {
    const bound = lowerBound('all_reduce', 8, 2 ** 26);
    expect(bound.bytes).toBe((2 * 7 * 2 ** 26) / 8);
    expect(boundUs(bound, NETWORK)).toBeCloseTo(9395.24, 1);
    expect(boundUs(bound, { ...NETWORK, reduceGbPerS: 1 })).toBeCloseTo((7 * 2 ** 26) / 8000, 1);
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
      { name: 'b', from: 3 }, // where the lines meet, not the next size
    ]);
    expect(usAt(list[0]!, at, 3)).toBe(3);
    expect([usAt(list[0]!, at, 0.5), usAt(list[0]!, at, 99)]).toEqual([1, 8]);
  });
});

describe('a simulated run', () => {
  it('knows its bytes by what was sent', () => {
    const ring = schedule('all_reduce/ring', 8);
    const sent = { step: 0, from: 2, to: 3, bytes: 128 };
    expect(bytesOf(ring, [sent])).toBe(1024);
    expect(bytesOf(ring, [{ ...sent, to: 5 }])).toBe(0);
    const pairwise = schedule('all_to_all/pairwise', 4);
    const { from, to } = pairwise.moves;
    expect(bytesOf(pairwise, [{ ...sent, from: from[0]!, to: to[0]! }])).toBe(512);
  });
});

describe('traffic', () => {
  it('adds up to what is sent', () => {
    const ring = schedule('all_reduce/ring', 8);
    const matrix = byteMatrix(ring, 8 * 2 ** 20);
    expect(matrix[1]).toBe(14 * 2 ** 20);
    expect(matrix[2]).toBe(0);
    const loads = linkLoads(nodesOf(8, 4, 12.5), matrix, 8);
    expect(loads.across).toBe(2 * 14 * 2 ** 20);
    expect(loads.total).toBe(8 * 14 * 2 ** 20);
    expect(loads.list).toHaveLength(2 * 8 + 2 * 2);
    expect(loads.list[0]).toMatchObject({ bytes: 14 * 2 ** 20 });
  });

  it('is one hop for a rank of its own, and nothing leaves a single node', () => {
    const matrix = byteMatrix(schedule('all_to_all/pairwise', 4), 2 ** 20);
    expect(linkLoads(nodesOf(4, 1, 1), matrix, 4).across).toBe(3 * 2 ** 20);
    expect(linkLoads(nodesOf(4, 4, 1), matrix, 4).across).toBe(0);
  });

  it.each([
    ['dgx_h100:nodes=2', 16],
    ['fat_tree:hosts=16,ports=4', 16],
    ['dragonfly:groups=3,switches=2,hosts=2', 12],
    ['torus:x=3,y=2,z=2', 12],
    ['pcie_server', 8],
  ])('takes the routes of unisono topo on %s', (preset, ranks) => {
    const topology = parseTopology(JSON.parse(run(['topo', preset, '--json'])));
    expect(topology.ranks).toHaveLength(ranks);
    const router = new Router(topology);
    for (const [from, to] of [
      [0, 1],
      [1, 0],
      [0, ranks - 1],
      [ranks - 1, 2],
      [3, Math.trunc(ranks / 2)],
      [5, 6],
    ] as const) {
      const said = JSON.parse(run(['topo', preset, '--route', `${from},${to}`, '--json']));
      const names = router.route(from, to)!.map((link) => ({
        from: topology.devices[topology.links[link]!.from]!.name,
        to: topology.devices[topology.links[link]!.to]!.name,
      }));
      expect(names, `${preset} ${from},${to}`).toMatchObject(
        said.links.map((each: { from: string; to: string }) => ({ from: each.from, to: each.to })),
      );
    }
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
    expect([12.5, 1e5].map(speedText)).toEqual(['12.5', '∞']);
  });
});
