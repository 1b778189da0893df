// Assembles a looping animation (animated WebP) from stills that the browser has encoded.

const bytesOf = (text: string) => [...text].map((letter) => letter.charCodeAt(0));
// Little-endian.
const number = (value: number, bytes: number) =>
  Array.from({ length: bytes }, (_, i) => (value >>> (8 * i)) & 255);

function chunk(name: string, ...parts: (Uint8Array | number[])[]): Uint8Array {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const all = new Uint8Array(8 + length + (length % 2));
  all.set([...bytesOf(name), ...number(length, 4)]);
  let at = 8;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

// Returns the chunks of a still that are pixels, without those about the file.
function pixels(still: Uint8Array): Uint8Array[] {
  const view = new DataView(still.buffer, still.byteOffset);
  const found: Uint8Array[] = [];
  for (let at = 12; at + 8 <= still.length;) {
    const end = at + 8 + view.getUint32(at + 4, true);
    const name = String.fromCharCode(...still.subarray(at, at + 4));
    if (/^(VP8[ L]|ALPH)$/.test(name)) found.push(chunk(name, still.subarray(at + 8, end)));
    at = end + (end % 2);
  }
  return found;
}

export function film(
  stills: Uint8Array[],
  [width, height]: [number, number],
  ms: (still: number) => number,
): Uint8Array {
  const size = [...number(width - 1, 3), ...number(height - 1, 3)];
  const frames = stills.map((still, i) =>
    chunk('ANMF', [...number(0, 6), ...size, ...number(ms(i), 3), 2], ...pixels(still)),
  );
  return chunk(
    'RIFF',
    bytesOf('WEBP'),
    chunk('VP8X', [2, 0, 0, 0, ...size]),
    chunk('ANIM', number(0, 6)), // loops forever
    ...frames,
  );
}

// Draws a self-contained SVG, and encodes it.
export async function still(
  svg: string,
  [width, height]: [number, number],
  background: string,
): Promise<Uint8Array> {
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = Object.assign(document.createElement('canvas'), { width, height });
  const context = canvas.getContext('2d')!;
  context.fillStyle = background;
  context.fillRect(0, 0, width, height);
  context.drawImage(image, 0, 0, width, height);
  const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, 'image/webp', 0.7));
  if (blob?.type !== 'image/webp') throw new Error('no WebP');
  return new Uint8Array(await blob.arrayBuffer());
}
