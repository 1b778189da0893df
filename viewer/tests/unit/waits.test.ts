// The longest wait: a rank that has done its part waits for nobody.
import { describe, expect, it } from 'vitest';
import { timing } from '../../src/model/cost';
import { longestWait } from '../../src/model/waits';
import { schedule } from '../schedules';

const NETWORK = { alphaUs: 5, gbPerS: 12.5 };

describe('the longest wait', () => {
  it.each(['binomial', 'chain', 'flat'])('of broadcast/%s is not the root that is done', (name) => {
    const of = schedule(`broadcast/${name}`, 8);
    const { messages, total } = timing(of, 2 ** 26, NETWORK);
    const { rank, wait } = longestWait(8, messages);
    expect(rank).not.toBe(0);
    // The rank that is reached last has waited until then.
    const last = messages.reduce((a, b) => (b.end > a.end ? b : a));
    expect(wait).toBeCloseTo(messages.find((each) => each.to === last.to)!.start, 6);
    expect(wait).toBeLessThan(total);
  });

  it('is none in a ring, where all are busy to the end', () => {
    const { messages } = timing(schedule('all_reduce/ring', 8), 2 ** 26, NETWORK);
    expect(longestWait(8, messages).wait).toBeCloseTo(0, 6);
  });
});
