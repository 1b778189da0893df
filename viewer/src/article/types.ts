// The parts of an article: chapters of beats. A beat is a piece of text and a moment of a picture.
import type { Component } from 'svelte';
import type { Network } from '../model/cost';
import type { Plan } from '../stories/beat';
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

// tests/unit/answers.ts computes which option is right.
export interface Question {
  ask: Both;
  options: readonly (string | Both)[];
  right: number;
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
