// All axes of parallelism together: the connections that each axis uses, for models and machines
// that `unisono plan-model` has planned (src/stories/plans.json; a test compares it with the
// program). Pure.
import type { Plan as Beat } from './beat';
import plans from './plans.json';

export interface PlanWire {
  axis: 'tp' | 'ep' | 'pp' | 'dp';
  what: string;
  size: number; // size of a group
  stride: number; // distance between its ranks
  calls: number; // calls of all groups
  inside: number; // bytes of all ranks, for groups within a node
  between: number;
}

export interface Plan {
  model: string;
  machine: string;
  asked: string; // a layout; "": the layout that is ranked first
  devices: number;
  insideGbPerS: number; // of a device's link within its node, one way
  betweenGbPerS: number; // of its link to other nodes; 0: there are no other nodes
  perNode: number;
  layout: { tp: number; cp: number; ep: number; dp: number; pp: number; zero: number };
  stepS: number;
  seconds: Record<string, number>;
  wires: PlanWire[];
}

export const PLANS = plans as Plan[];

// Returns the members of rank 0's group, in the order in which they pass data on.
export function membersOf({ layout }: Plan, { axis, size, stride }: PlanWire): number[] {
  return Array.from({ length: axis === 'pp' ? layout.pp : size }, (_, i) => i * stride);
}

// Returns the axes that a group spans. Ranks of context parallelism have the same weights, so their
// gradients are reduced together with those of data parallelism.
export const axesOf = ({ layout }: Plan, { axis }: PlanWire): PlanWire['axis'] | 'dp_cp' =>
  axis === 'dp' && layout.cp > 1 ? 'dp_cp' : axis;

export function togetherPlans(plan: Plan): Beat[] {
  return [
    { id: 'nodes', length: 1 },
    ...plan.wires.map((_, i) => ({ id: `wire${i}`, length: 1.5 })),
    { id: 'time', length: 1.5 },
  ];
}

// Returns the parts of a step that take time, the longest first.
export function partsOf({ seconds }: Plan): { name: string; seconds: number }[] {
  return Object.entries(seconds)
    .map(([name, each]) => ({ name, seconds: each }))
    .filter((each) => each.seconds > 0)
    .sort((a, b) => b.seconds - a.seconds);
}

// Formats a layout as "tp=8, dp=2, pp=4, zero=1", without degrees of 1 (for ZeRO: 0).
export function layoutText({ layout }: Plan): string {
  return Object.entries(layout)
    .filter(([name, size]) => (name === 'zero' ? size > 0 : size > 1))
    .map(([name, size]) => `${name}=${size}`)
    .join(', ');
}

// Returns the layout that is ranked first for the same model and machine.
export function rankedFirst({ model, machine }: Plan): Plan | undefined {
  return PLANS.find(
    (each) => each.model === model && each.machine === machine && each.asked === '',
  );
}
