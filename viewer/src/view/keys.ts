// The keyboard shortcuts of the page.
import { gridOf } from './layout';
import { player } from './player.svelte';
import { page } from './state.svelte';
import { story } from './story.svelte';
import { PARALLEL_TABS, type Tab } from './url';

export interface Actions {
  tabs: readonly Tab[];
  choose: (tab: Tab) => void;
  help: () => void;
}

// Input fields handle keys themselves.
function isField(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && /^(input|select|textarea)$/i.test(target.tagName);
}

// Returns whether the keys move a drawn story instead of the steps of a schedule.
function isStory(): boolean {
  return PARALLEL_TABS.includes(page.view.tab);
}

function phase(direction: 1 | -1): void {
  const schedule = page.schedule;
  if (!schedule) return;
  const firsts = [0, ...schedule.phases.map((each) => each.firstStep), schedule.steps];
  const now = page.view.step;
  const goal =
    direction > 0 ? firsts.find((step) => step > now) : firsts.filter((step) => step < now).pop();
  if (goal !== undefined) player.go(goal);
}

function follow(): void {
  const rows = page.schedule ? gridOf(page.schedule).rows : 0;
  page.view.follow = page.view.follow + 1 < rows ? page.view.follow + 1 : -1;
}

function tables(): void {
  const all = [...document.querySelectorAll<HTMLDetailsElement>('details.twin')];
  const open = !all.every((each) => each.open);
  for (const each of all) each.open = open;
}

export function onKey(event: KeyboardEvent, actions: Actions): void {
  if (event.ctrlKey || event.metaKey || event.altKey || isField(event.target)) return;
  // Keys scroll the article like any text.
  if (page.view.tab === 'article' && !/^[1-9?t]$/.test(event.key)) return;
  const clock = isStory() ? story : player;
  const isButton = event.target instanceof HTMLButtonElement;
  if (event.key >= '1' && event.key <= '9') {
    const tab = actions.tabs[Number(event.key) - 1];
    if (tab) actions.choose(tab);
    return;
  }
  switch (event.key) {
    case 'ArrowLeft':
      clock.back();
      break;
    case 'ArrowRight':
      clock.forward();
      break;
    case ' ':
      if (isButton || (event.target instanceof HTMLElement && event.target.tagName === 'SUMMARY'))
        return;
      clock.toggle();
      break;
    case 'Home':
      clock.go(0);
      break;
    case 'End':
      clock.go(isStory() ? story.length : (page.schedule?.steps ?? 0));
      break;
    case '[':
      phase(-1);
      break;
    case ']':
      phase(1);
      break;
    case 't':
      tables();
      break;
    case 'f':
      follow();
      break;
    case '?':
      actions.help();
      break;
    default:
      return;
  }
  event.preventDefault();
}
