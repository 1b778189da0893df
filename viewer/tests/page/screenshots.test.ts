// The pictures of the guide and of the site's card. With UNISONO_SCREENSHOTS=../docs/guides/images they are made anew.
import { existsSync, mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { PICTURES, takePictures } from '../../scripts/screenshots';
import { writePage } from '../program';
import { oneMissing } from '../recordings';
import { schedule } from '../schedules';

// Rank 1 is killed before the second of two rings.
function killed(): object {
  const gone = {
    ...{ kind: 'gone', text: 'rank 1 is gone: killed by SIGKILL', ranks: [1], waiting: [0, 2, 3] },
    ...{ waited_s: 0.004, next: 'out of memory? try: dmesg | tail', ops: ['world #2'] },
  };
  return {
    ...oneMissing(schedule('all_reduce/ring', 4), 1),
    ...{ findings: [gone], ended: 'rank 1 was killed by SIGKILL' },
  };
}

it('the script takes every picture that the guide shows', { timeout: 120_000 }, async () => {
  const folder = process.env.UNISONO_SCREENSHOTS ?? mkdtempSync(join(tmpdir(), 'viewer-shots-'));
  const recording = join(mkdtempSync(join(tmpdir(), 'viewer-shots-')), 'run.json');
  writeFileSync(recording, JSON.stringify(killed()));
  const paths = await takePictures(writePage(), writePage(recording), folder);
  expect(paths).toHaveLength(PICTURES.length);
  const guides = [
    '../docs/guides/view.md',
    '../docs/guides/plan-a-model.md',
    '../site/overrides/main.html',
  ].map((name) => readFileSync(name, 'utf8'));
  for (const path of paths) expect(statSync(path).size).toBeGreaterThan(10_000);
  for (const { name } of PICTURES) {
    expect(guides.join('')).toContain(`images/view-${name}.png`);
    expect(existsSync(`../docs/guides/images/view-${name}.png`), name).toBe(true);
  }
});
