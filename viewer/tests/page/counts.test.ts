// A schedule whose blocks have counts, as `unisono view --counts` opens it.
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readFileSync } from 'node:fs';
import { bytesText } from '../../src/model/units';
import { writePage } from '../program';
import { launch, open } from './browser';

let browser: Browser;
let path = '';

beforeAll(async () => {
  browser = await launch();
  path = writePage('all_to_all_v/pairwise', '--counts', '../examples/moe/counts.json');
});
afterAll(() => browser.close());

test('what a router chose is played', async () => {
  const routing = writePage('--routing', '../examples/moe/routing.txt', '-n', '4');
  const { page, problems, close } = await open(browser, routing, '');
  // The file has 12 tokens a rank, each with 2 of 8 experts.
  const lines = readFileSync('../examples/moe/routing.txt', 'utf8').trim().split('\n').slice(0, 48);
  const chosen = lines.flatMap((line) => line.split(' ').map(Number));
  const most = Math.max(...[...Array(8).keys()].map((e) => chosen.filter((c) => c === e).length));
  await page.getByText(`takes ${Number((most / 12).toFixed(2))} times the mean`).waitFor();
  expect(problems).toEqual([]);
  await close();
});

test('blocks are as wide as they are long', async () => {
  const { page, problems, close } = await open(browser, path, '');
  const widths = await page
    .locator('g.strip[data-rank="1"][data-row="0"] rect.slot')
    .evaluateAll((slots) => slots.map((slot) => slot.getBoundingClientRect()))
    .then((boxes) => boxes.map((box) => box.x));
  // To rank 0 the others send 11, 11, 8 and 11 elements, to rank 3 they send 2, 1, 2 and 1.
  const steps = widths.slice(1).map((x, i) => x - widths[i]!);
  expect(steps[2]! / steps[0]!).toBeCloseTo(8 / 11, 1);
  const ends = await page
    .locator('g.strip[data-rank="1"]')
    .evaluateAll((strips) => strips.map((strip) => strip.getBoundingClientRect().width));
  expect(ends[3]! / ends[0]!).toBeLessThan(0.35);
  expect(await page.locator('p.legend').textContent()).toContain('1 to 11 elements of 2.06 KiB');
  expect(problems).toEqual([]);
  await close();
});

test('bytes and times are those of the counts', async () => {
  const { page, problems, close } = await open(browser, path, '#alphaUs=2&gbPerS=1');
  // Step 1 of pairwise: each rank to the next; 4, 2, 2 and 11 elements of 2112 bytes.
  const { send } = JSON.parse(readFileSync('../examples/moe/counts.json', 'utf8'));
  await page.locator('details.twin', { hasText: '(4)' }).first().locator('summary').click();
  const cells = await page
    .locator('details.twin tbody tr')
    .evaluateAll((rows) =>
      rows.slice(0, 4).map((row) => [...row.querySelectorAll('td')].map((td) => td.textContent)),
    );
  for (const cell of cells) {
    const [from, to] = [Number(cell[0]), Number(cell[1])];
    expect(cell[5]).toBe(bytesText(send[from][to] * 2112));
  }
  expect(new Set(cells.map((cell) => cell[5])).size).toBeGreaterThan(2);
  expect(await page.locator('input[size="8"]').count()).toBe(0); // no size to choose
  expect(problems).toEqual([]);
  await close();
});
