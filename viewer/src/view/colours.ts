// The colour of a rank: Okabe and Ito's eight, which most colour-blind people can tell apart, then
// stepped hues. Position is the first code, the digit the second, colour only the third.

const FIRST = [
  '#e69f00',
  '#56b4e9',
  '#009e73',
  '#f0e442',
  '#3b82c4',
  '#e0702d',
  '#cc79a7',
  '#a9a9a9',
];

export function rankColour(rank: number): string {
  if (rank < FIRST.length) return FIRST[rank]!;
  // The golden angle keeps neighbours apart.
  return `hsl(${Math.round((rank * 137.5) % 360)} 55% ${rank % 2 === 0 ? 62 : 72}%)`;
}
