// The article in a browser: it moves with the reader, its numbers can be dragged, its questions answered.
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CHAPTERS } from '../../src/article/chapters';
import { duration } from '../../src/stories/context';
import { writePage } from '../program';
import { address, axe, launch, open } from './browser';

let browser: Browser;
let file: string;
beforeAll(async () => {
  browser = await launch();
  file = writePage();
}, 60_000);
afterAll(() => browser.close(), 60_000);

// Brings a beat to where it is read.
async function read(page: Page, chapter: string, beat: number): Promise<void> {
  const all = page.locator(`#chapter-${chapter} .beat`);
  await all.nth(beat).evaluate((each) => {
    const { top, height } = each.getBoundingClientRect();
    scrollBy(0, top + 0.6 * height - innerHeight * (innerWidth < 900 ? 0.8 : 0.62));
  });
  await page.locator(`#chapter-${chapter} .beat.now`).nth(0).waitFor();
  await page.waitForFunction(
    ([id, at]) =>
      document.querySelectorAll(`#chapter-${id} .beat`)[at as number]?.classList.contains('now'),
    [chapter, beat] as const,
  );
}

describe('without arguments', () => {
  it('the page opens the article, which shows its knives by itself', async () => {
    const { page, problems, close } = await open(browser, file, '', { motion: true });
    const knives = page.locator('.knives');
    expect(await knives.locator('h2').innerText()).toContain('many GPUs');
    // Something that teaches moves, before anything is done.
    await knives.locator('button[aria-pressed=true]', { hasText: 'batch (data)' }).waitFor();
    await knives.locator('button', { hasText: 'hidden' }).click();
    await page.getByText('Each GPU needs 280 GB.').waitFor();
    await page.getByText('2 all_reduces of activations').waitFor();
    await knives.locator('[role=slider]').focus();
    await page.keyboard.press('End');
    await page.getByText('70 GB a GPU: it fits.').waitFor();
    expect(problems).toEqual([]);
    await close();
  });

  it('leads from a knife to its chapter, and Back again', async () => {
    const { page, close } = await open(browser, file, '');
    await page.locator('.knives button', { hasText: 'layers' }).click();
    await page.locator('.knives a').click();
    const top = () =>
      page.locator('#chapter-pipeline').evaluate((e) => e.getBoundingClientRect().top);
    await expect.poll(top).toBeLessThan(80);
    await expect.poll(() => address(page)).toContain('chapter=pipeline');
    await page.goBack();
    await expect.poll(top).toBeGreaterThan(700);
    await close();
  });
});

describe.each(CHAPTERS.map(({ id, beats }) => ({ id, beats: beats.length })))(
  'chapter $id',
  ({ id, beats }) => {
    it.each([
      ['en', 'light', 1280, 720],
      ['zh', 'dark', 390, 844],
    ] as const)('is whole in %s, %s, %i pixels wide', async (lang, theme, width, height) => {
      const hash = `#article?chapter=${id}&lang=${lang}&theme=${theme}`;
      const { page, problems, close } = await open(browser, file, hash, { width, height });
      const seen = new Set<string>();
      for (let beat = 0; beat < beats; beat++) {
        await read(page, id, beat);
        const stage = page.locator(`#chapter-${id} div.stage`);
        const box = (await stage.boundingBox())!;
        expect(box.y, `beat ${beat}`).toBeGreaterThanOrEqual(-1);
        // On a phone the text has at least a third of the screen.
        expect(box.y + box.height).toBeLessThanOrEqual(width < 900 ? 0.68 * height : height);
        seen.add(await stage.innerHTML());
      }
      expect(seen.size).toBeGreaterThanOrEqual(beats - 1);
      expect(await page.locator('main').innerText()).not.toMatch(/[{}]|undefined|NaN/);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      expect(wide).toBeLessThanOrEqual(width);
      if (['message', 'tensor', 'experts'].includes(id)) expect(await axe(page)).toEqual([]);
      expect(problems).toEqual([]);
      await close();
    });
  },
);

