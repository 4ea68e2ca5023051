// Programs that share parameters and states: entries without open sizes, and those with open sizes for some of them.

import type { Entry, Plan, Slot } from '../plan/plan.js';
import type { Device, LoadOptions, Program, Reading, Run, RunOptions } from '../program/program.js';
import type { EntryTypes, Input, Inputs, SymbolsOf } from '../program/types.js';
import { checkType, sizeOf, type TensorData } from '../values/dtype.js';
import { RlxError, unknownName } from '../values/errors.js';
import { type HostTensor, type StoredTensor, Tensor } from '../values/tensor.js';
import { cropped, padded } from './box.js';
import { type Bucket, Buckets } from './buckets.js';
import { type Host, isState } from './device.js';
import { keyOf, missing, type OpenCall, type OpenEntry, sizePrefix, type Sizes, Unfit } from './entry.js';

/** A program with open sizes. */
export interface SizedProgram<E extends EntryTypes = any> extends Program<E> {
  /** The number of sizes that are ready. */
  readonly compiled: number;
  /** Prepares an entry for sizes of its symbols, before the first call with them. */
  prepare<N extends keyof E & string>(entry: N, sizes: { readonly [S in SymbolsOf<E[N]>]: number }): Promise<void>;
}

/** The plans of a family. */
export interface Plans {
  /** The number of programs for open sizes to keep, besides those in use. */
  readonly buckets: number;
  /**
   * The plan of an entry for a call, for one target. Rejects with {@link Unfit} if the padded graph cannot have the
   * sizes, after which the call is made without padding.
   */
  plan(entry: OpenEntry, call: OpenCall): Promise<Plan>;
}

/** More runs of a program than can wait for a reading. */
const maxPending = 1024;

/** The entry of all plans that declares the parameters and states, in one order. */
export const holder = 'rlx.hold';

/** A program's plan, its entries, and, by its own step numbers, the numbers of steps of all programs. */
interface Known { plan: Plan; entries: ReadonlyMap<string, Entry>; steps: Map<number, number>; /** The memory of padded inputs. */ padded: Map<string, TensorData> }

/** Programs that share parameters and states. */
export class Family implements SizedProgram {
  readonly lost: Promise<RlxError>;
  readonly fallbackReason?: string;
  steps = 0;

  readonly #plans: Plans;
  readonly #host: Host;
  readonly #open = new Map<string, OpenEntry>();
  /** The programs of entries without open sizes, by entry. */
  readonly #closed = new Map<string, { program: Program; writes: boolean }>();
  /** The first of them, from which parameters and states are read. */
  #base!: Program;
  readonly #permanent: Program[] = [];
  readonly #buckets: Buckets;
  readonly #known = new Map<Program, Known>();
  readonly #bound = new Map<string, Inputs>();
  /** The parameters that have a value. */
  readonly #set = new Set<string>();
  #last: { program: Program; bucket?: Bucket; call?: OpenCall } | undefined;
  #error: RlxError | undefined;
  #announce!: (error: RlxError) => void;
  /** The end of the calls so far, which happen one after the other. */
  #tail: Promise<unknown> = Promise.resolve();

