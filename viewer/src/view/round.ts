// Positions of the ranks' cards around a ring or in trees: pure functions of sizes.
import { gridOf } from './layout';
import { childrenOf, depthsOf, type Tree } from './trees';
import type { Schedule } from '../schedule/types';

// The card of a rank, with rows of strips below each other.
export interface Card {
  rank: number;
  x: number; // left edge
  y: number;
  rows: number[];
}

export interface Round {
  cards: Card[];
  edges: [Card, Card][]; // the edges of trees
  cardOf: (rank: number, row: number) => Card | undefined;
  slotWidth: number;
  rowHeight: number;
  cardWidth: number;
  cardHeight: number;
  width: number;
  height: number;
}

export const HEAD = 20; // height of a card's head: the name of its rank
const GAP = 16;
const APART = 30; // space between cards of a ring, for their arrows
const MOST_WIDE = 132;
const MOST_HIGH = 600; // the most height of a tree, if its strips can be flat enough
const ARROW = 38; // space for an arrow between two levels

function sizes(slots: number, rows: number, room: number, high: number) {
  const widest = slots === 1 ? 52 : 26;
  const slotWidth = Math.max(1, Math.min(widest, Math.floor(Math.min(room, MOST_WIDE) / slots)));
  const rowHeight = Math.max(5, Math.min(20, Math.floor(high / rows)));
  return {
    ...{ slotWidth, rowHeight },
    ...{ cardWidth: Math.max(slots * slotWidth + 8, 22), cardHeight: HEAD + rows * rowHeight + 4 },
  };
}

function finder(cards: Card[]): Round['cardOf'] {
  return (rank, row) => cards.find((card) => card.rank === rank && card.rows.includes(row));
}

const WARPS = [0, 0.1, 0.2, 0.3, -0.1, -0.2, -0.3];

// An ellipse as flat as the available space, and high enough to keep neighbours apart. The cards
// gather above and below, or at the sides, if that makes the ellipse flatter.
export function ring(schedule: Schedule, width: number): Round {
  const { rows, slots } = gridOf(schedule);
  const { ranks } = schedule;
  const size = sizes(slots, rows, width / 4 - GAP, 116);
  const { cardWidth, cardHeight } = size;
  const all = Array.from({ length: rows }, (_, row) => row);
  const wide = Math.max(cardWidth, Math.min((width - cardWidth) / 2 - 4, 90 + 36 * ranks));
  const at = (rank: number, high: number, warp: number) => {
    const even = (2 * Math.PI * rank) / ranks;
    const angle = even - warp * Math.sin(2 * even);
    return { x: wide * Math.sin(angle), y: -high * Math.cos(angle) };
  };
  const touches = (high: number, warp: number) => {
    for (let a = 0; a < ranks; a++) {
      for (let b = a + 1; b < ranks; b++) {
        const [one, two] = [at(a, high, warp), at(b, high, warp)];
        const isNear = Math.abs(one.x - two.x) < cardWidth + APART;
        if (isNear && Math.abs(one.y - two.y) < cardHeight + APART) return true;
      }
    }
    return false;
  };
  const heights = WARPS.map((warp) => {
    let high = cardHeight * 0.6;
    while (touches(high, warp) && high < 4000) high += 12;
    return high;
  });
  const high = Math.min(...heights);
  const warp = WARPS[heights.indexOf(high)]!;
  const cards =
    all.length === 0
      ? []
      : Array.from({ length: ranks }, (_, rank) => {
          const { x, y } = at(rank, high, warp);
          return { rank, x: x + width / 2 - cardWidth / 2, y: y + high + 4, rows: all };
        });
  return {
    ...{ ...size, cards, edges: [], cardOf: finder(cards), width },
    height: Math.max(0, ...cards.map(({ y }) => y)) + cardHeight + 6,
  };
}

// Leaves are side by side, parents above the middle of their children. Two trees are side by side
// or, if there is little space, one below the other.
export function trees(schedule: Schedule, list: Tree[], width: number): Round {
  const { slots } = gridOf(schedule);
  const plans = list.map(({ parent, rows }) => {
    const children = childrenOf(parent);
    const depths = depthsOf(parent)!;
    const columns: number[] = [];
    let leaves = 0;
    const place = (rank: number): number => {
      const below = children[rank]!.map(place);
      const column = below.length === 0 ? leaves++ : (below[0]! + below.at(-1)!) / 2;
      return (columns[rank] = column);
    };
    place(parent.indexOf(-1));
    return { parent, rows, depths, columns, leaves };
  });
  const leaves = Math.max(...plans.map((plan) => plan.leaves));
  const half = width / list.length - GAP / 2;
  const isBeside = list.length > 1 && half >= leaves * (slots * 4 + 24);
  const each = isBeside ? half : width;
  const most = Math.max(...plans.map(({ rows }) => rows.length));
  const levels = Math.max(...plans.map(({ depths }) => Math.max(...depths))) + 1;
  const size = sizes(slots, most, each / leaves - 22, MOST_HIGH / levels - HEAD - ARROW);
  const level = size.cardHeight + ARROW;
  const cards: Card[] = [];
  const edges: [Card, Card][] = [];
  let top = 4;
  plans.forEach(({ parent, rows, depths, columns }, tree) => {
    const left = isBeside ? tree * (each + GAP) : 0;
    const column = Math.min(each / leaves, size.cardWidth + 80);
    const inset = left + (each - column * leaves) / 2 + (column - size.cardWidth) / 2;
    const own = columns.map((at, rank) => ({
      ...{ rank, rows },
      ...{ x: inset + at * column, y: top + depths[rank]! * level },
    }));
    cards.push(...own);
    parent.forEach((of, rank) => of >= 0 && edges.push([own[of]!, own[rank]!]));
    if (!isBeside) top += (Math.max(...depths) + 1) * level;
  });
  return {
    ...{ ...size, cards, edges, cardOf: finder(cards), width },
    height: Math.max(...cards.map(({ y }) => y)) + size.cardHeight + 6,
  };
}

// Returns where the line between two cards meets their edges.
export function edge(l: Round, from: Card, to: Card, room = 3): { x: number; y: number } {
  const middle = (card: Card) => ({ x: card.x + l.cardWidth / 2, y: card.y + l.cardHeight / 2 });
  const [a, b] = [middle(from), middle(to)];
  const [dx, dy] = [b.x - a.x, b.y - a.y];
  const part = Math.min(
    dx === 0 ? Infinity : (l.cardWidth / 2 + room) / Math.abs(dx),
    dy === 0 ? Infinity : (l.cardHeight / 2 + room) / Math.abs(dy),
  );
  return { x: a.x + dx * part, y: a.y + dy * part };
}

export function cardAt(l: Round, x: number, y: number): number {
  const inside = (card: Card) =>
    x >= card.x && x <= card.x + l.cardWidth && y >= card.y && y <= card.y + l.cardHeight;
  return l.cards.find(inside)?.rank ?? -1;
}
