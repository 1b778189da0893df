// One HTML file with everything in it: the page is opened from a disk, so nothing may be fetched.
import { readdirSync } from 'node:fs';
import { relative } from 'node:path';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { viteSingleFile } from 'vite-plugin-singlefile';
import { defineConfig } from 'vitest/config';

const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).sort();

export default defineConfig({
  plugins: [
    svelte({
      compilerOptions: {
        // Smaller than the default, which hashes each file's styles into a name.
        cssHash: ({ filename }) => `s${files.indexOf(relative('src', filename)).toString(36)}`,
        discloseVersion: false,
        fragments: 'tree',
      },
    }),
    viteSingleFile({ removeViteModuleLoader: true }),
  ],
  build: {
    outDir: '../build/viewer',
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: { polyfill: false },
  },
  // A browser on a busy machine may take its time.
  test: {
    include: ['tests/**/*.test.ts'],
    globalSetup: ['tests/page/one_browser.ts'],
    testTimeout: 60_000,
  },
});
