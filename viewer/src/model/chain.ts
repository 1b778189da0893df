// Finds the chain of messages that ends last. Before each message it takes the latest message of an
// earlier step that the sender received. That message may end after the next one begins, because a
// rank can pass data on while it is being reduced.

interface Sent {
  step: number;
  from: number;
  to: number;
  start: number;
  end: number;
}

export function lastChain(messages: Sent[]): Set<number> {
  const chain = new Set<number>();
  let at = messages.reduce(
    (last, { end }, i) => (end > (messages[last]?.end ?? -1) ? i : last),
    -1,
  );
  while (at >= 0 && !chain.has(at)) {
    chain.add(at);
    const { from, step, start } = messages[at]!;
    at = messages.reduce((latest, each, i) => {
      const isBefore = each.to === from && each.step < step && each.start <= start;
      return isBefore && each.end > (messages[latest]?.end ?? -1) ? i : latest;
    }, -1);
  }
  return chain;
}
