// What a call of a step is drawn in: the colours of the operations of a run.
const COLOURS: Record<string, string> = {
  ...{ computing: 'var(--inside)', all_reduce: 'var(--adds)', all_gather: 'var(--sends)' },
  ...{
    reduce_scatter: 'var(--receives)',
    send: 'var(--waits)',
    receive: 'var(--waits)',
    broadcast: 'var(--vague)',
  },
  ...{ all_to_all: 'var(--step-exchange)', dispatch: 'var(--step-exchange)' },
  ...{ combine: 'var(--step-exchange)' },
};

export function callColour(what: string): string {
  return COLOURS[what] ?? 'var(--vague)';
}

// "8.59 GFLOP", as `unisono step show` writes it.
export function flopsText(flops: number): string {
  const units: [number, string][] = [
    [1e15, 'PFLOP'],
    [1e12, 'TFLOP'],
    [1e9, 'GFLOP'],
  ];
  const [unit, name] = units.find(([each]) => flops >= each) ?? [1e6, 'MFLOP'];
  return `${Number((flops / unit).toPrecision(3))} ${name}`;
}
