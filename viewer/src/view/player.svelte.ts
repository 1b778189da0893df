// Plays the steps. Its position is a number, and the picture is a function of this number, so going
// back costs nothing.
import { lengthOf } from './clock';
import { page } from './state.svelte';

const STEP_MS = 1100; // duration of a step of mean length
const LAND = 1; // the fraction at which a piece has arrived

class Player {
  playing = $state(false);
  speed = $state(1);
  fraction = $state(0); // progress of the current step
  private until = -1; // the step at which it stops; -1: the end
  private frame = 0;
  private before = 0;

  private get steps(): number {
    return page.schedule?.steps ?? 0;
  }

  private calm(): boolean {
    return matchMedia('(prefers-reduced-motion: reduce)').matches;
  }

  go(step: number): void {
    this.stop();
    page.view.step = Math.max(0, Math.min(this.steps, step));
  }

  // Animates one step, except with reduced motion.
  forward(): void {
    if (this.playing && this.until >= 0) this.finishStep();
    if (page.view.step >= this.steps) return;
    if (this.calm()) {
      this.go(page.view.step + 1);
      return;
    }
    this.until = page.view.step + 1;
    this.start();
  }

  back(): void {
    this.go(this.fraction > 0 ? page.view.step : page.view.step - 1);
  }

  toggle(): void {
    if (this.playing) {
      this.stop();
      return;
    }
    if (page.view.step >= this.steps) page.view.step = 0;
    this.until = -1;
    this.start();
  }

  stop(): void {
    cancelAnimationFrame(this.frame);
    this.playing = false;
    this.fraction = 0;
  }

  private start(): void {
    cancelAnimationFrame(this.frame);
    this.playing = true;
    this.before = performance.now();
    this.frame = requestAnimationFrame((now) => this.tick(now));
  }

  private finishStep(): void {
    this.fraction = 0;
    page.view.step = Math.min(this.steps, page.view.step + 1);
  }

  private tick(now: number): void {
    const length = STEP_MS * lengthOf(page.clock, page.view.step);
    const part = ((now - this.before) * this.speed) / length;
    this.before = now;
    const next = (this.calm() ? 0 : this.fraction) + part;
    if (this.calm()) this.waited += part;
    if ((this.calm() ? this.waited : next) >= LAND) {
      this.waited = 0;
      this.finishStep();
      const end = this.until >= 0 ? this.until : this.steps;
      if (page.view.step >= end) {
        this.stop();
        return;
      }
    } else if (!this.calm()) {
      this.fraction = next;
    }
    this.frame = requestAnimationFrame((time) => this.tick(time));
  }

  private waited = 0; // with reduced motion: how long the step has been shown
}

export const player = new Player();
