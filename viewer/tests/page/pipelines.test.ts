// Pipelines on the page: what is drawn, played, broken and read from a file.
import { writeFileSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { run, writePage } from '../program';
import { address, launch, open } from './browser';

let browser: Browser;
let file: string;
beforeAll(async () => {
  file = writePage();
  browser = await launch();
}, 60_000);
afterAll(() => browser.close(), 60_000);

describe('pipelines', () => {
  it('show the figures of the golden data, side by side', async () => {
    const { page, problems, close } = await open(browser, file, '#pipeline');
    const figures = () => page.locator('.figures b').allInnerTexts();
    expect(await figures()).toEqual(['33', '27']);
    await page.getByLabel('Schedule').selectOption('zbv');
    await page.getByLabel('Compare with').first().selectOption('dualpipe');
    await page.getByLabel('Compare with').last().selectOption('dualpipev');
    expect(await figures()).toEqual(['25.5', '26', '27']);
    expect(await page.getByText('proved right').count()).toBe(3);
    expect(await address(page)).toContain('pipes=zbv%2Cdualpipe%2Cdualpipev');
    expect(problems).toEqual([]);
    await close();
  });

  it('show what is held on one scale, with its most', async () => {
    const { page, close } = await open(browser, file, '#pipeline?pipes=gpipe,1f1b');
    const panels = page.locator('.diagram');
    const tall = (i: number) =>
      panels
        .nth(i)
        .locator('.held')
        .first()
        .evaluate((each) => (each as SVGPathElement).getBBox().height);
    expect((await tall(0)) / (await tall(1))).toBeCloseTo(2);
    const peaks = (i: number) => panels.nth(i).locator('.peak').allTextContents();
    expect(await peaks(0)).toEqual(Array.from({ length: 4 }, () => '8 microbatches'));
    expect(await peaks(1)).toEqual([
      ...['4 microbatches', '3 microbatches'],
      ...['2 microbatches', '1 microbatch'],
    ]);
    await close();
  });

  it('go by keyboard, computation by computation', async () => {
    const { page, close } = await open(browser, file, '#pipeline');
    await page.keyboard.press('Home');
    await page.getByText('time 0 of 33').waitFor();
    expect(await page.locator('p.now').innerText()).toContain('rank 0: 0F0');
    await page.keyboard.press('ArrowRight');
    await page.getByText('time 1 of 33').waitFor();
    expect(await page.locator('p.now').innerText()).toContain('rank 1: 1F0');
    await page.keyboard.press('End');
    await page.getByText('time 33 of 33').waitFor();
    await close();
  });

  it('say in one sentence what a change breaks, and mend it', async () => {
    const { page, close } = await open(browser, file, '#pipeline?pipes=1f1b');
    const broken = page.locator('section[aria-label="Break it"]');
    await broken.getByLabel('Rank').selectOption('1');
    await broken.getByLabel('Action').selectOption({ label: '1F0' });
    await broken.getByRole('button', { name: 'Remove' }).click();
    await page.getByText('rank 1 never does 1F0').waitFor();
    expect(await address(page)).toContain('cuts=1.1x');
    await broken.getByRole('button', { name: 'Undo', exact: true }).click();
    await page.locator('.figures b', { hasText: '33' }).waitFor();
    await close();
  });

  it('stop where ranks wait for each other', async () => {
    const { page, close } = await open(browser, file, '#pipeline?pipes=1f1b&cuts=0.6s');
    expect(await page.locator('.finding').count()).toBeGreaterThan(0);
    await close();
  });

  it('show what a run took over what was predicted', async () => {
    const words = ['gpipe', '-n', '2', '-m', '3'];
    const { ranks } = JSON.parse(run(['pipeline', 'show', ...words, '--json']));
    type Time = { action: string; start: number; end: number };
    const later = ranks.map((row: Time[]) =>
      row.map((each) => ({ ...each, start: 1.25 * each.start, end: 1.25 * each.end })),
    );
    const json = join(mkdtempSync(join(tmpdir(), 'pipelines-')), 'times.json');
    const pipeline = JSON.parse(run(['pipeline', 'show', ...words, '--format', 'pipeline']));
    const times = { schema: 'unisono.pipeline_times/1', pipeline, ranks: later, predicted: ranks };
    writeFileSync(json, JSON.stringify(times));
    const figures = ['15', '12'];
    const asked = await open(browser, writePage(json), '');
    expect(await asked.page.locator('.figures b').allInnerTexts()).toEqual(figures);
    expect(asked.problems).toEqual([]);
    await asked.close();
    const { page, problems, close } = await open(browser, file, '#pipeline');
    await page.locator('main input[type=file]').setInputFiles(json);
    await page.locator('h2', { hasText: 'gpipe: predicted' }).waitFor();
    expect(await page.locator('h2').first().innerText()).toBe('gpipe: measured');
    expect(await page.locator('.figures b').allInnerTexts()).toEqual(figures);
    await page.getByText('25.0 % longer than predicted').waitFor();
    await page.getByText('time 15 of 15').waitFor();
    // A recorded run cannot be broken; the same schedule, played, can be.
    expect(await page.getByLabel('Break it').count()).toBe(0);
    await page.getByLabel('Schedule').selectOption('own');
    await page.getByLabel('Break it').waitFor();
    expect(await page.locator('.figures b').allInnerTexts()).toEqual(['12', '12']);
    writeFileSync(json, JSON.stringify({ ...times, ranks: [] }));
    await page.locator('main input[type=file]').setInputFiles(json);
    await page.getByText('/ranks/0: not a time for each').waitFor();
    expect(problems).toEqual([]);
    await close();
  });

  it('come from a file: CSV and JSON, dropped or asked for', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'pipelines-'));
    const csv = join(folder, 'theirs.csv');
    writeFileSync(csv, run(['pipeline', 'show', 'zb-h1', '-n', '3', '-m', '6', '--format', 'csv']));
    const own = await open(browser, writePage(csv), '');
    expect(await own.page.locator('h2').first().innerText()).toBe('theirs.csv');
    expect(own.problems).toEqual([]);
    await own.close();
    const { page, problems, close } = await open(browser, file, '#pipeline');
    await page.locator('main input[type=file]').setInputFiles(csv);
    await page.locator('h2', { hasText: 'theirs.csv' }).waitFor();
    const json = join(folder, 'p.json');
    writeFileSync(json, run(['pipeline', 'show', 'gpipe', '--format', 'pipeline']));
    await page.locator('main input[type=file]').setInputFiles(json);
    await page.locator('h2', { hasText: 'gpipe' }).waitFor();
    expect(await page.locator('.figures b').first().innerText()).toBe('33');
    writeFileSync(csv, '0F0,what\n');
    await page.locator('main input[type=file]').setInputFiles(csv);
    await page.getByText("cell 2: 'what' is not an action").waitFor();
    writeFileSync(csv, Buffer.alloc(64_000_001, ','));
    await page.locator('main input[type=file]').setInputFiles(csv);
    await page.getByText('theirs.csv: more than 64000000 bytes').waitFor();
    expect(problems).toEqual([]);
    await close();
  });
});
