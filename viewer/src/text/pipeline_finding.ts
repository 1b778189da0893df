// The sentences of pipeline findings; the English ones are those of `unisono pipeline verify`.
import { actionText } from '../pipeline/text';
import { isSend } from '../pipeline/types';
import type { PipelineFinding, Wait } from '../pipeline/verify';
import { text, type Lang, type TextKey } from './texts';

function waitText(lang: Lang, wait: Wait): string {
  const { rank, peer, isThrough, head } = wait;
  const values = { rank, peer, action: actionText(wait.action) };
  const start = text(lang, isThrough ? 'pf_through' : 'pf_cannot', values);
  if (peer < 0) return start + text(lang, 'pf_nobody', values);
  if (!head) return start + text(lang, 'pf_nothing_sent', values);
  if (isThrough) return start + text(lang, 'pf_which_waits', values);
  return start + text(lang, 'pf_as_waits', { ...values, head: actionText(head) });
}

export function pipelineSentence(lang: Lang, finding: PipelineFinding): string {
  const { kind, rank, otherRank, other, action, waits } = finding;
  if (kind === 'deadlock') {
    return waits.map((wait) => waitText(lang, wait)).join(text(lang, 'pf_and'));
  }
  const at = finding.index < 0 ? '' : text(lang, 'pf_at', { number: finding.index + 1 });
  const isLastW = kind === 'too_early' && other?.kind === 'W' && other.microbatch < 0;
  const last = isLastW ? text(lang, 'pf_last_w', { stage: other.stage }) : '';
  const values = {
    ...{ rank, at, peer: otherRank, action: action ? actionText(action) : '' },
    other: last || (other ? actionText(other) : ''),
  };
  if (kind !== 'unpaired') return text(lang, `pf_${kind}`, values);
  const key: TextKey =
    otherRank < 0 ? 'pf_no_end' : action && isSend(action.kind) ? 'pf_no_receive' : 'pf_no_send';
  return text(lang, key, values);
}
