// The plans of the story of a reshard against the program that made them.
import { writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  bytesOf,
  flightsOf,
  gathered,
  gridOf,
  rangesOf,
  reshardPlans,
  RESHARDS,
} from '../../src/stories/reshard';
import { reshardFrame } from '../../src/view/reshard';
import { reshardsOfProgram } from '../plans';

it('has the plans of unisono reshard', () => {
  const fresh = reshardsOfProgram();
  if (process.env.UNISONO_UPDATE) {
    writeFileSync('src/stories/reshards.json', `${JSON.stringify(fresh, null, 2)}\n`);
    return;
  }
  expect(RESHARDS).toEqual(fresh);
});

it('reads elements', () => {
  expect(rangesOf('[0-3, 8-11] x [5]')).toEqual([
    [
      [0, 3],
      [8, 11],
    ],
    [[5, 5]],
  ]);
});

describe.each(RESHARDS.map((plan) => ({ plan, name: plan.command })))('$name', ({ plan }) => {
  const grid = gridOf(plan);
  const flights = flightsOf(plan, grid);

  it('brings each block once to each rank that needs it, from a rank that has it then', () => {
    const has = new Set(
      grid.cells.flatMap(({ held }, cell) => held.map((rank) => `${cell} ${rank}`)),
    );
    const beats = reshardPlans(plan).map(({ id }) => id);
    const order = flights
      .map((each) => ({ ...each, at: 100 * beats.indexOf(each.kind) + each.round }))
      .sort((a, b) => a.at - b.at);
    for (const { at } of order) {
      const now = order.filter((each) => each.at === at);
      for (const { cell, from } of now) expect(has).toContain(`${cell} ${from}`);
      for (const { cell, to } of now) has.add(`${cell} ${to}`);
      const senders = now.filter(({ kind }) => kind !== 'own').map(({ from }) => from);
      expect(new Set(senders).size).toBe(senders.length);
    }
    const wanted = grid.cells.flatMap((cell, i) => cell.wanted.map((rank) => `${i} ${rank}`));
    expect(flights.map(({ cell, to }) => `${cell} ${to}`).sort()).toEqual(wanted.sort());
  });

  it('adds up to the bytes of the plan, the fewest', () => {
    const bytes = (kind: 'own' | 'far' | 'near') => bytesOf(flights, grid, kind);
    expect(bytes('far')).toBe(plan.between);
    expect(bytes('far') + bytes('near')).toBe(plan.sent);
    expect(plan.least).toEqual({ sent: plan.sent, between: plan.between });
    expect(gathered(plan, grid).sent).toBeGreaterThan(plan.sent);
    expect(gathered(plan, grid).between).toBeGreaterThanOrEqual(plan.between);
  });

  it.each([358, 1184])('draws blocks that do not overlap, %i wide', (width) => {
    const frame = reshardFrame(grid, width);
    const boxes = [0, 1].flatMap((side) =>
      grid.cells.flatMap((cell) =>
        (side === 0 ? cell.held : cell.wanted).map((rank) => frame.box(side, cell, rank)),
      ),
    );
    boxes.forEach((a, i) => {
      expect(a.x + a.width).toBeLessThanOrEqual(width);
      expect(a.y + a.height).toBeLessThanOrEqual(frame.height);
      expect(a.width).toBeGreaterThan(18); // two digits
      for (const b of boxes.slice(0, i)) {
        const isApart =
          a.x + a.width <= b.x ||
          b.x + b.width <= a.x ||
          a.y + a.height <= b.y ||
          b.y + b.height <= a.y;
        expect(isApart).toBe(true);
      }
    });
  });
});
