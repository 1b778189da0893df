// Converts the state of the view to the hash of the address and back, so that a link shows the same
// view.

export const TABS = [
  'article',
  'learn',
  'parallel',
  'steps',
  'compare',
  'time',
  'traffic',
  'run',
  'pipeline',
  'moe',
  'layer',
  'step',
  'plan',
] as const;
export type Tab = (typeof TABS)[number];

// The recorded run, and below it the prediction.
export const RECORDED = ['measured', 'predicted'] as const;
// The views that `parallel` links to.
export const PARALLEL_TABS: readonly Tab[] = [
  'parallel',
  'pipeline',
  'moe',
  'plan',
  'layer',
  'step',
];
export const NAV_TABS: readonly Tab[] = TABS.filter(
  (tab) => tab === 'parallel' || !PARALLEL_TABS.includes(tab),
);

// The drawn stories of the view `parallel`.
export const STORIES = [
  'tensor',
  'data',
  'context',
  'ulysses',
  'overlap',
  'order',
  'together',
  'reshard',
] as const;
export type StoryName = (typeof STORIES)[number];

// The length of a step on the stage: equal, as the model predicts, or as recorded.
export const TIME_BASES = ['step', 'model', 'recorded'] as const;
export type TimeBase = (typeof TIME_BASES)[number];

// The arrangement of ranks on the stage: side by side, around a ring, or in the schedule's tree.
export const FORMS = ['row', 'ring', 'tree'] as const;
export type Form = (typeof FORMS)[number];

export interface ViewState {
  tab: Tab;
  collective: string;
  algorithm: string; // "": the schedule that the page was written for, or that was dropped on it
  ranks: number;
  root: number;
  bytes: number;
  step: number;
  form: Form;
  lang: 'en' | 'zh';
  theme: 'auto' | 'light' | 'dark';
  alphaUs: number;
  gbPerS: number;
  reduceGbPerS: number; // 0: reduction takes no time
  base: TimeBase;
  zoom: number; // zoom of time-space diagrams
  from: number; // left edge of time-space diagrams, in thousandths of the whole
  file: string; // name of the opened file; the address cannot contain the file itself
  edits: string; // "12x" drops move 12, "12t3" sends it to rank 3; separated by dots
  follow: number; // chunk, -1: none
  compare: string[]; // algorithms beside the first one
  perNode: number; // ranks per node
  clock: number; // clock of Compare, in thousandths of the slowest algorithm's time
  only: number; // the step that Traffic shows, counted from 1; 0: all
  op: string; // the selected operation of a recording, such as "world #17"
  find: string; // words that the listed operations must contain
  sort: string; // the column by which the list is sorted; with "-" after it: the largest first
  stuck: number; // 1: lists only incomplete operations
  moe: string; // the settings of the stories, as numbers between dots
  layer: string;
  worked: string; // the worked example and its slider positions
  story: StoryName;
  set: string; // the settings of the story
  beat: number; // position of the story's clock
  chapter: string; // chapter of the article; "": its beginning
  link: number; // index of the link in stories; -1: the story's own
  pipes: string[]; // pipeline schedules; "own": from a file; those of RECORDED: from a run
  pipe: string; // shape, costs in per cent, slow stage (0: none), capacity
  cuts: string; // edits of the first pipeline: "2.5x,0.1s"
  bare: number; // 1: without the head of the page, for a frame in another page
}

export const DEFAULTS: ViewState = {
  tab: 'article',
  collective: 'all_reduce',
  algorithm: 'ring',
  ranks: 8,
  root: 0,
  bytes: 64 * 2 ** 20,
  step: 0,
  form: 'row',
  lang: 'en',
  theme: 'auto',
  alphaUs: 5,
  gbPerS: 12.5,
  reduceGbPerS: 0,
  base: 'step',
  zoom: 1,
  from: 0,
  file: '',
  edits: '',
  follow: -1,
  compare: ['recursive_doubling'],
  perNode: 4,
  clock: 0,
  only: 0,
  op: '',
  find: '',
  sort: 'start',
  stuck: 0,
  moe: '4.2.6.2.50.0.0.0',
  layer: '4.1.1.2.2.8192.8192.1.0.0.0.6.0.0',
  worked: '',
  story: 'tensor',
  set: '',
  beat: 0,
  chapter: '',
  link: -1,
  pipes: ['1f1b', 'zb-h1'],
  pipe: '4.8.100.100.100.0.0.1',
  cuts: '',
  bare: 0,
};

const LEAST: Partial<ViewState> = { follow: -1, ranks: 1, gbPerS: 0.001, perNode: 1, zoom: 1 };
const MOST: Partial<ViewState> = {
  clock: 1000,
  ranks: 4096,
  bytes: 2 ** 50,
  alphaUs: 1e6,
  gbPerS: 1e5,
  reduceGbPerS: 1e5,
  zoom: 1e4,
  from: 1000,
  stuck: 1,
  bare: 1,
  link: 2,
};
const FRACTIONS = ['alphaUs', 'gbPerS', 'reduceGbPerS', 'zoom', 'from'];

