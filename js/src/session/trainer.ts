import type { Batch } from './batches.js';
import { sizeOf, type TensorData } from '../values/dtype.js';
import { RlxError, unknownName } from '../values/errors.js';
import type { Slot } from '../plan/plan.js';
import type { HostTensor, Inputs, Run, RunOptions, Session } from './session.js';
import { yieldTask } from './task.js';

/** Names in the plan that a trainer uses. */
export interface TrainerOptions {
  /** The entry of a training step. `step` if not given. */
  entry?: string;
  /** The output to follow. `loss` if not given. */
  loss?: string;
  /**
   * The states that keep the losses of the last steps on the device: `ring` (f32, one axis), where
   * loss n lies at n modulo its length, and `count` (an integer), how many there were. If not given
   * they are `history/loss`, after the output, and `history/count`; a plan may well have none.
   */
  history?: { ring: string; count: string };
}

/** Where the inputs of a run of steps come from: an iterable, or a function of the step. */
export type BatchSource = Iterable<Batch> | AsyncIterable<Batch> | ((step: number) => Inputs | Promise<Inputs>);

export interface TrainOptions {
  steps: number;
  batches: BatchSource;
  /** Inputs of every step besides its batch, such as a learning rate: looked at before each step. */
  inputs?: Inputs | ((step: number) => Inputs);
  /** Every how many steps losses are read. 10 if not given; at most the length of the plan's history. */
  every?: number;
  /** Stops before the next step; `run` then resolves with what was done. */
  signal?: AbortSignal;
  onProgress?: (progress: Progress) => void;
}

export interface EvaluateOptions {
  /** `eval` if not given. */
  entry?: string;
  batches: Iterable<Batch> | AsyncIterable<Batch>;
}

/** How far a run has come, by what has been read back. */
export interface Progress {
  /** Steps of the trainer's whole life, up to the last loss here. */
  step: number;
  /** The loss of each step since the last report, oldest first; only the last one where the plan has no history. */
  losses: number[];
  /** Steps done a second, over the whole run. */
  stepsPerSecond: number;
}

export interface Summary {
  /** Steps this run has made. */
  steps: number;
  /** The loss of the last step. */
  loss: number;
  seconds: number;
  /** Whether the signal ended it. */
  aborted: boolean;
}

/**
 * Trains with an entry of a session. A plan that keeps a history of losses on the device has every
 * loss reported, however seldom they are read.
 */
export class Trainer {
  readonly session: Session;
  /** How many steps were made with this trainer. */
  steps = 0;
  readonly #entry: string;
  readonly #loss: string;
  readonly #history: { ring: Slot; count: Slot } | undefined;
  /** How many losses of the history were reported. */
  #reported = 0;
  #running = false;

  constructor(session: Session, { entry = 'step', loss = 'loss', history }: TrainerOptions = {}) {
    this.session = session;
    this.#entry = entry;
    this.#loss = loss;
    const state = (name: string) => session.plan.slots.find((slot) => slot.name === name && slot.role === 'state');
    const ring = state(history?.ring ?? `history/${loss}`), count = state(history?.count ?? 'history/count');
    if (history && !(ring && count)) {
      throw new RlxError('name', `the plan has no states ${history.ring} and ${history.count}`, { name: history.ring });
    }
    this.#history = ring && count && { ring, count };
  }