describe('a legend', () => {
  it('names the colour of every bar of the costs', async () => {
    const { page, close } = await open(browser, file, '#article?chapter=cost');
    await read(page, 'cost', 1);
    const fills = await page
      .locator('#chapter-cost div.stage rect.bytes')
      .evaluateAll((bars) => bars.map((bar) => getComputedStyle(bar).fill));
    expect(fills).toHaveLength(4); // three algorithms and the legend
    expect(new Set(fills).size).toBe(1);
    await close();
  });

  it('has the kinds of boxes that the pipeline has', async () => {
    const { page, close } = await open(browser, file, '#article?chapter=pipeline');
    const legend = page.locator('#chapter-pipeline div.stage .legend').first();
    await read(page, 'pipeline', 2);
    expect(await legend.innerText()).toContain('B: backward');
    expect(await legend.innerText()).not.toContain('W: weight gradient');
    await read(page, 'pipeline', 3);
    expect(await legend.innerText()).toContain('I: input gradient');
    expect(await legend.innerText()).not.toContain('B: backward');
    await close();
  });
});

// The texts of a chapter's pictures at its beats, which must answer its questions without the prose.
const ANSWERS: Record<string, RegExp[]> = {
  message: [
    /latency α = 5 µs/,
    /5\.37 ms/,
    /62\.5 kB/,
    /With twice the bandwidth: 2\.69 ms/,
    /1000 × 4 KiB: 5\.33 ms\s+1 × 3\.91 MiB: 333 µs/,
  ],
  laps: [
    /reduce_scatter\s+1\s+2\s+3\s+all_gather\s+4\s+5\s+6/,
    /n = 8\s+1\.75 D/,
    /n = 16\s+1\.875 D/,
  ],
  data: [
    /data parallel: 112 GB/,
    /ZeRO 3: 28 GB · each of 4 ranks/,
    /all_reduce: 1 ×/,
    /all_gather \+ reduce_scatter: 1\.5 ×/,
  ],
  experts: [
    /two copies/,
    /all_to_all 2 of 2/,
    /12 roads/,
    /10 copies, mean 6, 1\.7 times as long/,
    /rank 1 adds up its own/,
  ],
  context: [/ring, in order, time →\s+14 squares[^]*ring, zigzag, time →\s+8 squares/],
  together: [/tp=8, dp=2, pp=4, zero=1: 33\.5 s a step[^]*5 TiB[^]*ranked first: [^]*28\.1 s/],
  scale: [
    /node 0: 8 GPU, all_reduce/,
    /16 MiB = 8388608 × 2 B/,
    /all_reduce, 128 MiB: 744 µs = 1\/45000/,
    /1\/14: 53\.2 µs, α = 2 µs/,
  ],
  tensor: [
    /8192 × 8192/,
    /→ –[^]*← all_reduce[^]*→ all_reduce[^]*← –/,
    /2048 × 8192/,
    /→ Forward · ← backward/,
  ],
};
it.each(Object.entries(ANSWERS))('the pictures of %s answer its questions', async (id, answers) => {
  const { page, close } = await open(browser, file, `#article?chapter=${id}`);
  let said = '';
  for (let beat = 0; beat < CHAPTERS.find((each) => each.id === id)!.beats.length; beat++) {
    await read(page, id, beat);
    const texts = page.locator(`#chapter-${id} div.stage svg text`);
    said += `${(await texts.allTextContents()).join('\n')}\n`;
  }
  for (const answer of answers) expect(said).toMatch(answer);
  await close();
});

it('zigzag takes less of the same axis than the deal in order', async () => {
  const { page, close } = await open(browser, file, '#article?chapter=context');
  await read(page, 'context', 3);
  const widths = await page
    .locator('#chapter-context div.stage rect.wait[rx]')
    .evaluateAll((bars) => bars.map((bar) => Number(bar.getAttribute('width'))));
  expect(new Set(widths).size).toBe(2);
  expect(Math.min(...widths) / Math.max(...widths)).toBeCloseTo(
    duration(4, 'zigzag') / duration(4, 'ring'),
    6,
  );
  await close();
});

