// The stages that chapters show, by name.
import Collective from '../pictures/Collective.svelte';
import Costs from '../pictures/Costs.svelte';
import Message from '../pictures/Message.svelte';
import PipelineFigure from '../pictures/PipelineFigure.svelte';
import Scale from '../pictures/Scale.svelte';
import Stairs from '../pictures/Stairs.svelte';
import Stuck from '../pictures/Stuck.svelte';
import Token from '../pictures/Token.svelte';
import { LINKS, STORY_LIST } from '../view/stories';
import type { Figure } from './types';

const equal = (...ids: string[]) => {
  const plans = ids.map((id) => ({ id, length: 1 }));
  return () => plans;
};
const [ethernet, , nvlink] = LINKS as [(typeof LINKS)[0], (typeof LINKS)[0], (typeof LINKS)[0]];

export const FIGURES: Record<string, Figure> = {
  ...Object.fromEntries(
    STORY_LIST.map(({ name, link, picture, plans, height, legend }) => [
      name,
      { picture, plans, height, network: LINKS[link ?? 0]!, ...(legend ? { legend } : {}) },
    ]),
  ),
  message: {
    ...{ picture: Message, plans: equal('short', 'long', 'half'), network: ethernet },
    height: () => 378,
  },
  stairs: {
    ...{ picture: Stairs, plans: equal('whole', 'cut'), network: ethernet },
    height: (_, { ranks }) => 200 + (ranks! - 1) * Math.min(20, 150 / (ranks! - 1)) + 62,
  },
  sums: {
    ...{ picture: Collective, network: nvlink, height: () => 320 },
    plans: equal('reduce_scatter', 'all_reduce', 'all_gather', 'all_to_all'),
  },
  laps: { picture: Collective, plans: equal('lap1', 'lap2'), network: nvlink, height: () => 436 },
  costs: {
    ...{ picture: Costs, plans: equal('short', 'long', 'own'), network: ethernet },
    height: () => 290,
  },
  pipes: {
    ...{ picture: PipelineFigure, network: nvlink, own: true, height: () => 300 },
    plans: equal('naive', 'gpipe', '1f1b', 'zb-h1'),
  },
  token: {
    ...{ picture: Token, network: nvlink, height: () => 460 },
    plans: equal('one', 'crowd', 'hot', 'home'),
  },
  scale: {
    ...{ picture: Scale, plans: equal('cluster', 'node', 'rank', 'chunk'), network: nvlink },
    height: (w) => 190 + Math.min(240, 0.5 * w),
  },
  stuck: {
    ...{ picture: Stuck, plans: equal('runs', 'stops', 'found'), network: ethernet },
    height: (_, { ranks }) => 30 + ranks! * 34,
  },
};
