// The loop of a training.

import { asyncAtCaller } from '../graph/caller-stack.js';
import type { Slot } from '../plan/plan.js';
import type { Position, Program } from '../program/program.js';
import type { EntryInputs, EntryTypes, Exactly, Inputs } from '../program/types.js';
import type { Batch } from '../runtime/batches.js';
import type { Trainer } from '../runtime/trainer.js';
import { arrayOf, converted } from '../safetensors/convert.js';
import type { StoredData, TensorData } from '../values/dtype.js';
import { RlxError, unknownName } from '../values/errors.js';
import type { HostTensor } from '../values/tensor.js';
import { Folder, notFinite, type Saved } from './checkpoints.js';
import { iteratorOf } from './data.js';
import { checkLoop, type EarlyStop, type Epoch, type Evaluation, type Loop } from './loop.js';
import { type Measured, takeMetrics } from './metrics.js';
import { type Report, reportLine } from './report.js';

/**
 * Trains until the loop ends and returns the last report. Steps that the trainer did before, those
 * of a checkpoint included, count: their batches are skipped. Errors end it between steps, and
 * name the step. They are those of {@link Trainer.run}, of data and callbacks, and of kind `abort`
 * once the signal is aborted, `store` if the last checkpoint cannot be written, and `missing`, `attr`,
 * `name` or `limit` for an incomplete loop.
 *
 * When a device is lost and the program recovers (the option `recover`), training goes on from the last snapshot, with the batches
 * after it, and ends as one without a loss, to the bit on an equal device. Reports since the snapshot come again.
 *
 * ```ts
 * const last = await fit(trainer, { data: shuffled({ x, labels }, 32, 1), epochs: 10, save: { folder: 'digits', resume: true } });
 * ```
 */
export async function fit<E extends EntryTypes, N extends keyof E & string, B extends EntryInputs<E, 'step'> = EntryInputs<E, 'step'>, V extends EntryInputs<E, N> = EntryInputs<E, N>>(
  trainer: Trainer<E>, loop: Loop<E, Exactly<B, keyof EntryInputs<E, 'step'>>, Evaluation<E, N, Exactly<V, keyof EntryInputs<E, N>>>>,
): Promise<Report> {
  return asyncAtCaller(fit, async () => {
    checkLoop(trainer, loop as Loop);
    return new Fit(trainer as Trainer<any>, loop as Loop).run();
  });
}

/** A training in progress. */
class Fit {
  readonly #trainer: Trainer;
  readonly #loop: Loop;
  readonly #epochSteps: number;
  readonly #stopper: Stopper;
  readonly #readEvery: number;
  #folder: Folder | undefined;
  /** Epochs done. */
  #epoch = 0;
  /** The step of the last report, and when it was. */
  #reported = 0;
  #began = performance.now();
  /** The sum of the losses since the last report, their number, and the rows of examples. */
  #sum = 0;
  #count = 0;
  #rows = 0;
  #last: Report | undefined;
  /** The step of the last checkpoint. */
  #saved = -1;
  /** The step of an evaluation that was counted before a resume, -1 for none. */
  #counted = -1;
  #ended = false;
  /** The program on the device of this moment. */
  #program: Program;

  constructor(trainer: Trainer, loop: Loop) {
    this.#trainer = trainer;
    this.#program = trainer.program.recovery?.current ?? trainer.program;
    this.#loop = loop;
    this.#epochSteps = loop.epochSteps ?? loop.data.epochSteps ?? 0;
    this.#stopper = new Stopper(loop.stop ?? {});
    // Where a history of losses is kept on the device they are read as seldom as it allows.
    this.#readEvery = trainer.program.plan.slots.some(({ name, role }) => role === 'state' && name.startsWith('history/')) ? Infinity : 1;
  }

  async run(): Promise<Report> {
    const { save } = this.#loop;
    if (save) this.#folder = await Folder.open(save);
    if (save?.resume) {
      const saved = await this.#folder!.resume(this.#trainer);
      this.#stopper.resume(saved);
      this.#sum = saved.sum;
      this.#count = saved.count;
      if (!saved.count && (saved.best !== undefined || saved.worse)) this.#counted = this.#trainer.steps;
    } else await this.#folder?.refuseLater(this.#trainer.steps);
    this.#reported = this.#trainer.steps;
    this.#began = performance.now();
    try {
      await this.#trainOn();
    } catch (reason) {
      if (!(reason instanceof RlxError)) throw reason;
      const { kind, message, place } = reason;
      throw new RlxError(kind, `fit: step ${this.#trainer.steps}: ${message}`, { ...place, cause: reason });
    }
    return this.#last!;
  }

