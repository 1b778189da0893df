// The worked examples of the page: the first values and the steps of their sliders.

export interface WorkedExample {
  id: 'chain' | 'ring' | 'tensor' | 'latency' | 'gather' | 'experts';
  collective: string;
  algorithm: string; // the algorithm whose formula is shown
  ranks: number;
  bytes: number;
  alphaUs: number;
  gbPerS: number;
}

const KIB = 1024;

// The layer of GPT-3 behind the example `tensor`: 32 sequences of 2048 tokens, 12288 wide.
const GPT3 = { tokens: 32 * 2048, sequence: 2048, hidden: 12288 };
export const A100_FLOPS = 250e12; // what large matrix products reach on an A100, per second

// Returns the time of a layer's forward pass in us; `us` is the time of one all_reduce.
export function layerOfGpt3(us: number, bytesUs: number, ranks: number) {
  const { tokens, sequence, hidden } = GPT3;
  const operations = 24 * tokens * hidden ** 2 + 4 * tokens * sequence * hidden;
  const compute = (operations / ranks / A100_FLOPS) * 1e6;
  const sending = 2 * us;
  return {
    doubled: us - bytesUs / 2, // with the bandwidth of both directions counted
    ...{ one: us, sending, compute, share: sending / (sending + compute) },
  };
}

const example = (
  id: WorkedExample['id'],
  collective: string,
  algorithm: string,
  ranks: number,
  bytes: number,
  alphaUs: number,
  gbPerS: number,
): WorkedExample => ({ id, collective, algorithm, ranks, bytes, alphaUs, gbPerS });

export const WORKED: WorkedExample[] = [
  example('chain', 'broadcast', 'chain', 8, KIB ** 3, 5, 100),
  example('ring', 'all_reduce', 'ring', 8, 64 * KIB ** 2, 5, 12.5),
  example('tensor', 'all_reduce', 'ring', 8, 1536 * KIB ** 2, 3, 300),
  example('latency', 'all_reduce', 'ring', 1024, KIB ** 2, 5, 12.5),
  example('gather', 'all_gather', 'ring', 8, 256 * KIB ** 2, 5, 50),
  example('experts', 'all_to_all', 'pairwise', 64, KIB ** 2, 5, 50),
];

export const RANKS = [
  ...Array.from({ length: 15 }, (_, i) => i + 2),
  ...[24, 32, 48, 64, 128, 256, 512, 1024],
];
// Powers of two, and the midpoints between them.
export const BYTES = Array.from({ length: 52 }, (_, i) =>
  i % 2 === 0 ? 256 * 2 ** (i / 2) : 384 * 2 ** ((i - 1) / 2),
);
export const ALPHAS = [0, 0.5, 1, 2, 3, 5, 10, 20, 50, 100];
export const BANDWIDTHS = [1, 3, 6, 12.5, 25, 50, 100, 200, 300, 450, 900, 1800];
export const SEGMENTS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

// The address contains the example and the slider positions: "1.6.32.5.3"; the last one is the
// segments.
export function settingsOf(example: WorkedExample, segments = 64): number[] {
  return [
    WORKED.indexOf(example),
    RANKS.indexOf(example.ranks),
    BYTES.indexOf(example.bytes),
    ALPHAS.indexOf(example.alphaUs),
    BANDWIDTHS.indexOf(example.gbPerS),
    SEGMENTS.indexOf(segments),
  ];
}

export const LIMITS = [WORKED, RANKS, BYTES, ALPHAS, BANDWIDTHS, SEGMENTS].map((list) => [
  ...list.keys(),
]);
