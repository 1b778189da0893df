export const STORY_TEXTS = {} as const satisfies Record<string, readonly [string, string]>;
