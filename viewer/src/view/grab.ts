// Arrows that can be dragged: an element with data-move follows the pointer until it is released.

export interface Grabbed {
  move: number;
  x: number; // of the pointer, in the picture's units
  y: number;
}

interface Options {
  width: number; // of the picture, in its own units
  height: number;
  onmove?: (at: Grabbed | undefined) => void; // undefined: released
  ondrop?: (at: Grabbed) => void;
}

const SLACK = 6; // pixels that the pointer may move during a click

export function grab(node: SVGSVGElement, given: Options) {
  let options = given;
  let held: { move: number; x: number; y: number } | undefined;
  let isDragged = false;
  const at = (event: PointerEvent): Grabbed => {
    const box = node.getBoundingClientRect();
    const x = ((event.clientX - box.left) * options.width) / box.width;
    const y = ((event.clientY - box.top) * options.height) / box.height;
    return { move: held!.move, x, y };
  };
  const down = (event: PointerEvent) => {
    const found = options.ondrop && (event.target as Element).closest('[data-move]');
    if (!found) return;
    held = { move: Number(found.getAttribute('data-move')), x: event.clientX, y: event.clientY };
    isDragged = false;
    event.preventDefault();
    node.setPointerCapture(event.pointerId);
  };
  const move = (event: PointerEvent) => {
    if (!held) return;
    isDragged ||= Math.hypot(event.clientX - held.x, event.clientY - held.y) > SLACK;
    if (isDragged) options.onmove?.(at(event));
  };
  const up = (event: PointerEvent) => {
    if (!held) return;
    const end = at(event);
    held = undefined;
    options.onmove?.(undefined);
    if (isDragged && event.type === 'pointerup') options.ondrop?.(end);
  };
  // A drag is not a click.
  const click = (event: MouseEvent) => {
    if (isDragged) event.stopImmediatePropagation();
    isDragged = false;
  };
  const listeners = { pointerdown: down, pointermove: move, pointerup: up, pointercancel: up };
  for (const [name, listener] of Object.entries(listeners)) {
    node.addEventListener(name, listener as EventListener);
  }
  node.addEventListener('click', click, true);
  return {
    update: (next: Options) => (options = next),
    destroy: () => {
      for (const [name, listener] of Object.entries(listeners)) {
        node.removeEventListener(name, listener as EventListener);
      }
      node.removeEventListener('click', click, true);
    },
  };
}
