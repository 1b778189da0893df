// The drawn stories in a browser: every step in both languages and themes, on a screen and a phone.
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writePage } from '../program';
import { STORIES } from '../../src/view/url';
import { address, axe, launch, open } from './browser';

let browser: Browser;
let file: string;
beforeAll(async () => {
  file = writePage();
  browser = await launch();
}, 60_000);
afterAll(() => browser.close(), 60_000);

describe.each(STORIES)('%s', (story) => {
  it('goes through all its steps by keyboard, and back', async () => {
    const { page, problems, close } = await open(browser, file, `#parallel?story=${story}`);
    const title = () => page.locator('.words h2').innerText();
    const steps = Number((await title()).split('/')[1]!.split(' ')[0]);
    expect(steps).toBeGreaterThan(3);
    const seen = new Set<string>();
    for (let i = 1; i <= steps; i++) {
      await page.keyboard.press('ArrowRight');
      await page.locator('.count', { hasText: `${i}/${steps}` }).waitFor();
      seen.add(await page.locator('svg.picture').innerHTML());
    }
    expect(seen.size).toBe(steps);
    expect(await address(page)).toContain(`beat=${steps}`);
    await page.keyboard.press('Home');
    await page.locator('.count', { hasText: `1/${steps}` }).waitFor();
    expect(problems).toEqual([]);
    await close();
  });

  it.each([
    ['en', 'light', 1280],
    ['zh', 'dark', 390],
  ] as const)('is whole in %s, %s, %i pixels wide', async (lang, theme, width) => {
    const hash = `#parallel?story=${story}&lang=${lang}&theme=${theme}&beat=2`;
    const { page, problems, close } = await open(browser, file, hash, { width });
    expect(await page.locator('main').innerText()).not.toMatch(/[{}]/);
    expect(await axe(page)).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(
      width,
    );
    // On a phone, too, the picture is on the first screen.
    const top = await page.locator('svg.picture').evaluate((e) => e.getBoundingClientRect().top);
    expect(top).toBeLessThan(width === 390 ? 500 : 300);
    expect(problems).toEqual([]);
    await close();
  });

  it('plays by itself where motion is welcome', async () => {
    const { page, close } = await open(browser, file, `#parallel?story=${story}`, { motion: true });
    const before = await page.locator('svg.picture').innerHTML();
    await page.waitForFunction(
      (drawn) => document.querySelector('svg.picture')?.innerHTML !== drawn,
      before,
    );
    await close();
  });
});

it('opens tensor parallelism on NVLink, where computing takes longer than communicating', async () => {
  const ms = async (hash: string) => {
    const { page, close } = await open(browser, file, `#parallel?story=tensor&beat=5${hash}`);
    const times = await page.locator('svg.picture .label').allTextContents();
    await close();
    return times.filter((each) => each.endsWith(' ms')).map(parseFloat);
  };
  const [computing, sending] = await ms('');
  expect(computing).toBeGreaterThan(3 * sending!);
  const [same, slow] = await ms('&link=0');
  expect(same).toBe(computing);
  expect(slow).toBeGreaterThan(2 * same!);
});

it('draws bytes as areas: an optimiser’s 12 beside weights’ 2, and the same vector on two stages', async () => {
  const data = await open(browser, file, '#parallel?story=data&beat=1');
  const heights = await data.page
    .locator('svg.picture .empty')
    .evaluateAll((list) => list.slice(0, 3).map((each) => Number(each.getAttribute('height'))));
  expect(heights[2]! / heights[0]!).toBeCloseTo(6, 6);
  expect(heights[1]).toBe(heights[0]);
  await data.close();
  const compare = await open(browser, file, '#compare?clock=0');
  const areas = await compare.page.locator('svg.stage').evaluateAll((stages) =>
    stages.map((stage) =>
      [...stage.querySelectorAll('.strip[data-rank="0"] .tile')].reduce((sum, each) => {
        const box = each as SVGRectElement;
        return sum + box.width.baseVal.value * (box.height.baseVal.value + 3);
      }, 0),
    ),
  );
  expect(areas).toHaveLength(2);
  expect(areas[0]! / areas[1]!).toBeCloseTo(1, 6);
  await compare.close();
});

it('a sum looks like a sum, and what is collected does not', async () => {
  const { page, close } = await open(browser, file, '#learn');
  const sigmas = (name: string) => page.locator(`section[aria-label=${name}] .sigma`).count();
  expect(await sigmas('all_gather')).toBe(0);
  expect(await sigmas('all_reduce')).toBe(16);
  expect(await sigmas('reduce_scatter')).toBe(4);
  await close();
});

it('a link to a worked example opens there', async () => {
  const { page, close } = await open(browser, file, '#learn?worked=0.3.3.3.3.3');
  await page.waitForFunction(
    () => Math.abs(document.getElementById('worked')!.getBoundingClientRect().top) < 80,
  );
  await close();
});

