// Files that the page is given: right ones, and all kinds of wrong ones.
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseTopology } from '../../src/model/topology';
import { run, writePage } from '../program';
import { address, axe, launch, open } from './browser';

let browser: Browser;
let file: string;
const folder = mkdtempSync(join(tmpdir(), 'viewer-files-'));

beforeAll(async () => {
  browser = await launch();
  file = writePage();
}, 60_000);
afterAll(() => browser.close());

function write(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}
async function give(page: Page, path: string): Promise<void> {
  await page.locator('header input[type=file]').setInputFiles(path);
}
const ring = () => run(['show', 'all_reduce/ring', '-n', '3', '--json']);

describe('a file', () => {
  it('with a schedule is shown, and a wrong one is told', async () => {
    const { page, problems, close } = await open(browser, file, '#learn');
    await give(page, write('ring.json', ring()));
    await page.getByText('Step 1 of 4').waitFor();
    const wrong = JSON.parse(ring());
    wrong.moves.combine[0] = 'replace';
    await give(page, write('wrong.json', JSON.stringify(wrong)));
    await page.locator('.bad').first().waitFor();
    expect(problems).toEqual([]);
    await close();
  });

  it('of a v-form says that its counts are equal there', async () => {
    const made = writePage('all_gather_v/ring', '-n', '3');
    const { page, problems, close } = await open(browser, made, '');
    await page.getByText('Parts of all_gather_v have sizes of their own').waitFor();
    await page.getByText('Step 1 of 2').waitFor();
    expect(problems).toEqual([]);
    await close();
  });

  it.each([
    ['truncated', () => ring().slice(0, 300), 'not JSON, or only the beginning'],
    ['another version', () => ring().replace('schedule/1', 'schedule/2'), 'unknown version'],
    ['nonsense', () => '[[[[', 'not JSON'],
    ['too large', () => ring().replace('"ranks": 3', '"ranks": 1e300'), '/ranks'],
    [
      'hostile',
      () => ring().replace('"ring"', '"</script><img src=x onerror=alert(1)>\\u0000"'),
      '/algorithm',
    ],
    ['deep', () => '['.repeat(1e5), 'not JSON'],
  ])('that is %s is refused in a sentence, and the page goes on', async (_, text, words) => {
    const { page, problems, close } = await open(browser, file, '#steps');
    await give(page, write('bad.json', text()));
    const said = page.getByRole('alert');
    await said.waitFor();
    expect(await said.innerText()).toContain(words);
    await page.locator('main').focus();
    await page.keyboard.press('ArrowRight');
    await page.getByText('Step 2 of 14').waitFor();
    expect(problems).toEqual([]);
    await close();
  });

  it('with a name that looks like HTML stays text', async () => {
    const named = ring().replace('"ring"', '"</script><b id=evil>x</b><!--"');
    const page = writePage(write('named.json', named));
    const opened = await open(browser, page, '');
    expect(await opened.page.locator('#evil').count()).toBe(0);
    await opened.page.getByText('Step 1 of 4').waitFor();
    expect(opened.problems).toEqual([]);
    await opened.close();
  });
});

describe('a topology', () => {
  it('is drawn with the load of its links, and a wrong one is told', async () => {
    const made = writePage('all_reduce/ring', '-n', '16', '--on', 'dgx_h100:nodes=2');
    const { page, problems, close } = await open(browser, made, '');
    expect(await address(page)).toContain('#traffic');
    expect(await page.locator('main').innerText()).toContain('spine → rail0: 240 MiB');
    expect(await page.locator('.device').count()).toBe(16 + 2 + 16 + 8 + 1);
    // A link lights up what goes over it: rank 15 sends to rank 0.
    await page.getByRole('button', { name: /^spine → rail0/ }).focus();
    expect(await page.locator('rect.lit').count()).toBe(2);
    expect(await axe(page)).toEqual([]);
    const preset = { format: 'unisono.topology/1', preset: 'dgx_h100' };
    await give(page, write('preset.json', JSON.stringify(preset)));
    await page.getByText('unisono topo dgx_h100 --json').waitFor();
    const small = run(['topo', 'ethernet_cluster:hosts=4', '--json']);
    await give(page, write('small.json', small));
    await page.getByText('This machine has 4 ranks, the schedule 16').waitFor();
    expect(await address(page)).toContain('file=small.json');
    expect(problems).toEqual([]);
    await close();
  });

  it('that a link was made with is asked for', async () => {
    const { page, close } = await open(browser, file, '#traffic?file=small.json');
    await page.getByText('with the file small.json open').waitFor();
    await give(page, write('small.json', run(['topo', 'ethernet_cluster', '--json'])));
    await page.getByText('On ethernet_cluster').waitFor();
    expect(await page.getByText('with the file small.json open').count()).toBe(0);
    await close();
  });

  it.each([
    [{ devices: [{ name: 'a', kind: 'toaster' }] }, '/devices/0/kind: none of'],
    [{ devices: [{ name: 'a', kind: 'gpu' }] }, '/links/0/to: there is no device "b"'],
    [{ links: [{ from: 'a', to: 'b', latency_us: 1 }] }, 'one bandwidth_UNIT is needed'],
    [{ ranks: ['a', 'a'] }, '/ranks: two ranks on one device'],
    [{ format: 'unisono.topology/9' }, '/format: unknown version'],
  ])('that is wrong is refused in words: %j', async (change, words) => {
    const right = {
      format: 'unisono.topology/1',
      devices: ['a', 'b'].map((name) => ({ name, kind: 'gpu' })),
      links: [{ from: 'a', to: 'b', latency_us: 1, bandwidth_gb_per_s_each_way: 1 }],
      ranks: ['a', 'b'],
    };
    expect(parseTopology(right).links).toHaveLength(2);
    expect(() => parseTopology({ ...right, ...change })).toThrow(words);
  });
});

