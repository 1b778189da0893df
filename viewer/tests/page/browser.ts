// Chromium as Debian packages it, and a page that notices every request and every error.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium, type Browser, type Page } from 'playwright-core';
import { inject } from 'vitest';
import { launchOptions } from './one_browser';

export interface Options {
  width?: number;
  height?: number;
  theme?: 'light' | 'dark';
  motion?: boolean;
}

export interface Opened {
  page: Page;
  problems: string[]; // requests that left the page, console errors, exceptions
  close: () => Promise<void>;
}

// The browser of one_browser.ts: closing what this returns ends its own pages, and not the others'.
export function launch(): Promise<Browser> {
  const endpoint = inject('browser');
  return endpoint ? chromium.connect(endpoint) : chromium.launch(launchOptions);
}

export async function open(
  browser: Browser,
  path: string,
  hash: string,
  options: Options = {},
): Promise<Opened> {
  const context = await browser.newContext({
    viewport: { width: options.width ?? 1280, height: options.height ?? 720 },
    colorScheme: options.theme ?? 'light',
    reducedMotion: options.motion ? 'no-preference' : 'reduce',
  });
  const page = await context.newPage();
  const problems: string[] = [];
  const file = `file://${path}`;
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(file) && !url.startsWith('data:')) problems.push(`request: ${url}`);
  });
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) problems.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => problems.push(`error: ${error.message}`));
  await page.goto(file + hash);
  await page.waitForSelector('main > *');
  return { page, problems, close: () => context.close() };
}

const axeSource = readFileSync(
  createRequire(import.meta.url).resolve('axe-core/axe.min.js'),
  'utf8',
);

// Asks the page itself: page.url() learns of a change by a message that may come later.
export function address(page: Page): Promise<string> {
  return page.evaluate(() => location.href);
}

// Returns axe's findings for the page, one line per rule and place.
export async function axe(page: Page): Promise<string[]> {
  // The page's own policy forbids scripts from elsewhere, so this one is evaluated, not added.
  await page.evaluate(axeSource);
  return page.evaluate(async () => {
    const result = await (
      window as unknown as {
        axe: { run: () => Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
      }
    ).axe.run();
    return result.violations.flatMap((rule) =>
      rule.nodes.map((node) => `${rule.id}: ${node.html.slice(0, 200)}`),
    );
  });
}
