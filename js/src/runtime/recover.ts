// A program that goes on on another device when its own is lost. A page loads this file when it opens one.

import { persistentOf, type Plan } from '../plan/plan.js';
import type { Device, LoadOptions, Position, Program, Recovery, Run, RunOptions } from '../program/program.js';
import type { Input, Inputs } from '../program/types.js';
import type { TensorData } from '../values/dtype.js';
import { asError, checkCount, checkOptions, need, RlxError } from '../values/errors.js';
import { type HostTensor, type StoredTensor, Tensor } from '../values/tensor.js';
import { startWorker } from '../worker/start.js';
import { Resumable } from './resume.js';
import type { Summary, Trainer, TrainOptions } from './trainer.js';

/** Describes a training that goes on after its device was lost. */
export interface Recovered {
  /** The step of the snapshot, from which training goes on. */
  step: number;
  /** The steps since then, which are made again. */
  lostSteps: number;
  /** The error that in-flight calls were rejected with. */
  reason: RlxError;
}

/** How a program survives the loss of its device. */
export interface RecoverOptions {
  /**
   * When a training copies its states to host memory: after a number of steps, or of seconds. By default every 5 seconds, and less
   * often where a copy takes more than 1 % of the time. The states at the begin of a training are copied, too.
   */
  snapshotEvery?: { steps: number } | { seconds: number };
  /** The maximal size of a snapshot, in bytes; two of them exist while one is replaced. 1 GiB if not given. Larger states are not copied: a warning says so, and a lost device is an error. */
  memory?: number;
  /** Makes a device in place of a lost one of the caller (the option `device`). */
  device?: () => GPUDevice | Promise<GPUDevice>;
  /** Called with each snapshot, whose arrays must not be changed. */
  onSnapshot?: (snapshot: { step: number; tensors: Record<string, HostTensor> }) => void;
  /** Called before training goes on, to upload tensors again, for one. Without it a warning is written to the console. */
  onRecovered?: (event: Recovered) => void | Promise<void>;
}

/** The seconds between snapshots, the share of the time that copies may take, and the bytes of a snapshot, by default. */
const defaultSeconds = 5, maxShare = 0.01, defaultMemory = 2 ** 30;

/**
 * The waits before attempts to open a device, in milliseconds. Chromium starts its GPU process again in some 500 ms, and gives no
 * adapter for minutes after a second crash: the last attempt may take the CPU.
 */
const waits = [0, 250, 1000, 3000];

/** This many losses in `lossWindow` milliseconds end the program. */
const maxLosses = 3, lossWindow = 60_000;

/** The milliseconds after a training until its final states are copied. */
const restMs = 200;

/** Refuses options of `recover` that are unknown or outside of their domains. */
function check(recover: RecoverOptions): void {
  checkOptions('recover', recover, 'snapshotEvery memory device onSnapshot onRecovered');
  const { snapshotEvery, memory, device, onSnapshot, onRecovered } = recover, { steps, seconds } = Object(snapshotEvery) as { steps?: number; seconds?: number };
  checkOptions('recover: snapshotEvery', snapshotEvery, 'steps seconds');
  if (steps !== undefined) checkCount('recover: steps', steps, 1);
  if (snapshotEvery && steps === undefined && !(seconds! >= 0)) throw new RlxError('attr', `recover: snapshotEvery has seconds ${seconds}: give steps, or seconds from 0 on`, { name: 'snapshotEvery' });
  if (memory !== undefined) checkCount('recover: memory', memory, 0);
  for (const [name, call] of Object.entries({ device, onSnapshot, onRecovered })) need(call === undefined || typeof call === 'function', 'attr', `recover: ${name}`, 'a function', call);
}

/** Opens a program, in a worker, on a device of the caller, or on the GPU alone, if that is given. */
export type Opener = (given: { worker?: Worker; device?: GPUDevice; on?: 'gpu' }) => Promise<Program>;

/**
 * Opens a program that recovers, now and after each loss. Snapshots have the parameters and states that are `kept`: all if not given.
 * The opener restores others. @internal
 */
