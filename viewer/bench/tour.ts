// A picture of every screen, for people to look at: each view, each step of each story, on a desk, a large screen
// and a phone, light and dark, in both languages. It judges nothing. From viewer/:
//   npm run tour                                  into build/tour
//   TOUR='^moe|^steps' npm run tour               only screens with such names
//   TOUR_LOOKS=1280-light-en,390-dark-zh npm run tour
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, it } from 'vitest';
import { STORIES } from '../src/view/url';
import { launch, open } from '../tests/page/browser';
import { program, run, writePage } from '../tests/program';

interface Screen {
  name: string;
  hash: string;
  page?: keyof typeof PAGES; // the catalogue, if none
  first?: boolean; // its beginning only, not what lies below
}

const folder = mkdtempSync(join(tmpdir(), 'viewer-tour-'));
const at = (name: string) => join(folder, name);
const saved = (name: string, text: string) => {
  writeFileSync(at(name), text);
  return at(name);
};
const job = ['-n', '4', '--record', at('run.json'), '--quiet', '--', program('unisono'), 'bench'];
const PAGES = {
  catalogue: () => writePage(),
  recording: () => {
    run(['run', ...job, 'all_reduce', '-b', '1K', '-e', '64K', '-f', '8']);
    return writePage(at('run.json'));
  },
  killed: () => {
    try {
      run(['run', '--chaos', 'kill=1@300ms', ...job, 'all_to_all', '-b', '1M', '-e', '64M']);
    } catch {
      // The job fails, which is what its recording shows.
    }
    return writePage(at('run.json'));
  },
  step: () => {
    const words = ['llama3-8b', '--layout', 'pp=2,tp=2', '--prompt', '512', '--format', 'step'];
    return writePage(saved('step.json', run(['step', 'show', ...words])));
  },
  machine: () => writePage('all_to_all/pairwise', '-n', '16', '--on', 'dgx_h100:nodes=2'),
  many: () => writePage('all_reduce/ring', '-n', '64'),
};

const LOOKS: Record<string, { width: number; height: number }> = {
  1280: { width: 1280, height: 720 },
  1920: { width: 1920, height: 1080 },
  390: { width: 390, height: 844 },
};
const looks = (process.env.TOUR_LOOKS ?? '')
  .split(',')
  .filter(Boolean)
  .map((each) => each.split('-') as [string, 'light' | 'dark', string]);
if (looks.length === 0) {
  for (const width of Object.keys(LOOKS)) {
    for (const theme of ['light', 'dark'] as const) {
      for (const lang of ['en', 'zh']) looks.push([width, theme, lang]);
    }
  }
}

const SCREENS: Screen[] = [
  { name: 'learn', hash: '#learn?' },
  { name: 'worked', hash: '#learn?worked=1.0.0.0.0.0' },
  { name: 'steps', hash: '#steps?step=3' },
  { name: 'steps-4', hash: '#steps?ranks=4&step=2' },
  { name: 'steps-16', hash: '#steps?ranks=16&step=9' },
  { name: 'steps-end', hash: '#steps?ranks=4&step=6', first: true },
  { name: 'steps-ring', hash: '#steps?form=ring&step=3', first: true },
  {
    name: 'steps-tree',
    hash: '#steps?collective=broadcast&algorithm=double_tree&form=tree&step=3',
  },
  { name: 'steps-chain', hash: '#steps?collective=broadcast&algorithm=chain&step=5' },
  { name: 'steps-exchange', hash: '#steps?collective=all_to_all&algorithm=pairwise&step=3' },
  {
    name: 'steps-hierarchical',
    hash: '#steps?algorithm=hierarchical&step=2',
    first: true,
  },
  { name: 'steps-follow', hash: '#steps?step=8&follow=2' },
  { name: 'steps-follow-ring', hash: '#steps?step=8&follow=2&form=ring', first: true },
  { name: 'steps-broken', hash: '#steps?ranks=4&step=3&edits=9t0' },
  { name: 'steps-64', hash: '#steps?step=20', page: 'many', first: true },
  { name: 'steps-recorded', hash: '#steps?base=recorded&step=2', page: 'recording' },
  { name: 'compare', hash: '#compare?clock=400' },
  { name: 'time', hash: '#time?collective=broadcast&algorithm=double_tree&bytes=1048576' },
  { name: 'time-recorded', hash: '#time?', page: 'recording' },
  { name: 'traffic', hash: '#traffic?' },
  { name: 'traffic-16', hash: '#traffic?ranks=16' },
  { name: 'traffic-machine', hash: '#traffic?', page: 'machine' },
  { name: 'run-none', hash: '#run?', first: true },
  { name: 'run', hash: '#run?', page: 'recording' },
  { name: 'run-killed', hash: '#run?', page: 'killed' },
  { name: 'layer', hash: '#layer?' },
  { name: 'step-none', hash: '#step?', first: true },
  { name: 'step', hash: '#step?beat=4', page: 'step' },
  { name: 'plan', hash: '#plan?' },
  { name: 'pipeline', hash: '#pipeline?beat=12' },
  ...['0', '1', '2', '3', '4'].map((beat) => ({
    ...{ name: `moe-${beat}`, hash: `#moe?moe=4.2.6.2.50.0.${beat}`, first: beat !== '2' },
  })),
];

let browser: Browser;
const pages = new Map<string, string>();
beforeAll(async () => {
  browser = await launch();
}, 60_000);
afterAll(() => browser.close(), 60_000);

const into = resolve(process.env.TOUR_INTO ?? '../build/tour');
const only = new RegExp(process.env.TOUR ?? '');
const DEEP = 3; // screens of one page, from its top down

async function take({ name, hash, page: which = 'catalogue', first }: Screen): Promise<void> {
  if (!only.test(name)) return;
  if (!pages.has(which)) pages.set(which, PAGES[which]());
  for (const [width, theme, lang] of looks) {
    const size = LOOKS[width]!;
    const address = `${hash}${hash.endsWith('?') ? '' : '&'}lang=${lang}&theme=${theme}`;
    const { page, problems, close } = await open(browser, pages.get(which)!, address, {
      ...{ ...size, theme },
    });
    await page.evaluate(() => document.fonts.ready);
    const tall = await page.evaluate(() => document.documentElement.scrollHeight);
    const screens = first ? 1 : Math.min(DEEP, Math.ceil((tall - 40) / size.height));
    for (let i = 0; i < screens; i++) {
      await page.evaluate((y) => scrollTo(0, y), i * size.height);
      const path = join(into, `${name}-${i + 1}-${width}-${theme}-${lang}.png`);
      await page.screenshot({ path });
    }
    if (problems.length > 0)
      console.log(`${name} ${width} ${theme} ${lang}: ${problems.join('; ')}`);
    await close();
  }
}

mkdirSync(into, { recursive: true });
it.each(SCREENS)('$name', { timeout: 600_000 }, take);

// Every step of a story; what lies below its picture is the same for all.
it.each(STORIES)('%s', { timeout: 600_000 }, async (story) => {
  pages.set('catalogue', pages.get('catalogue') ?? PAGES.catalogue());
  const opened = await open(browser, pages.get('catalogue')!, `#parallel?story=${story}`);
  const title = await opened.page.locator('.words h2 .count').innerText();
  await opened.close();
  const steps = Number(title.split('/')[1]);
  for (let beat = 1; beat <= steps; beat++) {
    const hash = `#parallel?story=${story}&beat=${beat}`;
    await take({ name: `story-${story}-${beat}`, hash, first: beat > 1 });
  }
});
