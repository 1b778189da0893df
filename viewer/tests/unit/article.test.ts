// The article: every question's answer is what the page would draw, every beat has its moment, and no text has a
// hole.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { CHAPTERS } from '../../src/article/chapters';
import { FIGURES } from '../../src/article/figures';
import { boxSide, halfBytes, messageBytes } from '../../src/article/messages';
import { positionIn } from '../../src/article/scroll';
import type { Both } from '../../src/article/types';
import { chainUs, costs } from '../../src/model/formulas';
import { timing } from '../../src/model/cost';
import { timeText } from '../../src/model/units';
import { WORKED } from '../../src/model/worked';
import { comms } from '../../src/stories/layer';
import { bytesKept } from '../../src/stories/data';
import { fits, gbOf, KNIVES } from '../../src/stories/knives';
import { stopAt } from '../../src/stories/stuck_ring';
import { fill } from '../../src/text/texts';
import { readPageData } from '../../src/view/data';
import { page } from '../../src/view/state.svelte';
import { playedOf } from '../../src/view/pipelines';
import { writePage } from '../program';
import { schedule } from '../schedules';
import { ANSWERS, type Known } from './answers';

// The page as the program writes it: chapters ask it for schedules.
const html = readFileSync(writePage(), 'utf8');
page.data = readPageData(/id="unisono-data">(.*?)<\/script>/s.exec(html)![1]);

const FIRST: Record<string, string> = { all_to_all: 'pairwise', broadcast: 'chain' };
const known: Known = {
  schedule: (name, ranks) => schedule(`${name}/${FIRST[name] ?? 'ring'}`, ranks),
  pipeline: (name, ranks, microbatches) => playedOf(page.data, name, { ranks, microbatches }),
  comms: comms({
    ...{ tp: 1, cp: 1, dp: 4, pp: 1, ep: 4, hidden: 4096, kvHeads: 0, sequence: 4096, batch: 1 },
    ...{ sequenceParallel: false, context: 'ring', zero: 0, microBatches: 1, topK: 2 },
  }),
};

describe.each(CHAPTERS)('$id', (chapter) => {
  const english = (option: string | Both) => (typeof option === 'string' ? option : option[0]);
  const values = Object.fromEntries(chapter.dials.map(({ key, first }) => [key, first]));

  it('has five questions, whose answers the page gives', () => {
    expect(chapter.questions).toHaveLength(5);
    expect(ANSWERS[chapter.id]).toHaveLength(5);
    for (const [i, { ask, options, right }] of chapter.questions.entries()) {
      expect(new Set(options.map(english)).size, ask[0]).toBe(options.length);
      expect(ANSWERS[chapter.id]![i]!(known), ask[0]).toBe(english(options[right]!));
    }
  });

  it('has a moment for every beat, whatever is dragged', () => {
    const shapes = chapter.dials.flatMap(({ key, choices }) =>
      choices.map((choice) => ({ ...values, [key]: choice })),
    );
    for (const shape of shapes) {
      for (const beat of chapter.beats) {
        const figure = FIGURES[beat.figure]!;
        const shown = { ...shape, ...beat.set };
        expect(figure.plans(shown).map(({ id }) => id)).toContain(beat.id);
        for (const width of [320, 900]) expect(figure.height(width, shown)).toBeGreaterThan(100);
      }
    }
  });

  it.each(['en', 'zh'] as const)('has no hole in its texts: %s', (lang) => {
    const { dials, facts, beats, title, lead, sum, paid, questions } = chapter;
    const around = [title, lead, ...(sum ? [sum] : []), paid];
    for (const both of [...around, ...beats.flatMap((beat) => [beat.title, beat.text])]) {
      const said = fill(lang, both, facts(values));
      expect(said).not.toMatch(/[{}]|undefined|NaN|∞/);
      for (const [, key] of said.matchAll(/\[(\w+)\]/g)) {
        const dial = dials.find((each) => each.key === key);
        expect(dial?.choices.length, `${said}: ${key}`).toBeGreaterThan(1);
      }
      expect(/[一-鿿]/.test(said), said).toBe(lang === 'zh');
    }
    for (const { ask } of questions) expect(/[一-鿿]/.test(fill(lang, ask))).toBe(lang === 'zh');
  });
});

