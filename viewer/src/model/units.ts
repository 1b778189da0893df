// Sizes and times as text, as the command line writes them.

export function bytesText(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) {
    bytes /= 1024;
    unit++;
  }
  return `${threeDigits(bytes)} ${units[unit]}`;
}

export function timeText(us: number): string {
  if (us >= 1e6) return `${threeDigits(us / 1e6)} s`;
  if (us >= 1e3) return `${threeDigits(us / 1e3)} ms`;
  if (us >= 1 || us === 0) return `${threeDigits(us)} µs`;
  return `${threeDigits(us * 1e3)} ns`;
}

// Formats a mark of an axis with one mark every `every`: with enough digits to distinguish it from
// the next one.
export function tickText(us: number, every: number): string {
  const [unit, name] = us >= 1e6 ? [1e6, 's'] : us >= 1e3 ? [1e3, 'ms'] : [1, 'µs'];
  const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(every / unit) - 1e-9)));
  return `${Number((us / unit).toFixed(digits))} ${name}`;
}

function threeDigits(value: number): string {
  return value >= 999.5 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
}

// "64MiB", "1.5 GiB", "4096" -> bytes; undefined: not a size.
export function parseBytes(text: string): number | undefined {
  const match = /^\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?B?)\s*$/i.exec(text);
  if (!match) return undefined;
  const power = 'KMGT'.indexOf(match[2]!.toUpperCase() || '-') + 1;
  const bytes = Math.round(Number(match[1]) * 1024 ** power);
  return bytes <= 2 ** 50 ? bytes : undefined;
}

// Formats "8.59 GFLOP" as `unisono step show` does.
export function flopsText(flops: number): string {
  const units: [number, string][] = [
    [1e15, 'PFLOP'],
    [1e12, 'TFLOP'],
    [1e9, 'GFLOP'],
  ];
  const [unit, name] = units.find(([each]) => flops >= each) ?? [1e6, 'MFLOP'];
  return `${Number((flops / unit).toPrecision(3))} ${name}`;
}

// Returns GB/s as a number. The largest value of the page means that a measurement found no limit.
export function speedText(gbPerS: number): string {
  return gbPerS >= 1e5 ? '∞' : String(gbPerS);
}