it('a stage is saved as an animation that loops', async () => {
  const { page, close } = await open(browser, file, '#article?chapter=message');
  await read(page, 'message', 1);
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.locator('#chapter-message .copy button').nth(1).click(),
  ]);
  expect(download.suggestedFilename()).toBe('message-long.webp');
  const parts: Buffer[] = [];
  for await (const part of await download.createReadStream()) parts.push(part as Buffer);
  const decoded = await page.evaluate(async (text) => {
    const data = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const decoder = new ImageDecoder({ data, type: 'image/webp' });
    await decoder.tracks.ready;
    const { frameCount, repetitionCount } = decoder.tracks.selectedTrack!;
    const hashes = new Set<string>();
    for (let frameIndex = 0; frameIndex < frameCount; frameIndex++) {
      const { image } = await decoder.decode({ frameIndex });
      const pixels = new Uint8Array(image.allocationSize());
      await image.copyTo(pixels);
      hashes.add(
        String.fromCharCode(...new Uint8Array(await crypto.subtle.digest('SHA-1', pixels))),
      );
    }
    return { frameCount, repetitionCount, different: hashes.size };
  }, Buffer.concat(parts).toString('base64'));
  expect(decoded.frameCount).toBe(36);
  expect(decoded.repetitionCount).toBe(Infinity);
  expect(decoded.different).toBeGreaterThan(30);
  await close();
});

it('a frame shows one chapter without questions, and a story without controls', async () => {
  const chapter = await open(browser, file, '#article?chapter=data&bare=1');
  expect(await chapter.page.locator('section.chapter').count()).toBe(1);
  expect(await chapter.page.locator('.knives, .quiz, header').count()).toBe(0);
  expect(chapter.problems).toEqual([]);
  await chapter.close();
  const story = await open(browser, file, '#parallel?story=data&bare=1');
  await story.page.locator('svg.picture').waitFor();
  expect(await story.page.locator('select, nav, table').count()).toBe(1); // the speed
  await story.close();
});

describe('the reader', () => {
  it('drags a number, and sentence and picture follow', async () => {
    const { page, close } = await open(browser, file, '#article?chapter=broadcast');
    await read(page, 'broadcast', 1);
    const beat = page.locator('#chapter-broadcast .beat').nth(1);
    const picture = page.locator('#chapter-broadcast div.stage svg');
    expect(await beat.innerText()).toContain('9.47 ms');
    const before = await picture.innerHTML();
    const box = (await beat.locator('[role=slider]').boundingBox())!;
    await page.mouse.move(box.x + 4, box.y + 8);
    await page.mouse.down();
    await page.mouse.move(box.x + 4 + 50, box.y + 8, { steps: 4 });
    await page.mouse.up();
    expect(await beat.locator('[role=slider]').innerText()).toBe('32');
    expect(await beat.innerText()).not.toContain('9.47 ms');
    expect(await picture.innerHTML()).not.toBe(before);
    await beat.locator('[role=slider]').focus();
    await page.keyboard.press('Home');
    expect(await beat.locator('[role=slider]').getAttribute('aria-valuetext')).toBe('1');
    await close();
  });

  it('answers five questions', async () => {
    const { page, close } = await open(browser, file, '#article?chapter=laps');
    const quiz = page.locator('#chapter-laps .quiz');
    await quiz.locator('summary').click();
    const { questions } = CHAPTERS.find(({ id }) => id === 'laps')!;
    const button = (i: number, at: number) => quiz.locator('li').nth(i).locator('button').nth(at);
    await button(0, (questions[0]!.right + 1) % questions[0]!.options.length).click();
    await quiz.getByText('look again').waitFor();
    for (const [i, { right }] of questions.entries()) await button(i, right).click();
    await quiz.getByText('5 of 5 right.').waitFor();
    await close();
  });

  it('goes on in the lab', async () => {
    const { page, close } = await open(browser, file, '#article?chapter=cost');
    await page.locator('#chapter-cost .lab').click();
    await page.locator('header [aria-current=page]', { hasText: 'Compare' }).waitFor();
    await close();
  });
});
