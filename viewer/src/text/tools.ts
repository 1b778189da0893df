export const TOOL_TEXTS = {} as const satisfies Record<string, readonly [string, string]>;