export async function openRecovering(open: Opener, { recover, device, worker, kept }: { recover?: boolean | RecoverOptions; device?: GPUDevice; worker?: boolean | Worker; kept?: (name: string) => boolean }): Promise<Program> {
  const options = recover === true ? {} : recover as RecoverOptions;
  check(options);
  if (device && !options.device) throw new RlxError('attr', 'recover: device is not given: it makes a device in place of yours', { name: 'device' });
  // The worker outlives the device: its script may not be there again, without a network.
  const threads = worker === true ? new Threads() : undefined;
  try {
    return new Recovering(await open({ ...threads && { worker: threads.current } }), open, options, threads, kept);
  } catch (reason) {
    threads?.end();
    throw reason;
  }
}

/** The worker of a program, until that is ended: then another one. */
class Threads {
  current = startWorker();

  renew(): void {
    this.end();
    this.current = startWorker();
  }

  end(): void { this.current.terminate(); }
}

/** The states of a program between two steps. */
interface Snapshot extends Position { tensors: Record<string, HostTensor>; /** Steps of all entries. */ programSteps: number }

/** Recovers a program: keeps snapshots, watches for losses, and opens the program again. */
class Keeper implements Recovery {
  current: Program;
  /** After a loss: resolves once there is a program again; rejects with the error that ended it. */
  ready: Promise<void> | undefined;
  error: RlxError | undefined;
  /** Steps of all entries before those of `current`. */
  before = 0;
  /** Host values of bound inputs, by entry. */
  readonly bound = new Map<string, Record<string, Input>>();
  readonly lost: Promise<RlxError>;
  #announce!: (error: RlxError) => void;
  readonly #open: Opener;
  readonly #options: RecoverOptions;
  readonly #threads: Threads | undefined;
  readonly #kept: ((name: string) => boolean) | undefined;
  #snapshot: Snapshot | undefined;
  /** Whether states were set by other calls than those of a training since the snapshot. */
  #stale = true;
  /** Counts such calls. */
  #changes = 0;
  /** No snapshot is made before `#soonest`, and none without a reason before `#next`. */
  #soonest = 0;
  #next = 0;
  #off = false;
  #running = 0;
  #resting: ReturnType<typeof setTimeout> | undefined;
  readonly #losses: number[] = [];
  /** Resolves when the callback of the last loss has returned. */
  #reports: Promise<void> = Promise.resolve();

