import type { RlxError } from '../values/errors.js';

/**
 * The milliseconds of work to queue ahead of the device. Chromium reports completions up to 1.8 ms late (on an
 * H200), so three submissions of half a millisecond left the device idle for half of the time. Half a frame of
 * most displays is an invisible delay.
 */
const ahead = 8;

/**
 * Admits submissions in order, with a bounded number in flight: as many as the device completes in {@link ahead},
 * by its recent pace, from 3 to 16, with which reads of every tenth step find a free staging buffer; or a given
 * number.
 */
export class Flight {
  readonly #asked: number | undefined;
  /** The maximal number of submissions in flight. */
  #limit: number;
  /** The number of free places; negative after the limit fell. */
  #free: number;
  /** How many have left since a time. */
  #left = 0;
  #since = 0;
  readonly #queue: { go(): void; stop(error: RlxError): void }[] = [];

  constructor(asked?: number) {
    this.#asked = asked;
    this.#limit = this.#free = asked ?? 3;
  }

  /** Whether somebody waits. */
  get waiting(): boolean { return this.#queue.length > 0; }

  /** Takes a place: at once, or when the promise resolves. */
  enter(): Promise<void> | undefined {
    if (this.#free > 0) return void this.#free--;
    return new Promise((go, stop) => this.#queue.push({ go, stop }));
  }

  /** Releases a place, to the next in the queue if any. */
  leave(): void {
    this.#free++;
    this.#left++;
    this.#adapt();
    for (; this.#free > 0 && this.#queue[0]; this.#free--) this.#queue.shift()!.go();
  }

  /** Adapts the limit to the pace, once a full window has ended, over a time longer than browsers' batching of completions. */
  #adapt(): void {
    const now = performance.now(), time = now - this.#since;
    if (this.#left < this.#limit || time < ahead / 2) return;
    const limit = this.#asked ?? Math.min(Math.max(Math.round(ahead * this.#left / time), 3), 16);
    this.#free += limit - this.#limit;
    [this.#limit, this.#left, this.#since] = [limit, 0, now];
  }

  /** Rejects the whole queue. */
  close(error: RlxError): void {
    for (const { stop } of this.#queue.splice(0)) stop(error);
  }
}
