// The sentence of a recording's finding in the reader's language: the file contains both.
import type { RunFinding } from '../model/recording';

type Words = Pick<RunFinding, 'text' | 'details' | 'next'>;

export function saidIn(lang: string, finding: RunFinding): Words & { lang: 'en' | 'zh' } {
  return lang === 'zh' && finding.chinese
    ? { ...finding.chinese, lang: 'zh' }
    : { ...finding, lang: 'en' };
}

// "rank 1 is gone" is capitalized at the beginning of a line; a name such as all_reduce stays as it
// is.
export function asSentence(words: string): string {
  return /^[a-z]+(?=[ :,])/.test(words) ? words[0]!.toUpperCase() + words.slice(1) : words;
}
