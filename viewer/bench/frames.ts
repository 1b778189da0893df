// Measures the frame rate of a playing page.
import type { Page } from 'playwright-core';

export interface Frames {
  perSecond: number;
  slowMs: number; // the slowest frame of twenty
}

// From a press of the space bar on.
export async function framesOf(page: Page, ms: number): Promise<Frames> {
  await page.locator('main').focus();
  await page.keyboard.press('Space');
  const times = await page.evaluate(
    (length) =>
      new Promise<number[]>((resolve) => {
        const gaps: number[] = [];
        const start = performance.now();
        let before = start;
        const tick = (now: number) => {
          gaps.push(now - before);
          before = now;
          if (now - start < length) requestAnimationFrame(tick);
          else resolve(gaps.slice(1));
        };
        requestAnimationFrame(tick);
      }),
    ms,
  );
  times.sort((a, b) => a - b);
  const sum = times.reduce((a, b) => a + b, 0);
  return {
    perSecond: (1000 * times.length) / sum,
    slowMs: times[Math.floor(times.length * 0.95)]!,
  };
}
