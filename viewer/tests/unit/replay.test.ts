import { describe, expect, it } from 'vitest';
import { check } from '../../src/replay/check';
import { toText } from '../../src/text/finding';
import { apply } from '../../src/schedule/edit';
import {
  emptyMoves,
  INPUT,
  OUTPUT,
  REDUCE,
  SCRATCH,
  setMove,
  stepStarts,
  type Move,
  type Schedule,
} from '../../src/schedule/types';
import { gridOf, placeOf, rowsName } from '../../src/view/layout';
import { countsOf, isRingStep, piecesOf, progress, strips, trail } from '../../src/view/scene';
import { schedule } from '../schedules';

// As the terminal draws it: [0·2·].
function drawn(name: string, ranks: number, step: number): string[] {
  const { replay } = check(schedule(name, ranks));
  const { rows, slots } = gridOf(replay!.schedule);
  return Array.from({ length: rows }, (_, row) =>
    Array.from({ length: ranks }, (_, rank) => {
      const counts = countsOf(replay!, rank, row, step);
      return Array.from({ length: slots }, (_, i) => (counts[i]! > 0 ? i : '·')).join('');
    }).join(' '),
  );
}

describe('replay', () => {
  it('shows what unisono show shows', () => {
    expect(drawn('all_reduce/ring', 4, 2)).toEqual([
      '0··· ·1·· ·12· ·123',
      '0·23 ·1·· ··2· ··23',
      '0··3 01·3 ··2· ···3',
      '0··· 01·· 012· ···3',
    ]);
  });

  it('goes back as it came', () => {
    const forward = [0, 1, 2, 3, 4, 5, 6].map((step) => drawn('all_reduce/ring', 4, step));
    const back = [6, 5, 4, 3, 2, 1, 0].map((step) => drawn('all_reduce/ring', 4, step));
    expect(back.reverse()).toEqual(forward);
    expect(forward[6]).toEqual(Array(4).fill('0123 0123 0123 0123'));
  });

  it('transposes all_to_all: a row is a destination, a slot an origin', () => {
    expect(drawn('all_to_all/pairwise', 3, 0)).toEqual([
      '0·· ·1· ··2',
      '0·· ·1· ··2',
      '0·· ·1· ··2',
    ]);
    expect(drawn('all_to_all/pairwise', 3, 9)).toEqual([
      '012 ·1· ··2',
      '0·· 012 ··2',
      '0·· ·1· 012',
    ]);
  });

  it('counts results that are complete', () => {
    const { replay } = check(schedule('all_reduce/ring', 4));
    expect(progress(replay!, 0)).toEqual({ done: 0, needed: 16 });
    expect(progress(replay!, 3)).toEqual({ done: 4, needed: 16 });
    expect(progress(replay!, 6)).toEqual({ done: 16, needed: 16 });
  });

  it.each(['scan', 'exclusive_scan'])('completes %s, where ranks sum different inputs', (name) => {
    for (const algorithm of ['chain', 'recursive_doubling', 'flat']) {
      const { replay } = check(schedule(`${name}/${algorithm}`, 5));
      const { done, needed } = progress(replay!, replay!.schedule.steps);
      expect(done, algorithm).toBe(needed);
      expect(needed, algorithm).toBeGreaterThan(0);
    }
  });

  it('knows what is in flight: disjoint from what it meets', () => {
    const ring = schedule('all_reduce/ring', 8);
    const { replay } = check(ring);
    const starts = stepStarts(ring);
    for (let step = 0; step < 7; step++) {
      const pieces = piecesOf(replay!, starts[step]!, starts[step + 1]!);
      expect(pieces).toHaveLength(8);
      expect(isRingStep(8, pieces)).toBe(true);
      for (const piece of pieces) {
        const met = countsOf(replay!, piece.to, piece.row, step);
        expect(piece.counts.some((count, i) => count > 0 && met[i]! > 0)).toBe(false);
      }
    }
  });

  it('marks what is missing at the end, and only then', () => {
    const broken = check(apply(schedule('all_reduce/ring', 4), { move: 0, drop: true })).replay!;
    expect(strips(broken, 3, []).some((strip) => strip.missing)).toBe(false);
    expect(strips(broken, 6, []).filter((strip) => strip.missing)).toHaveLength(4);
  });

  it('follows a chunk', () => {
    const hops = trail(schedule('all_reduce/ring', 4), 0);
    expect(hops.map(({ from, to }) => `${from}${to}`)).toEqual([
      '12',
      '23',
      '30',
      '01',
      '12',
      '23',
    ]);
    expect(hops.map(({ reduces }) => reduces)).toEqual([true, true, true, false, false, false]);
  });

  it('finds the place of a chunk of all_to_all', () => {
    const bruck = schedule('all_to_all/bruck', 4);
    expect(placeOf(bruck, 6)).toEqual({ row: 2, slot: 1 });
  });

  it('calls chunks what the picture calls their rows', () => {
    const ring = schedule('all_reduce/ring', 4);
    expect([rowsName(ring, 2, 1), rowsName(ring, 1, 3)]).toEqual(['c2', 'c1–c3']);
    const bruck = schedule('all_to_all/bruck', 4);
    expect([rowsName(bruck, 6, 1), rowsName(bruck, 5, 2)]).toEqual(['→2', '→1–→2']);
    // From the end of one rank's chunks into the next one's.
    expect(rowsName(bruck, 7, 2)).toBe('→3 →0');
    expect(rowsName(bruck, 0, 16)).toBe('→0–→3');
  });
});

