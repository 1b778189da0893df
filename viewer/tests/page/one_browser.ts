// One Chromium for all files of tests: starting it takes longer than most of what they look at.
import { chromium } from 'playwright-core';
import type { TestProject } from 'vitest/node';

export const launchOptions = {
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox'],
};

declare module 'vitest' {
  export interface ProvidedContext {
    browser: string; // where it listens; empty: it does not start, and a test that wants one says why
  }
}

export default async function setup(project: TestProject) {
  const server = await chromium.launchServer(launchOptions).catch(() => undefined);
  project.provide('browser', server?.wsEndpoint() ?? '');
  return () => server?.close();
}
