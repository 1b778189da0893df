// The clock of a drawn story. Its position is a number, and the picture is a function of this
// number, so going back costs nothing.

class Story {
  time = $state(0);
  playing = $state(false);
  speed = $state(1);
  length = $state(1); // in the story's own unit
  stops: number[] = $state.raw([0, 1]); // the ends of the steps, in order
  private perSecond = 1;
  private until = 1;
  private frame = 0;
  private before = 0;

  // Starts the clock for a story that lasts `seconds`, at the position `at`.
  begin(length: number, stops: number[], seconds: number, at: number): void {
    this.stop();
    this.length = length;
    this.stops = stops;
    this.perSecond = length / seconds;
    this.time = Math.max(0, Math.min(length, at));
  }

  // Returns the number of steps that were played, including the current one.
  get done(): number {
    return Math.max(
      0,
      this.stops.findIndex((stop) => stop >= this.time - 1e-9),
    );
  }

  // Returns the current step, or the step that has just ended.
  get beat(): number {
    return Math.max(0, this.done - 1);
  }

  go(time: number): void {
    this.stop();
    this.time = Math.max(0, Math.min(this.length, time));
  }

  // Plays up to the next stop.
  forward(): void {
    const next = this.stops.find((stop) => stop > this.time + 1e-9);
    if (next === undefined) return;
    if (this.calm()) this.go(next);
    else this.start(next);
  }

  back(): void {
    this.go(this.stops.filter((stop) => stop < this.time - 1e-9).pop() ?? 0);
  }

  toggle(): void {
    if (this.playing) {
      this.stop();
      return;
    }
    if (this.time >= this.length - 1e-9) this.time = 0;
    this.start(this.length);
  }

  // A story starts by itself, except with reduced motion.
  greet(): void {
    if (this.time === 0 && !this.calm()) this.forward();
  }

  // Plays one step from its beginning.
  playBeat(beat: number): void {
    this.go(this.stops[beat] ?? 0);
    this.forward();
  }

  stop(): void {
    cancelAnimationFrame(this.frame);
    this.playing = false;
  }

  private calm(): boolean {
    return matchMedia('(prefers-reduced-motion: reduce)').matches;
  }

  private start(until: number): void {
    cancelAnimationFrame(this.frame);
    this.until = until;
    this.playing = true;
    this.before = performance.now();
    this.waited = 0;
    this.frame = requestAnimationFrame((now) => this.tick(now));
  }

  private waited = 0; // with reduced motion: the time since the last stop

  private tick(now: number): void {
    const part = ((now - this.before) / 1000) * this.perSecond * this.speed;
    this.before = now;
    const reached = this.time + (this.calm() ? 0 : part);
    if (this.calm()) {
      this.waited += part;
      const next = this.stops.find((stop) => stop > this.time + 1e-9) ?? this.length;
      if (this.waited >= next - this.time) {
        this.waited = 0;
        this.time = next;
      }
    } else {
      this.time = Math.min(this.until, reached);
    }
    if (this.time >= this.until - 1e-9) {
      this.time = this.until;
      this.stop();
      return;
    }
    this.frame = requestAnimationFrame((time) => this.tick(time));
  }
}

export const story = new Story();
