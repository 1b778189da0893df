import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: { include: ['bench/{speed,rows,tour}.ts'], disableConsoleIntercept: true },
});
