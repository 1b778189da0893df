// Scrolls a horizontally scrolling line so that its current element is visible.
export function inView(isHere: () => boolean) {
  return (element: HTMLElement): void => {
    const line = element.parentElement!;
    if (!isHere() || line.scrollWidth <= line.clientWidth) return;
    line.scrollLeft = element.offsetLeft - line.offsetLeft - 24;
  };
}