  /** Trains, from the last snapshot again after each loss of the device. */
  async #trainOn(): Promise<void> {
    const { recovery } = this.#trainer.program;
    if (!recovery) return this.#train();
    recovery.training(this.#trainer, true);
    try {
      await this.#snapshot();
      for (;;) {
        try {
          return await this.#train();
        } catch (reason) {
          if (!(reason instanceof RlxError) || reason.kind !== 'lost') throw reason;
          this.#restore(await recovery.back(this.#program), reason);
          this.#program = recovery.current;
        }
      }
    } finally {
      recovery.training(this.#trainer, false);
    }
  }

  /** Makes a snapshot of the program's states, and of what is here. */
  async #snapshot(): Promise<void> {
    const trainer = this.#trainer, { steps } = trainer, { best, worse } = this.#stopper;
    const state: Snapshot = { best, worse, reported: this.#reported, sum: this.#sum, count: this.#count, rows: this.#rows, last: this.#last };
    await trainer.program.recovery!.take({ trainer, steps, owner: this, state });
  }

  #restore({ owner, state }: Position, reason: RlxError): void {
    if (owner !== this) throw reason; // lost while the first snapshot was made
    const { best, worse, reported, sum, count, rows, last } = state as Snapshot;
    Object.assign(this.#stopper, { best, worse });
    this.#reported = reported;
    this.#sum = sum;
    this.#count = count;
    this.#rows = rows;
    this.#last = last;
    this.#ended = false;
    this.#began = performance.now();
  }

  /** Refuses to go on on a program that recovered meanwhile, before the loop knows. */
  #check(): void {
    const { recovery } = this.#trainer.program;
    if (recovery && recovery.current !== this.#program) throw new RlxError('lost', 'the device was lost');
  }

  /** Trains epoch by epoch. */
  async #train(): Promise<void> {
    let skip = this.#trainer.steps;
    this.#epoch = 0;
    if (this.#epochSteps) {
      this.#epoch = Math.floor(skip / this.#epochSteps);
      skip %= this.#epochSteps;
    }
    while (!this.#complete) {
      const read = await this.#runEpoch(skip);
      if (this.#ended) return;
      if (!read) throw new RlxError('missing', `epoch ${this.#epoch} has no batch`);
      if (this.#epochSteps && read !== this.#epochSteps) { // a resumed training would go on with other batches
        throw new RlxError('attr', `epochSteps is ${this.#epochSteps} and epoch ${this.#epoch} has ${read} batches: it must be their number`);
      }
      skip = Math.max(0, skip - read);
      this.#epoch++;
      if (this.#loop.every === undefined && this.#trainer.steps > this.#reported && !this.#complete) await this.#report(false);
      if (this.#ended) return;
    }
    if (this.#last?.step !== this.#trainer.steps) return this.#report(true);
    this.#last = { ...this.#last, done: true, epoch: this.#epoch }; // reported just now
    await this.#writeLast();
    await this.#publish(this.#last);
  }

  /** Whether all epochs or steps are done, or the training was stopped before it was resumed. */
  get #complete(): boolean {
    const { epochs = Infinity, steps = Infinity } = this.#loop;
    return this.#stopper.exhausted || this.#epoch >= epochs || this.#trainer.steps >= steps;
  }

  /** Trains on the batches of an epoch after the first `skip`, and returns the number of batches of the epoch that were read or skipped. */
  async #runEpoch(skip: number): Promise<number> {
    const { data } = this.#loop, seek = skip > 0 && data.from;
    const batches = new Reader(seek ? seek(this.#epoch, skip) : data(this.#epoch), this.#trainer.program, 'step');
    try {
      let read = seek ? skip : 0;
      for (; read < skip; read++) {
        const more = batches.peek();
        if (!(more instanceof Promise ? await this.#peek(more) : more)) return read; // no promise for each batch of an array
        batches.drop();
      }
      while (await this.#peek(batches.peek())) {
        const steps = await this.#segment(batches);
        read += steps;
        if (this.#ended) break;
      }
      return read;
    } finally {
      await batches.close();
    }
  }

  /** Waits for what a reader says of its next batch, unless the signal is aborted. */
  async #peek(next: boolean | Promise<boolean>): Promise<boolean> {
    const { signal } = this.#loop;
    if (!signal) return next;
    let stop: (() => void) | undefined;
    const aborted = new Promise<never>((_, reject) => {
      stop = () => reject(abortError(signal));
      if (signal.aborted) stop();
      else signal.addEventListener('abort', stop);
    });
    try {
      return await Promise.race([aborted, next]);
    } finally {
      signal.removeEventListener('abort', stop!);
    }
  }

  /** The number of steps to the next report or checkpoint. */
  get #untilNext(): number {
    const { every, steps = Infinity, save } = this.#loop, done = this.#trainer.steps;
    return Math.min(steps - done, ...[every, save?.every].map((n) => n ? n - done % n : Infinity));
  }

  /** Trains until the next report or checkpoint, or the end of the batches. Returns the number of steps. */
  async #segment(batches: Reader): Promise<number> {
    const { signal, stopOnNaN = false, every, steps } = this.#loop, n = this.#untilNext, { recovery } = this.#trainer.program;
    if (recovery?.due(this.#trainer.steps)) await this.#snapshot();
    this.#check();
    const counted = batches.upTo(n, (rows) => { this.#rows += rows; }, signal, () => recovery?.due(this.#trainer.steps));
    const summary = await this.#trainer.run({
      steps: Number.isFinite(n) ? n : 2 ** 30, batches: counted, every: this.#readEvery, stopOnNaN: !!stopOnNaN, recover: false, ...signal && { signal },
      onProgress: ({ losses }) => {
        for (const loss of losses) this.#sum += loss;
        this.#count += losses.length;
      },
    }).catch((error: unknown) => this.#explain(error));
    if (summary.end === 'signal') throw abortError(signal!);
    const done = this.#trainer.steps;
    if (steps !== undefined && done >= steps) await this.#report(true);
    else {
      if (every && done % every === 0) await this.#report(false);
      else if (this.#isDue(done)) await this.#save();
    }
    if (steps !== undefined && done >= steps) this.#ended = true;
    return summary.steps;
  }

  /** Throws an error again, of a loss that is not finite with the first value that was not. */
  async #explain(error: unknown): Promise<never> {
    const { stopOnNaN } = this.#loop;
    if (typeof stopOnNaN !== 'object' || !(error instanceof RlxError) || error.kind !== 'nan') throw error;
    const node = await stopOnNaN.first(this.#program);
    throw node ? new RlxError('nan', `${error.message}; the first value that is not finite is that of ${node}`, { ...error.place, node }) : error;
  }

  /** Whether there is a checkpoint of a step. */
  #isDue(step: number): boolean {
    const every = this.#loop.save?.every;
    return !!every && step % every === 0;
  }

  /** Measures, saves, and calls back. Afterwards `#ended` is whether the training is over. */
  async #report(done: boolean): Promise<void> {
    const { epochs = 0, steps = this.#epochSteps * epochs, eval: evaluation, save } = this.#loop, { steps: step } = this.#trainer, program = this.#program;
    const seconds = (performance.now() - this.#began) / 1000;
    const report: Report = {
      step, steps, epoch: this.#epoch, epochs, loss: this.#sum / this.#count,
      rate: (step - this.#reported) / seconds, throughput: this.#rows / seconds, ...await takeMetrics(program), best: false, done,
    };
    this.#sum = this.#count = this.#rows = 0;
    if (evaluation) {
      const { metrics, confusion } = await measure(program, evaluation, this.#loop.signal);
      Object.assign(report, { eval: metrics, evalConfusion: confusion });
      report.best = await this.#improves(metrics);
    }
    report.done ||= this.#stopper.exhausted;
    this.#ended = report.done;
    this.#last = report;
    if (report.done) await this.#write();
    else if (!save?.every || this.#isDue(step)) await this.#save(); // with the evaluation
    await this.#publish(report);
    this.#check();
    if (this.#ended) await this.#writeLast(); // perhaps by a callback
    this.#reported = step;
    this.#began = performance.now();
  }

  /** Whether an evaluation is the best so far, whose checkpoint is then written. Parameters that are not finite are never the best: accuracy may hide them. */
  async #improves(metrics: Record<string, number>): Promise<boolean> {
    const stopper = this.#stopper, { best, worse } = stopper;
    if (this.#counted === this.#trainer.steps) return !worse && best !== undefined && best === metrics[this.#loop.stop?.metric ?? 'loss'];
    if (!stopper.better(metrics)) return false;
    if (!this.#folder) return true;
    const values = await this.#finite(() => {});
    if (values) await this.#store(() => this.#folder!.writeBest(values, stopper.best!));
    else Object.assign(stopper, { best, worse: worse + 1 });
    return !!values;
  }

  /** The values for a checkpoint. If a trained parameter is not finite they are undefined: older files stay, as they are what a training can go on from. */
  async #finite(onError: (error: RlxError) => void): Promise<Record<string, HostTensor> | undefined> {
    const program = this.#program, values = await program.save(), name = notFinite(program.plan, values);
    if (name === undefined) return values;
    const error = new RlxError('nan', `parameter ${name} is not finite`, { name });
    if (this.#loop.stopOnNaN) throw error;
    onError(error);
    return undefined;
  }

  /** Writes a checkpoint. */
  #save(): Promise<void> { return this.#store(() => this.#write()); }

  /** Writes the checkpoint of the last step, if it has none. */
  async #writeLast(): Promise<void> {
    if (this.#saved !== this.#trainer.steps) await this.#write();
  }

  async #write(): Promise<void> {
    this.#saved = this.#trainer.steps;
    if (!this.#folder) return;
    const { best, worse } = this.#stopper, values = await this.#finite((error) => this.#warn(error));
    if (values) await this.#folder.write(values, this.#trainer.steps, { best, worse, sum: this.#sum, count: this.#count });
  }

  /** Writes files. Training goes on without them where storage is full, for one; only the error of the last checkpoint ends it. */
  async #store(write: () => Promise<void> | undefined): Promise<void> {
    try {
      await write();
    } catch (reason) {
      if (!(reason instanceof RlxError) || reason.kind !== 'store') throw reason;
      this.#warn(reason);
    }
  }

  #warn(error: RlxError): void {
    const { onError = ({ message }: RlxError) => console.warn(`rlx: training goes on without a checkpoint: ${message}`) } = this.#loop.save!;
    onError(error);
  }

  /** Passes a report to the log and the callbacks. */
  async #publish(report: Report): Promise<void> {
    const { progress, log, callbacks = [] } = this.#loop;
    progress?.(reportLine(report));
    const line = JSON.stringify(report);
    if (typeof log === 'string') await this.#store(() => this.#folder!.files.append(log, new TextEncoder().encode(`${line}\n`)));
    else await log?.(line);
    for (const call of callbacks) if (await call(report) === 'stop') this.#ended = true;
  }
}

const abortError = ({ reason }: AbortSignal): RlxError => new RlxError('abort', 'the signal is aborted', { cause: reason });

/** What the loop knows at a snapshot. */
interface Snapshot { best: number | undefined; worse: number; reported: number; sum: number; count: number; rows: number; last: Report | undefined }

/** Reads batches one at a time, with one to look at before it is used. Those of a plain iterable are passed on without promises. */
class Reader {
  readonly #iterator: Iterator<Inputs, unknown> | AsyncIterator<Inputs, unknown>;
  #next: IteratorResult<Inputs> | Promise<IteratorResult<Inputs>> | undefined;
  #waiting = false;
  /** The size of the first axis of inputs, by name. */
  readonly #rows = new Map<string, number>();

  /** Batches for an entry of a program. */
  constructor(source: Epoch, { plan: { entries, slots } }: Program, entry: string) {
    this.#iterator = iteratorOf(source);
    for (const i of entries.find(({ name }) => name === entry)?.inputs ?? []) this.#rows.set(slots[i]!.name, slots[i]!.shape[0] ?? 0);
  }

  #ask(): IteratorResult<Inputs> | Promise<IteratorResult<Inputs>> {
    if (this.#next) return this.#next;
    const next = this.#iterator.next() as IteratorResult<Inputs> | PromiseLike<IteratorResult<Inputs>>;
    if (!('then' in Object(next))) return this.#next = next as IteratorResult<Inputs>;
    this.#waiting = true;
    return this.#next = Promise.resolve(next).finally(() => { this.#waiting = false; });
  }

  /** Whether there is another batch. */
  peek(): boolean | Promise<boolean> {
    const next = this.#ask();
    return next instanceof Promise ? next.then(({ done }) => !done) : !next.done;
  }

  /** Forgets the batch that was looked at. */
  drop(): void { this.#next = undefined; }

  /** At most n batches, none once the signal is aborted, and no second one once `enough`; the reader stays open after them. */
  upTo(n: number, each: (rows: number) => void, signal?: AbortSignal, enough?: () => boolean | undefined): AsyncIterable<Batch> {
    let taken = 0;
    const end = { done: true, value: undefined } as const, batch: { -readonly [N in keyof Batch]: Batch[N] } = { inputs: {}, rows: 0 }, result = { value: batch };
    const take = (one: IteratorResult<Inputs>): IteratorResult<Batch> => {
      if (one.done || signal?.aborted) return end;
      this.drop();
      batch.inputs = one.value;
      each(batch.rows = this.#rowsOf(one.value));
      return result; // the trainer is done with a batch before it asks for another
    };
    const next = (): IteratorResult<Batch> | Promise<IteratorResult<Batch>> => {
      if (taken++ >= n || taken > 1 && enough?.()) return end;
      const one = this.#ask();
      return one instanceof Promise ? one.then(take) : take(one);
    };
    return { [Symbol.asyncIterator]: () => ({ next: next as () => Promise<IteratorResult<Batch>> }) };
  }

  /** The number of examples of a batch: the size of the longest first axis. */
  #rowsOf(inputs: Inputs): number {
    let rows = 0;
    for (const name in inputs) rows = Math.max(rows, this.#rows.get(name) ?? 0);
    return rows;
  }

  /** Closes the source, without waiting for a batch in progress. */
  async close(): Promise<void> {
    const closing = (async () => this.#iterator.return?.())();
    if (this.#waiting) closing.catch(() => {});
    else await closing;
  }
}

/** The means of the outputs of rank 0 over all batches, with the metrics that the entry keeps in states, and its confusion matrices. */
async function measure(program: Program, evaluation: Evaluation, signal?: AbortSignal): Promise<Measured> {
  const means = await meansOf(program, evaluation, signal), { metrics, confusion } = await takeMetrics(program);
  return { metrics: { ...metrics, ...means }, confusion };
}

/** The means of the outputs of rank 0 over all batches. */
async function meansOf(program: Program, { entry, data, weight }: Evaluation, signal?: AbortSignal): Promise<Record<string, number>> {
  const { entries, slots } = program.plan, names = entries.find(({ name }) => name === entry)!.outputs.map((i) => slots[i]!).filter(({ shape, dtype }) => !shape.length && /^[biuf]/.test(dtype)).map(({ name }) => name);
  if (weight !== undefined && !names.includes(weight)) throw unknownName(`fit: weight of eval: entry ${entry} has no output of rank 0`, weight, names, 'fit');
  const sums: Record<string, number> = {}, reader = new Reader(data() as Epoch, program, entry);
  let total = 0;
  try {
    for await (const { inputs } of reader.upTo(Infinity, () => {}, signal)) {
      const { values } = await (await program.run(entry, inputs, { read: names })).reading!;
      const valueOf = (name: string) => scalarOf(slots.find((slot) => slot.name === name)!, values[name]!), by = weight === undefined ? 1 : valueOf(weight);
      total += by;
      for (const name of names) if (name !== weight) sums[name] = (sums[name] ?? 0) + (by && by * valueOf(name)); // 0, not NaN, for no examples
    }
  } finally {
    await reader.close();
  }
  if (signal?.aborted) throw abortError(signal);
  if (!total) throw new RlxError('missing', 'the evaluation has no batch');
  for (const name of Object.keys(sums)) sums[name]! /= total;
  return sums;
}

/** The number of a tensor of rank 0, whose data are the bits of a type that has no typed array here. */
function scalarOf({ name, dtype }: Slot, data: TensorData): number {
  if (dtype === 'bool') return data[0]!;
  const type = arrayOf(dtype) as { new (buffer: ArrayBufferLike, offset: number, length: number): StoredData };
  return Number(converted(name, { dtype, shape: [], data: new type(data.buffer, data.byteOffset, 1) }, 'f64', { narrow: true })[0]);
}

/** Counts evaluations without an improvement. */
class Stopper {
  /** The best value so far. */
  best: number | undefined;
  /** Evaluations in a row without an improvement. */
  worse = 0;
  readonly #stop: EarlyStop;

  constructor(stop: EarlyStop) { this.#stop = stop; }

  /** Continues from a checkpoint. */
  resume({ best, worse }: Saved): void {
    this.best = best;
    this.worse = worse;
  }

  /** Whether an evaluation is the best so far. NaN never is. */
  better(measured: Readonly<Record<string, number>>): boolean {
    const { metric = 'loss', larger, minDelta = 0, patience } = this.#stop, value = measured[metric];
    if (value === undefined && (patience !== undefined || this.#stop.metric !== undefined)) throw unknownName('fit: metric of stop: the evaluation has no output of rank 0 or metric', metric, Object.keys(measured), 'fit');
    const gain = this.best === undefined ? Infinity : (this.best - value!) * (larger ? -1 : 1);
    if (value === undefined || Number.isNaN(value) || !(gain > minDelta)) {
      this.worse++;
      return false;
    }
    this.best = value;
    this.worse = 0;
    return true;
  }

  /** Whether `patience` evaluations in a row were no improvement. */
  get exhausted(): boolean { return this.worse >= (this.#stop.patience ?? Infinity); }
}
