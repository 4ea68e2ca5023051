import type { RlxError } from '../values/errors.js';

/** Admits a number of submissions at a time, in the order they ask. */
export class Flight {
  /** How many may still enter; who waits finds it 0. */
  #free: number;
  readonly #queue: { go(): void; stop(error: RlxError): void }[] = [];

  constructor(limit: number) { this.#free = limit; }

  /** Whether somebody waits. */
  get waiting(): boolean { return this.#queue.length > 0; }

  /** Takes a place: at once, or when the promise resolves. */
  enter(): Promise<void> | undefined {
    if (this.#free > 0) return void this.#free--;
    return new Promise((go, stop) => this.#queue.push({ go, stop }));
  }

  /** Gives a place to the next, or back. */
  leave(): void {
    const next = this.#queue.shift();
    if (next) next.go();
    else this.#free++;
  }

  /** Turns away all who wait. */
  close(error: RlxError): void {
    for (const { stop } of this.#queue.splice(0)) stop(error);
  }
}
