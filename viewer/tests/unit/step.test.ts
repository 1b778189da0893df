// Steps of models as `unisono step show --json` writes them: read whole, and added up as the program does.
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { axesOf, blocksOf, microbatchesOf, parseStep, wiresOf } from '../../src/model/step';
import { sampleStep } from '../../src/stories/step';
import { packStep, stepOfProgram } from '../plans';
import { run } from '../program';

it('the sample is what unisono step show says', () => {
  const fresh = stepOfProgram();
  if (process.env.UNISONO_UPDATE) {
    writeFileSync('src/stories/step.json', `${JSON.stringify(packStep(fresh))}\n`);
    return;
  }
  expect(JSON.parse(readFileSync('src/stories/step.json', 'utf8'))).toEqual(packStep(fresh));
  expect(sampleStep()).toEqual(parseStep(fresh));
});

const show = (layout: string, model = 'llama3-8b') =>
  JSON.parse(run(['step', 'show', model, '--layout', layout, '--prompt', '512', '--json']));

describe.each(['tp=2', 'pp=2,tp=2', 'cp=2,tp=2', 'pp=4,tp=4'])('a step under %s', (layout) => {
  const document = show(layout);
  const step = parseStep(document);
  const blocks = blocksOf(step);

  it('has every call of every rank, in its order', () => {
    step.ranks.forEach(({ calls }, rank) => {
      const own = blocks.flatMap((block) =>
        block.columns.flatMap(({ calls: each }) => (each[rank] ? [each[rank]] : [])),
      );
      expect(own).toEqual(calls);
    });
    const layers = blocks.map(({ layer }) => layer).filter((layer) => layer >= 0);
    expect(layers).toEqual(Array.from({ length: 32 }, (_, i) => i));
  });

  it('counts the bytes of each axis as the calls have them', () => {
    interface Call {
      what: string;
      group?: number[];
      bytes: number;
    }
    const calls: Call[] = document.ranks.flatMap((rank: { calls: Call[] }) => rank.calls);
    const moved = calls
      .filter(({ what, group }) => what !== 'receive' && (group?.length ?? 0) > 1)
      .reduce((sum, { bytes }) => sum + bytes, 0);
    for (const perNode of [1, 2, step.ranks.length]) {
      const wires = wiresOf(step, perNode);
      expect(wires.reduce((sum, each) => sum + each.inside + each.between, 0)).toBe(moved);
      const far = wires.reduce((sum, each) => sum + each.between, 0);
      if (perNode === 1) expect(far).toBe(moved);
      if (perNode === step.ranks.length) expect(far).toBe(0);
    }
  });
});

describe.each(['1f1b', 'zbv', 'dualpipe'])('a step of training under %s', (schedule) => {
  const words = ['--layout', 'pp=2,tp=2', '--train', '8x512', '--with', `${schedule} m=8`];
  const step = parseStep(JSON.parse(run(['step', 'show', 'llama3-8b', ...words, '--json'])));
  const blocks = blocksOf(step);

  it('has what one microbatch does of each stage, and all that comes before and behind', () => {
    expect(microbatchesOf(step)).toBe(8);
    step.ranks.forEach(({ calls }, rank) => {
      const own = blocks.flatMap((block) =>
        block.columns.flatMap(({ calls: each }) => (each[rank] ? [each[rank]] : [])),
      );
      const isFirst = ({ stage, microbatch }: (typeof calls)[number]) =>
        calls.every((other) => other.stage !== stage || other.microbatch >= microbatch);
      expect(new Set(own)).toEqual(new Set(calls.filter(isFirst)));
    });
  });

  it('goes through each layer forward and backward', () => {
    for (const section of ['forward', 'backward', 'backward of weights']) {
      const layers = blocks.filter(({ name }) => name === section).map(({ layer }) => layer);
      expect(layers.sort((a, b) => a - b)).toEqual(Array.from({ length: 32 }, (_, i) => i));
    }
  });
});

it('knows the axes of groups', () => {
  const { mesh } = parseStep(show('pp=2,tp=4'));
  expect(axesOf(mesh, [4, 5, 6, 7])).toBe('tp');
  expect(axesOf(mesh, [1, 5])).toBe('pp');
  expect(axesOf(mesh, [0, 5])).toBe('pp tp');
  expect(
    wiresOf(parseStep(show('pp=2,tp=4')), 4).map(({ axes, between }) => [axes, between > 0]),
  ).toEqual([
    ['tp', false],
    ['pp', true],
  ]);
});

describe('a wrong file', () => {
  const good = show('tp=2');
  it.each([
    ['mesh', { mesh: 'tp=0' }, '/mesh'],
    ['more ranks', { mesh: 'tp=4' }, '/ranks'],
    ['too many ranks', { mesh: 'tp=4096' }, '/mesh'],
    ['version', { schema: 'unisono.step_show/2' }, '/schema'],
    ['name', { name: 7 }, '/name'],
    ['calls', { ranks: [{}, {}] }, '/ranks/0/calls'],
    [
      'a rank beyond',
      {
        ranks: [{ calls: [{ what: 'send', section: '', node: '', group: [0, 2] }] }, { calls: [] }],
      },
      '/ranks/0/calls/0/group/1',
    ],
    ['a step as it is written', { format: 'unisono.step/1' }, 'unisono view FILE'],
    ['findings', { findings: 3 }, '/findings'],
  ])('%s', (_, change, words) => {
    expect(() => parseStep({ ...good, ...change })).toThrow(words);
  });
});
