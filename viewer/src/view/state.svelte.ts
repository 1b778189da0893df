// The state of the page. Everything else is derived from it and from the data.
import { timing, type Network, type Timing } from '../model/cost';
import { fitRecording, type Fitted } from '../model/fit';
import { mainOperation, summarize, type OpSummary } from '../model/operations';
import { placesOf, stuckStep, type Place } from '../model/stuck';
import { bytesOf, plannedSteps } from '../model/planned';
import { parseRecording, type RecordedMessage, type Recording } from '../model/recording';
import { isModelPlan, parseModelPlan, type ModelPlan } from '../model/plan';
import { isStep, parseStep, type ModelStep } from '../model/step';
import { isTopology, parseTopology, type Topology } from '../model/topology';
import { isPipeline, parseCsv, parsePipeline } from '../pipeline/parse';
import { isPipelineTimes, parsePipelineTimes, type PipelineTimes } from '../pipeline/recorded';
import type { Pipeline } from '../pipeline/types';
import { check, type Checked } from '../replay/check';
import { mostMoved } from '../schedule/counts';
import { apply, type Edit } from '../schedule/edit';
import { BadInput, parseJson, parseSchedule, isObject } from '../schedule/parse';
import { isRouting, routeCounts } from '../stories/moe';
import type { Schedule } from '../schedule/types';
import { modelClock, recordedClock, type Clock, type RecordedClock } from './clock';
import {
  algorithmAt,
  algorithmsOf,
  findAlgorithm,
  isCarried,
  rootOf,
  NO_DATA,
  readPageData,
  scheduleOf,
  type PageData,
} from './data';
import { DEFAULTS, fromHash, parseEdits, RECORDED, toHash, type ViewState } from './url';

const MOST_BYTES = 64_000_000; // the limit of a file, as in `unisono view`
const MOST_TIMED = 60_000; // moves
const MOST_RANKS = 16; // ranks of catalogue schedules in the page

class Page {
  data: PageData = $state.raw(NO_DATA);
  view: ViewState = $state({ ...DEFAULTS });
  dropped: Schedule | undefined = $state.raw();
  recording: unknown = $state.raw();
  routing: unknown = $state.raw(); // counts for the story of experts; undefined: a toy router
  topology: Topology | undefined = $state.raw(); // the machine of Traffic; undefined: plain nodes
  pipeline: Pipeline | undefined = $state.raw(); // from a file
  pipelineTimes: PipelineTimes | undefined = $state.raw(); // times of a run of that pipeline
  step: ModelStep | undefined = $state.raw(); // a model's step, from a file
  plan: ModelPlan | undefined = $state.raw(); // a model's plan, from a file
  systemDark = $state(false);
  opened: string[] = $state.raw([]); // names of opened files
  message = $state(''); // about a file that could not be read

  // The file that was open when the link was made, if it is not open here.
  missing: string = $derived(this.opened.includes(this.view.file) ? '' : this.view.file);
  theme: 'light' | 'dark' = $derived(
    this.view.theme === 'auto' ? (this.systemDark ? 'dark' : 'light') : this.view.theme,
  );

