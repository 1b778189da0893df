// The one state of the page. Everything else follows from it and from the data.
import { check, type Checked } from '../replay/check';
import { apply, type Edit } from '../schedule/edit';
import { BadInput, parseJson, parseSchedule, isObject } from '../schedule/parse';
import type { Schedule } from '../schedule/types';
import { findAlgorithm, readPageData, scheduleOf, type PageData } from './data';
import { DEFAULTS, fromHash, parseEdits, toHash, type ViewState } from './url';

class Page {
  data: PageData = $state.raw({ version: '', catalogue: [] });
  view: ViewState = $state({ ...DEFAULTS });
  dropped: Schedule | undefined = $state.raw();
  recording: unknown = $state.raw();
  message = $state(''); // about a file that could not be read

  // The schedule before edits.
  original: Schedule | undefined = $derived.by(() => {
    const { collective, algorithm, ranks, root } = this.view;
    const given = this.dropped ?? this.data.schedule;
    if (given && (algorithm === '' || isShape(given, this.view))) return given;
    const found = findAlgorithm(this.data, collective, algorithm);
    const any = found ?? this.data.catalogue.find((each) => each.collective === collective);
    return any ? scheduleOf(any, ranks, root) : given;
  });

  schedule: Schedule | undefined = $derived.by(() => {
    const original = this.original;
    if (!original) return undefined;
    return parseEdits(this.view.edits).reduce<Schedule>((schedule, edit) => {
      const fits = edit.move < schedule.moves.count && edit.to < schedule.ranks;
      const change: Edit = edit.drop
        ? { move: edit.move, drop: true }
        : { move: edit.move, to: edit.to };
      return fits ? apply(schedule, change) : schedule;
    }, original);
  });

  checked: Checked = $derived(this.schedule ? check(this.schedule) : { findings: [] });

  start(text: string | null | undefined, hash: string): void {
    this.data = readPageData(text);
    this.recording = this.data.recording;
    this.view = fromHash(hash, this.defaults());
  }

  // A page that was written for one schedule opens there.
  defaults(): ViewState {
    const given = this.data.schedule;
    if (this.data.recording !== undefined) return { ...DEFAULTS, tab: 'run' };
    return given ? { ...DEFAULTS, tab: 'steps', ...shapeOf(given) } : DEFAULTS;
  }

  hash(): string {
    return toHash(this.view, this.defaults());
  }

  // Shows a file that was dropped on the page, or says why not.
  open(name: string, text: string): void {
    this.message = '';
    try {
      const document = parseJson(text);
      if (isObject(document) && isRecording(document)) {
        this.recording = document;
        this.view.tab = 'run';
        return;
      }
      const schedule = parseSchedule(document);
      this.dropped = schedule;
      Object.assign(this.view, {
        tab: 'steps',
        edits: '',
        step: 0,
        follow: -1,
        ...shapeOf(schedule),
      });
    } catch (error) {
      if (!(error instanceof BadInput)) throw error;
      this.message = `${name}: ${error.message}`;
    }
  }
}

function isRecording(document: Record<string, unknown>): boolean {
  const name = document.format ?? document.schema;
  return (
    (typeof name === 'string' && /^unisono\.(trace|why)\//.test(name)) ||
    Array.isArray(document.traceEvents)
  );
}

function shapeOf({ collective, algorithm, ranks, root }: Schedule) {
  return { collective, algorithm, ranks, root };
}

function isShape(schedule: Schedule, view: ViewState): boolean {
  return (
    schedule.collective === view.collective &&
    schedule.algorithm === view.algorithm &&
    schedule.ranks === view.ranks &&
    schedule.root === view.root
  );
}

export const page = new Page();