it('a partial sum is as large as the sum, and the sum has the colours of all ranks', async () => {
  const fillsAt = async (beat: number) => {
    const hash = `#parallel?story=tensor&beat=${beat}`;
    const { page, close } = await open(browser, file, hash);
    const boxes = await page.locator('svg.picture').evaluate((svg) => {
      const panels = [...svg.querySelectorAll('rect.panel')].map((e) => (e as SVGRectElement).x);
      return [...svg.querySelectorAll('rect.chunk')].map((each) => ({
        fill: each.getAttribute('fill')!,
        wide: Number(each.getAttribute('width')),
        panel: panels.filter((x) => x.baseVal.value <= Number(each.getAttribute('x'))).length - 1,
      }));
    });
    await close();
    return boxes;
  };
  const before = await fillsAt(3);
  expect(before).toHaveLength(16); // four chunks of four ranks
  const of = (panel: number) => new Set(before.filter((b) => b.panel === panel).map((b) => b.fill));
  expect([0, 1, 2, 3].map((panel) => of(panel).size)).toEqual([1, 1, 1, 1]);
  expect(new Set(before.map((each) => each.fill)).size).toBe(4);
  const after = await fillsAt(4);
  expect(after).toHaveLength(16);
  for (const { fill } of after) expect(fill).toMatch(/^url\(#.*-0-1-2-3\)$/);
  expect(new Set([...before, ...after].map(({ wide }) => wide)).size).toBe(1);
});

it('shows where Ulysses ends', async () => {
  // Ulysses and the ring by turns, for 2, 4, 8 and 16 ranks; for twice as many as heads only the ring. Without
  // shared heads of keys and values Ulysses never sends more; with 8 the bars cross.
  for (const [kv, expected] of [
    [0, [512, 512, 384, 768, 224, 896, 120, 960, 1016]],
    [8, [288, 64, 216, 96, 126, 112, 75, 120, 127]],
  ] as const) {
    const hash = `#parallel?story=ulysses&beat=5&set=4.32768.8192.${kv}`;
    const { page, close } = await open(browser, file, hash);
    const values = await page.locator('svg.picture .value').allTextContents();
    const bytes = values.filter((each) => each.includes('MiB')).map(parseFloat);
    expect(bytes).toEqual(expected);
    expect(await page.locator('svg.picture .cross').count()).toBe(1);
    await close();
  }
});

it('says what ranks hold, and leads the last block of a ring out and in again', async () => {
  const { page, problems, close } = await open(
    browser,
    file,
    '#parallel?story=tensor&set=4.1.8192.8192',
  );
  const all = page.locator('.stage svg');
  await page.locator('input[type=range]').evaluate((each: HTMLInputElement) => {
    each.value = String(0.55 * Number(each.max));
    each.dispatchEvent(new Event('input', { bubbles: true }));
  });
  await all.getByText('rank 1: parts of the sum').waitFor();
  expect(await all.locator('text.call').textContent()).toBe('reduce_scatter');
  const boxes = await all
    .locator('.edge')
    .evaluateAll((list) => list.map((each) => each.getBoundingClientRect().toJSON()));
  // Four blocks; that of rank 3 is seen at both ends, and none is over a name.
  expect(boxes).toHaveLength(5);
  const name = (await all.getByText('rank 1: parts of the sum').boundingBox())!;
  for (const box of boxes) expect(box.top).toBeGreaterThanOrEqual(name.y + name.height - 3);
  const both = boxes.filter(({ top }) => boxes.filter((each) => each.top === top).length > 1);
  expect(Math.abs(both[0]!.x - both[1]!.x)).toBeGreaterThan(1000);
  expect(problems).toEqual([]);
  await close();
});

it('tells frames of experts from fills of ranks, and says which bar waits', async () => {
  for (const theme of ['light', 'dark'] as const) {
    const hash = `#moe?moe=4.2.6.2.50.0.2&theme=${theme}`;
    const { page, close } = await open(browser, file, hash, { theme });
    // Lightness, 0 to 1, as the browser computes the colour of a frame; the fill is plain sRGB.
    const [fill, ...frames] = await page.locator('.copy').evaluateAll((list) => {
      const light = (colour: string) => {
        const context = document.createElement('canvas').getContext('2d')!;
        context.fillStyle = colour;
        context.fillRect(0, 0, 1, 1);
        const [red, green, blue] = context.getImageData(0, 0, 1, 1).data;
        return (0.2126 * red! + 0.7152 * green! + 0.0722 * blue!) / 255;
      };
      const first = light(getComputedStyle(list[0]!).fill);
      return [first, ...list.map((each) => light(getComputedStyle(each).stroke))];
    });
    for (const frame of frames) expect(Math.abs(frame - fill!)).toBeGreaterThan(0.1);
    await page.getByText('it waits for the fullest.').waitFor();
    await close();
  }
});

it('marks where backward begins, and what a time of fusion is the sum of', async () => {
  const data = await open(browser, file, '#parallel?story=data&set=4.3.7.8192&beat=3');
  const turn = (await data.page.locator('.turn').boundingBox())!;
  const line = (text: string) => data.page.locator('svg.picture text.in', { hasText: text });
  expect((await line('F6').boundingBox())!.x).toBeLessThan(turn.x);
  expect((await line('B7').boundingBox())!.x).toBeGreaterThan(turn.x);
  await data.close();
  const fused = await open(browser, file, '#parallel?story=overlap&beat=5');
  expect(await fused.page.locator('.time', { hasText: 'in all' }).count()).toBe(3);
  await fused.close();
});

it('shows that a chunk is complete and sent at once; no frame is cut off', async () => {
  const steps = await open(browser, file, '#steps?ranks=4&step=4');
  const boxes = async (name: string) =>
    steps.page
      .locator(name)
      .evaluateAll((list) => list.map((each) => each.getBoundingClientRect().toJSON()));
  const wholes = await boxes('svg .whole');
  const sent = await boxes('svg .sends');
  expect(sent.length).toBe(4);
  for (const { x, right } of sent) {
    expect(wholes.some((each) => each.x > x + 1 && each.right < right - 1)).toBe(true);
  }
  await steps.close();
  const learn = await open(browser, file, '#learn?');
  const picture = learn.page.locator('svg.identity');
  const frame = (await picture.locator('rect').first().boundingBox())!;
  expect(frame.x - (await picture.boundingBox())!.x).toBeGreaterThan(2);
  await learn.close();
});
