// The source of src/stories/plans.json: `unisono plan-model`, its ranking and its workload. Written
// again by UNISONO_UPDATE=1 npx vitest run tests/unit/together.test.ts
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Reshard } from '../src/stories/reshard';
import type { Plan, PlanWire } from '../src/stories/together';
import { run } from './program';

const PER_NODE = 8;
const CHOICES = [
  { model: 'llama3-8b', nodes: 1, explain: '' },
  { model: 'llama3-70b', nodes: 8, explain: 'tp=8,pp=4,vp=5,mb=1' },
  { model: 'llama3-70b', nodes: 8, explain: '' },
  { model: 'mixtral-8x7b', nodes: 4, explain: '' },
  { model: 'deepseek-v3', nodes: 32, explain: '' },
];
const KINDS: [RegExp, PlanWire['axis']][] = [
  [/^tensor$/, 'tp'],
  [/^experts$/, 'ep'],
  [/^\d*SEND_/, 'pp'],
  [/^gradients/, 'dp'],
];

interface Item {
  name: string;
  collective?: string;
  bytes: number;
  group: number[];
  repeat?: number;
}

function wiresOf(items: Item[]): PlanWire[] {
  const wires = new Map<string, PlanWire>();
  for (const { name, collective, bytes, group, repeat = 1 } of items) {
    if (collective === undefined) continue;
    const axis = KINDS.find(([pattern]) => pattern.test(name))?.[1];
    if (!axis) throw new Error(`${name}: of which axis?`);
    const what = axis === 'pp' ? 'send_recv' : collective;
    const key = `${axis} ${what} ${group.length}`;
    const stride = Math.abs(group[1]! - group[0]!);
    const wire = wires.get(key) ?? {
      ...{ axis, what, size: group.length, stride, calls: 0, inside: 0, between: 0 },
    };
    wires.set(key, wire);
    wire.calls += repeat;
    const node = (rank: number) => Math.trunc(rank / PER_NODE);
    const all = bytes * repeat * (axis === 'pp' ? 1 : group.length);
    if (group.every((rank) => node(rank) === node(group[0]!))) wire.inside += all;
    else wire.between += all;
  }
  return [...wires.values()];
}

// Returns the one-way speeds of the first device's links.
function speedsOf(machine: string): { insideGbPerS: number; betweenGbPerS: number } {
  const { links } = JSON.parse(run(['topo', machine, '--json'])) as {
    links: { from: string; to: string; bandwidth_gb_per_s_each_way: number }[];
  };
  const speed = (from: string, to: RegExp) =>
    links.find((link) => link.from === from && to.test(link.to))?.bandwidth_gb_per_s_each_way ?? 0;
  return {
    insideGbPerS: speed('node0.gpu0', /^node0\.nvswitch$/),
    betweenGbPerS: speed('node0.nic0', /^rail0$/),
  };
}

export function plansOfProgram(): Plan[] {
  return CHOICES.map(({ model, nodes, explain }) => {
    const file = join(mkdtempSync(join(tmpdir(), 'plans-')), 'workload.json');
    const asked = explain ? ['--explain', explain] : ['--top', '1'];
    const machine = `dgx_h100:nodes=${nodes}`;
    const words = ['plan-model', model, '--on', machine, '--train', '--json', '--step', file];
    const answer = JSON.parse(run([...words, ...asked]));
    const { layout, step_s, seconds } = answer.layouts[0];
    const { tp, pp, cp, ep, dp, zero } = layout;
    return {
      ...{ model, machine, asked: explain, devices: answer.devices, perNode: PER_NODE },
      ...speedsOf(machine),
      ...{ layout: { tp, cp, ep, dp, pp, zero }, stepS: step_s, seconds },
      wires: wiresOf(JSON.parse(readFileSync(file, 'utf8')).items),
    };
  });
}

// src/stories/plan.json: the sample of the planner, without what would make the page large.
export function sampleOfProgram(): Record<string, unknown> {
  const file = join(mkdtempSync(join(tmpdir(), 'plans-')), 'plan.json');
  const words = ['plan-model', 'llama3-70b', '--on', 'dgx_h100:nodes=8', '--train'];
  run([...words, '--top', '5', '--save', file]);
  const plan = JSON.parse(readFileSync(file, 'utf8'));
  const what = plan.what_if;
  what.near = [1];
  what.far = [0.25, 1, 4];
  what.batch = [64, 256, 1024];
  what.rankings = what.rankings.filter(
    ({ near, far, batch }: Record<'near' | 'far' | 'batch', number>) =>
      near === 1 && what.far.includes(far) && what.batch.includes(batch),
  );
  const unshown = [
    ...['low_s', 'high_s', 'flops_per_s_device', 'binding', 'simulated_s', 'utilisation', 'stack'],
    ...['headroom', 'active_weights', 'schedule', 'moments', 'compute', 'network'],
  ];
  // The page shows four digits, and no part of 0.
  const isShown = (key: string, value: unknown) => {
    if (unshown.includes(key) || (value === 0 && key !== 'zero')) return undefined;
    return typeof value === 'number' ? Number(value.toPrecision(4)) : value;
  };
  return JSON.parse(JSON.stringify(plan, isShown));
}

// src/stories/step.json: the sample of a step, where calls that are the same in every layer stand once.
interface StepRank {
  calls: { layer: number }[];
}
export function stepOfProgram(): { ranks: StepRank[] } {
  const words = ['step', 'show', 'llama3-8b', '--layout', 'pp=2,tp=2', '--prompt', '512'];
  return JSON.parse(run([...words, '--json']));
}
export function packStep(step: { ranks: StepRank[] }): unknown {
  const ranks = step.ranks.map((rank) => {
    const inner = rank.calls.map(({ layer }) => layer).filter((layer) => layer >= 0);
    const layers = [inner[0], inner.at(-1)];
    const once = rank.calls.filter(({ layer }) => layer < 0 || layer === layers[0]);
    const calls = once.map(({ layer, ...call }) => (layer < 0 ? call : { ...call, layers }));
    return { ...rank, calls };
  });
  return { ...step, ranks };
}

// src/stories/reshards.json: a trainer's layout to that of an engine on another host, once with whole
// copies of each shard, once cut along the other dimension, and once on the same ranks.
const RESHARDS = [
  'dp=2,tp=4 on 0-7: tp=shard(0) -> dp=2,tp=2 on 8-11: tp=shard(0)',
  'fsdp=4 on 0-3: fsdp=shard(0) -> dp=2,tp=2 on 8-11: tp=shard(1)',
  'dp=2,tp=4 on 0-7: tp=shard(0) -> dp=4,tp=2 on 0-7: tp=shard(0)',
];
interface ShownMove {
  from: number;
  to: number;
  elements: string;
  bytes: number;
}
export function reshardsOfProgram(): Reshard[] {
  return RESHARDS.map((layouts) => {
    const words = ['--shape', '256,512', layouts];
    const shown = JSON.parse(run(['reshard', 'show', ...words, '--json']));
    const proved = JSON.parse(run(['reshard', 'verify', ...words, '--json']));
    return {
      command: `unisono reshard show --shape 256,512 "${layouts}"`,
      ...{ from: shown.from, to: shown.to, hosts: shown.hosts, held: shown.held },
      moves: shown.moves.map(({ from, to, elements, bytes }: ShownMove) => ({
        ...{ from, to, elements, bytes },
      })),
      ...{ sent: shown.bytes_sent, between: shown.bytes_between_hosts },
      least: { sent: proved.least_bytes_sent, between: proved.least_bytes_between_hosts },
    };
  });
}
