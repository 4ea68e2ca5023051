// The run of a trainer in parts. A snapshot is made after each, from which the run goes on when its device is lost.

import type { Inputs } from '../program/types.js';
import type { Recovery } from '../program/program.js';
import type { RlxError } from '../values/errors.js';
import type { Batch } from './batches.js';
import type { Progress, Summary, Trainer, TrainOptions } from './trainer.js';

type Next = IteratorResult<Batch, unknown>;
type Batches = Partial<Record<symbol, () => Iterator<Batch> | AsyncIterator<Batch>>>;

/** A run of a trainer whose program recovers. */
export class Resumable {
  readonly #recovery: Recovery;
  readonly #trainer: Trainer;
  readonly #options: TrainOptions;
  readonly #iterator: Iterator<Batch> | AsyncIterator<Batch> | undefined;
  readonly #begun = performance.now();
  /** The trainer's steps at the begin of the run. */
  #first: number;
  #exhausted = false;
  #waiting = false;

  constructor(recovery: Recovery, trainer: Trainer, options: TrainOptions) {
    const batches = options.batches as unknown as Batches;
    this.#recovery = recovery;
    this.#trainer = trainer;
    this.#options = options;
    this.#first = trainer.steps;
    if (typeof batches === 'object') this.#iterator = (batches?.[Symbol.iterator] ?? batches?.[Symbol.asyncIterator])?.call(batches);
  }

  get #done(): number { return this.#trainer.steps - this.#first; }

  async run(): Promise<Summary> {
    try {
      for (;;) {
        const { current } = this.#recovery;
        try {
          const summary = await this.#part();
          if (summary) return summary;
        } catch (reason) {
          if ((reason as RlxError).kind !== 'lost') throw reason;
          await this.#recovery.back(current);
          this.#first = Math.min(this.#first, this.#trainer.steps); // the snapshot may be older than the run
        }
      }
    } finally {
      const closing = (async () => this.#iterator?.return?.())();
      if (this.#waiting) closing.catch(() => {});
      else await closing;
    }
  }

  /** Runs until a snapshot is due. Returns the summary at the end. */
  async #part(): Promise<Summary | undefined> {
    const trainer = this.#trainer, { steps, inputs, onProgress } = this.#options, { steps: from } = trainer, before = this.#done;
    if (this.#recovery.due(from)) await this.#recovery.take({ trainer, steps: from });
    let summary: Summary;
    try {
      summary = await trainer.run({
        ...this.#options, recover: false, steps: steps - before,
        ...(this.#iterator || typeof this.#options.batches === 'function') && { batches: this.#batches() },
        ...typeof inputs === 'function' && { inputs: (step: number) => (inputs as (step: number) => Inputs)(before + step) },
        ...onProgress && { onProgress: (progress: Progress) => onProgress({ ...progress, stepsPerSecond: (progress.step - this.#first) / this.#seconds }) },
      });
    } catch (reason) {
      if (!this.#exhausted || !before || (reason as RlxError).kind !== 'missing') throw reason;
      summary = { steps: 0, loss: this.#loss, seconds: 0, aborted: false, end: 'batches' }; // they ended with the last part
    }
    if (summary.steps) this.#loss = summary.loss;
    if (summary.end === 'batches' && !this.#exhausted) return undefined;
    return { ...summary, steps: this.#done, loss: this.#loss, seconds: this.#seconds };
  }

  #loss = NaN;

  get #seconds(): number { return (performance.now() - this.#begun) / 1000; }

  /** The batches until a snapshot is due. */
  #batches(): AsyncIterable<Batch> {
    let taken = 0;
    const next = (): Next | Promise<Next> => taken++ && this.#recovery.due(this.#trainer.steps) ? { done: true, value: undefined } : this.#next();
    return { [Symbol.asyncIterator]: () => ({ next } as AsyncIterator<Batch>) };
  }

  #next(): Next | Promise<Next> {
    const { batches } = this.#options, step = this.#done;
    if (typeof batches === 'function') return Promise.resolve(batches(step)).then((inputs) => ({ done: false, value: { inputs, rows: 0 } }));
    const next = (this.#iterator!.next as (step: number) => Next | Promise<Next>)(step);
    if (!(next instanceof Promise)) return this.#seen(next);
    this.#waiting = true;
    return next.finally(() => { this.#waiting = false; }).then((one) => this.#seen(one));
  }

  #seen(next: Next): Next {
    this.#exhausted = !!next.done;
    return next;
  }
}
