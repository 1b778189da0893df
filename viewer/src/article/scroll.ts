// The position of a reader in a chapter: the number of beats that have passed, with a fraction.
// Pure.

export interface Box {
  top: number;
  height: number;
}

// `line` is the height in the window at which a beat is read. With reduced motion, a beat appears
// as a whole.
export function positionIn(beats: Box[], line: number, calm: boolean): number {
  let at = 0;
  beats.forEach(({ top, height }, i) => {
    const part = height > 0 ? (line - top) / (0.85 * height) : 0;
    if (part > 0) at = i + Math.min(1, calm ? 1 : part);
  });
  return at;
}
