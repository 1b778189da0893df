// The plans of the story against the program that made them.
import { writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import {
  axesOf,
  layoutText,
  membersOf,
  partsOf,
  PLANS,
  rankedFirst,
  togetherPlans,
  type PlanWire,
} from '../../src/stories/together';
import { along, doorOf, nodeFrame, nodeGrid, pieceOf, rankPoint, way } from '../../src/view/nodes';
import { plansOfProgram } from '../plans';

// The number of a rank's group, where groups are `size` ranks that are `stride` apart.
function groupOf({ size, stride }: PlanWire, rank: number): number {
  return Math.trunc(rank / (size * stride)) * stride + (rank % stride);
}

it('has the plans of unisono plan-model', () => {
  const fresh = plansOfProgram();
  if (process.env.UNISONO_UPDATE) {
    writeFileSync('src/stories/plans.json', `${JSON.stringify(fresh, null, 2)}\n`);
    return;
  }
  expect(PLANS).toEqual(fresh);
});

it('knows which layout is ranked first where another one is drawn', () => {
  const classic = PLANS.find((each) => each.asked !== '')!;
  const first = rankedFirst(classic)!;
  expect(layoutText(classic)).toBe('tp=8, dp=2, pp=4, zero=1');
  expect(layoutText(first)).not.toBe(layoutText(classic));
  expect(first.stepS).toBeLessThan(classic.stepS);
});

it.each(PLANS.map((plan) => ({ plan, name: `${plan.model} ${plan.machine} ${plan.asked}` })))(
  'adds up for $name',
  ({ plan }) => {
    const { tp, cp, dp, pp } = plan.layout;
    expect(tp * cp * dp * pp).toBe(plan.devices);
    for (const wire of plan.wires) {
      const counts = new Map<number, number>();
      for (let rank = 0; rank < plan.devices; rank++) {
        const group = groupOf(wire, rank);
        counts.set(group, (counts.get(group) ?? 0) + 1);
      }
      if (wire.axis !== 'pp') expect(new Set(counts.values())).toEqual(new Set([wire.size]));
      expect(wire.inside + wire.between).toBeGreaterThan(0);
      // Gradients of experts are reduced among fewer ranks: those with the same experts.
      if (axesOf(plan, wire) === 'dp_cp') {
        expect([cp * dp, (cp * dp) / plan.layout.ep]).toContain(wire.size);
      } else if (wire.axis === 'dp') {
        expect([dp, dp / plan.layout.ep]).toContain(wire.size);
      }
    }
    const sum = partsOf(plan).reduce((all, each) => all + each.seconds, 0);
    expect(sum / plan.stepS).toBeCloseTo(1, 2);
    expect(togetherPlans(plan)).toHaveLength(plan.wires.length + 2);
  },
);

// Bytes counted between nodes are those that the picture draws over the network.
it.each(PLANS.map((plan) => ({ plan, name: `${plan.model} ${plan.machine} ${plan.asked}` })))(
  'draws each axis over the wires that it uses for $name',
  ({ plan }) => {
    const grid = nodeGrid(plan.devices / plan.perNode, plan.perNode, 1200);
    for (const wire of plan.wires) {
      const members = membersOf(plan, wire);
      if (wire.axis !== 'pp') {
        for (const rank of members) expect(groupOf(wire, rank)).toBe(groupOf(wire, 0));
      }
      const ways = members.slice(1).map((to, i) => way(grid, members[i]!, to));
      const { y, height } = nodeFrame(grid, 0);
      const crosses = ways.some((points) => points.some((each) => each.y > y + height));
      expect(crosses).toBe(wire.between > 0);
      ways.forEach((points, i) => {
        expect(along(points, 0)).toEqual(doorOf(grid, members[i]!));
        const end = along(points, 1);
        expect(end.x).toBeCloseTo(doorOf(grid, members[i + 1]!).x);
        expect(end.y).toBeCloseTo(doorOf(grid, members[i + 1]!).y);
      });
    }
  },
);

// Half as wide as two digits of 12 pixels, and as high, whose feet are a pixel below the middle.
const NUMBER = { wide: 8, high: 9, foot: 1 };
it.each([8, 16])('moves nothing over a number in nodes of %i', (perNode) => {
  const grid = nodeGrid(4, perNode, 700);
  const half = pieceOf(grid) / 2;
  for (let from = 0; from < perNode; from++) {
    for (const to of [...Array(perNode).keys(), perNode + 5]) {
      const points = way(grid, from, to);
      for (let part = 0; from !== to && part <= 1; part += 1 / 64) {
        const at = along(points, part);
        for (let rank = 0; rank < perNode; rank++) {
          const { x, y } = rankPoint(grid, rank);
          const isBeside = Math.abs(at.x - x) >= NUMBER.wide + half;
          const isBelow = at.y - half >= y + NUMBER.foot;
          const isAbove = at.y + half <= y - NUMBER.high;
          if (!isBeside && !isBelow && !isAbove) expect.fail(`${from} to ${to} covers ${rank}`);
        }
      }
    }
  }
});