  /** Programs on a host; {@link Family.addClosed} adds the first. */
  constructor(plans: Plans, host: Host) {
    this.#plans = plans;
    this.#host = host;
    this.#buckets = new Buckets(plans.buckets, (program) => void this.#later(() => this.#drop(program)).catch(() => {}).finally(() => program.close()));
    this.lost = new Promise((resolve) => { this.#announce = resolve; });
    if (host.fallbackReason !== undefined) this.fallbackReason = host.fallbackReason;
  }

  /** Adds the entries of a plan, with whether they change parameters or states. */
  async addClosed(plan: Plan, entries: ReadonlyMap<string, boolean>): Promise<void> {
    const program = await this.#openPlan(plan);
    this.#base ??= program;
    for (const [name, writes] of entries) this.#closed.set(name, { program, writes });
    this.#permanent.push(program);
  }

  /** Adds entries with open sizes. */
  addOpen(entries: Iterable<OpenEntry>): void { for (const entry of entries) this.#open.set(entry.name, entry); }

  /** Whether there is an entry of a name. */
  has(entry: string): boolean { return this.#open.has(entry) || this.#closed.has(entry); }

  /** Opens a plan that has the parameters and states of all. */
  async #openPlan(plan: Plan): Promise<Program> {
    this.check();
    const program = await this.#host.open(sharing(plan));
    if (this.#error) {
      program.close();
      throw this.#error;
    }
    this.#known.set(program, { plan, entries: new Map(plan.entries.map((entry) => [entry.name, entry])), steps: new Map(), padded: new Map() });
    void program.lost.then((error) => this.#fail(error));
    return program;
  }

  get plan(): Plan {
    const { plan } = this.#base;
    return { ...plan, entries: plan.entries.filter(({ name }) => name !== holder) };
  }

  get device(): Device { return this.#base.device; }

  get compiled(): number { return this.#buckets.size; }

  /** Throws once the program is closed or lost. */
  check(): void { if (this.#error) throw this.#error; }

  #fail(error: RlxError): void {
    if (this.#error) return;
    this.#end(error);
    this.#announce(error);
  }

  #end(error: RlxError): void {
    this.#error = error;
    for (const program of [...this.#buckets.programs, ...this.#permanent]) program.close();
    this.#host.close();
  }

  /** Makes a call after those before it. */
  #later<T>(call: () => Promise<T>): Promise<T> {
    const turn = this.#tail.then(() => {
      this.check();
      return call();
    });
    this.#tail = turn.catch(() => {});
    return turn;
  }

  /** Takes the newest values from a program that is to be closed. */
  async #drop(program: Program): Promise<void> {
    await this.#host.update(this.#base);
    this.#host.forget(program);
    this.#known.delete(program);
  }

  /** The compiled bucket of a call, whose user releases it. */
  async #acquire(entry: OpenEntry, call: OpenCall): Promise<Bucket> {
    const { bound, crops } = call, sizes = crops ? bound : call.sizes;
    const bucket = this.#buckets.acquire(`${entry.name} ${crops ? '' : 'exact '}${keyOf(entry.symbols, sizes)}`, async () => this.#openPlan(await this.#plans.plan(entry, call)));
    try {
      await bucket.ready;
      return bucket;
    } catch (reason) {
      this.#buckets.release(bucket);
      if (!(reason instanceof Unfit)) throw reason;
      delete call.crops;
      return this.#acquire(entry, call);
    }
  }

  #unknown(entry: string): RlxError { return unknownName('the program has no entry', entry, [...this.#closed.keys(), ...this.#open.keys()]); }

  async prepare(entry: string, sizes: Sizes): Promise<void> {
    this.check();
    const open = this.#open.get(entry);
    if (!this.has(entry)) throw this.#unknown(entry);
    if (!open) return;
    this.#buckets.release(await this.#acquire(open, await open.call(open.given(sizes))));
  }

  async run(name: string, inputs?: Inputs | null, options?: RunOptions | null): Promise<Run<any>> {
    return this.#later(() => this.#run(name, { ...this.#bound.get(name), ...inputs }, options));
  }

  async #run(name: string, inputs: Inputs, options: RunOptions | null | undefined): Promise<Run<any>> {
    const open = this.#open.get(name), closed = this.#closed.get(name);
    if (!open) {
      if (!closed) throw this.#unknown(name);
      const run = await this.#runOn(closed.program, name, closed.writes, inputs, options);
      this.#keep(closed.program);
      return run;
    }
    const call = await open.call(open.sizes(inputs)), bucket = await this.#acquire(open, call);
    let reading: Promise<Reading> | undefined;
    try {
      const program = await bucket.ready, given = call.crops ? await this.#padded(program, open, call, inputs) : inputs;
      const run = await this.#runOn(program, name, open.writes, given, options, call);
      this.#keep(program, bucket, call);
      reading = run.reading;
      return run;
    } finally {
      void Promise.resolve(reading).catch(() => {}).then(() => this.#buckets.release(bucket));
    }
  }

  /** The inputs of a padded graph: those with open sizes, padded with zeros, and true sizes. */
  async #padded(program: Program, entry: OpenEntry, call: OpenCall, inputs: Inputs): Promise<Inputs> {
    const { plan: { slots }, entries, padded: memory } = this.#known.get(program)!, { inputs: arrays, scalars } = entries.get(entry.name)!, made: Record<string, Input> = { ...inputs };
    const ports = [...arrays, ...scalars].map((i) => slots[i]!), names = ports.map(({ name }) => name).filter((name) => name.startsWith(sizePrefix));
    const { values, shapes } = await entry.measured(call, names, inputs);
    Object.assign(made, values);
    for (const { name, dtype, shape } of ports) {
      const dims = shapes.get(name), value = inputs[name]!;
      if (!dims || `${dims}` === `${shape}`) continue;
      const data = value instanceof Tensor ? await value.data() : 'shape' in Object(value) ? (value as HostTensor).data : value as TensorData;
      checkType(`${entry.name}: ${name}`, dtype, data);
      if (data.length !== sizeOf(dims)) throw new RlxError('shape', `${entry.name}: ${name} has ${data.length} elements: it must be ${dtype}[${dims}] of ${sizeOf(dims)}`, { op: entry.name, name, shape: [data.length], expected: dims });
      const wide = padded(data, dims, shape, memory.get(name));
      memory.set(name, wide);
      made[name] = { shape, data: wide };
    }
    return made;
  }

  /** Keeps the program of the last run, so that its outputs can be read. */
  #keep(program: Program, bucket?: Bucket, call?: OpenCall): void {
    const before = this.#last?.bucket;
    if (bucket) bucket.users++;
    this.#last = { program, ...bucket && { bucket }, ...call && { call } };
    if (before) this.#buckets.release(before);
  }

  async #runOn(program: Program, name: string, writes: boolean, inputs: Inputs, options: RunOptions | null | undefined, call?: OpenCall): Promise<Run<any>> {
    const { plan, entries, steps } = this.#known.get(program)!, entry = entries.get(name)!, slot = (i: number): Slot => plan.slots[i]!;
    for (const one of entry.reads.map(slot)) if (!this.#set.has(one.name)) throw missing(name, 'load it', one);
    await this.#host.update(program);
    const own = new OwnTensors(program, this.#base, inputs);
    let run: Run<any>;
    try {
      run = await program.run(name, own.inputs, options as RunOptions);
    } finally {
      own.dispose();
    }
    for (const one of entry.sets.map(slot)) this.#set.add(one.name);
    if (writes) this.#host.changed(program);
    steps.set(run.step, this.steps += options?.steps ?? 1);
    if (steps.size > maxPending) steps.delete(steps.keys().next().value!);
    const reading = run.reading?.then(({ step, values }: Reading) => ({ step: steps.get(step)!, values: croppedAll(values, call) }));
    reading?.catch(() => {}); // the caller may not handle it
    return { step: this.steps, reading };
  }

  async bind(entry: string, inputs: Inputs): Promise<void> {
    this.check();
    if (!this.has(entry)) throw this.#unknown(entry);
    this.#bound.set(entry, { ...this.#bound.get(entry), ...Object.fromEntries(Object.entries(inputs ?? {}).map(([name, value]) => [name, copied(value)])) });
  }

  /** The program to read values from, and its call: outputs are those of the last run. */
  async #reader(names: readonly string[]): Promise<{ program: Program; call?: OpenCall }> {
    const states = new Set(statesOf(this.#base.plan).map(({ name }) => name));
    const reader = Array.isArray(names) && names.every((name) => states.has(name)) ? undefined : this.#last;
    await this.#host.update(reader?.program ?? this.#base);
    return reader ?? { program: this.#base };
  }

  async read(name: string): Promise<any> { return (await this.readAll([name])).values[name]!; }

  async readAll(names: readonly string[]): Promise<Reading<any>> {
    return this.#later(async () => {
      const step = this.steps, { program, call } = await this.#reader(names), { values } = await program.readAll(names);
      return { step, values: croppedAll(values, call) };
    });
  }

  async write(name: string, value: Input): Promise<void> {
    return this.#later(async () => {
      await this.#host.update(this.#base);
      await this.#base.write(name, value);
      this.#host.changed(this.#base);
      this.#set.add(name);
    });
  }

  async upload(tensor: HostTensor): Promise<Tensor> { return this.#later(() => this.#base.upload(tensor)); }

  /** A copy of a value: one of another program's outputs goes through the host. */
  async keep(name: string): Promise<Tensor> {
    return this.#later(async () => {
      const { program, call } = await this.#reader([name]), kept = await program.keep(name), crop = call?.crops?.get(name);
      if (program === this.#base) return kept;
      try {
        const data = await kept.data();
        return await this.#base.upload({ dtype: kept.dtype, shape: crop?.dims ?? kept.shape, data: crop ? cropped(data, crop) : data });
      } finally {
        kept.dispose();
      }
    });
  }

  async save(): Promise<Record<string, HostTensor>> {
    return this.#later(async () => {
      await this.#host.update(this.#base);
      return this.#base.save();
    });
  }

  async load(tensors: Readonly<Record<string, StoredTensor>>, options?: LoadOptions): Promise<void> {
    return this.#later(async () => {
      await this.#host.update(this.#base);
      await this.#base.load(tensors, options);
      this.#host.changed(this.#base);
      for (const name in tensors) this.#set.add(name);
    });
  }

  close(): void { if (!this.#error) this.#end(new RlxError('closed', 'the program was closed')); }
}

/**
 * A plan whose memory others have initialised: entries' requirements are checked for all programs
 * together, and states keep their values.
 */
const sharing = (plan: Plan): Plan => ({
  ...plan, constants: plan.constants.filter(({ buffer }) => plan.buffers[buffer]!.kind !== 'state'), entries: plan.entries.map((entry) => ({ ...entry, reads: [] })),
});

/** The values of a call, outputs with their true elements. */
const croppedAll = (values: Readonly<Record<string, TensorData>>, call: OpenCall | undefined): Record<string, TensorData> =>
  Object.fromEntries(Object.entries(values).map(([name, data]) => {
    const crop = call?.crops?.get(name);
    return [name, crop ? cropped(data, crop) : data];
  }));

export const statesOf = ({ slots }: Plan): Slot[] => slots.filter(isState);

/** Inputs for a program: tensors of another program on the same device are used in place. */
class OwnTensors {
  readonly inputs: Record<string, Input> = {};
  readonly #made: Tensor[] = [];

  constructor(program: Program, owner: Program, given: Inputs) {
    for (const [name, value] of Object.entries(given)) {
      if (value instanceof Tensor && program !== owner) {
        const { dtype, shape } = value, made = new Tensor({ dtype, shape, owner: program, handle: value.handleOf(owner), data: () => value.data(), free() {} });
        this.#made.push(made);
        this.inputs[name] = made;
      } else {
        this.inputs[name] = value;
      }
    }
  }

  dispose(): void { for (const one of this.#made) one.dispose(); }
}

/** A copy of an input that later runs use: the caller may change its arrays. */
function copied(value: Input): Input {
  if (value instanceof Tensor || typeof value !== 'object') return value;
  return 'shape' in value ? { ...value, data: value.data.slice() } : value.slice() as Input;
}
