// Finds the rank that waits longest for others in a collective. Pure.

interface Span {
  from: number;
  to: number;
  start: number; // us
  end: number;
}

// Waiting is the time in which a rank neither sends nor receives, before its last message: after
// that, the rank has done its part and waits for no other rank.
export function longestWait(ranks: number, lines: Span[]): { rank: number; wait: number } {
  const spans: [number, number][][] = Array.from({ length: ranks }, () => []);
  for (const { from, to, start, end } of lines) {
    spans[from]!.push([start, end]);
    spans[to]!.push([start, end]);
  }
  let worst = { rank: 0, wait: 0 };
  spans.forEach((list, rank) => {
    list.sort((a, b) => a[0] - b[0]);
    let busy = 0;
    let until = 0;
    for (const [start, end] of list) {
      busy += Math.max(0, end - Math.max(start, until));
      until = Math.max(until, end);
    }
    if (until - busy > worst.wait) worst = { rank, wait: until - busy };
  });
  return worst;
}