describe('one block and its knives', () => {
  it('keeps what mixed precision keeps', () => {
    for (const n of [1, 2, 4, 8, 16]) {
      expect(gbOf('none', n)).toBe(bytesKept(0, n, 70e9) / 1e9);
      expect(gbOf('state', n)).toBe(bytesKept(3, n, 70e9) / 1e9);
    }
    expect(KNIVES.filter((knife) => fits(knife, 8))).toEqual([]);
    expect(KNIVES.filter((knife) => fits(knife, 16))).toEqual(['state', 'hidden', 'layers']);
  });
});

describe('numbers of the first chapters', () => {
  const network = { alphaUs: 5, gbPerS: 12.5 };
  it('splits a message where latency and bytes are alike', () => {
    expect(messageBytes('half', 1, network)).toBe(halfBytes(network));
    expect(halfBytes(network) / (network.gbPerS * 1000)).toBe(network.alphaUs);
  });

  it('draws boxes whose areas are their bytes', () => {
    const areaOf = (bytes: number) => boxSide(bytes) ** 2;
    expect(areaOf(2 ** 29) / areaOf(2 ** 26)).toBeCloseTo(8, 6);
    expect(areaOf(2 ** 26) / areaOf(2 ** 20)).toBeCloseTo(64, 6);
    expect(boxSide(1)).toBe(2);
  });

  it('draws the staircase that the chain of the catalogue takes', () => {
    for (const segments of [1, 8, 32]) {
      const of = schedule(`broadcast/chain:segments=${segments}`, 8);
      const { total } = timing(of, 2 ** 26, network);
      expect(chainUs(8, segments, 2 ** 26, network) / total).toBeCloseTo(1, 6);
    }
  });

  it('runs a halt around the ring', () => {
    for (const ranks of [3, 8]) {
      const of = schedule('all_reduce/ring', ranks);
      for (let dead = 0; dead < ranks; dead++) {
        for (const step of [0, 2, of.steps]) {
          const { done, waits } = stopAt(of, dead, step);
          for (let far = 1; far < ranks; far++) {
            const rank = (dead + far) % ranks;
            expect(done[rank]).toBe(Math.min(of.steps, step + far - 1));
            const isOver = done[rank] === of.steps;
            expect(waits[rank]).toBe(isOver ? -1 : (rank + ranks - 1) % ranks);
          }
          expect([done[dead], waits[dead]]).toEqual([step, -1]);
        }
      }
    }
  });
});

describe('the calculation with GPT-3', () => {
  const { dials, facts, sum } = CHAPTERS.find(({ id }) => id === 'tensor')!;
  const values = Object.fromEntries(dials.map(({ key, first }) => [key, first]));

  it('takes what its worked example takes', () => {
    const { ranks, bytes, alphaUs, gbPerS } = WORKED.find(({ id }) => id === 'tensor')!;
    const network = { alphaUs, gbPerS };
    const { us } = costs({ collective: 'all_reduce', ranks, bytes, segments: 1 }, network).find(
      ({ formula }) => formula.algorithm === 'ring',
    )!;
    expect(facts(values)).toMatchObject({
      ...{ gpt3: '1.61 GB', once: timeText(us), twice: timeText(2 * us) },
    });
    expect(facts(values)).toMatchObject({ once: '9.44 ms', twice: '18.9 ms' });
    for (const name of ['gpt3', 'once', 'twice']) {
      for (const text of sum!) expect(text).toContain(`{${name}}`);
    }
  });

  it('follows each of its numbers', () => {
    const own = dials.filter(({ key }) => key.startsWith('gpt_'));
    expect(own).toHaveLength(5);
    for (const { key, choices } of own) {
      expect(facts({ ...values, [key]: choices[0]! }).once).not.toBe('9.44 ms');
    }
  });
});

describe('where a reader is', () => {
  const beats = [0, 1, 2].map((i) => ({ top: 500 * i, height: 500 }));
  const at = (scrolled: number, calm = false) =>
    positionIn(
      beats.map((box) => ({ ...box, top: box.top - scrolled })),
      400,
      calm,
    );
  it('goes on with the text, and back', () => {
    expect(at(-400)).toBe(0);
    expect(at(130)).toBeGreaterThan(1);
    expect(at(5000)).toBe(3);
    const places = Array.from({ length: 60 }, (_, i) => at(30 * i));
    expect(places).toEqual([...places].sort((a, b) => a - b));
  });
  it('shows whole beats where motion is not welcome', () => {
    expect([-401, -390, 100, 5000].map((scrolled) => at(scrolled, true))).toEqual(
      [0, 1, 1, 3].map((n, i) => (i === 2 ? 1 : n)),
    );
  });
});
