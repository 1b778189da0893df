// The plans of the story against the program that made them.
import { writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { groupOf, partsOf, PLANS, togetherPlans } from '../../src/stories/together';
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
