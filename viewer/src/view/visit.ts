// Remembers whether the reader has seen the page before. Browsers may refuse to remember anything,
// above all for a file: then no visit counts as the first, because each would.

const KEY = 'unisono.seen';

export function isFirstVisit(storage: () => Pick<Storage, 'getItem' | 'setItem'>): boolean {
  try {
    const kept = storage();
    if (kept.getItem(KEY) !== null) return false;
    kept.setItem(KEY, '1');
    return kept.getItem(KEY) !== null;
  } catch {
    return false;
  }
}
