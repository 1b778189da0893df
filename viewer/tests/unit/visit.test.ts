import { describe, expect, it } from 'vitest';
import { isFirstVisit } from '../../src/view/visit';

function memory(): Pick<Storage, 'getItem' | 'setItem'> {
  const kept = new Map<string, string>();
  return {
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, value) => void kept.set(key, value),
  };
}

describe('the first visit', () => {
  it('is first once', () => {
    const storage = memory();
    expect([1, 2, 3].map(() => isFirstVisit(() => storage))).toEqual([true, false, false]);
  });

  it('is none where nothing is remembered', () => {
    expect(
      isFirstVisit(() => {
        throw new DOMException('denied', 'SecurityError');
      }),
    ).toBe(false);
    expect(isFirstVisit(() => ({ getItem: () => null, setItem: () => {} }))).toBe(false);
  });
});
