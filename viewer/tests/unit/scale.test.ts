// Powers of ten: the way in, and the call that is looked into.
import { expect, it } from 'vitest';
import { callBytes, viewAt } from '../../src/stories/scale';
import { PLANS } from '../../src/stories/together';

const views = [
  { x: 0, y: 0, width: 1000 },
  { x: 300, y: 100, width: 100 },
  { x: 340, y: 120, width: 10 },
];

it('begins and ends at its views', () => {
  views.forEach((view, i) => {
    const { x, y, width } = viewAt(views, i);
    expect([x, y, width].map((each) => Number(each.toFixed(9)))).toEqual(Object.values(view));
  });
});

it('shrinks by the same factor in each moment, around one point', () => {
  const [a, b, c] = [0.2, 0.4, 0.6].map((at) => viewAt(views, at));
  expect(b!.width / a!.width).toBeCloseTo(c!.width / b!.width, 9);
  // The point that stands still: x = 1000 / 3 of the drawing is a third of the way across.
  for (const { x, width } of [a!, b!, c!]) expect((1000 / 3 - x) / width).toBeCloseTo(1 / 3, 9);
});

it('looks into an all_reduce of 128 MiB: 8192 tokens of 8192 numbers', () => {
  expect(callBytes(PLANS.find(({ asked }) => asked !== '')!)).toBe(8192 * 8192 * 2);
});
