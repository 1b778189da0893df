import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: { include: ['bench/speed.ts', 'bench/rows.ts'], disableConsoleIntercept: true },
});
