// What the checker says, in the words of the C++ verifier.

export interface Finding {
  kind: 'structure' | 'data_flow' | 'hazard' | 'progress';
  step: number; // counted from 0; -1: at the end, or no step
  rank: number;
  chunk: number;
  line: number;
  text: string; // without the step
}

const MOST = 100;

// Collects up to a limit: a schedule that is wrong everywhere is not worth a long list.
export class Findings {
  private readonly list: Finding[] = [];

  add(finding: Finding): void {
    if (!this.full()) this.list.push(finding);
  }
  full(): boolean {
    return this.list.length >= MOST;
  }
  empty(): boolean {
    return this.list.length === 0;
  }
  // By step; what belongs to the end comes last.
  sorted(): Finding[] {
    const key = (finding: Finding) => (finding.step < 0 ? Infinity : finding.step);
    return [...this.list].sort((a, b) => (key(a) === key(b) ? 0 : key(a) < key(b) ? -1 : 1));
  }
}

// As `unisono verify` shows it: steps counted from 1.
export function shownText(finding: Finding): string {
  return finding.step < 0 ? finding.text : `step ${finding.step + 1}: ${finding.text}`;
}
