// A recorded run in the page: thousands of operations and messages, one of them hangs.
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writePage } from '../program';
import { columns, oneMissing, secondOf, type Row } from '../recordings';
import { schedule } from '../schedules';
import { address, axe, launch, open } from './browser';

const OPS = 2000;
const RANKS = 4;

// Rings of four ranks, 1 ms each; the last one hangs for 4 s.
function recording(): object {
  const ops: Row[] = [];
  const events: Row[] = [];
  const messages: Row[] = [];
  const what = { group: 'world', collective: 'all_reduce', algorithm: 'ring', bytes: 65536 };
  for (let number = 1; number <= OPS; number++) {
    const start = 1000 * number;
    const hangs = number === OPS;
    for (let rank = 0; rank < RANKS; rank++) {
      ops.push({
        ...what,
        rank,
        number,
        start_us: start + rank,
        end_us: hangs ? null : start + 700,
      });
      for (let step = 0; step < (hangs ? 1 : 6); step++) {
        const start_us = start + 100 * step + 10;
        const sent = { step, bytes: 16384, start_us, end_us: start_us + 80 };
        const [from, to] = [rank, (rank + 1) % RANKS];
        messages.push({ ...sent, from, to, op: `world #${number}` });
        events.push({ ...sent, op: ops.length - 1, kind: 'send', peer: to, end_us: start_us + 30 });
      }
    }
  }
  const findings = [
    {
      ...{
        kind: 'dropped',
        text: 'the beginning is not here: ranks 0-3 kept only the newest events',
      },
      chinese: { text: '没有开头：rank 0-3 只保留了最新的事件' },
    },
    {
      ...{ kind: 'stopped', text: `rank 1 (pid 7) is stopped, and owes all_reduce #${OPS}` },
      ...{ ranks: [1], waiting: [0, 2, 3], waited_s: 4, next: 'let it go on: kill -CONT 7' },
      chinese: {
        text: `rank 1（pid 7）被暂停，尚欠 all_reduce #${OPS}`,
        next: '让它继续：kill -CONT 7',
      },
    },
  ];
  return {
    ...{ format: 'unisono.trace/1', name: 'all_reduce/ring', ranks: RANKS, findings },
    ops: columns('rank number group collective algorithm bytes start_us end_us', ops),
    events: columns('op kind step peer bytes start_us end_us', events),
    messages: columns('from to step bytes start_us end_us op', messages),
    until_us: [1000 * OPS + 2e6, ...Array(RANKS - 1).fill(1000 * OPS + 4e6)],
  };
}

let browser: Browser;
let file: string;
let stuck: string; // one operation, without rank 1
beforeAll(async () => {
  browser = await launch();
  const folder = mkdtempSync(join(tmpdir(), 'viewer-run-'));
  const page = (name: string, document: object) => {
    const path = join(folder, name);
    writeFileSync(path, JSON.stringify(document));
    return writePage(path);
  };
  file = page('run.json', recording());
  stuck = page('stuck.json', secondOf(oneMissing(schedule('all_reduce/ring', 4), 1)));
}, 60_000);
afterAll(() => browser.close());

async function isInView(page: Page, selector: string): Promise<boolean> {
  return page.locator(selector).evaluate((element) => {
    const box = element.getBoundingClientRect();
    return box.top >= 0 && box.bottom <= innerHeight && box.left >= 0 && box.right <= innerWidth;
  });
}

