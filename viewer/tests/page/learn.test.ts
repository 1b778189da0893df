// The page as a first-time visitor sees it, and the worked examples with sliders.
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writePage } from '../program';
import { address, axe, launch, open } from './browser';

let browser: Browser;
let file: string;
beforeAll(async () => {
  browser = await launch();
  file = writePage();
}, 60_000);
afterAll(() => browser.close());

async function reopen(page: Page, hash = ''): Promise<string> {
  await page.goto('about:blank');
  await page.goto(`file://${file}${hash}`);
  await page.locator('header').waitFor();
  return address(page);
}

describe('the first visit', () => {
  it('starts a story that moves, and later ones do not', async () => {
    const { page, problems, close } = await open(browser, file, '', { motion: true });
    expect(await address(page)).toContain('#parallel');
    const before = await page.locator('svg.picture').innerHTML();
    await page.waitForFunction(
      (drawn) => document.querySelector('svg.picture')?.innerHTML !== drawn,
      before,
    );
    expect(await axe(page)).toEqual([]);
    await page.locator('.welcome button').first().click();
    await page.locator('.display').waitFor();
    expect(await page.locator('.welcome').count()).toBe(0);
    expect(await reopen(page)).not.toContain('#parallel');
    expect(problems).toEqual([]);
    await close();
  });

  it('is not for those who follow a link or open a file', async () => {
    const { page, close } = await open(browser, file, '#steps');
    expect(await page.locator('.welcome').count()).toBe(0);
    await close();
    const chain = await open(browser, writePage('all_reduce/ring', '-n', '4'), '');
    await chain.page.locator('header [aria-current=page]', { hasText: 'Steps' }).waitFor();
    expect(await chain.page.locator('.welcome').count()).toBe(0);
    await chain.close();
  });

  it('is none where the browser refuses to remember', async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.addInitScript(() =>
      Object.defineProperty(window, 'localStorage', {
        get: () => {
          throw new DOMException('denied', 'SecurityError');
        },
      }),
    );
    expect(await reopen(page)).not.toContain('#parallel');
    await page.locator('.display').waitFor();
    await context.close();
  });
});

describe('worked examples', () => {
  it('answer to sliders by keyboard, and the address holds them', async () => {
    const { page, problems, close } = await open(browser, file, '#learn');
    const answer = page.locator('.worked .numbers');
    expect(await answer.innerText()).toContain('9.47 ms');
    await page.locator('.worked input[type=range]').nth(1).focus();
    await page.keyboard.press('End');
    expect(await answer.innerText()).not.toContain('9.47 ms');
    const [now, link] = [await answer.innerText(), await address(page)];
    expect(link).toContain('worked=');
    await reopen(page, link.slice(link.indexOf('#')));
    expect(await page.locator('.worked .numbers').innerText()).toBe(now);
    await page.locator('.examples button').nth(3).click();
    expect(await page.locator('.worked').innerText()).toContain('halving_doubling wins: 268 µs');
    await page.locator('.examples button').first().click();
    expect(await page.locator('.worked input[type=range]').count()).toBe(5);
    expect(problems).toEqual([]);
    await close();
  });
});
