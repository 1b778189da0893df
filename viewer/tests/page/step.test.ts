// The step of a model on the page: written by `unisono view`, dropped on it, right and wrong.
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { run, writePage } from '../program';
import { address, axe, launch, open } from './browser';

let browser: Browser;
const folder = mkdtempSync(join(tmpdir(), 'viewer-step-'));
beforeAll(async () => {
  browser = await launch();
}, 60_000);
afterAll(() => browser.close());

const words = ['step', 'show', 'llama3-8b', '--layout', 'pp=2,tp=2', '--prompt', '512'];
function write(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

describe('a step of a model', () => {
  it.each([
    ['en', 'light', 1280],
    ['zh', 'dark', 390],
  ] as const)('opens from its file in %s, %s, %i wide', async (lang, theme, width) => {
    const file = writePage(write('step.json', run([...words, '--format', 'step'])));
    const hash = `#step?lang=${lang}&theme=${theme}`;
    const { page, problems, close } = await open(browser, file, hash, { width });
    await page.locator('svg.lanes').waitFor();
    expect(await page.locator('.good').count()).toBe(1);
    expect(await axe(page)).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(
      width,
    );
    const now = page.locator('p.now');
    const seen = new Set<string>();
    for (let i = 0; i < 4; i++) {
      seen.add(await now.innerText());
      await page.keyboard.press('ArrowRight');
      await page.waitForFunction((n) => location.hash.includes(`beat=${n}`), i + 1);
    }
    expect(seen.size).toBeGreaterThanOrEqual(3);
    expect(await page.locator('main').innerText()).not.toMatch(/[{}]\w+[}]/);
    expect(problems).toEqual([]);
    await close();
  });

  it('is read where it is dropped, and a wrong one says what is wrong', async () => {
    const { page, problems, close } = await open(browser, writePage(), '#step');
    await page.getByText('unisono view step.json').waitFor();
    expect(await page.locator('svg.lanes .what').first().textContent()).toBe('all_reduce');
    expect(await page.locator('p.now').innerText()).toContain(
      'attention summed: all_reduce in 1 group',
    );
    const input = page.locator('header input[type=file]');
    await input.setInputFiles(write('show.json', run([...words, '--json'])));
    await page.locator('svg.lanes').waitFor();
    expect(await address(page)).toContain('file=show.json');
    await page.locator('details.twin summary').click();
    await page.locator('details.twin tbody tr').nth(1).waitFor();
    await input.setInputFiles(write('raw.json', run([...words, '--format', 'step'])));
    await page.getByText('unisono step show FILE --json').waitFor();
    expect(problems).toEqual([]);
    await close();
  });

  it('that is not right shows the findings of the proof', async () => {
    const step = JSON.parse(run([...words, '--format', 'step']));
    const isSum = (node: { redistribute?: string }) => node.redistribute !== 'attention summed';
    for (const section of step.sections) section.nodes = section.nodes.filter(isSum);
    const file = writePage(write('wrong.json', JSON.stringify(step)));
    const { page, problems, close } = await open(browser, file, '');
    await page.locator('.problem li').first().waitFor();
    expect(await page.locator('svg.lanes').count()).toBe(0);
    expect(await axe(page)).toEqual([]);
    expect(problems).toEqual([]);
    await close();
  });
});
