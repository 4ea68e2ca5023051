import type { RlxError } from '../values/errors.js';

/**
 * The milliseconds of work to queue ahead of the device. Chromium reports completions up to 1.8 ms late (on an
 * H200), so three runs of half a millisecond left the device idle for half of the time. Large inputs are slower where
 * more of them wait. Half a frame of most displays is an invisible delay.
 */
const queuedMs = 8;

/**
 * The minimal and maximal number of runs in flight. On an H200, with completions that late, 32 softmaxes of 4096² are too few:
 * they move 1,613 GB/s, with 64 2,868.
 */
const min = 3, max = 64;

/**
 * Admits runs in order, with a bounded number in flight: as many as the device completes in
 * {@link queuedMs} at its recent rate, or a given number.
 */
export class SubmissionLimiter {
  readonly #fixed: number | undefined;
  /** The maximal number of runs in flight. */
  #limit: number;
  /** The number of free places; negative after the limit fell. */
  #free: number;
  /** The number of releases since the start of the window. */
  #released = 0;
  #windowStart = 0;
  readonly #queue: { go(): void; stop(error: RlxError): void }[] = [];

  constructor(fixed?: number) {
    this.#fixed = fixed;
    this.#limit = this.#free = fixed ?? min;
  }

  /** Whether a caller waits. */
  get waiting(): boolean { return !!this.#queue[0]; }

  /** Whether the next caller would wait. */
  get full(): boolean { return this.#free <= 0; }

  /** Acquires a place: at once, or when the promise resolves. */
  acquire(): Promise<void> | undefined {
    if (this.#free > 0) return void this.#free--;
    return new Promise((go, stop) => this.#queue.push({ go, stop }));
  }

  /** Releases places, to the first waiting callers if any. */
  release(n: number): void {
    this.#free += n;
    this.#released += n;
    this.#adapt();
    for (; this.#free > 0 && this.#queue[0]; this.#free--) this.#queue.shift()!.go();
  }

  /** Adapts the limit to the rate of completions, after a window much longer than browsers' batching of them: a burst is no rate. */
  #adapt(): void {
    const now = performance.now(), time = now - this.#windowStart;
    if (this.#released < this.#limit || time < 2 * queuedMs) return;
    const limit = this.#fixed ?? Math.min(Math.max(Math.round(queuedMs * this.#released / time), min), max);
    this.#free += limit - this.#limit;
    [this.#limit, this.#released, this.#windowStart] = [limit, 0, now];
  }

  /** Rejects the whole queue. */
  close(error: RlxError): void {
    for (const { stop } of this.#queue.splice(0)) stop(error);
  }
}
