// The colour of a rank: the eight colours of Okabe and Ito, which most colour-blind people can
// distinguish, with a darker yellow, then stepped hues. Position is the first code, the digit the
// second, and colour only the third. All colours are about equally bright, so that in greyscale
// none looks like an empty slot of either theme.

const FIRST = [
  '#e69f00',
  '#56b4e9',
  '#009e73',
  '#d2bf1d',
  '#3b82c4',
  '#e0702d',
  '#cc79a7',
  '#ad8355',
];
const BRIGHT = [168, 142]; // of 255, alternating

export function rankColour(rank: number): string {
  if (rank < FIRST.length) return FIRST[rank]!;
  // The golden angle keeps neighbouring hues apart.
  const hue = (rank * 137.5) % 360;
  const channel = (offset: number) => {
    const k = (offset + hue / 30) % 12;
    return Math.max(-1, Math.min(k - 3, 9 - k, 1));
  };
  const pure = [0, 8, 4].map((offset) => 0.5 - 0.18 * channel(offset));
  const factor = BRIGHT[rank % 2]! / brightness(pure);
  const rgb = pure.map((part) => Math.round(Math.min(255, part * factor)));
  return `#${rgb.map((part) => part.toString(16).padStart(2, '0')).join('')}`;
}

// Returns the greyscale value of a colour.
export function brightness([red, green, blue]: number[]): number {
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}

// Operations and axes of parallelism have different hues from ranks, light enough for dark letters.
const COLLECTIVE_HUES: Record<string, string> = {
  ...{ all_reduce: '#8fb8ff', all_gather: '#7fd6c2', reduce_scatter: '#f3b98a' },
  ...{ all_to_all: '#e5a3d6', broadcast: '#d9d27a', reduce: '#f2a3a3' },
  ...{ gather: '#a8d98a', scatter: '#c9b3f5', barrier: '#b9bec5', send_recv: '#ecc873' },
  ...{ scan: '#e8b0c0', exclusive_scan: '#e8b0c0' },
  computing: 'var(--inside)',
};
// The library call that a step's call corresponds to.
const IS: Record<string, string> = {
  ...{ dispatch: 'all_to_all', combine: 'all_to_all', send: 'send_recv', receive: 'send_recv' },
};

export function collectiveColour(name: string): string {
  const plain = name.replace(/_v$/, '');
  return COLLECTIVE_HUES[IS[plain] ?? plain] ?? '#b9bec5';
}

const AXIS_HUES: Record<string, string> = {
  ...{ tp: '#ee9fbf', cp: '#8ec5f2', dp: '#7fd0ae', ep: '#bda8f0', pp: '#e3bd55' },
};

export function axisColour(axis: string): string {
  return AXIS_HUES[axis] ?? 'var(--inside)';
}

// Parts of a planned step, token or memory: the usual colours for axes, greys for work, other hues
// for memory.
const PART_HUES: Record<string, string> = {
  ...{ tensor: 'tp', context: 'cp', data: 'dp', experts: 'ep', pipeline: 'pp' },
  ...{ matrix_products: '#9aa5b1', device_memory: '#c3cad2', recompute: '#7f8b98' },
  ...{ layers: '#7f8b98', requests: '#c9b3f5', prompts: '#9aa5b1' },
  ...{ weights: '#8fb8ff', gradients: '#f3b98a', optimiser: '#d9d27a', offload: '#b3a16f' },
  ...{ activations: '#a8d98a', cache: '#7fd6c2', buffers: '#b9bec5' },
};

export function partColour(name: string): string {
  const hue = PART_HUES[name] ?? 'var(--inside)';
  return AXIS_HUES[hue] ?? hue;
}
