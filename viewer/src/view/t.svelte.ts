// Returns the text of a key in the language of the page.
import { text, type TextKey } from '../text/texts';
import { page } from './state.svelte';

export function t(key: TextKey, values: Record<string, string | number> = {}): string {
  return text(page.view.lang, key, values);
}
