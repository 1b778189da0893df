// The view Steps in a browser: the stage, its keys, breaking it, its arrangements.
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NAV_TABS } from '../../src/view/url';
import { writePage } from '../program';
import { address, axe, launch, open } from './browser';

let browser: Browser;
let file: string;

beforeAll(async () => {
  browser = await launch();
  file = writePage();
}, 60_000);
afterAll(() => browser.close());

describe('steps', () => {
  it('fills the slots that the schedule fills', async () => {
    const { page, close } = await open(browser, file, '#steps?ranks=4&step=2');
    const filled = (rank: number, row: number) =>
      page.locator(`.strip[data-rank="${rank}"][data-row="${row}"] .filled`).count();
    expect(await filled(3, 0)).toBe(3);
    expect(await filled(0, 1)).toBe(3);
    expect(await filled(1, 3)).toBe(2);
    expect(await filled(1, 0)).toBe(1);
    await close();
  });

  it('goes by keyboard: steps, phases, ends, tables, following, help', async () => {
    const { page, problems, close } = await open(browser, file, '#steps');
    const title = () => page.locator('aside h2').first().innerText();
    expect(await title()).toBe('Step 1 of 14');
    await page.keyboard.press('ArrowRight');
    expect(await title()).toBe('Step 2 of 14');
    await page.keyboard.press(']');
    expect(await title()).toBe('Step 8 of 14');
    await page.keyboard.press('[');
    expect(await title()).toBe('Step 1 of 14');
    await page.keyboard.press('End');
    expect(await page.locator('.sentence').innerText()).toBe('All 64 results are complete.');
    await page.keyboard.press('ArrowLeft');
    expect(await title()).toBe('Step 14 of 14');
    await page.keyboard.press('Home');
    await page.keyboard.press('f');
    expect(await address(page)).toContain('follow=0');
    await page.keyboard.press('t');
    expect(await page.locator('details.twin[open]').count()).toBe(2);
    await page.keyboard.press('?');
    expect(await page.locator('dialog[open]').count()).toBe(1);
    await page.keyboard.press('Escape');
    expect(await page.locator('dialog[open]').count()).toBe(0);
    for (const [i, tab] of NAV_TABS.entries()) {
      await page.keyboard.press(String(i + 1));
      expect(await address(page)).toContain(`#${tab}`);
    }
    expect(problems).toEqual([]);
    await close();
  });

  it('reaches every control with the tab key', async () => {
    const { page, close } = await open(browser, file, '#steps');
    const count = await page
      .locator('button:visible:enabled, select:visible, input:visible, summary:visible')
      .count();
    const seen = new Set<string>();
    for (let i = 0; i < count + 12; i++) {
      await page.keyboard.press('Tab');
      const id = await page.evaluate(() => {
        const all = [...document.querySelectorAll('button, select, input, summary')];
        return String(all.indexOf(document.activeElement as HTMLElement));
      });
      if (id !== '-1') seen.add(id);
    }
    expect(seen.size).toBeGreaterThanOrEqual(count);
    await close();
  });

  it(
    'plays to the end, and without motion draws nothing in flight',
    { timeout: 30_000 },
    async () => {
      for (const motion of [true, false]) {
        const { page, close } = await open(browser, file, '#steps?ranks=2', { motion });
        await page.locator('select').last().waitFor();
        await page.getByLabel('Speed').selectOption('4');
        await page.keyboard.press('Home');
        await page.locator('main').focus();
        await page.keyboard.press('Space');
        await page.waitForTimeout(150);
        expect(await page.locator('.piece').count()).toBe(motion ? 2 : 0);
        await page.waitForFunction(() =>
          document.querySelector('aside h2')?.textContent?.includes('after'),
        );
        await close();
      }
    },
  );

  it('goes by predicted time, and keeps the zoom of Time in the address', async () => {
    const hash = '#steps?collective=broadcast&algorithm=binomial&base=model&step=2&bytes=1048576';
    const { page, problems, close } = await open(browser, file, hash);
    expect(await page.locator('.clock').innerText()).toBe('178 µs of 267 µs');
    await page.keyboard.press('6');
    await page.keyboard.press('w');
    await page.keyboard.press('d');
    expect(await address(page)).toMatch(/zoom=1\.5&from=\d+/);
    const drawn = await page.locator('svg.picture').innerHTML();
    const again = await open(browser, file, new URL(await address(page)).hash);
    expect(await again.page.locator('svg.picture').innerHTML()).toBe(drawn);
    expect(problems).toEqual([]);
    await again.close();
    await close();
  });

  it('restores what a link says, and writes the link', async () => {
    const hash =
      '#steps?collective=broadcast&algorithm=binomial&ranks=5&root=4&step=1&lang=zh&theme=dark';
    const first = await open(browser, file, hash);
    expect(await first.page.locator('aside h2').first().innerText()).toBe('第 2 步，共 3 步');
    expect(await first.page.evaluate(() => document.documentElement.dataset.theme)).toBe('dark');
    await first.page.keyboard.press('End');
    const url = await address(first.page);
    const drawn = await first.page.locator('svg.stage').innerHTML();
    await first.close();
    const second = await open(browser, file, url.slice(url.indexOf('#')));
    expect(await second.page.locator('svg.stage').innerHTML()).toBe(drawn);
    await second.close();
  });

  it('breaks and mends a schedule', async () => {
    const { page, problems, close } = await open(browser, file, '#steps?ranks=4');
    expect(await page.locator('.good').count()).toBe(1);
    await page.getByRole('button', { name: 'Remove' }).click();
    await page.getByText('4 findings').waitFor();
    expect(await page.locator('main').innerText()).toContain('chunk 3 lacks rank 0 on rank 0');
    await page.keyboard.press('End');
    expect(await page.locator('.bad-mark').count()).toBe(4);
    await page.getByText('Undo all').click();
    expect(await page.locator('.good').count()).toBe(1);
    await page.keyboard.press('Home');
    // A part that comes to its place by another way is not a mistake in the result.
    await page.getByLabel('Send to').selectOption('3');
    await page.getByText('Still right').waitFor();
    expect(await page.locator('.good').count()).toBe(1);
    expect(problems).toEqual([]);
    await close();
  });

  it('lets an arrow be pulled to another rank, or away', async () => {
    for (const form of ['row', 'ring']) {
      const { page, problems, close } = await open(browser, file, `#steps?ranks=4&form=${form}`);
      const drop = async (x: number, y: number) => {
        await page.evaluate(() => scrollTo(0, 0));
        const at = await page
          .locator('.hit[data-move="0"]')
          .last()
          .evaluate((path: SVGPathElement) => {
            const middle = path.getPointAtLength(path.getTotalLength() / 2);
            const { x, y } = middle.matrixTransform(path.getScreenCTM()!);
            return { x, y };
          });
        await page.mouse.move(at.x, at.y);
        await page.mouse.down();
        await page.mouse.move(x, y, { steps: 4 });
        expect(await page.locator('.held').count()).toBe(1);
        await page.mouse.up();
      };
      const strip = page.locator('.strip[data-rank="2"][data-row="1"]');
      const box = (await strip.boundingBox())!;
      await drop(box.x + box.width / 2, box.y + box.height / 2);
      expect(await address(page)).toContain('edits=0t2');
      await page.getByText('Undo all').click();
      const stage = (await page.locator('svg.stage').boundingBox())!;
      await drop(stage.x + stage.width / 2, stage.y + stage.height + 30);
      expect(await address(page)).toContain('edits=0x');
      expect(problems).toEqual([]);
      await close();
    }
  });

  it('draws rings, trees and trails, and keeps tables closed', async () => {
    const ring = await open(browser, file, '#steps?form=ring&follow=2&step=3');
    expect(await ring.page.locator('.card').count()).toBe(8);
    expect(await ring.page.locator('.trail circle').count()).toBe(4);
    expect(await ring.page.locator('details.twin[open]').count()).toBe(0);
    await ring.close();
    const hash = '#steps?collective=broadcast&algorithm=double_tree&step=99&form=';
    const tree = await open(browser, file, `${hash}tree`);
    expect(await tree.page.locator('.card').count()).toBe(16);
    await tree.page.keyboard.press('End');
    expect(await tree.page.locator('.frame.over').count()).toBe(16);
    for (const lang of ['en', 'zh']) {
      await tree.page.evaluate((to) => (location.hash = to), `${hash}tree&lang=${lang}`);
      await tree.page.locator(lang === 'zh' ? 'html[lang=zh-CN]' : 'html[lang=en]').waitFor();
      expect(await axe(tree.page)).toEqual([]);
    }
    expect(tree.problems).toEqual([]);
    await tree.close();
    // A ring has no tree: the choice is not there, and the row is shown.
    const row = await open(browser, file, '#steps?form=tree');
    expect(await row.page.locator('.card').count()).toBe(0);
    expect(await row.page.getByRole('button', { name: 'Tree' }).count()).toBe(0);
    await row.close();
  });

  it('changes the number of segments, and compares two of them', async () => {
    const { page, problems, close } = await open(
      browser,
      file,
      '#steps?collective=broadcast&algorithm=chain&ranks=4',
    );
    await page.locator('.forms input[type=range]').focus();
    await page.keyboard.press('End');
    expect(await address(page)).toContain('chain%3Asegments%3D32');
    expect(await page.locator('aside h2').first().innerText()).toBe('Step 1 of 34');
    expect(await page.locator('.segments').innerText()).toContain('S + n − 2 = 34');
    await page.getByRole('button', { name: 'Compare with one segment' }).click();
    await page.getByRole('heading', { name: 'chain:segments=1', exact: true }).waitFor();
    expect(await page.locator('.stages > section').count()).toBe(3);
    expect(problems).toEqual([]);
    await close();
  });

  it('shows the line and the time of a move that is clicked', async () => {
    const { page, close } = await open(browser, file, '#steps?ranks=4&bytes=4194304');
    await page
      .locator('.strip[data-rank="1"][data-row="0"] .filled')
      .first()
      .click({ force: true });
    const row = page.locator('tr.chosen');
    expect(await row.count()).toBe(1);
    expect(await row.innerText()).toMatch(/all_reduce_ring\.cc:\d+/);
    expect(await row.innerText()).toContain('0 µs – 88.9 µs');
    expect(await page.locator('main').innerText()).toContain('Rank 1, c0: 1');
    await close();
  });

  it('names blocks of all_to_all in the table as in the picture', async () => {
    const hash = '#steps?collective=all_to_all&algorithm=pairwise&ranks=4&step=1';
    const { page, close } = await open(browser, file, hash);
    await page.keyboard.press('t');
    const rows = page.locator('details').first().locator('table.cards tbody tr');
    const chunks = await rows.locator('td:nth-child(3)').allInnerTexts();
    const parts = await rows.locator('td:nth-child(5)').allInnerTexts();
    const to = await rows.locator('td:nth-child(2)').allInnerTexts();
    expect(chunks).toEqual(to.map((rank) => `→${rank}`));
    expect(parts).toEqual(await rows.locator('td:nth-child(1)').allInnerTexts());
    await close();
  });

  it('asks first', async () => {
    const { page, close } = await open(browser, file, '#steps?ranks=4');
    await page.getByLabel('Quiz me').check();
    expect(await page.locator('.line').count()).toBe(0);
    await page.getByRole('button', { name: 'c3', exact: true }).click();
    expect(await page.locator('main').innerText()).toContain('Right: c3 to rank 1.');
    expect(await page.locator('.line').count()).toBe(4);
    await close();
  });

  it('leaves the page alone while its keys are shown', async () => {
    const { page, close } = await open(browser, file, '#steps?ranks=4');
    await page.keyboard.press('?');
    await page.getByText('zoom the time (Time, Run)').waitFor();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('4');
    await page.keyboard.press('?');
    expect(await page.locator('dialog').count()).toBe(0);
    await page.getByText('Step 1 of 6').waitFor();
    await close();
  });

  it('copies a picture that stands alone', async () => {
    const { page, close } = await open(browser, file, '#steps?ranks=4');
    await page.evaluate(() => {
      const taken = window as unknown as { taken: string };
      Object.defineProperty(navigator, 'clipboard', {
        value: { writeText: (text: string) => Promise.resolve((taken.taken = text)) },
      });
    });
    await page.getByText('Copy as SVG').click();
    await page.getByText('Copied.').waitFor();
    const svg = await page.evaluate(() => (window as unknown as { taken: string }).taken);
    expect(svg).toContain('xmlns="http://www.w3.org/2000/svg"');
    expect(svg).not.toContain('var(--');
    expect(svg).not.toContain('class=');
    await close();
  });
});
