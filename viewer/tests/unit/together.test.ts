// The plans of the story against the program that made them.
import { writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { groupOf, membersOf, partsOf, PLANS, togetherPlans } from '../../src/stories/together';
import { along, nodeGrid, rankPoint, way } from '../../src/view/nodes';
import { plansOfProgram } from '../plans';

it('has the plans of unisono plan-model', () => {
  const fresh = plansOfProgram();
  if (process.env.UNISONO_UPDATE) {
    writeFileSync('src/stories/plans.json', `${JSON.stringify(fresh, null, 2)}\n`);
    return;
  }
  expect(PLANS).toEqual(fresh);
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
    }
    const sum = partsOf(plan).reduce((all, each) => all + each.seconds, 0);
    expect(sum / plan.stepS).toBeCloseTo(1, 2);
    expect(togetherPlans(plan)).toHaveLength(plan.wires.length + 2);
  },
);

// What is counted between nodes is what the picture draws over the network.
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
      const crosses = ways.some((points) => points.length > 2);
      expect(crosses).toBe(wire.between > 0);
      ways.forEach((points, i) => {
        // Out of a node only between ranks, whose numbers would be crossed.
        const ends = [members[i]!, members[i + 1]!];
        for (let part = 0; points.length > 2 && part <= 1; part += 1 / 256) {
          const at = along(points, part);
          for (let rank = 0; rank < plan.devices; rank++) {
            if (ends.includes(rank)) continue;
            const { x, y } = rankPoint(grid, rank);
            const far = Math.max(Math.abs(x - at.x), Math.abs(y - at.y));
            if (far < grid.cell / 2 - 2.5) expect.fail(`the way goes over rank ${rank}`);
          }
        }
        expect(along(points, 0)).toEqual(rankPoint(grid, members[i]!));
        const end = along(points, 1);
        expect(end.x).toBeCloseTo(rankPoint(grid, members[i + 1]!).x);
        expect(end.y).toBeCloseTo(rankPoint(grid, members[i + 1]!).y);
      });
    }
  },
);
