// One HTML file with everything in it: the page is opened from a disk, so nothing may be fetched.
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { viteSingleFile } from 'vite-plugin-singlefile';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  plugins: [svelte(), viteSingleFile()],
  build: { outDir: '../build/viewer', emptyOutDir: true, target: 'es2022' },
  // A browser on a busy machine may take its time.
  test: {
    include: ['tests/**/*.test.ts'],
    globalSetup: ['tests/page/one_browser.ts'],
    testTimeout: 60_000,
  },
});
