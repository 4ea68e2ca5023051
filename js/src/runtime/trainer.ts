import type { Slot } from '../plan/plan.js';
import type { LoadOptions, Program, ReadingOf, Run, RunOptions } from '../program/program.js';
import type { EntryInputs, EntryTypes, Exactly, Inputs, Name, ResultsOf, ValuesOf } from '../program/types.js';
import { sizeOf, type StoredData, type TensorData } from '../values/dtype.js';
import { checkCount, checkOptions, need, RlxError } from '../values/errors.js';
import { byName, named } from '../values/named.js';
import type { HostTensor, StoredTensor } from '../values/tensor.js';
import type { Batch } from './batches.js';
import { yieldTask } from '../values/task.js';

/** Names in the plan that a trainer uses. */
export interface TrainerOptions {
  /** The entry of a training step. `step` if not given. */
  entry?: string;
  /** The output to follow. `loss` if not given. */
  loss?: string;
  /**
   * The states that keep the losses of recent steps on the device: `ring` (f32, one axis), with
   * loss n at n modulo its length, and `count` (an integer), their number. By default they are
   * `history/loss`, after the output, and `history/count`; a plan need not have them.
   */
  history?: { ring: string; count: string };
}

/** The inputs of a series of steps: an iterable, or a function of the step. */
export type BatchSource<I = Inputs> = Iterable<Batch<I>> | AsyncIterable<Batch<I>> | ((step: number) => I | Promise<I>);

export interface TrainOptions<I = Inputs, B = I> {
  steps: number;
  /** The iterator is closed at the end of the run: pass an iterable, or a function, for several runs. */
  batches: BatchSource<B>;
  /** Inputs of every step besides its batch, such as a learning rate: read before each step. */
  inputs?: I | ((step: number) => I);
  /** The number of steps between two reads of losses. 10 if not given; at most the length of the plan's history. */
  every?: number;
  /** Stops the run before the next step, or in the wait for a batch; `run` then resolves with the steps done. */
  signal?: AbortSignal;
  /** Rejects with an error of kind `nan`, with the step, once a loss that was read is NaN or infinite. */
  stopOnNaN?: boolean;
  /** False: a lost device ends this run with its error, even if the program recovers. */
  recover?: boolean;
  onProgress?: (progress: Progress) => void;
}

export interface EvaluateOptions<N extends string = string, B = Inputs> {
  /** `eval` if not given. */
  entry?: N;
  batches: Iterable<Batch<B>> | AsyncIterable<Batch<B>>;
}

/** The progress of a run, as far as it was read back. */
export interface Progress {
  /** Steps of the trainer's whole life, up to the last loss here. */
  step: number;
  /** The losses since the last report, oldest first; only the last one if the plan has no history. */
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
  /** The reason of the end: all steps done, batches exhausted, or the signal. */
  end: 'steps' | 'batches' | 'signal';
}

/** The histories, and trainers without one, that a run follows. */
const running = new WeakSet<object>();

/**
 * Trains with an entry of a program. If the plan keeps a history of losses on the device, every loss is
 * reported, however seldom they are read.
 */
export class Trainer<E extends EntryTypes = any> {
  readonly program: Program<E>;
  /** The number of steps of this trainer, those before {@link Trainer.load} included. */
  steps = 0;
  readonly #entry: string;
  readonly #loss: string;
  readonly #history: { ring: Slot; count: Slot } | undefined;
  /** The number of losses of the history that were reported, or precede this run. */
  #reported = 0;

  constructor(program: Program<E>, options: TrainerOptions = {}) {
    checkOptions('a trainer', options, 'entry loss history');
    const { entry = 'step', loss = 'loss', history } = options ?? {};
    checkOptions('history', history, 'ring count');
    need(program?.plan, 'missing', "a trainer's program", 'a Program', program);
    this.program = program;
    this.#entry = entry;
    this.#loss = loss;
    const state = (name: string) => program.plan.slots.find((slot) => slot.name === name && slot.role === 'state');
    const ring = state(history?.ring ?? `history/${loss}`), count = state(history?.count ?? 'history/count');
    if (history && !(ring && count)) {
      throw new RlxError('name', `no states ${history.ring} and ${history.count}`, { name: history.ring });
    }
    this.#history = ring && count && { ring, count };
  }

  /** The program on the device of this moment, without the types of its entries. */
  get #program(): Program { return this.program.recovery?.current ?? this.program as Program<any>; }

  /** One step. See {@link Program.run}. */
  async step<V extends string = never>(inputs: EntryInputs<E, 'step'>, options?: RunOptions<Name<V, ValuesOf<E>>>): Promise<Run<ReadingOf<E, V>>> {
    const run = await this.#program.run(this.#entry, inputs as Inputs, options);
    this.steps += options?.steps ?? 1;
    return run as Run<any>;
  }