describe('a long run', () => {
  it('draws every message, and what hangs until the end', async () => {
    const { page, problems, close } = await open(browser, file, '');
    const count = (OPS - 1) * RANKS * 6 + RANKS;
    await page.getByText(`${count} messages are in view, all of them drawn`).waitFor();
    // 2 s of messages, then 4 s of a hang.
    const right = (selector: string) =>
      page
        .locator(selector)
        .evaluateAll((all) => Math.max(...all.map((each) => each.getBoundingClientRect().right)));
    const lane = (await page.locator('rect.idle').nth(1).boundingBox())!;
    const at = (seconds: number) => lane.x + (lane.width * seconds) / 6;
    expect(Math.abs((await right('path.busy.sends')) - at(2))).toBeLessThan(4);
    // A message is on its way for longer than its sender sends; and who gets nothing waits.
    expect(await page.locator('path.busy.receives').count()).toBe(0);
    expect(Math.abs((await right('path.busy.waits')) - at(6))).toBeLessThan(4);
    expect(Math.abs((await right('rect.unfinished')) - at(6))).toBeLessThan(4);
    expect(await page.locator('rect.unfinished').count()).toBe(RANKS);
    // A lane is as long as its process.
    const first = (await page.locator('rect.idle').first().boundingBox())!;
    expect(Math.abs(first.x + first.width - at(4))).toBeLessThan(4);
    expect(await page.locator('path.exited').count()).toBe(1);
    await page.getByText('its process has ended').waitFor();
    // From near, each is drawn by itself.
    await page.evaluate(() => (location.hash = '#run?zoom=1000&from=100'));
    await page.locator('.message').first().waitFor();
    expect(await page.getByText('messages are in view').count()).toBe(0);
    expect(problems).toEqual([]);
    await close();
  });

  it('lists all operations a page at a time, in any order', async () => {
    const { page, problems, close } = await open(browser, file, '');
    expect(await page.evaluate(() => document.documentElement.scrollHeight)).toBeLessThan(3000);
    const rows = page.locator('section[aria-label=Operations] tbody tr');
    expect(await rows.count()).toBe(20);
    await page.getByRole('button', { name: 'To the last rows' }).first().click();
    expect(await rows.last().innerText()).toContain(`world #${OPS}`);
    await page.getByLabel('Order').selectOption({ label: 'slowest first' });
    expect(await rows.first().innerText()).toMatch(/world #2000[^]*≥ 4 s[^]*≥ 4 s[^]*did not end/);
    expect(await address(page)).toContain('sort=time-');
    await page.getByRole('button', { name: 'straggler' }).click();
    expect(await rows.first().innerText()).toContain('rank 3');
    await page.getByRole('searchbox').fill('ring #17');
    expect(await rows.count()).toBe(1);
    await page.getByRole('searchbox').fill('');
    await page.getByLabel('only those that are not complete (1)').check();
    expect(await rows.count()).toBe(1);
    expect(problems).toEqual([]);
    await close();
  });

  it('leads from a finding to its operation, to its steps and back', async () => {
    const { page, problems, close } = await open(browser, file, '#run?find=%231');
    const texts = await page.locator('.findings li b').allInnerTexts();
    expect(texts[0]).toContain('Rank 1 (pid 7) is stopped');
    expect(texts.at(-1)).toContain('The beginning is not here');
    await page
      .getByRole('button', { name: `Show world #${OPS}` })
      .first()
      .click();
    await page.locator('tr.chosen').waitFor();
    expect(await page.locator('tr.chosen').innerText()).toContain(`world #${OPS}`);
    expect(await isInView(page, 'tr.chosen')).toBe(true);
    await page.getByRole('button', { name: 'Steps: all_reduce/ring, world #1999' }).click();
    expect(await page.evaluate(() => scrollY)).toBe(0);
    await page.getByText('world #1999: all_reduce/ring, 64 KiB, 4 ranks, 700 µs').waitFor();
    expect(await page.locator('th', { hasText: 'recorded time' }).count()).toBe(1);
    expect(await page.locator('main').innerText()).toContain('0 µs – 80 µs');
    expect(await axe(page)).toEqual([]);
    await page.getByRole('button', { name: 'Back to the run' }).click();
    await page.locator('tr.chosen').waitFor();
    expect(await page.locator('tr.chosen').innerText()).toContain('world #1999');
    await expect.poll(() => isInView(page, 'tr.chosen')).toBe(true);
    expect(await axe(page)).toEqual([]);
    // A link shows the same.
    const url = await address(page);
    await page.evaluate(() => (location.hash = '#learn'));
    await page.evaluate((to) => (location.hash = to), url.slice(url.indexOf('#')));
    await page.locator('tr.chosen').waitFor();
    await expect.poll(() => isInView(page, 'tr.chosen')).toBe(true);
    expect(problems).toEqual([]);
    await close();
  });

  it('is where the other views begin', async () => {
    const { page, close } = await open(browser, file, '#time');
    const chosen = await page
      .locator('main select')
      .evaluateAll((all) => all.map((each) => (each as HTMLSelectElement).value));
    expect(chosen.slice(0, 3)).toEqual(['all_reduce', 'ring', '4']);
    expect(await page.getByLabel('Bytes').inputValue()).toBe('64 KiB');
    // One operation over what is predicted of it.
    await page.getByLabel('Time base').selectOption({ label: 'recorded time' });
    await page.getByText('the first one that ran this schedule').waitFor();
    expect(await page.locator('line.message').count()).toBe(24);
    expect(await page.locator('line.message.heavy').count()).toBe(6);
    await page.getByText('critical path').waitFor();
    expect(await page.locator('line.under').count()).toBe(24);
    expect(await axe(page)).toEqual([]);
    await close();
  });

  it('is read on a phone, in Chinese', async () => {
    const { page, problems, close } = await open(
      browser,
      file,
      `#run?lang=zh&op=world%20%23${OPS}`,
      {
        ...{ width: 390, height: 844 },
      },
    );
    const main = await page.locator('main').innerText();
    expect(main).toContain(`rank 1（pid 7）被暂停，尚欠 all_reduce #${OPS}`);
    expect(main).toContain('让它继续：kill -CONT 7');
    expect(main).not.toContain('is stopped');
    expect(main).not.toContain('newest');
    await page.locator('tr.chosen').waitFor();
    await expect.poll(() => isInView(page, 'tr.chosen')).toBe(true);
    for (const cell of ['.c-time', '.c-waiting', '.c-last', '.c-open']) {
      expect(await isInView(page, `tr.chosen ${cell}`), cell).toBe(true);
    }
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
    expect(await axe(page)).toEqual([]);
    expect(problems).toEqual([]);
    await close();
  });
});

describe('one operation that did not end', () => {
  it('says who never came, where the others are, and draws what nobody took', async () => {
    const { page, problems, close } = await open(browser, stuck, '');
    const findings = await page.locator('.findings').innerText();
    expect(findings).toContain('This operation is not complete: all_reduce/ring, world #2');
    expect(findings).toContain('Rank 1 never came to it');
    expect(findings).toContain('Rank 2 waits for rank 1 in step 1 of 6: since 1 ms, for 4 ms.');
    expect(findings).toContain('Rank 0 waits for rank 3 in step 2 of 6');
    expect(findings).not.toContain('first');
    // A chain, and its end.
    const graph = page.locator('svg[aria-label*="waits for"]');
    expect(await graph.getAttribute('aria-label')).toBe(
      '0 waits for 3; 2 waits for 1; 3 waits for 2',
    );
    expect(await graph.locator('circle.cause').count()).toBe(1);
    expect(await page.locator('.c-last').last().innerText()).toContain('never came: rank 1');
    expect(await page.locator('path.lost').count()).toBe(1);
    await page.getByText('Messages as a table').click();
    const row = page.locator('tr', { hasText: 'never taken' });
    expect(await row.innerText()).toMatch(/world #2\s+1\s+0\s+1/);
    expect(await axe(page)).toEqual([]);
    // Steps begin where it is stuck, and say so.
    await page.getByRole('button', { name: 'Steps: all_reduce/ring, world #2' }).click();
    const banner = page.locator('section[aria-label="Recorded operation"]');
    expect(await banner.innerText()).toContain('Rank 2 waits for rank 1 in step 1 of 6');
    expect(await page.locator('aside h2').first().innerText()).toBe('Step 1 of 6');
    // Time draws it until its ranks ended, and not as it was meant to be.
    await page.keyboard.press('6');
    await page.locator('section[aria-label=Time] rect.unfinished').first().waitFor();
    expect(await page.locator('section[aria-label=Time] rect.unfinished').count()).toBe(3);
    expect(await page.locator('path.lost').count()).toBe(1);
    await page.getByText('Messages as a table').click();
    expect(await page.locator('td', { hasText: 'never taken' }).count()).toBe(1);
    // There is no other time to choose.
    expect(await page.getByLabel('Time base').count()).toBe(0);
    expect(problems).toEqual([]);
    await close();
  });
});

describe('an operation of a group', () => {
  it('has lanes and recorded steps of its own ranks, in their order', async () => {
    const row = { number: 3, group: 'ranks 1,3', collective: 'all_reduce', algorithm: 'ring' };
    const document = {
      ...{ format: 'unisono.trace/1', name: 'all_reduce/ring', ranks: 4 },
      groups: { name: ['ranks 1,3'], ranks: [[3, 1]] },
      ops: columns('rank number group collective algorithm bytes start_us end_us', [
        { ...row, rank: 1, bytes: 64, start_us: 0, end_us: 40 },
        { ...row, rank: 3, bytes: 64, start_us: 5, end_us: 40 },
      ]),
      messages: columns('from to step bytes start_us end_us op', [
        { from: 3, to: 1, step: 0, bytes: 32, start_us: 6, end_us: 20, op: 'ranks 1,3 #3' },
      ]),
    };
    const path = join(mkdtempSync(join(tmpdir(), 'viewer-run-')), 'group.json');
    writeFileSync(path, JSON.stringify(document));
    const { page, problems, close } = await open(browser, writePage(path), '');
    const lanes = page.locator('section[aria-label=Messages] svg text', { hasText: 'rank' });
    expect(await lanes.allTextContents()).toEqual(['rank 3', 'rank 1']);
    await page.getByText('not in this operation').waitFor();
    await page.getByRole('button', { name: 'Steps: all_reduce/ring, ranks 1,3 #3' }).click();
    await page.getByText('are these of the world: 3 1.').waitFor();
    const moves = page.locator('details', { hasText: 'Moves of this step' }).locator('tbody tr');
    expect(await moves.allInnerTexts()).toHaveLength(2);
    expect(await moves.first().innerText()).toContain('0 µs – 14 µs');
    expect(problems).toEqual([]);
    await close();
  });
});

it('an operation of a group that did not end lasts until its ranks did, by their names', async () => {
  const row = { number: 3, group: 'ranks 1,3', collective: 'all_reduce', algorithm: 'ring' };
  const document = {
    ...{ format: 'unisono.trace/1', name: 'all_reduce/ring', ranks: 4 },
    ...{ until_us: [50, 50, 50, 50], clock_uncertainty_us: [0, null, 0, 0] },
    ops: columns('rank number group collective algorithm bytes start_us end_us', [
      { ...row, rank: 1, bytes: 64, start_us: 0 },
      { ...row, rank: 3, bytes: 64, start_us: 5 },
    ]),
    messages: columns('from to step bytes start_us end_us op', [
      { from: 3, to: 1, step: 0, bytes: 32, start_us: 10, end_us: 20, op: 'ranks 1,3 #3' },
    ]),
  };
  const path = join(mkdtempSync(join(tmpdir(), 'viewer-run-')), 'open.json');
  writeFileSync(path, JSON.stringify(document));
  const hash = '#time?ranks=2&base=model&op=ranks%201%2C3%20%233';
  const { page, problems, close } = await open(browser, writePage(path), hash);
  const picture = page.locator('section[aria-label=Time] svg.picture');
  expect(await picture.getAttribute('aria-label')).toContain('40 µs');
  // The clock of one could not be aligned.
  expect(await picture.locator('text', { hasText: /^\?$/ }).count()).toBe(1);
  expect(await picture.locator('line.vague').count()).toBe(1);
  await page.getByText('Messages as a table').click();
  const cells = page.locator('details', { hasText: 'Messages as a table' }).locator('tbody td');
  expect((await cells.allInnerTexts()).slice(1, 3)).toEqual(['3', '1']);
  expect(problems).toEqual([]);
  await close();
});

describe('a recording without a chosen operation', () => {
  it.each(['steps', 'time'])('offers its operations: %s', async (tab) => {
    const { page, problems, close } = await open(browser, file, `#${tab}?lang=zh`);
    const pick = page.locator('section[aria-label=已记录的操作] select');
    expect(await pick.locator('option').count()).toBeGreaterThan(20);
    await pick.selectOption(`world #${OPS}`);
    await page.getByText('未结束').last().waitFor();
    expect(await address(page)).toContain(`op=world%20%23${OPS}`);
    expect(await axe(page)).toEqual([]);
    expect(problems).toEqual([]);
    await close();
  });
});

it('on paper names are there, and dark pages are white', async () => {
  const { page, close } = await open(browser, file, '', { theme: 'dark' });
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
  const operations = page.locator('section[aria-label=Operations]');
  expect(await operations.locator('thead').innerText()).toContain('waiting');
  expect(await operations.locator('tbody th').first().innerText()).toBe('world #1');
  const luminance = (selector: string, property: string) =>
    page
      .locator(selector)
      .first()
      .evaluate((each, name) => {
        const [r = 0, g = 0, b = 0] = getComputedStyle(each)
          .getPropertyValue(name)
          .match(/[\d.]+/g)!
          .map(Number);
        return (r + g + b) / 3;
      }, property);
  expect(await luminance('.panel', 'background-color')).toBeGreaterThan(240);
  expect(await luminance('body', 'color')).toBeLessThan(60);
  await page.evaluate(() => (location.hash = '#steps'));
  await page.getByText('all_reduce/ring, Ranks: 4, 64 KiB').waitFor();
  await close();
});
