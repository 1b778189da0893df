// The checker's findings as data, with the names of the C++ verifier (src/schedule/verify.h). The
// sentences are in text/finding.ts.

// The C++ verifier's kinds of mistakes that the page's checker can find.
export type Mistake =
  | 'shape'
  | 'root'
  | 'chunk_unit'
  | 'barrier_chunks'
  | 'phase_order'
  | 'move_ranks'
  | 'move_chunks'
  | 'move_step'
  | 'writes_input'
  | 'cannot_reduce'
  | 'onto_itself'
  | 'no_output'
  | 'two_writes'
  | 'no_input'
  | 'reads_unwritten'
  | 'counted_twice'
  | 'lacks'
  | 'has_others'
  | 'cannot_copy'
  | 'cannot_send'
  | 'cannot_receive';

export type Argument = number | string;

export interface Finding {
  kind: 'structure' | 'data_flow' | 'hazard' | 'progress';
  mistake: Mistake;
  step: number; // counted from 0; -1: at the end, or no step
  rank: number;
  chunk: number;
  line: number;
  arguments: Argument[]; // further values in the sentence of this mistake, in order
}

const MOST = 100;

// Collects findings up to a limit: a schedule with mistakes everywhere needs no long list.
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
  // Sorts by step; findings at the end come last.
  sorted(): Finding[] {
    const key = (finding: Finding) => (finding.step < 0 ? Infinity : finding.step);
    return [...this.list].sort((a, b) => (key(a) === key(b) ? 0 : key(a) < key(b) ? -1 : 1));
  }
}
