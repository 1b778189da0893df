// The experts of the article, small enough to count. Pure.
import type { MoeShape } from '../stories/moe';

export const THE_TOKEN = { rank: 1, token: 2 }; // the token that the picture follows

// Four GPUs with two experts each; `skew` is a percentage.
export const moeShape = (skew: number): MoeShape => ({
  ...{ ranks: 4, perRank: 2, tokens: 6, k: 2, skew: skew / 100, capacity: 0, replicas: 0 },
});
