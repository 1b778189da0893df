// The planner on the page: the sample, sliders, sorting, files, right and wrong.
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { run, writePage } from '../program';
import { address, axe, launch, open } from './browser';

let browser: Browser;
const folder = mkdtempSync(join(tmpdir(), 'viewer-plan-'));
beforeAll(async () => {
  browser = await launch();
}, 60_000);
afterAll(() => browser.close());

function save(name: string, ...words: string[]): string {
  const path = join(folder, name);
  run(['plan-model', ...words, '--top', '4', '--save', path]);
  return path;
}

describe('the plan of a model', () => {
  it.each([
    ['en', 'light', 1280],
    ['en', 'dark', 390],
    ['zh', 'dark', 1280],
    ['zh', 'light', 390],
  ] as const)('shows a sample in %s, %s, %i wide', async (lang, theme, width) => {
    const hash = `#plan?lang=${lang}&theme=${theme}`;
    const { page, problems, close } = await open(browser, writePage(), hash, { width });
    await page.locator('.plans tbody tr').nth(4).waitFor();
    expect(await axe(page)).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(
      width,
    );
    expect(await page.locator('main').innerText()).not.toMatch(/[{}]\w+[}]|undefined|NaN/);
    expect(problems).toEqual([]);
    await close();
  });

  it('answers the sliders with the numbers of the program', async () => {
    const words = ['llama3-8b', '--on', 'dgx_h100:nodes=2', '--train', '--sequence', '4096'];
    const file = writePage(save('plan.json', ...words));
    const { page, problems, close } = await open(browser, file, '');
    const told = JSON.parse(
      run(['plan-model', ...words, '--batch', '512', '--top', '4', '--json']),
    ) as { layouts: { tokens_per_s_device: number }[] };
    const rate = told.layouts[0]!.tokens_per_s_device;
    const sliders = page.locator('input[type=range]');
    expect(await sliders.count()).toBe(3);
    await sliders.nth(2).focus();
    await page.keyboard.press('ArrowRight');
    await page.waitForFunction(() => location.hash.includes('set=1.2.3.0.0'));
    const said = page.locator('.said p').first();
    expect(await said.innerText()).toContain(
      rate.toLocaleString('en', { maximumSignificantDigits: 4 }),
    );
    expect(await sliders.nth(2).getAttribute('aria-valuetext')).toBe('512');
    await page.getByRole('button', { name: 'Reset' }).click();
    await page.waitForFunction(() => !location.hash.includes('set='));
    expect(await said.innerText()).not.toContain('than as asked');
    expect(problems).toEqual([]);
    await close();
  });

  it('sorts, and opens a layout', async () => {
    const { page, problems, close } = await open(browser, writePage(), '#plan');
    const memory = page.getByRole('button', { name: /^Sorted by: Memory/ });
    await memory.click();
    await page.locator('th[aria-sort=ascending] button', { hasText: 'Memory' }).waitFor();
    const texts = await page.locator('.plans .memory span').allInnerTexts();
    const sizes = texts.map((each) => parseFloat(each));
    expect(sizes).toEqual([...sizes].sort((a, b) => a - b));
    expect(new Set(sizes).size).toBeGreaterThan(1);
    const third = page.locator('.plans th[scope=row] button').nth(2);
    const name = await third.innerText();
    await third.click();
    await page.locator('h3', { hasText: `${name}, part by part` }).waitFor();
    expect(await third.getAttribute('aria-pressed')).toBe('true');
    expect(problems).toEqual([]);
    await close();
  });

  it('is read where it is dropped, and a wrong one is refused with its place', async () => {
    const { page, problems, close } = await open(browser, writePage(), '#plan');
    const input = page.locator('header input[type=file]');
    const serve = save('serve.json', 'llama3-70b', '--on', 'hgx_h200', '--serve');
    await input.setInputFiles(serve);
    await page.getByText('8 × H200').waitFor();
    expect(await address(page)).toContain('file=serve.json');
    expect(await page.locator('input[type=range]').count()).toBe(2);
    const wrong = { ...(JSON.parse(readFileSync(serve, 'utf8')) as object), devices: 'many' };
    writeFileSync(join(folder, 'wrong.json'), JSON.stringify(wrong));
    await input.setInputFiles(join(folder, 'wrong.json'));
    await page.locator('.problem', { hasText: '/devices' }).waitFor();
    const fixed = run(['plan-model', 'llama3-8b', '--on', 'hgx_h200', '--train', '--json']);
    writeFileSync(join(folder, 'fixed.json'), fixed);
    await input.setInputFiles(join(folder, 'fixed.json'));
    await page.getByText('one that').waitFor();
    expect(await page.locator('input[type=range]').count()).toBe(0);
    expect(problems).toEqual([]);
    await close();
  });
});
