// The parts of an article: chapters of beats. A beat is a piece of text beside a moment of a picture.
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

// A stage that a chapter shows: where it is at a time is all that it knows.
export interface Figure {
  picture: Component<PictureProps>;
  plans: (values: Values) => Plan[];
  height: (width: number, values: Values) => number;
  network: Network;
  own?: boolean; // it draws an SVG of its own, not into one
  legend?: (values: Values, far: (id: string) => number) => string;
}

export interface ArticleBeat {
  figure: string; // of FIGURES
  id: string; // which of its plans goes by while this is read
  set?: Values; // what the picture shows beside the chapter's own numbers
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
  lead: Both; // the question that it begins with
  dials: Dial[];
  facts: (values: Values) => Record<string, string | number>;
  beats: ArticleBeat[];
  sum?: Both; // a calculation, whose numbers can be dragged
  paid: Both; // what is paid
  questions: Question[];
  lab: Partial<ViewState>; // where the reader can go on
}
