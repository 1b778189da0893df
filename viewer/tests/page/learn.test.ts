// The worked examples with sliders.
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writePage } from '../program';
import { address, launch, open } from './browser';

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
