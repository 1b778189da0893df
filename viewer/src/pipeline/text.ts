// Converts actions from and to text, in the spelling of torch.distributed.pipelining: "2F0",
// "3SEND_F1", "(1F4;2B0)OVERLAP_F_B".
import { BadInput } from '../schedule/parse';
import { after, hasMicrobatch, isCompute, KINDS, type Action, type Kind } from './types';

const MOST_STAGES = 16384;
const MOST_MICROBATCHES = 65536;

export function actionText({ kind, stage, microbatch }: Action): string {
  return `${stage >= 0 ? stage : ''}${kind}${microbatch >= 0 ? microbatch : ''}`;
}

function plainAction(text: string): Action | undefined {
  const match = /^(\d{1,6})([A-Z_]+)(\d{1,6})?$/.exec(text);
  const kind = match?.[2] as Kind;
  if (!match || kind === 'OVERLAP_F_B' || !KINDS.includes(kind)) return undefined;
  if (hasMicrobatch(kind) !== (match[3] !== undefined)) return undefined;
  const action = { kind, stage: Number(match[1]), microbatch: Number(match[3] ?? -1), parts: 0 };
  const isIn = action.stage < MOST_STAGES && action.microbatch < MOST_MICROBATCHES;
  return isIn ? action : undefined;
}

// Parses one cell; undefined: it is not an action.
export function parseAction(text: string): Action[] | undefined {
  const overlap = /^\(([^()]*)\)\s*OVERLAP_F_B$/.exec(text);
  if (!overlap) {
    const action = plainAction(text);
    return action && [action];
  }
  const parts = overlap[1]!.split(';').map((each) => plainAction(each.trim()));
  if (parts.some((each) => !each || !isCompute(each.kind))) return undefined;
  const whole: Action = { kind: 'OVERLAP_F_B', stage: -1, microbatch: -1, parts: parts.length };
  return [whole, ...(parts as Action[])];
}

// Parses cells between commas. `place` names the line for an error.
export function parseActions(line: string, place: string): Action[] {
  const actions: Action[] = [];
  line.split(',').forEach((cell, i) => {
    const text = cell.trim();
    if (text === '') return;
    const found = parseAction(text);
    if (!found) {
      throw new BadInput(`${place}, cell ${i + 1}: '${text.slice(0, 40)}' is not an action`);
    }
    actions.push(...found);
  });
  return actions;
}

export function actionsText(actions: Action[]): string {
  const cells: string[] = [];
  for (let i = 0; i < actions.length; i = after(actions, i)) {
    const { kind, parts } = actions[i]!;
    const inside = actions.slice(i + 1, i + 1 + parts).map(actionText);
    cells.push(parts > 0 ? `(${inside.join(';')})${kind}` : actionText(actions[i]!));
  }
  return cells.join(',');
}