  constructor(program: Program, open: Opener, options: RecoverOptions, threads?: Threads, kept?: (name: string) => boolean) {
    this.current = program;
    this.#open = open;
    this.#options = options;
    this.#threads = threads;
    this.#kept = kept;
    this.lost = new Promise((resolve) => { this.#announce = resolve; });
    this.#watch(program);
    const bytes = this.#slots.reduce((sum, slot) => sum + slot.bytes, 0), { memory = defaultMemory } = options;
    if (bytes > memory) this.#give(`the states take ${bytes} bytes, and recover.memory is ${memory}`);
  }

  /** Whether a parameter or state is in snapshots. */
  keeps(name: string): boolean { return this.#kept?.(name) ?? true; }

  get #slots() { return persistentOf(this.current.plan.slots).filter(({ name }) => this.keeps(name)); }

  /** The parameters and states of a snapshot. */
  async #save(program: Program): Promise<Record<string, HostTensor>> {
    if (!this.#kept) return program.save();
    const slots = this.#slots, { values } = await program.readAll(slots.map(({ name }) => name)) as { values: Record<string, TensorData> };
    return Object.fromEntries(slots.map(({ name, dtype, shape }) => [name, { dtype, shape, data: values[name] } as HostTensor]));
  }

  /** Makes no more snapshots. */
  #give(why: string): void {
    this.#off = true;
    this.#snapshot = undefined;
    console.warn(`rlx: no snapshots are made, and a lost device ends the training: ${why}`);
  }

  #watch(program: Program): void {
    void program.lost.then((error) => {
      if (program !== this.current || this.error) return;
      if (error.kind !== 'lost') return this.end(error, true);
      this.ready = this.#recover(error);
      this.ready.catch(() => {});
    });
  }

  end(error: RlxError, announce: boolean): void {
    if (this.error) return;
    this.error = error;
    this.ready = Promise.reject(error);
    this.ready.catch(() => {});
    clearTimeout(this.#resting);
    if (announce) this.#announce(error);
  }

  close(): void {
    this.end(new RlxError('closed', 'the program was closed'), false);
    this.current.close();
    this.#threads?.end();
  }

  changed(): void {
    this.#stale = true;
    this.#changes++;
  }

  due(steps: number): boolean {
    if (this.#off) return false;
    const now = performance.now(), every = (this.#options.snapshotEvery as { steps?: number } | undefined)?.steps;
    if (this.#stale) return this.#kept !== undefined || now >= this.#soonest; // what is kept is small
    return every ? steps - this.#snapshot!.steps >= every : now >= this.#next;
  }

  async take(position: Position): Promise<void> {
    const { current } = this, changes = this.#changes, begun = performance.now(), programSteps = this.before + current.steps;
    try {
      const tensors = await this.#save(current);
      if (current !== this.current || this.#off) return;
      this.#snapshot = { ...position, tensors, programSteps };
      this.#stale = changes !== this.#changes;
      this.#options.onSnapshot?.({ step: position.steps, tensors });
    } catch (reason) {
      const { kind, message } = asError(reason);
      if (kind !== 'memory' && kind !== 'limit') throw reason;
      this.#give(message);
    }
    const now = performance.now(), { seconds = defaultSeconds } = Object(this.#options.snapshotEvery) as { seconds?: number };
    this.#soonest = now + (now - begun) / maxShare;
    this.#next = Math.max(now + 1000 * seconds, 'seconds' in Object(this.#options.snapshotEvery) ? 0 : this.#soonest);
  }

  async back(from: Program): Promise<Position> {
    if (from === this.current) await from.lost;
    await this.ready;
    await this.#reports;
    return this.#snapshot!;
  }

  /** Opens the program again, with the states of the snapshot. */
  async #recover(reason: RlxError): Promise<void> {
    const now = performance.now(), losses = this.#losses, lost = this.current;
    losses.push(now);
    while (now - losses[0]! > lossWindow) losses.shift();
    try {
      if (!this.#snapshot || this.#stale) throw new RlxError('lost', 'there is no snapshot of its states');
      if (losses.length >= maxLosses) throw new RlxError('lost', `${losses.length} devices were lost within a minute`);
      const snapshot = this.#snapshot, opened = await this.#reopen(snapshot, lost.device.name, reason);
      lost.close();
      const { trainer, steps } = snapshot, lostSteps = trainer.steps - steps;
      trainer.steps = steps;
      this.before = snapshot.programSteps;
      this.current = opened;
      this.#watch(opened);
      const { onRecovered = warn } = this.#options;
      this.#reports = this.ready!.then(() => onRecovered({ step: steps, lostSteps, reason }));
      this.#reports.catch(() => {}); // it is thrown where training goes on
    } catch (cause) {
      const error = new RlxError('lost', `${reason.message}; it was not recovered: ${asError(cause).message}`, { ...reason.place, cause });
      this.end(error, true);
      throw error;
    }
  }

  /** Tries to open the program on a device; on the CPU in the last attempt only, if it was on a GPU. */
  async #reopen({ tensors }: Snapshot, name: string, reason: RlxError): Promise<Program> {
    for (const [i, wait] of waits.entries()) {
      await new Promise((resolve) => { setTimeout(resolve, wait); });
      let made: Program | undefined;
      try {
        if (this.error) throw this.error;
        const { device } = this.#options;
        if (i || reason.message.startsWith('the worker ')) this.#threads?.renew();
        made = await this.#open({ ...this.#threads && { worker: this.#threads.current }, ...device && { device: await device() }, ...name === 'webgpu' && i < waits.length - 1 && { on: 'gpu' } });
        await made.load(tensors, { allowMissing: true });
        for (const [entry, inputs] of this.bound) await made.bind(entry, inputs);
        if (this.error) throw this.error;
        return made;
      } catch (reason) {
        made?.close();
        if (this.error || i === waits.length - 1 || !['device', 'lost', 'gpu'].includes(asError(reason).kind)) throw reason;
      }
    }
    throw new RlxError('internal', 'no attempt was made');
  }

  /** Begins or ends a training. After the last one the final states are copied. */
  training(trainer: Position['trainer'], begins: boolean): void {
    this.#running += begins ? 1 : -1;
    clearTimeout(this.#resting);
    if (this.#running || this.#off || this.error || this.#snapshot?.steps === trainer.steps) return;
    const rest = () => {
      if (!this.#running && !this.error) this.take({ trainer, steps: trainer.steps }).catch(() => {}); // a loss is announced
    };
    this.#resting = setTimeout(rest, Math.max(restMs, this.#soonest - performance.now()));
    (this.#resting as { unref?(): void }).unref?.();
  }

  async run(trainer: Trainer, options: TrainOptions): Promise<Summary> {
    if (this.error) throw this.error;
    this.training(trainer, true);
    try {
      const summary = await new Resumable(this, trainer, options).run();
      if (this.#kept && this.#snapshot?.steps !== trainer.steps && !this.#off) {
        await this.take({ trainer, steps: trainer.steps }).catch((reason) => { // few bytes, before anything else changes them
          if (asError(reason).kind !== 'lost') throw reason; // `lost` or onRecovered reports that
        });
      }
      return summary;
    } finally {
      this.training(trainer, false);
    }
  }
}

/** What is said where nobody listens. */
const warn = ({ step, lostSteps, reason }: Recovered): void => {
  console.warn(`rlx: ${reason.message}: training goes on from step ${step}, ${lostSteps} steps are made again`);
};

/** The metrics of a step, which a report resets: training goes on with those of the snapshot. */
const isMetric = (name: string): boolean => name.startsWith('metric/');

/** A program whose calls go to the device of this moment. Those made during a recovery wait for it. */
class Recovering implements Program {
  readonly recovery: Keeper;

  constructor(...args: ConstructorParameters<typeof Keeper>) { this.recovery = new Keeper(...args); }

  get plan(): Plan { return this.recovery.current.plan; }
  get device(): Device { return this.recovery.current.device; }
  get steps(): number { return this.recovery.before + this.recovery.current.steps; }
  get lost(): Promise<RlxError> { return this.recovery.lost; }
  get fallbackReason(): string { return this.recovery.current.fallbackReason!; }

  async #now(): Promise<Program> {
    await this.recovery.ready;
    return this.recovery.current;
  }

  /** A call after which a snapshot is no longer that of the states. */
  #change(): Promise<Program> {
    this.recovery.changed();
    return this.#now();
  }

  /** Whether an entry sets states that snapshots have. */
  #sets(entry: string): boolean {
    const { plan } = this;
    for (const { name, sets } of plan.entries) if (name === entry) for (const i of sets) if (this.recovery.keeps(plan.slots[i]!.name)) return true;
    return false;
  }

  run(entry: string, inputs?: Inputs, options?: RunOptions): Promise<Run<any>> {
    const { ready, current } = this.recovery;
    if (this.#sets(entry)) this.recovery.changed();
    return ready ? this.#runAfterLoss(entry, inputs, options) : current.run(entry, inputs, options);
  }

  async #runAfterLoss(entry: string, inputs?: Inputs, options?: RunOptions): Promise<Run<any>> {
    const { before } = this.recovery, { step, reading } = await (await this.#now()).run(entry, inputs, options) as Run;
    return { step: before + step, reading: reading?.then((read) => ({ ...read, step: before + read.step })) } as Run<any>;
  }

  async bind(entry: string, inputs: Inputs): Promise<void> {
    const { bound } = this.recovery, copies = Object.fromEntries(Object.entries(inputs ?? {}).map(([name, value]) => [name, copyOf(value)]));
    await (await this.#now()).bind(entry, inputs);
    bound.set(entry, Object.fromEntries(Object.entries({ ...bound.get(entry), ...copies }).filter(([, value]) => value !== undefined)) as Record<string, Input>);
  }

  async read(name: string): Promise<TensorData> { return (await this.#now()).read(name); }
  async readAll(names: readonly string[]): Promise<any> {
    const reading = await (await this.#now()).readAll(names);
    return { ...reading, step: this.recovery.before + reading.step };
  }

  async write(name: string, value: Input): Promise<void> { return (await (isMetric(name) || !this.recovery.keeps(name) ? this.#now() : this.#change())).write(name, value); }
  async upload(tensor: HostTensor): Promise<Tensor> { return (await this.#now()).upload(tensor); }
  async keep(name: string): Promise<Tensor> { return (await this.#now()).keep(name); }
  async save(): Promise<Record<string, HostTensor>> { return (await this.#now()).save(); }
  async load(tensors: Readonly<Record<string, StoredTensor>>, options?: LoadOptions): Promise<void> { return (await this.#change()).load(tensors, options); }

  close(): void { this.recovery.close(); }
}

/** A copy of a host value; undefined for a tensor, which is gone with its device. */
function copyOf(value: Input): Input | undefined {
  if (value instanceof Tensor) return undefined;
  if (ArrayBuffer.isView(value)) return value.slice();
  const { data, shape } = Object(value) as { data?: TensorData; shape: readonly number[] };
  return data ? { data: data.slice(), shape } : value;
}
