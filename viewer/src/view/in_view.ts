// For an element of a line that scrolls sideways: the line goes to where the current one can be seen.
export function inView(isHere: () => boolean) {
  return (element: HTMLElement): void => {
    const line = element.parentElement!;
    if (!isHere() || line.scrollWidth <= line.clientWidth) return;
    line.scrollLeft = element.offsetLeft - line.offsetLeft - 24;
  };
}
