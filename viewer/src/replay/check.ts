// The page's checker: the same proofs that `unisono verify` runs on a file.
import type { Schedule } from '../schedule/types';
import { Findings, type Finding } from './finding';
import { checkProgress } from './progress';
import { Replay } from './replay';
import { checkStructure } from './structure';

export interface Checked {
  findings: Finding[];
  replay?: Replay; // if the structure is valid
}

export function check(schedule: Schedule): Checked {
  const findings = new Findings();
  checkStructure(schedule, findings);
  if (!findings.empty()) return { findings: findings.sorted() };
  const replay = new Replay(schedule, findings);
  checkProgress(schedule, findings);
  return { findings: findings.sorted(), replay };
}