  /** One step. See {@link Session.run}. */
  async step(inputs: Inputs, options?: RunOptions): Promise<Run> {
    const run = await this.session.run(this.#entry, inputs, options);
    this.steps += options?.steps ?? 1;
    return run;
  }

  /**
   * Makes many steps. The page stays responsive, and a hidden tab goes on; losses are read every
   * few steps with the step's own submission, and nothing waits for them.
   */
  async run({ steps, batches, inputs, every = 10, signal, onProgress }: TrainOptions): Promise<Summary> {
    if (this.#running) throw new RlxError('name', 'the trainer is running already');
    this.#running = true;
    const begun = performance.now(), first = this.steps, next = puller(batches), pause = yieldTask();
    const seconds = () => (performance.now() - begun) / 1000;
    if (this.#history) every = Math.min(every, this.#history.ring.shape[0]!);
    const reports = new Set<Promise<void>>();
    let loss = NaN, failure: unknown;
    const report = async (run: Run) => {
      const ahead = run.step - this.steps; // runs of other entries
      const { step, values } = await run.reading!;
      const losses = this.#losses(values);
      if (losses.length === 0) return;
      loss = losses.at(-1)!;
      onProgress?.({ step: step - ahead, losses, stepsPerSecond: (step - ahead - first) / seconds() });
    };
    const follow = (run: Run) => {
      const arrival = report(run).catch((reason) => { failure ??= reason; }).finally(() => reports.delete(arrival));
      reports.add(arrival);
    };
    try {
      let done = 0;
      while (done < steps && !signal?.aborted && !failure) {
        const batch = await next(done);
        if (!batch) break;
        const read = done + 1 === steps || (done + 1) % every === 0;
        const more = typeof inputs === 'function' ? inputs(done) : inputs;
        const run = await this.session.run(batch.entry ?? this.#entry, { ...batch.inputs, ...more }, read ? { read: this.#names() } : {});
        done++;
        this.steps++;
        if (read) follow(run);
        await pause();
      }
      if (!failure && done > 0 && done < steps) follow({ step: this.session.steps, reading: this.session.readAll(this.#names()) });
      await Promise.all(reports);
      if (failure) throw failure;
      return { steps: done, loss, seconds: seconds(), aborted: done < steps && signal?.aborted === true };
    } finally {
      this.#running = false;
    }
  }

  #names(): string[] { return this.#history ? [this.#history.ring.name, this.#history.count.name] : [this.#loss]; }

  /** The losses in a reading that were not reported before. */
  #losses(values: Record<string, TensorData>): number[] {
    if (!this.#history) return [values[this.#loss]![0]!];
    const ring = values[this.#history.ring.name]!, count = values[this.#history.count.name]![0]!;
    if (count < this.#reported) this.#reported = 0; // the state was set anew
    const from = Math.max(this.#reported, count - ring.length);
    this.#reported = count;
    return Array.from({ length: count - from }, (_, i) => ring[(from + i) % ring.length]!);
  }

  /**
   * Runs another entry over batches and gathers its outputs. One without axes becomes its mean over
   * all rows, or, of integers, which count something, its sum; any other is concatenated, without
   * the rows that a mask left out.
   */
  async evaluate({ entry = 'eval', batches }: EvaluateOptions): Promise<Record<string, number | TensorData>> {
    const pause = yieldTask(), next = puller(batches), parts: { rows: number; values: Record<string, TensorData> }[] = [];
    const { plan } = this.session, target = plan.entries.find(({ name }) => name === entry);
    if (!target) throw unknownName('the plan has no entry', entry, plan.entries.map(({ name }) => name));
    const outputs = target.outputs.map((i) => plan.slots[i]!);
    for (let batch = await next(0), i = 0; batch; batch = await next(++i)) {
      const { reading } = await this.session.run(batch.entry ?? entry, batch.inputs, { read: outputs.map(({ name }) => name) });
      parts.push({ rows: batch.rows, values: (await reading!).values });
      await pause();
    }
    return Object.fromEntries(outputs.map((slot) => [slot.name, gather(slot, parts.map(({ rows, values }) => ({ rows, data: values[slot.name]! })))]));
  }

  /** All parameters and states. */
  save(): Promise<Record<string, HostTensor>> { return this.session.save(); }

  /** Goes on from what {@link Trainer.save} gave. */
  load(tensors: Readonly<Record<string, HostTensor>>): Promise<void> { return this.session.load(tensors); }
}

/** The next batch of any source, undefined at its end. */
function puller(source: BatchSource): (step: number) => Promise<Batch | undefined> | Batch | undefined {
  if (typeof source === 'function') return async (step) => ({ inputs: await source(step), rows: 0 });
  const iterator = Symbol.iterator in source ? source[Symbol.iterator]() : source[Symbol.asyncIterator]();
  return () => {
    const next = iterator.next();
    return next instanceof Promise ? next.then(({ value, done }) => done ? undefined : value) : next.done ? undefined : next.value;
  };
}

/** Makes one value of an output's values in several batches. */
function gather({ dtype, shape }: Slot, parts: { rows: number; data: TensorData }[]): number | TensorData {
  const sum = (value: (part: { rows: number; data: TensorData }) => number) => parts.reduce((total, part) => total + value(part), 0);
  if (shape.length > 0) {
    const width = sizeOf(shape.slice(1));
    return concatenate(parts.map(({ rows, data }) => data.subarray(0, rows * width)));
  }
  return /^[iu]/.test(dtype) ? sum(({ data }) => data[0]!) : sum(({ rows, data }) => data[0]! * rows) / sum(({ rows }) => rows);
}

function concatenate(parts: TensorData[]): TensorData {
  const type = parts[0]!.constructor as { new (length: number): TensorData };
  const all = new type(parts.reduce((n, { length }) => n + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
