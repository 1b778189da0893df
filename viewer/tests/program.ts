// The programs that the tests need, from the build folder of the preset `dev`.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const build = resolve(process.env.UNISONO_BUILD ?? '../build/dev');

export type Program = 'unisono' | 'viewer_cases' | 'pipeline_cases';

export function program(name: Program): string {
  const path = join(build, name === 'unisono' ? 'tools/unisono/unisono' : `tests/viewer/${name}`);
  if (!existsSync(path)) {
    throw new Error(`${path} is not there: cmake --build --preset dev --target ${name}`);
  }
  return path;
}

export function run(words: string[], name: Program = 'unisono'): string {
  return execFileSync(program(name), words, { encoding: 'utf8', maxBuffer: 1 << 28 });
}

// A page as `unisono view` writes it, or `unisono learn`; its path.
export function writePage(...words: string[]): string {
  return write('view', words);
}
export function writeTopic(topic: string): string {
  return write('learn', [topic]);
}
function write(command: string, words: string[]): string {
  const path = join(mkdtempSync(join(tmpdir(), 'viewer-')), 'page.html');
  run([command, ...words, '-o', path, '--no-open', '--quiet']);
  return path;
}
