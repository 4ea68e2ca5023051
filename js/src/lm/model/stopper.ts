/** Finds stop strings in a text that arrives in pieces, and withholds a suffix that may be the beginning of one. */
export class Stopper {
  readonly #stops: readonly string[];
  #held = '';

  constructor(stops: readonly string[]) { this.#stops = stops; }

  /** The text that can no longer be part of a stop string, and whether one was found: the text then ends before it. */
  add(piece: string): { text: string; found: boolean } {
    const all = this.#held + piece, at = this.#stops.map((stop) => all.indexOf(stop)).filter((i) => i >= 0);
    if (at.length > 0) {
      this.#held = '';
      return { text: all.slice(0, Math.min(...at)), found: true };
    }
    let keep = 0;
    for (const stop of this.#stops) {
      for (let n = Math.min(stop.length - 1, all.length); n > keep; n--) if (all.endsWith(stop.slice(0, n))) keep = n;
    }
    this.#held = all.slice(all.length - keep);
    return { text: all.slice(0, all.length - keep), found: false };
  }

  /** The text that was held back, at the end. */
  rest(): string {
    const held = this.#held;
    this.#held = '';
    return held;
  }
}