describe('checker', () => {
  it('says what is wrong in the words of unisono verify', () => {
    const ring = schedule('all_reduce/ring', 4);
    const lost = check(apply(ring, { move: 0, drop: true })).findings.map(toText);
    expect(lost[0]).toBe('end: chunk 3 lacks rank 0 on rank 0');
    const twice = check(apply(ring, { move: 4, to: 0 })).findings.map(toText);
    expect(twice[0]).toMatch(/^step \d: /);
  });

  it('refuses what has no structure', () => {
    const bad = { ...schedule('all_reduce/ring', 4), root: 3 };
    expect(toText(check(bad).findings[0]!)).toBe('shape: root 3 of 4 ranks');
    expect(check(bad).replay).toBeUndefined();
  });

  // Two ranks swap two chunks in one step. With lanes of one message each can only take the first
  // message after it has sent its second one, if they send in opposite orders.
  function swap(second: number[]): Schedule {
    const local = { step: 0, chunk: 0, chunks: 2, combine: 0, line: 0 };
    const send = { step: 1, chunks: 1, source: SCRATCH, target: SCRATCH, combine: REDUCE, line: 0 };
    const list: Move[] = [
      ...[0, 1].map((r) => ({ ...local, from: r, to: r, source: INPUT, target: SCRATCH })),
      ...[0, 1].map((chunk) => ({ ...send, from: 0, to: 1, chunk })),
      ...second.map((chunk) => ({ ...send, from: 1, to: 0, chunk })),
      ...[0, 1].map((r) => ({
        ...local,
        step: 2,
        from: r,
        to: r,
        source: SCRATCH,
        target: OUTPUT,
      })),
    ];
    const moves = emptyMoves(list.length);
    list.forEach((move, i) => setMove(moves, i, move));
    return { ...schedule('all_reduce/ring', 2), chunks: 2, steps: 3, phases: [], moves };
  }

  it('notices that ranks wait for ever, in the words of unisono verify', () => {
    expect(check(swap([0, 1])).findings).toEqual([]);
    const findings = check(swap([1, 0])).findings;
    expect(findings.map(({ kind, rank }) => `${kind} ${rank}`)).toEqual([
      'progress 1',
      'progress 0',
    ]);
    expect(findings.map(toText)).toEqual([
      'step 2: rank 1 cannot receive chunk 0 from rank 0: waits for ever with one message a lane',
      'step 2: rank 0 cannot send chunk 1 to rank 1: waits for ever with one message a lane',
    ]);
  });
});