export function toHash(state: ViewState, defaults: ViewState = DEFAULTS): string {
  const pairs: string[] = [];
  for (const key of Object.keys(defaults) as (keyof ViewState)[]) {
    if (key === 'tab' || String(state[key]) === String(defaults[key])) continue;
    pairs.push(`${key}=${encodeURIComponent(String(state[key]))}`);
  }
  return `#${state.tab}${pairs.length > 0 ? `?${pairs.join('&')}` : ''}`;
}

// Invalid values are replaced by `defaults`, because a link may come from anywhere.
export function fromHash(hash: string, defaults: ViewState = DEFAULTS): ViewState {
  const state: ViewState = { ...defaults };
  const [tab, query] = hash.replace(/^#/, '').split('?');
  if ((TABS as readonly string[]).includes(tab ?? '')) state.tab = tab as Tab;
  for (const [key, text] of new URLSearchParams(query ?? '')) {
    setField(state, key, text);
  }
  return state;
}

function setField(state: ViewState, key: string, text: string): void {
  switch (key) {
    case 'lang':
      if (text === 'en' || text === 'zh') state.lang = text;
      return;
    case 'theme':
      if (text === 'auto' || text === 'light' || text === 'dark') state.theme = text;
      return;
    case 'base':
      if ((TIME_BASES as readonly string[]).includes(text)) state.base = text as TimeBase;
      return;
    case 'form':
      if ((FORMS as readonly string[]).includes(text)) state.form = text as Form;
      return;
    case 'file':
    case 'op':
    case 'find':
      // eslint-disable-next-line no-control-regex
      if (text.length <= 120 && !/[\x00-\x1f\x7f]/.test(text)) state[key] = text;
      return;
    case 'sort':
      if (/^(start|name|bytes|time|waiting|last)-?$/.test(text)) state.sort = text;
      return;
    case 'collective':
    case 'algorithm':
      if (/^[a-z0-9_:=,]{0,60}$/.test(text)) state[key] = text;
      return;
    case 'edits':
      if (/^(\d{1,7}(x|t\d{1,4})(\.|$))*$/.test(text)) state.edits = text;
      return;
    case 'story':
      if ((STORIES as readonly string[]).includes(text)) state.story = text as StoryName;
      return;
    case 'pipes':
      if (/^[a-z0-9,-]{0,60}$/.test(text))
        state.pipes = text.split(',').filter(Boolean).slice(0, 3);
      return;
    case 'cuts':
      if (/^(\d{1,4}\.\d{1,6}[xs](,|$))*$/.test(text)) state.cuts = text;
      return;
    case 'chapter':
      if (/^[a-z]{0,20}$/.test(text)) state.chapter = text;
      return;
    case 'set':
      if (text === '') state.set = '';
    // falls through
    case 'moe':
    case 'pipe':
    case 'layer':
    case 'worked':
      if (/^\d{1,6}(\.\d{1,6}){0,14}$/.test(text)) state[key] = text;
      return;
    case 'compare':
      if (/^[a-z0-9_:=,]{0,200}$/.test(text)) {
        state.compare = text === '' ? [] : text.split(',').slice(0, 2);
      }
      return;
    case 'ranks':
    case 'root':
    case 'bytes':
    case 'step':
    case 'alphaUs':
    case 'gbPerS':
    case 'reduceGbPerS':
    case 'zoom':
    case 'from':
    case 'follow':
    case 'clock':
    case 'only':
    case 'stuck':
    case 'beat':
    case 'link':
    case 'bare':
    case 'perNode': {
      const value = Number(text);
      const whole = FRACTIONS.includes(key) || Number.isInteger(value);
      if (text !== '' && whole && value >= (LEAST[key] ?? 0) && value <= (MOST[key] ?? 1e7)) {
        state[key] = value;
      }
    }
  }
}

export function parseEdits(edits: string): { move: number; drop: boolean; to: number }[] {
  return edits
    .split('.')
    .filter((each) => each !== '')
    .map((each) => ({
      move: parseInt(each, 10),
      drop: each.endsWith('x'),
      to: each.endsWith('x') ? -1 : Number(each.split('t')[1]),
    }));
}

// Reads the settings of a story; a value that is missing or not in `allowed` is replaced by
// `defaults`.
export function parseSettings(text: string, defaults: string, allowed: number[][]): number[] {
  const fallback = defaults.split('.').map(Number);
  const given = text.split('.').map(Number);
  return fallback.map((value, i) => {
    const choice = given[i];
    return choice !== undefined && allowed[i]!.includes(choice) ? choice : value;
  });
}
