// The pictures of the guide. With UNISONO_SCREENSHOTS=../docs/guides/images they are made anew.
import { existsSync, mkdtempSync, readFileSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { PICTURES, takePictures } from '../../scripts/screenshots';
import { writePage } from '../program';

it('the script takes every picture that the guide shows', { timeout: 120_000 }, async () => {
  const folder = process.env.UNISONO_SCREENSHOTS ?? mkdtempSync(join(tmpdir(), 'viewer-shots-'));
  const paths = await takePictures(writePage(), folder);
  expect(paths).toHaveLength(6);
  const guide = readFileSync('../docs/guides/view.md', 'utf8');
  for (const path of paths) expect(statSync(path).size).toBeGreaterThan(10_000);
  for (const { name } of PICTURES) {
    expect(guide).toContain(`images/view-${name}.png`);
    expect(existsSync(`../docs/guides/images/view-${name}.png`), name).toBe(true);
  }
});
