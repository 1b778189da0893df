// The built page in a browser: every view opens, works by keyboard and for screen readers, and asks
// nobody for anything.
import { statSync, readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TABS } from '../../src/view/url';
import { writePage, writeTopic } from '../program';
import { address, axe, launch, open } from './browser';

let browser: Browser;
let file: string;

beforeAll(async () => {
  browser = await launch();
  file = writePage();
}, 60_000);
afterAll(() => browser.close());

describe('a frame', () => {
  it('has no head of its own, and opens where its address says', async () => {
    const { page, problems, close } = await open(browser, file, '#moe?bare=1');
    await page.locator('main svg').first().waitFor();
    expect(await page.locator('header').count()).toBe(0);
    expect(await axe(page)).toEqual([]);
    expect(problems).toEqual([]);
    await close();
  });

  it('opens at the topic of unisono learn', async () => {
    const learned = writeTopic('context');
    const { page, close } = await open(browser, learned, '');
    await page.locator('header').waitFor();
    expect(await address(page)).toContain('chapter=context');
    await close();
  });
});

it.each([
  ['tp', 'article?chapter=tensor'],
  ['fsdp', 'story=data&set=4.3.'],
  ['moe', 'article?chapter=experts'],
  ['reduce', 'collective=reduce&algorithm=binomial'],
  ['barrier', 'collective=barrier&algorithm=dissemination'],
  ['tree', 'form=tree'],
])('unisono learn %s opens at %s', async (topic, place) => {
  const { page, problems, close } = await open(browser, writeTopic(topic), '');
  await page.locator('main svg').first().waitFor();
  // Defaults are not in an address.
  const opened = await page.evaluate(() => document.querySelector('#unisono-data')!.textContent!);
  expect(JSON.parse(opened).open).toContain(place);
  expect(await address(page)).toMatch(/#(parallel|article|steps)/);
  expect(problems).toEqual([]);
  await close();
});

describe('every view', () => {
  for (const tab of TABS) {
    it(`${tab}: no request, no error, nothing that axe minds`, { timeout: 120_000 }, async () => {
      const { page, problems, close } = await open(browser, file, `#${tab}`);
      for (const look of ['lang=en&theme=light', 'lang=en&theme=dark']) {
        for (const hash of [`#${tab}?${look}`, `#${tab}?${look.replace('en', 'zh')}`]) {
          await page.evaluate((to) => (location.hash = to), hash);
          await page.locator(`html[data-theme=${look.split('=')[2]}]`).waitFor();
          await page.locator(hash.includes('zh') ? 'html[lang=zh-CN]' : 'html[lang=en]').waitFor();
          expect(await page.locator('header nav [aria-current=page]').count()).toBe(1);
          expect(await axe(page), hash).toEqual([]);
        }
      }
      await page.setViewportSize({ width: 390, height: 844 });
      expect(await axe(page), `${tab} on a phone`).toEqual([]);
      expect(problems).toEqual([]);
      await close();
    });

    it.each([1280, 1920, 390])(`${tab} fits into %i pixels`, async (width) => {
      const { page, close } = await open(browser, file, `#${tab}`, { width });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      expect(wide).toBeLessThanOrEqual(width);
      // Nothing is too small to read.
      const small = await page.evaluate(() =>
        [...document.querySelectorAll('main *')]
          .filter((each) =>
            [...each.childNodes].some((node) => node.nodeType === 3 && node.textContent!.trim()),
          )
          .map((each) => parseFloat(getComputedStyle(each).fontSize))
          .filter((size) => size < 12),
      );
      expect(small).toEqual([]);
      // On a phone no cell of these is beyond the edge of the screen.
      const cut = await page.evaluate(
        () =>
          [...document.querySelectorAll('table.cards td')].filter(
            (each) => each.getBoundingClientRect().right > innerWidth,
          ).length,
      );
      expect(cut).toBe(0);
      expect(await page.locator('main').innerText()).not.toContain('`');
      // Everything that is drawn is said in a table; Run and the step of a model have one when they
      // have a file, and the text of the article says it beside each picture.
      if (tab !== 'run' && tab !== 'step' && tab !== 'article') {
        await page.evaluate(() => {
          for (const twin of document.querySelectorAll<HTMLDetailsElement>('details.twin')) {
            twin.open = true;
          }
        });
        await page.locator('main table td').first().waitFor({ timeout: 5000 });
        const all = await page.evaluate(() => document.documentElement.scrollWidth);
        expect(all).toBeLessThanOrEqual(width);
      }
      await close();
    });
  }
});

// On a phone what is chosen stands below the picture.
describe('a phone', () => {
  it.each(['steps', 'compare', 'time', 'traffic'])('shows the picture of %s first', async (tab) => {
    const { page, close } = await open(browser, file, `#${tab}`, { width: 390, height: 844 });
    const top = (what: string) =>
      page
        .locator(what)
        .first()
        .evaluate((each) => each.getBoundingClientRect().top);
    const picture = await top('main svg[role=img]');
    expect(picture).toBeLessThan(844 / 3);
    expect(await top('main details summary')).toBeGreaterThan(picture);
    await close();
  });

  it('shows which view is open in the line of all views', async () => {
    const { page, close } = await open(browser, file, '#run', { width: 390, height: 844 });
    const box = await page.locator('header nav [aria-current=page]').boundingBox();
    expect(box!.x + box!.width).toBeLessThanOrEqual(390);
    await close();
  });
});

describe('other views', () => {
  it('learn draws blocks that change places unlike parts of a sum', async () => {
    const { page, close } = await open(browser, file, '#learn');
    const texts = (name: string, when: number) =>
      page
        .locator(`section[aria-label=${name}] svg ${when === 0 ? '.before' : '.after'} .block`)
        .allTextContents();
    expect((await texts('all_to_all', 0)).slice(0, 4)).toEqual(['0→0', '0→1', '0→2', '0→3']);
    expect((await texts('all_to_all', 1)).slice(0, 4)).toEqual(['0→0', '1→0', '2→0', '3→0']);
    expect(await texts('reduce_scatter', 0)).toEqual([]);
    // A sum: one tile per rank, complete.
    const sums = page.locator('section[aria-label=reduce_scatter] svg .after .sigma');
    expect(await sums.count()).toBe(4);
    await close();
  });

  it('learn moves by itself when it comes into view, and when it is pointed at', async () => {
    const { page, problems, close } = await open(browser, file, '#learn', { motion: true });
    const first = page.locator('section[aria-label=broadcast] svg');
    await first.locator('.flying').first().waitFor({ timeout: 3000 });
    await first.locator('.whole').first().waitFor();
    await first.hover();
    await first.locator('.flying').first().waitFor();
    expect(await page.locator('.place').allInnerTexts()).toEqual([...'123456789']);
    expect(problems).toEqual([]);
    await close();
  });

  it('run says how to record one where there is none', async () => {
    const { page, close } = await open(browser, file, '#run');
    expect(await page.locator('main code').allInnerTexts()).toContain(
      'unisono run -n 4 --record FILE.json -- PROGRAM',
    );
    await close();
  });

  it('traffic of 16 ranks has its bytes in the cells, and keys to go through them', async () => {
    const { page, close } = await open(browser, file, '#traffic?ranks=16&algorithm=ring');
    const matrix = page.getByRole('img', { name: 'Bytes from each rank' });
    expect(await matrix.locator('.bytes').allInnerTexts()).toHaveLength(32);
    await page.getByText('up to 120 MiB').waitFor();
    await matrix.focus();
    for (const key of ['ArrowRight', 'ArrowDown', 'ArrowRight']) await page.keyboard.press(key);
    await page.getByText('rank 2 to rank 3: 120 MiB').waitFor();
    expect(await address(page)).not.toContain('step=');
    await close();
  });

  it.each([1280, 390])(
    'compare tells its lines apart, %i wide: the legend has them',
    async (width) => {
      const { page, close } = await open(browser, file, '#compare', { width });
      const looks = (where: string) =>
        page
          .locator(where)
          .evaluateAll((all) =>
            all.map((each) =>
              ['stroke', 'stroke-dasharray'].map((a) => each.getAttribute(a)).join(),
            ),
          );
      const lines = await looks('path.curve');
      expect(new Set(lines).size).toBe(lines.length);
      expect((await looks('line.sample')).sort()).toEqual(lines.sort());
      await close();
    },
  );

  it('traffic lists its links whole, and more of them when asked', async () => {
    const { page, close } = await open(browser, file, '#traffic?ranks=16&algorithm=ring');
    const links = page.locator('section[aria-label=Links]');
    const list = links.locator('ul');
    expect(await list.evaluate((each) => each.scrollHeight - each.clientHeight)).toBe(0);
    expect(await list.locator('li').count()).toBe(24);
    await links.getByRole('button', { name: 'Show more' }).click();
    expect(await list.locator('li').count()).toBeGreaterThan(30);
    await close();
  });

  it('compare runs on one clock, and the size can be changed by keyboard', async () => {
    const { page, problems, close } = await open(browser, file, '#compare');
    await page.getByLabel('Clock').focus();
    await page.keyboard.press('End');
    expect(await page.getByText('done ·').count()).toBe(2);
    await page.getByLabel('Size').focus();
    await page.keyboard.press('Home');
    expect(await address(page)).toContain('bytes=256');
    expect(problems).toEqual([]);
    await close();
  });

  it('moe flies out and back', async () => {
    const { page, problems, close } = await open(browser, file, '#moe');
    const places = () =>
      page
        .locator('svg.picture g[transform]')
        .evaluateAll((all) => all.map((g) => g.getAttribute('transform')));
    const home = await places();
    await page.getByRole('button', { name: '2 Dispatch' }).click();
    expect(await places()).not.toEqual(home);
    await page.getByRole('button', { name: '4 Combine' }).click();
    expect(await places()).toEqual(home);
    expect(await address(page)).toContain('moe=4.2.6.2.50.0.3.0');
    // The two results of a token become one tile, with one number.
    const digits = page.locator('svg.picture .digit');
    expect(await digits.count()).toBe(4 * 6 * 2);
    await page.getByRole('button', { name: '5 Weighted sum' }).click();
    expect(await digits.count()).toBe(4 * 6);
    await page.getByRole('button', { name: '1 Router' }).click();
    const frames = page.locator('svg.picture .copy');
    expect(
      new Set(await frames.evaluateAll((all) => all.map((r) => r.getAttribute('stroke')))).size,
    ).toBe(8);
    expect(problems).toEqual([]);
    await close();
  });

  it('a communication of the layer opens on steps', async () => {
    const { page, close } = await open(browser, file, '#layer');
    await page
      .getByRole('button', { name: /^Steps: all_reduce/ })
      .first()
      .click();
    expect(await address(page)).toContain('#steps');
    expect(await address(page)).toContain('ranks=4');
    expect(await address(page)).toContain(`bytes=${128 * 2 ** 20}`);
    await close();
  });
});

describe('navigation', () => {
  it('goes back to the view before, story by story', async () => {
    const { page, problems, close } = await open(browser, file, '#learn');
    const view = (name: string) => page.locator('header').getByRole('button', { name }).click();
    await view('Steps');
    await page.keyboard.press('ArrowRight'); // a step is not a place to come back to
    await view('Parallelism');
    await page.getByRole('button', { name: 'Ulysses' }).click();
    for (const hash of ['#parallel', '#steps?step=1', '#learn']) {
      await page.goBack();
      await page.waitForFunction((to) => location.hash.startsWith(to), hash);
    }
    await page.goForward();
    await page.locator('aside h2', { hasText: 'Step 2 of 14' }).waitFor();
    expect(problems).toEqual([]);
    await close();
  });

  it('speaks the language of the browser, unless the address says another', async () => {
    for (const [locale, hash, lang] of [
      ['zh-CN', '#learn', 'zh-CN'],
      ['zh-CN', '#learn?lang=en', 'en'],
      ['de-DE', '#learn', 'en'],
    ] as const) {
      const context = await browser.newContext({ locale });
      const page = await context.newPage();
      await page.goto(`file://${file}${hash}`);
      await page.locator(`html[lang=${lang}]`).waitFor();
      await context.close();
    }
  });

  it('opens sends of the layer as what they are', async () => {
    const { page, close } = await open(
      browser,
      file,
      '#layer?layer=4.4.1.2.4.8192.8192.1.0.0.0.8.0',
    );
    await page
      .getByRole('button', { name: /^Watch: keys and values travel/ })
      .first()
      .click();
    expect(await page.locator('.words h2').innerText()).toContain('Cut the sequence');
    expect(await address(page)).toContain('story=context');
    await page.goBack();
    await page
      .getByRole('button', { name: /^Watch: activations/ })
      .first()
      .click();
    expect(await page.locator('.figures b').first().innerText()).toBe('33');
    await close();
  });

  it.each(['steps', 'time', 'traffic'])('%s shows a phone a picture first', async (tab) => {
    const { page, close } = await open(browser, file, `#${tab}`, { width: 390, height: 844 });
    const top = await page
      .locator('main svg.stage, main svg.picture')
      .first()
      .evaluate((each) => each.getBoundingClientRect().top);
    expect(top).toBeLessThan(600);
    await close();
  });
});

describe('budgets', () => {
  it('at most 260 KB without data, at most 1 MB of data', () => {
    const empty = gzipSync(readFileSync('../tools/unisono/view/page.html'));
    expect(empty.length).toBeLessThanOrEqual(260_000);
    const data = statSync(file).size - statSync('../tools/unisono/view/page.html').size;
    expect(data).toBeLessThanOrEqual(1_000_000);
  });
});
