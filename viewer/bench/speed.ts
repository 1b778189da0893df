// Measures the speed of the page; it judges nothing. From viewer/: npx vitest run --config
// bench/vitest.config.ts bench/speed.ts
import { afterAll, beforeAll, it } from 'vitest';
import type { Browser, Page } from 'playwright-core';
import { launch, open } from '../tests/page/browser';
import { writePage } from '../tests/program';
import { framesOf } from './frames';

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
}, 60_000);
afterAll(() => browser.close(), 60_000);

async function frames(page: Page): Promise<string> {
  const { perSecond, slowMs } = await framesOf(page, 6000);
  return `${perSecond.toFixed(1)} frames/s, p95 ${slowMs.toFixed(0)} ms`;
}

for (const ranks of [8, 16, 64, 256]) {
  it(`ring of ${ranks}`, { timeout: 120_000 }, async () => {
    const file = writePage('all_reduce/ring', '-n', String(ranks));
    const { page, close } = await open(browser, file, '', { motion: true });
    console.log(`all_reduce/ring -n ${ranks}: ${await frames(page)}`);
    await close();
  });
}

it('opening 512 ranks, one step on, one step back', { timeout: 120_000 }, async () => {
  const file = writePage('all_reduce/ring', '-n', '512');
  const begin = performance.now();
  const { page, close } = await open(browser, file, '');
  await page.locator('canvas').waitFor();
  const opened = performance.now() - begin;
  const timed = async (key: string) => {
    const start = performance.now();
    await page.locator('main').focus();
    await page.keyboard.press(key);
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => done(0))));
    return (performance.now() - start).toFixed(0);
  };
  // From the second phase on, so that both ways show a step that is alike; the first pair warms up.
  await page.keyboard.press(']');
  const times: string[] = [];
  for (let i = 0; i < 4; i++) {
    times.push(`back ${await timed('ArrowLeft')} on ${await timed('ArrowRight')}`);
  }
  console.log(`all_reduce/ring -n 512: opens in ${opened.toFixed(0)} ms; ms: ${times.join(', ')}`);
  await close();
});
