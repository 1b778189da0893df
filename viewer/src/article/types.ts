// The parts of an article: chapters of beats. A beat is a piece of text and a moment of a picture.
import type { Component } from 'svelte';
import type { Network } from '../model/cost';
import type { Played } from '../pipeline/play';
import type { Pipeline } from '../pipeline/types';
import type { Schedule } from '../schedule/types';
import type { Plan } from '../stories/beat';
import type { Comm } from '../stories/layer';
import type { PictureProps, Values } from '../view/picture';
import type { ViewState } from '../view/url';

export type Both = readonly [string, string]; // English, Chinese

// A number in a sentence that can be dragged.
export interface Dial {
  key: string;
  name: Both; // read aloud
  choices: readonly number[];
  first: number;
  text?: (value: number) => string;
}

// A stage that a chapter shows. Its only state is the time.
export interface Figure {
  picture: Component<PictureProps>;
  plans: (values: Values) => Plan[];
  height: (width: number, values: Values) => number;
  network: Network;
  own?: boolean; // draws its own SVG instead of drawing into a given one
  legend?: (values: Values, far: (id: string) => number) => string;
}

export interface ArticleBeat {
  figure: string; // key of FIGURES
  id: string; // the plan that is played while this beat is read
  set?: Values; // values that the picture shows in addition to the chapter's own
  title: Both;
  text: Both; // {name} is a fact, [name] a dial
}

// The answer is computed from what the page draws.
export interface Question {
  ask: Both;
  options: readonly (string | Both)[];
  right: number;
  answer: (known: Known) => string; // equals the English text of the right option
}

export interface Known {
  schedule: (collective: string, ranks: number) => Schedule;
  pipeline: (
    name: string,
    ranks: number,
    microbatches: number,
  ) => { pipeline: Pipeline; played: Played } | undefined;
  comms: Comm[]; // calls of a layer with experts
}

export interface Chapter {
  id: string;
  title: Both;
  lead: Both; // the question that opens the chapter
  dials: Dial[];
  facts: (values: Values) => Record<string, string | number>;
  beats: ArticleBeat[];
  sum?: Both; // a calculation whose numbers can be dragged
  paid: Both; // the cost of the cut
  questions: Question[];
  lab: Partial<ViewState>; // the view in which the reader can continue
}