describe('counts of a router', () => {
  it('are shown wherever they are dropped', async () => {
    const { page, problems, close } = await open(browser, file, '#learn');
    const counts = [
      [3, 5],
      [2, 6],
    ];
    const path = write('counts.json', JSON.stringify({ format: 'unisono.routing/1', counts }));
    await give(page, path);
    await page.getByText('takes 1.38 times the mean').waitFor();
    await give(page, write('bad.json', '{"format": "unisono.routing/1", "counts": [[-1]]}'));
    expect(await page.getByRole('alert').innerText()).toContain('/counts/0/0');
    expect(problems).toEqual([]);
    await close();
  });
});

describe('a recording', () => {
  it('of the simulator has all steps, and no prediction of another network', async () => {
    const trace = join(folder, 'sim.json');
    run([
      'sim',
      'all_reduce/ring',
      '-n',
      '8',
      '--bytes',
      '64MiB',
      '--link',
      'alpha=5us,beta=12.5GB/s',
      '--trace',
      trace,
    ]);
    const { page, problems, close } = await open(browser, writePage(trace), '');
    expect(await address(page)).toContain('#run');
    expect(await page.locator('.message').count()).toBeGreaterThan(60);
    expect(await page.locator('.under').count()).toBe(0);
    expect(await axe(page)).toEqual([]);
    expect(problems).toEqual([]);
    await close();
  });

  it('of one operation is drawn over what is predicted of it', async () => {
    const recording = '../tests/cli/files/recording.json';
    const page = writePage(recording, '--op', 'world #1');
    const { page: shown, problems, close } = await open(browser, page, '');
    expect(await shown.locator('.under').count()).toBe(2);
    expect(problems).toEqual([]);
    await close();
  });

  it('of a hang shows who waits for whom', async () => {
    const why = {
      schema: 'unisono.why/1',
      jobs: [
        {
          job: 'train',
          ended: '',
          findings: [
            {
              kind: 'late',
              ranks: [2],
              waiting: [0, 1, 3],
              waited_s: 12.5,
              text: 'rank 2 has not called all_reduce #7',
              details: [],
              next: 'gdb -p 4711',
            },
          ],
        },
      ],
    };
    const { page, problems, close } = await open(browser, file, '#run');
    await give(page, write('why.json', JSON.stringify(why)));
    await page.getByText('rank 2 has not called all_reduce #7').waitFor();
    expect(await page.locator('svg.picture circle.cause').count()).toBe(1);
    expect(await page.locator('svg.picture circle').count()).toBe(4);
    expect(await axe(page)).toEqual([]);
    expect(problems).toEqual([]);
    await close();
  });

  it('opens an operation on Steps, by the times that were recorded', async () => {
    const trace = {
      ...{ format: 'unisono.trace/1', name: 'train', ranks: 2 },
      ops: {
        ...{ rank: [0, 1, 0, 1], number: [1, 1, 2, 2], collective: Array(4).fill('all_reduce') },
        ...{ algorithm: Array(4).fill('ring'), bytes: Array(4).fill(1048576) },
        ...{ start_us: [0, 2, 200, 200], end_us: [100, 100, 400, 400] },
      },
      messages: {
        ...{ from: [0, 1, 0, 1, 0, 1], to: [1, 0, 1, 0, 1, 0], step: [0, 0, 0, 0, 1, 1] },
        ...{ bytes: Array(6).fill(524288), start_us: [3, 3, 200, 200, 240, 300] },
        end_us: [50, 60, 240, 240, 380, 390],
        op: ['world #1', 'world #1', ...Array(4).fill('world #2')],
      },
    };
    const { page, problems, close } = await open(browser, file, '#run');
    await give(page, write('two.json', JSON.stringify(trace)));
    await page.getByRole('button', { name: 'Steps: all_reduce/ring, world #2' }).click();
    expect(await address(page)).toContain('base=recorded');
    expect(await page.locator('.clock').innerText()).toBe('0 µs of 190 µs');
    await page.keyboard.press('ArrowRight');
    expect(await page.locator('.clock').innerText()).toBe('40 µs of 190 µs');
    expect(problems).toEqual([]);
    await close();
  });

  it('with a missing rank says so, and a broken one leaves the rest', async () => {
    const trace = {
      format: 'unisono.trace/1',
      ranks: 2,
      clock_uncertainty_us: [0, null],
      ops: {
        rank: [0, 1, 0],
        number: [1, 1, 2],
        collective: ['all_reduce', 'all_reduce', 'barrier'],
        bytes: [8, 8, 0],
        start_us: [0, 2, 9],
        end_us: [5, 6, null],
      },
    };
    const { page, problems, close } = await open(browser, file, '#run');
    await give(page, write('trace.json', JSON.stringify(trace)));
    await page.getByText('never came: rank 1').waitFor();
    const said = await page.locator('main').innerText();
    expect(said).toContain('could not be aligned');
    expect(said).toContain('not complete: barrier, world #2');
    expect(await page.locator('svg.picture circle.cause').count()).toBe(1);
    await give(page, write('old.json', JSON.stringify({ ...trace, format: 'unisono.trace/0' })));
    await page.getByRole('alert').waitFor();
    expect(await page.getByRole('alert').innerText()).toContain('unisono.trace/0');
    await page.keyboard.press('4');
    await page.getByText('Step 1 of 14').waitFor();
    expect(problems).toEqual([]);
    await close();
  });
});
