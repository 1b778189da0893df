// Every algorithm of the catalogue in the views that draw it, and shapes at the edge.
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { run, writePage } from '../program';
import { launch, open } from './browser';

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
}, 60_000);
afterAll(() => browser.close(), 60_000);

describe('every algorithm', () => {
  it('is drawn, and proved right, in its middle', { timeout: 180_000 }, async () => {
    const { page, problems, close } = await open(browser, writePage(), '#steps');
    const names = run(['list', '--names']).trim().split('\n');
    expect(names.length).toBeGreaterThan(40);
    for (const [i, name] of names.entries()) {
      const [collective, algorithm] = name.split('/');
      const ranks = [2, 6, 16][i % 3]!;
      for (const tab of ['steps', 'traffic', 'time']) {
        const hash = `#${tab}?collective=${collective}&algorithm=${algorithm}&ranks=${ranks}&step=1`;
        await page.evaluate((to) => (location.hash = to), hash);
        const view = page.locator(`nav [aria-current=page]`);
        await view.waitFor();
        if (tab === 'steps') {
          expect(await page.locator('.verdict .good').count(), name).toBe(1);
          expect(await page.locator('select').nth(2).inputValue()).toBe(algorithm);
        }
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        expect(wide, hash).toBeLessThanOrEqual(1280);
      }
    }
    expect(problems).toEqual([]);
    await close();
  });
});

describe('shapes at the edge', () => {
  it.each([
    ['all_reduce/ring', '-n', '1'],
    ['all_to_all/bruck', '-n', '1'],
    ['barrier/flat', '-n', '33'],
    ['broadcast/chain:segments=200', '-n', '3'],
    ['all_gather/flat', '-n', '100'],
    ['all_to_all/pairwise', '-n', '40'],
  ])('%s %s %s', async (...words) => {
    const { page, problems, close } = await open(browser, writePage(...words), '');
    for (const tab of ['steps', 'compare', 'time', 'traffic', 'learn']) {
      await page.locator('nav button', { hasText: new RegExp(`^${tab}$`, 'i') }).click();
      await page.locator('main > *').first().waitFor();
      if (tab === 'steps') expect(await page.locator('.verdict .good').count()).toBe(1);
      expect(
        await page.evaluate(() => document.documentElement.scrollWidth),
        tab,
      ).toBeLessThanOrEqual(1280);
    }
    expect(problems).toEqual([]);
    await close();
  });
});