  // The schedule before the edits.
  original: Schedule | undefined = $derived.by(() => {
    const { collective, algorithm, ranks, root, perNode, op } = this.view;
    const given = this.dropped ?? this.data.schedule;
    if (given && (algorithm === '' || isShape(given, this.view))) return given;
    // A recorded operation is shown without edits.
    const found =
      op === '' && root === 0
        ? algorithmAt(this.data, collective, algorithm, ranks, perNode)
        : findAlgorithm(this.data, collective, algorithm);
    const any = found ?? algorithmsOf(this.data, collective)[0];
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

  network: Network = $derived({
    ...{ alphaUs: this.view.alphaUs, gbPerS: this.view.gbPerS },
    reduceGbPerS: this.view.reduceGbPerS,
  });
  // The times of messages on this network; undefined: there are too many.
  times: Timing | undefined = $derived(
    this.schedule && this.schedule.moves.count <= MOST_TIMED
      ? timing(this.schedule, this.view.bytes, this.network)
      : undefined,
  );

  run: { recording?: Recording; problem?: string } = $derived.by(() => {
    if (this.recording === undefined) return {};
    try {
      return { recording: parseRecording(this.recording) };
    } catch (error) {
      if (!(error instanceof BadInput)) throw error;
      return { problem: error.message };
    }
  });
  ops: OpSummary[] = $derived(this.run.recording ? summarize(this.run.recording) : []);
  // The selected operation, if it ran the displayed schedule.
  chosenOp: OpSummary | undefined = $derived.by(() => {
    const op = this.view.op && this.ops.find((each) => each.label === this.view.op);
    const schedule = this.schedule;
    const isShown =
      op && schedule && op.collective === schedule.collective && op.size === schedule.ranks;
    return isShown && op.algorithm === schedule.algorithm ? op : undefined;
  });
  // The main operation of a recording, which other views open first.
  private ran: Partial<ViewState> = $derived.by(() => {
    const main = mainOperation(this.ops, (op) => isCarried(this.data, op));
    if (main) {
      const { collective, algorithm, size, bytes } = main;
      const shape = { collective, algorithm, ranks: size, root: rootOf(main) };
      return { ...shape, bytes: Math.round(bytes) };
    }
    const [collective = '', algorithm = ''] = this.run.recording?.title.split('/') ?? [];
    const ranks = this.run.recording?.ranks ?? 0;
    const isHere = isCarried(this.data, { collective, algorithm, size: ranks });
    if (!isHere) return {};
    const schedule = scheduleOf(findAlgorithm(this.data, collective, algorithm)!, ranks, 0);
    const bytes = Math.round(bytesOf(schedule, this.run.recording?.messages.slice(0, 1) ?? []));
    return { collective, algorithm, ranks, ...(bytes > 0 ? { bytes } : {}) };
  });
  recorded: RecordedClock | undefined = $derived.by(() => {
    if (!this.schedule || !this.run.recording) return undefined;
    const clock = recordedClock(this.schedule, this.run.recording, this.ops, this.view.op);
    // The times of another operation would be wrong for the selected one.
    return this.chosenOp && clock?.label !== this.chosenOp.label ? undefined : clock;
  });
  // The clock of the stage; undefined: all steps have the same length.
  clock: Clock | undefined = $derived.by(() => {
    if (this.view.base === 'recorded') return this.recorded;
    const model = this.view.base === 'model' && this.schedule && this.times;
    return model ? modelClock(this.schedule!, model) : undefined;
  });

  // Returns the schedule of an operation, if the page has it.
  private scheduleFor(op: OpSummary): Schedule | undefined {
    const { collective, algorithm, size: ranks } = op;
    const given = this.data.schedule;
    if (given && isShape(given, { collective, algorithm, ranks, root: rootOf(op) })) return given;
    const found = findAlgorithm(this.data, collective, algorithm);
    return found && isCarried(this.data, op) ? scheduleOf(found, ranks, rootOf(op)) : undefined;
  }

  // Returns the position of each rank in an unfinished operation.
  placesOf(op: OpSummary): Place[] {
    return placesOf(this.run.recording!, op, this.scheduleFor(op));
  }

  // By operation: the step of the schedule in which a message is sent, not the step in which it is
  // used.
  private steps: Map<string, (message: RecordedMessage) => number> = $derived.by(() => {
    void this.run.recording;
    return new Map();
  });
  stepOf(message: Omit<RecordedMessage, 'end'> & { end?: number }): number {
    const { op, end } = message;
    if (end === undefined) return message.step; // the message was never used
    let found = this.steps.get(op);
    if (!found) {
      found = this.stepsOf(op);
      this.steps.set(op, found);
    }
    return found({ ...message, end });
  }
  private stepsOf(label: string): (message: RecordedMessage) => number {
    const op = this.ops.find((each) => each.label === label);
    const schedule = op && this.scheduleFor(op);
    if (!op || !schedule) return ({ step }) => step;
    const index = (m: RecordedMessage) => ({
      ...{ step: m.step, from: op.members.indexOf(m.from), to: op.members.indexOf(m.to) },
    });
    const own = this.run.recording!.messages.filter((each) => each.op === label);
    const planned = plannedSteps(schedule, own.map(index));
    return (m) => planned(index(m));
  }

  // The network of the recorded machine, as far as the model can describe it.
  fitted: Fitted | undefined = $derived(
    this.run.recording && fitRecording(this.run.recording, this.ops, (op) => this.scheduleFor(op)),
  );
  private networkOfRun(): Partial<ViewState> {
    if (!this.fitted) return {};
    const { alphaUs, gbPerS } = this.fitted;
    return { alphaUs, gbPerS };
  }

  isCarried(op: OpSummary): boolean {
    return this.scheduleFor(op) !== undefined;
  }

  // Opens another view for a recorded operation, at the step where it is stuck.
  show(op: OpSummary, tab: 'steps' | 'time'): void {
    const { collective, algorithm, size: ranks, label } = op;
    Object.assign(this.view, {
      ...{ tab, collective, algorithm, ranks, root: rootOf(op), op: label },
      ...{ bytes: Math.round(op.bytes), edits: '', follow: -1 },
      step: op.open.length > 0 ? stuckStep(this.placesOf(op)) : 0,
    });
    this.view.base = this.recorded ? 'recorded' : 'step';
  }

  // Adds an edit of the schedule: "12x" drops move 12, "12t3" sends it to rank 3.
  change(edit: string): void {
    const { edits } = this.view;
    this.view.edits = edits === '' ? edit : `${edits}.${edit}`;
  }

  checked: Checked = $derived(this.schedule ? check(this.schedule) : { findings: [] });

  start(text: string | null | undefined, hash: string): void {
    this.data = readPageData(text);
    this.recording = this.data.recording;
    this.topology = this.data.topology;
    this.pipeline = this.data.pipeline;
    this.pipelineTimes = this.data.pipelineTimes;
    this.step = this.data.step;
    this.plan = this.data.plan;
    this.routing = this.data.routing;
    this.view = fromHash(hash || (this.data.open ?? ''), this.defaults());
  }

  // A page that was written for one schedule opens it; with a recording, it opens the recorded
  // schedule.
  defaults(): ViewState {
    return { ...this.ownDefaults(), lang: this.data.lang ?? browserLanguage() };
  }
  private ownDefaults(): ViewState {
    const given = this.data.schedule;
    const shape = given ? shapeOf(given) : {};
    if (this.data.recording !== undefined) {
      const bytes = given && this.ops[0]?.bytes;
      const size = bytes ? { bytes: Math.round(bytes) } : {};
      return { ...DEFAULTS, tab: 'run', ...this.networkOfRun(), ...this.ran, ...shape, ...size };
    }
    if (this.data.topology) {
      const ranks = Math.max(2, Math.min(MOST_RANKS, this.data.topology.ranks.length));
      return { ...DEFAULTS, tab: 'traffic', ranks, ...shape };
    }
    if (this.data.step) return { ...DEFAULTS, tab: 'step' };
    if (this.data.plan) return { ...DEFAULTS, tab: 'plan' };
    if (this.data.routing !== undefined) return { ...DEFAULTS, tab: 'moe' };
    if (this.data.pipelineTimes) return { ...DEFAULTS, tab: 'pipeline', pipes: [...RECORDED] };
    if (this.data.pipeline) return { ...DEFAULTS, tab: 'pipeline', pipes: ['own'] };
    return given ? { ...DEFAULTS, tab: 'steps', ...shape } : DEFAULTS;
  }

  hash(): string {
    return toHash(this.view, this.defaults());
  }

  async openFile(file: File): Promise<void> {
    if (file.size > MOST_BYTES) this.message = `${file.name}: more than ${MOST_BYTES} bytes`;
    else this.open(file.name, await file.text());
  }

  // Shows a file that was dropped on the page, or reports why it cannot.
  open(name: string, text: string): void {
    this.message = '';
    try {
      if (/\.csv$/i.test(name)) this.showPipeline(parseCsv(text, name));
      else this.showFile(parseJson(text));
      this.opened = [...this.opened, name];
      this.view.file = name;
    } catch (error) {
      if (!(error instanceof BadInput)) throw error;
      this.message = `${name}: ${error.message}`;
    }
  }

  private showPipeline(pipeline: Pipeline, times?: PipelineTimes): void {
    this.pipeline = pipeline;
    this.pipelineTimes = times;
    Object.assign(this.view, { tab: 'pipeline', pipes: times ? [...RECORDED] : ['own'], cuts: '' });
  }

  private showFile(document: unknown): void {
    if (isObject(document) && isPipeline(document)) {
      this.showPipeline(parsePipeline(document));
    } else if (isObject(document) && isPipelineTimes(document)) {
      const times = parsePipelineTimes(document);
      this.showPipeline(times.pipeline, times);
    } else if (isObject(document) && isStep(document)) {
      this.step = parseStep(document);
      Object.assign(this.view, { tab: 'step', beat: 0 });
    } else if (isObject(document) && isModelPlan(document)) {
      this.plan = parseModelPlan(document);
      Object.assign(this.view, { tab: 'plan', set: '' });
    } else if (isObject(document) && isTopology(document)) {
      this.topology = parseTopology(document);
      this.view.tab = 'traffic';
    } else if (isObject(document) && isRouting(document)) {
      routeCounts(document, 0); // refuses data that cannot be shown
      this.routing = document;
      this.view.tab = 'moe';
    } else if (isObject(document) && isRecording(document)) {
      this.recording = document;
      Object.assign(this.view, {
        ...{ tab: 'run', edits: '', step: 0, follow: -1, zoom: 1, from: 0 },
        ...{ op: '', find: '', sort: 'start', stuck: 0, ...this.networkOfRun(), ...this.ran },
      });
    } else {
      const schedule = parseSchedule(document);
      this.dropped = schedule;
      Object.assign(this.view, {
        ...{ tab: 'steps', edits: '', step: 0, follow: -1 },
        ...shapeOf(schedule),
      });
    }
  }
}

// Returns the available language that the reader's browser prefers.
function browserLanguage(): ViewState['lang'] {
  return /^zh\b/i.test(navigator.language) ? 'zh' : 'en';
}

function isRecording(document: Record<string, unknown>): boolean {
  const name = document.format ?? document.schema;
  return (
    (typeof name === 'string' && /^unisono\.(trace|why)\//.test(name)) ||
    Array.isArray(document.traceEvents)
  );
}

function shapeOf({ collective, algorithm, ranks, root, counts }: Schedule) {
  // Compares with calls of the same size.
  const size = counts ? { bytes: mostMoved(counts, true) } : {};
  return { collective, algorithm, ranks, root, ...size };
}

type Shape = Pick<Schedule, 'collective' | 'algorithm' | 'ranks' | 'root'>;

function isShape(schedule: Schedule, view: Shape): boolean {
  return (
    schedule.collective === view.collective &&
    schedule.algorithm === view.algorithm &&
    schedule.ranks === view.ranks &&
    schedule.root === view.root
  );
}

export const page = new Page();