  /**
   * Runs many steps. The page stays responsive, and training continues in a hidden tab. Losses are
   * read every few steps with the step's own submission, without a wait. If the program recovers from a lost device (the option
   * `recover`), the run goes on from the last snapshot, with the batches after it where they are a function of the step, and with
   * the next ones of an iterator. Where the snapshot is older than the run, that begins again.
   */
  async run<B extends EntryInputs<E, 'step'> = EntryInputs<E, 'step'>>(options: TrainOptions<EntryInputs<E, 'step'>, Exactly<B, keyof EntryInputs<E, 'step'>>>): Promise<Summary> {
    checkOptions('run', options, 'steps batches inputs every signal stopOnNaN recover onProgress');
    const { steps, batches, inputs, every = 10, signal, stopOnNaN, recover = true, onProgress } = options ?? {};
    checkCount('steps', steps, 0);
    checkCount('every', every, 1);
    if (recover && this.program.recovery) return this.program.recovery.run(this, options);
    const program = this.#program, history = this.#history, key = history?.count ?? this, readEvery = Math.min(every, history?.ring.shape[0] ?? every);
    if (running.has(key)) throw new RlxError('busy', 'a trainer with this history is running');
    const source = open(batches as BatchSource, signal), pause = yieldTask(), begun = performance.now(), first = this.steps;
    const seconds = () => (performance.now() - begun) / 1000;
    let loss = NaN, failure: unknown, done = 0, reports = Promise.resolve();
    const report = async (run: Run) => {
      const otherRuns = run.step - this.steps; // runs of other entries
      try {
        const { step, values } = await run.reading!;
        const losses = this.#losses(values), at = step - otherRuns;
        if (!losses.length) return;
        loss = losses.at(-1)!;
        onProgress?.({ step: at, losses, stepsPerSecond: (at - first) / seconds() });
        const bad = losses.findIndex((x) => !isFinite(x));
        if (stopOnNaN && bad >= 0) throw new RlxError('nan', `${this.#loss} is ${losses[bad]} at step ${at - losses.length + bad + 1}`, { name: this.#loss });
      } catch (reason) {
        failure ??= reason;
        source.interrupt();
      }
    };
    const follow = (run: Run) => {
      const before = reports;
      reports = report(run).then(() => before);
    };
    running.add(key);
    try {
      // The current contents of a history may be of an earlier run or of a file.
      if (history) this.#reported = countIn(history.count.name, await program.read(history.count.name));
      while (done < steps && !signal?.aborted && !failure) {
        const next = source.next(done), batch = next instanceof Promise ? await next : next;
        if (!batch) break;
        const read = done + 1 === steps || (done + 1) % readEvery === 0;
        const more = typeof inputs === 'function' ? (inputs as (step: number) => Inputs)(done) : inputs;
        const run = await program.run(batch.entry ?? this.#entry, more ? { ...batch.inputs, ...more } : batch.inputs, read ? { read: this.#names() } : undefined);
        done++;
        this.steps++;
        if (read) follow(run);
        const wait = pause();
        if (wait) await wait;
      }
      if (!failure && done && done < steps) follow({ step: program.steps, reading: program.readAll(this.#names()) });
      await reports;
      if (failure) throw failure;
      const end = done >= steps ? 'steps' : signal?.aborted ? 'signal' : 'batches';
      if (end === 'batches' && !done) throw noBatch();
      return { steps: done, loss, seconds: seconds(), aborted: end === 'signal', end };
    } finally {
      running.delete(key);
      await source.close();
    }
  }

  #names(): string[] { return this.#history ? [this.#history.ring.name, this.#history.count.name] : [this.#loss]; }

  /** The losses in a reading that were not reported before. */
  #losses(values: Record<string, TensorData>): number[] {
    if (!this.#history) return [values[this.#loss]![0]!];
    const { name } = this.#history.count, ring = values[this.#history.ring.name]!, count = countIn(name, values[name]!);
    if (count < this.#reported) this.#reported = 0; // the state was set
    const from = Math.max(this.#reported, count - ring.length);
    this.#reported = count;
    return Array.from({ length: count - from }, (_, i) => ring[(from + i) % ring.length]!);
  }

  /**
   * Runs another entry over batches and gathers its outputs. An output of rank 0 becomes its mean over
   * all rows, or, of an integer type, its sum; any other is concatenated, without masked rows. It takes no outputs of 64 bits an element
   * and no means of narrower floats than f32, which are bits here: convert them to f32.
   */
  async evaluate<N extends keyof E & string = 'eval' & keyof E, B extends EntryInputs<E, N> = EntryInputs<E, N>>(options: EvaluateOptions<N, Exactly<B, keyof EntryInputs<E, N>>>): Promise<ResultsOf<E, N>> {
    checkOptions('evaluate', options, 'entry batches');
    const { entry = 'eval', batches } = options ?? {};
    const pause = yieldTask(), source = open(batches as BatchSource), parts: Part[] = [];
    const { plan } = this.program, target = named('the plan has no entry', entry, new Map(plan.entries.map((one) => [one.name, one])));
    const outputs = target.outputs.map((i) => plan.slots[i]!);
    try {
      let batch: Batch | undefined;
      while ((batch = await source.next(parts.length))) {
        checkCount('rows', batch.rows, 1);
        const { reading } = await this.#program.run(batch.entry ?? entry, batch.inputs, { read: outputs.map(({ name }) => name) });
        parts.push({ rows: batch.rows, values: (await reading!).values });
        await pause();
      }
    } finally {
      await source.close();
    }
    if (!parts.length) throw noBatch();
    return byName(outputs, (slot) => gather(slot, parts)) as ResultsOf<E, N>;
  }

  /** All parameters and states, for {@link Trainer.load}. */
  save(): Promise<Record<string, HostTensor>> { return this.program.save(); }

  /** The values of {@link Trainer.save} without the states of the optimizer, losses and metrics, and without integers, as of random numbers, for inference. */
  async saveParams(): Promise<Record<string, HostTensor>> {
    return forInference(await this.save());
  }

  /**
   * Resumes from the values of {@link Trainer.save}; `steps` is then the number of steps before.
   * Missing values do not change: fine-tuning starts from {@link Trainer.saveParams} of another
   * training.
   */
  async load(tensors: Readonly<Record<string, StoredTensor>>, options?: LoadOptions): Promise<void> {
    if (!Object.keys(tensors ?? {})[0]) throw new RlxError('missing', 'load: no tensors');
    const count = (name = '') => tensors[name]?.data && countIn(name, tensors[name].data);
    count('optim/step');
    const steps = count(this.#history?.count.name) ?? this.steps;
    await this.program.load(tensors, options);
    this.steps = steps;
  }
}

/** Omits the states of the optimizer, losses and metrics, and integers, which count. @internal */
export const forInference = (all: Record<string, HostTensor>): Record<string, HostTensor> => Object.fromEntries(Object.entries(all).filter(([name, { dtype }]) => !/^(optim|history|metric)\/|:[iu]\d+$/.test(`${name}:${dtype}`)));

const noBatch = () => new RlxError('missing', 'no batch: an iterator serves one run');

/** The maximal count of steps in a file: it is an i32 on the device, and must not overflow in later steps. */
const maxCount = 2 ** 30;

/** The number of steps that a state counts. */
function countIn(name: string, [n]: StoredData): number {
  if (!(n! >= 0 && n! <= maxCount)) throw new RlxError('index', `${name} is ${n}, outside [0, ${maxCount}]`, { name });
  return n as number;
}

/** Takes batches from a source. */
interface Puller {
  /** The next batch, undefined at the end or after an interruption. */
  next(step: number): Promise<Batch | undefined> | Batch | undefined;
  /** Ends the wait for a batch. */
  interrupt(): void;
  /** Closes the source, without waiting for a batch in progress. */
  close(): unknown;
}

function open(source: BatchSource, signal?: AbortSignal): Puller {
  const iterator = iterate(source);
  let stop: (() => void) | undefined; // there while a batch is waited for
  const interrupt = () => stop?.();
  signal?.addEventListener('abort', interrupt);
  return {
    next(step) {
      const next = iterator.next(step);
      if (!(next instanceof Promise)) return next.done ? undefined : next.value;
      return new Promise((resolve, reject) => {
        stop = () => resolve(undefined);
        next.finally(() => { stop = undefined; }).then(({ done, value }) => resolve(done ? undefined : value), reject);
      });
    },
    interrupt,
    close() {
      signal?.removeEventListener('abort', interrupt);
      const closing = iterator.return?.();
      return stop ? void Promise.resolve(closing).catch(() => {}) : closing;
    },
  };
}

type Batches = Iterator<Batch, unknown, number> | AsyncIterator<Batch, unknown, number>;

function iterate(source: BatchSource): Batches {
  if (typeof source === 'function') return { next: async (step: number) => ({ value: { inputs: await source(step), rows: 0 } }) };
  const begin: (() => Batches) | undefined = (source as Iterable<Batch>)?.[Symbol.iterator] ?? (source as AsyncIterable<Batch>)?.[Symbol.asyncIterator];
  need(begin, 'missing', 'batches', 'an iterable or a function', source);
  return begin.call(source);
}

/** The outputs of a batch. */
interface Part { rows: number; values: Record<string, TensorData> }

/** Makes one value of an output's values in several batches. */
function gather({ name, dtype, shape }: Slot, parts: Part[]): number | TensorData {
  const sum = (value: (x: number, rows: number) => number) => parts.reduce((total, { rows, values }) => total + value(values[name]![0]!, rows), 0);
  const rows = sum((_, rows) => rows);
  if (!shape.length) return /^[iu]/.test(dtype) ? sum((x) => x) : sum((x, rows) => x * rows) / rows;
  const width = sizeOf(shape.slice(1)), type = parts[0]!.values[name]!.constructor as { new (length: number): TensorData }, all = new type(rows * width);
  let at = 0;
  for (const { rows, values } of parts) {
    all.set(values[name]!.subarray(0, rows * width), at);
    at += rows * width;
  }
  return all;
}
