// The planner's data: the page's sample and its rankings against the program's.
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import {
  bubble,
  communication,
  longest,
  ORDER_NAMES,
  parseModelPlan,
  rankingAt,
  saving,
  sorted,
} from '../../src/model/plan';
import { sampleOfProgram } from '../plans';
import { run } from '../program';

it('the sample is what unisono plan-model says', () => {
  const fresh = sampleOfProgram();
  if (process.env.UNISONO_UPDATE) {
    writeFileSync('src/stories/plan.json', `${JSON.stringify(fresh)}\n`);
    return;
  }
  expect(JSON.parse(readFileSync('src/stories/plan.json', 'utf8'))).toEqual(fresh);
});

type Json = Record<string, unknown>;
const folder = mkdtempSync(join(tmpdir(), 'plan-'));
function plan(...words: string[]): Json {
  return JSON.parse(run(['plan-model', ...words, '--top', '3', '--json'])) as Json;
}
function saved(...words: string[]): Json {
  const file = join(folder, 'plan.json');
  run(['plan-model', ...words, '--top', '3', '--save', file]);
  return JSON.parse(readFileSync(file, 'utf8')) as Json;
}

const TRAIN = ['llama3-8b', '--on', 'dgx_h100:nodes=2', '--train', '--sequence', '4096'];
const SERVE = ['llama3-70b', '--on', 'hgx_h200', '--serve', '--precision', 'f8'];

it.each([
  { name: 'training', words: TRAIN, option: '--batch', stops: [64, 128, 256, 512, 1024] },
  { name: 'serving', words: SERVE, option: '--concurrency', stops: [1, 8, 64, 512, 0] },
])(
  'each stop of the batch of $name is what the program ranks there',
  ({ words, option, stops }) => {
    const page = parseModelPlan(saved(...words));
    expect(page.whatIf!.batch).toEqual(stops);
    expect(rankingAt(page, page.whatIf!.start)).toEqual(page.asked);
    const [near, far] = page.whatIf!.start as [number, number, number];
    stops.forEach((batch, i) => {
      const told = parseModelPlan(plan(...words, option, String(batch)));
      expect(rankingAt(page, [near, far, i])).toEqual(told.asked);
    });
  },
);

it('faster links never make the first layout slower, and slower ones cost', () => {
  const { whatIf, ...page } = parseModelPlan(saved(...TRAIN));
  const best = (near: number, far: number) =>
    rankingAt({ ...page, whatIf }, [near, far, 2]).layouts[0]!.tokensPerS;
  for (let near = 0; near < whatIf!.near.length; near++) {
    for (let far = 1; far < whatIf!.far.length; far++) {
      expect(best(near, far)).toBeGreaterThanOrEqual(best(near, far - 1));
      if (near > 0) expect(best(near, far)).toBeGreaterThanOrEqual(best(near - 1, far));
    }
  }
  expect(best(0, 0)).toBeLessThan(best(whatIf!.near.length - 1, whatIf!.far.length - 1));
});

it('one domain of links has no slider for what is between them', () => {
  expect(parseModelPlan(saved(...SERVE)).whatIf!.far).toEqual([1]);
});

it('parts make the whole, and the saving is between the first two', () => {
  for (const words of [TRAIN, SERVE]) {
    const { asked, task } = parseModelPlan(plan(...words));
    for (const each of asked.layouts) {
      const sum = each.seconds.reduce((all, { value }) => all + value, 0);
      expect(sum / each.totalS).toBeCloseTo(1, 3);
      expect(communication(each) + bubble(each)).toBeLessThan(1);
      expect(longest(each).value / each.totalS).toBeGreaterThan(0.1);
    }
    const [first, second] = asked.layouts;
    const part = saving(task, first!, second!);
    expect(part.before).toBeGreaterThan(part.value);
  }
});

it('is sorted by what a column says, and unsorted as the program ranks', () => {
  const { layouts } = parseModelPlan(plan(...TRAIN)).asked;
  expect(sorted(layouts, 'rank')).toEqual(layouts);
  for (const order of ORDER_NAMES) {
    expect(new Set(sorted(layouts, order))).toEqual(new Set(layouts));
  }
  const memory = sorted(layouts, 'memory').map((each) => each.memory);
  expect(memory).toEqual([...memory].sort((a, b) => a - b));
});

it('what does not fit says what misses least', () => {
  const file = join(folder, 'none.json');
  const words = ['deepseek-v3', '--on', 'dgx_h100:nodes=1', '--train', '--save', file];
  expect(() => run(['plan-model', ...words])).toThrow();
  const { asked } = parseModelPlan(JSON.parse(readFileSync(file, 'utf8')));
  expect(asked.layouts).toEqual([]);
  expect(asked.missing!.bytes).toBeGreaterThan(0);
});

it('a wrong file is refused with the place', () => {
  const right = saved(...TRAIN);
  const what = right.what_if as Json;
  for (const [change, problem] of [
    [{ schema: 'unisono.plan_model/9' }, '/schema'],
    [{ task: 'sing' }, '/task'],
    [{ devices: -1 }, '/devices'],
    [{ layouts: [{}] }, '/layouts/0/seconds'],
    [{ layouts: [{ seconds: { '<b>': 1 } }] }, '/layouts/0/seconds'],
    [{ layouts: new Array(1001).fill({}) }, '/layouts'],
    [{ what_if: { ...what, near: [1, 2, 3, 4] } }, '/what_if/rankings'],
    [{ what_if: { ...what, far: [7, 7, 7, 7, 7] } }, '/what_if/rankings'],
    [{ what_if: { ...what, rankings: 'many' } }, '/what_if/rankings'],
  ] as const) {
    expect(() => parseModelPlan({ ...right, ...change })).toThrow(problem);
  }
});
