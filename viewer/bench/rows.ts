// Measures the page's promises: its size, how soon it opens and teaches, how smoothly it plays, and
// the reports of axe, the network and the console for every view. It judges nothing. From viewer/:
// npx vitest run --config bench/vitest.config.ts bench/rows.ts
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, it } from 'vitest';
import { STORIES, TABS } from '../src/view/url';
import { axe, launch, open } from '../tests/page/browser';
import { writePage } from '../tests/program';
import { framesOf } from './frames';

const OPENINGS = 7;
const FRAMES_MS = 4000;

let browser: Browser;
let file: string;
beforeAll(async () => {
  browser = await launch();
  file = writePage();
}, 60_000);
afterAll(() => browser.close(), 60_000);

const say = (row: string, text: string) => console.log(`${row.padEnd(34)} ${text}`);
const middle = (values: number[]) => [...values].sort((a, b) => a - b)[values.length >> 1]!;

it('size', () => {
  const page = readFileSync('../tools/unisono/view/page.html');
  say('gzip without data', `${(gzipSync(page, { level: 9 }).length / 1000).toFixed(1)} kB`);
  say('the whole file', `${(readFileSync(file).length / 1000).toFixed(0)} kB`);
});

// From the call of the browser until there is a picture, and until that has changed by itself.
it('opening', { timeout: 300_000 }, async () => {
  const drawn: number[] = [];
  const moved: number[] = [];
  for (let i = 0; i < OPENINGS; i++) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 720 } });
    const page = await context.newPage();
    const start = performance.now();
    await page.goto(`file://${file}`);
    const before = await page.locator('main svg.picture').first().innerHTML();
    drawn.push(performance.now() - start);
    await page.waitForFunction(
      (was) => document.querySelector('main svg.picture')?.innerHTML !== was,
      before,
    );
    moved.push(performance.now() - start);
    await context.close();
  }
  say('first visit: a picture is there', `${middle(drawn).toFixed(0)} ms (of ${OPENINGS})`);
  say('first visit: it has moved', `${middle(moved).toFixed(0)} ms (of ${OPENINGS})`);
});

const PLAYED = [
  '#steps?ranks=16',
  '#steps?ranks=16&form=ring',
  '#steps?collective=broadcast&algorithm=double_tree&ranks=16&form=tree',
  '#steps?collective=all_to_all&algorithm=pairwise&ranks=16',
  '#compare?ranks=16',
  '#pipeline?pipe=16.32.100.100.100.0.0.1',
  ...STORIES.map((name) => `#parallel?story=${name}`),
  '#moe?moe=8.2.16.2.50.0.0',
];
it.each(PLAYED)('frames of %s', { timeout: 120_000 }, async (hash) => {
  const { page, close } = await open(browser, file, hash, { motion: true });
  const { perSecond, slowMs } = await framesOf(page, FRAMES_MS);
  say(`frames/s ${hash.slice(0, 60)}`, `${perSecond.toFixed(1)}, p95 ${slowMs.toFixed(0)} ms`);
  await close();
});

it('axe, requests, console', { timeout: 600_000 }, async () => {
  const views = [...TABS.map((tab) => `#${tab}?`), ...STORIES.map((s) => `#parallel?story=${s}&`)];
  const found: string[] = [];
  const said: string[] = [];
  let screens = 0;
  for (const view of views) {
    for (const lang of ['en', 'zh']) {
      for (const theme of ['light', 'dark']) {
        for (const width of [1280, 390]) {
          const hash = `${view}lang=${lang}&theme=${theme}`;
          const { page, problems, close } = await open(browser, file, hash, { width });
          found.push(...(await axe(page)).map((each) => `${hash} ${width}: ${each}`));
          said.push(...problems.map((each) => `${hash} ${width}: ${each}`));
          screens++;
          await close();
        }
      }
    }
  }
  const asked = said.filter((each) => each.includes(': request: '));
  say('screens looked at', String(screens));
  say('axe violations', `${found.length} ${found.join('\n')}`);
  say('requests', `${asked.length} ${asked.join('\n')}`);
  say('console errors and warnings', `${said.length - asked.length} ${said.join('\n')}`);
});
