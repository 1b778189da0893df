// The page's checker against the C++ verifier: every catalogue schedule with 1..16 ranks, every
// root, and mutants of each: same findings, as fields and in English, and the same final state.
import { describe, expect, it } from 'vitest';
import { check } from '../../src/replay/check';
import type { Finding } from '../../src/replay/finding';
import { apply, type Edit } from '../../src/schedule/edit';
import { unpack } from '../../src/schedule/pack';
import { toText } from '../../src/text/finding';
import { run } from '../program';
import { BUFFERS, COMBINES, type Schedule } from '../../src/schedule/types';

interface Verdict {
  findings: (Finding & { text: string })[];
  state?: string;
}

function verdictOf(schedule: Schedule): Verdict {
  const { findings, replay } = check(schedule);
  const verdict: Verdict = { findings: findings.map((each) => ({ ...each, text: toText(each) })) };
  if (replay) verdict.state = replay.finalState();
  return verdict;
}

function editOf(edit: Record<string, unknown>): Edit {
  const result = { ...edit };
  if ('combine' in edit) result.combine = COMBINES.indexOf(edit.combine as 'reduce');
  if ('source' in edit) result.source = BUFFERS.indexOf(edit.source as 'input');
  return result as Edit;
}

describe('the checker agrees with unisono verify', () => {
  it('on the catalogue and on mutants', { timeout: 120_000 }, () => {
    const lines = run(['16', '4'], 'viewer_cases');
    let schedules = 0;
    let rejected = 0;
    for (const line of lines.trim().split('\n')) {
      const expected = JSON.parse(line);
      const schedule = unpack(expected, { ...expected, file: '' });
      const name = `${expected.collective}/${expected.algorithm} n=${expected.ranks}`;
      expect(verdictOf(schedule), name).toEqual(expected.verdict);
      schedules++;
      for (const mutant of expected.mutants) {
        const verdict = verdictOf(apply(schedule, editOf(mutant.edit)));
        expect(verdict, `${name} ${JSON.stringify(mutant.edit)}`).toEqual(mutant.verdict);
        rejected += mutant.verdict.findings.length > 0 ? 1 : 0;
      }
    }
    expect(schedules).toBeGreaterThan(2800);
    expect(rejected).toBeGreaterThan(5000);
  });
});
