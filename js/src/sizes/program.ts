// Programs with open sizes: a call binds them by the shapes of its inputs.

import { compileJob, jobOf } from '../compile/train.js';
import { init, initOptions, type Limits, openCheck } from '../compile/compiler.js';
import { asyncAtCaller } from '../graph/caller-stack.js';
import { Graph, graph, parseGraph } from '../graph/graph.js';
import { declaredParams } from '../graph/params.js';
import { decodePlan } from '../plan/decode.js';
import type { Entry, Plan, Slot } from '../plan/plan.js';
import type { Device, LoadOptions, Program, Reading, Run, RunOptions } from '../program/program.js';
import type { EntryTypes, Input, Inputs, SymbolsOf, TypesOfGraphs } from '../program/types.js';
import { checkPlace, type ProgramOptions } from '../runtime/open.js';
import { checkType, sizeOf, type TensorData } from '../values/dtype.js';
import { checkCount, checkOptions, classOf, RlxError, unknownName } from '../values/errors.js';
import { type HostTensor, type StoredTensor, Tensor } from '../values/tensor.js';
import type { WasmSource } from '../wasm/module.js';
import { cropped, padded } from './box.js';
import { type Bucket, Buckets } from './buckets.js';
import { type Host, hostFor, isState } from './device.js';
import { checkSizes, isOpen, keyOf, missing, type OpenCall, OpenEntry, type Size, Unfit } from './entry.js';
import { Padding, sizePrefix, type Sizes } from './padding.js';

/** Graphs that may have open sizes and are compiled when calls need them. Entries share parameters and states. */
export interface OpenModule {
  /** The plans' name, `main` by default. */
  name?: string;
  /** Graphs, or their text form. */
  entries: Readonly<Record<string, Graph | string>>;
  /** The sizes that symbols are compiled for. The powers of two of any size if not given. */
  sizes?: Readonly<Record<string, Size>>;
  /** The number of compiled sizes to keep, besides those in use. 16 by default. */
  buckets?: number;
  /** The device's capabilities; by default those of every WebGPU device. */
  limits?: Limits;
}

/** Options of a program with open sizes, which runs in this thread. */
export interface OpenOptions extends Omit<ProgramOptions, 'worker' | 'code'> {
  /** The WebAssembly module that pads, if it is not the `sizes.wasm` next to this script. It is loaded unless all sizes are exact. */
  padding?: WasmSource;
}

/** A program with open sizes. */
export interface OpenProgram<E extends EntryTypes = any> extends Program<E> {
  /** The number of sizes that are compiled. */
  readonly compiled: number;
  /** Compiles an entry for sizes of its symbols, before the first call with them. */
  prepare<N extends keyof E & string>(entry: N, sizes: { readonly [S in SymbolsOf<E[N]>]: number }): Promise<void>;
  /** Adds entries, which share the program's parameters and states. */
  add<const G extends OpenModule['entries']>(entries: G): Promise<OpenProgram<E & TypesOfGraphs<G>>>;
}

/** More runs of a program than can wait for a reading. */
const maxPending = 1024;

/** The entry of all plans that declares the parameters and states, in one order. */
const holder = 'rlx.hold';

/**
 * A program on graphs that may have open sizes. A call binds them by the shapes of its inputs, and
 * is padded to the next sizes to compile for: the powers of two, or others by `sizes`. They are compiled
 * the first time that they come. Results have the elements of a program for the true sizes, up to the order of
 * sums. All sizes share parameters and states, on a GPU in the same memory. The program
 * runs in this thread, and on the CPU computes in it alone. A tensor on the device is padded in host memory.
 *
 * Rejects with an {@link RlxError}: `unsupported` for a graph that padding would change, which exact sizes compile;
 * `symbol` for an open size of anything but an input.
 *
 * ```ts
 * const program = await openSizes({ entries: { predict: model }, sizes: { batch: { max: 64 } } });
 * await program.load(weights);
 * const { reading } = await program.run('predict', { x: { shape: [3, 784], data } }, { read: ['y'] });
 * ```
 */
export async function openSizes<const G extends OpenModule['entries']>(module: OpenModule & { entries: G }, options: OpenOptions = {}): Promise<OpenProgram<TypesOfGraphs<G>>> {
  return asyncAtCaller(openSizes, () => openOn(module, options) as Promise<OpenProgram<any>>);
}

async function openOn(module: OpenModule, given: OpenOptions): Promise<OpenProgram> {
  checkOptions('openSizes', module, 'name entries sizes buckets limits');
  checkOptions('openSizes', given, 'on device gpu powerPreference maxSteps memory inFlight staging drafts padding');
  const { on = 'best', padding, ...rest } = given ?? {}, { name = 'main', sizes = {}, buckets = 16, limits = {} } = module ?? {} as OpenModule;
  checkPlace(on);
  checkCount('buckets', buckets, 1);
  await init();
  const check = openCheck(), graphs = graphsOf(module?.entries);
  const open = openEntriesOf(graphs, sizes);
  checkSizes(sizes, open.values());
  const { gpu, device, powerPreference } = initOptions();
  const host = await hostFor({ ...gpu && { gpu }, ...device && { device }, ...powerPreference && { powerPreference }, ...rest, on }, limits);
  try {
    const made = new Family({ name, sizes, buckets, limits, check, padding: new Padding(padding) }, host, holderOf(name, graphs.values()));
    await made.start(graphs, open);
    return made;
  } catch (reason) {
    host.close();
    throw reason;
  }
}

function graphsOf(entries: OpenModule['entries']): Map<string, Graph> {
  if (Object(entries) !== entries) throw new RlxError('missing', `the entries of a module are ${classOf(entries)}: they must be graphs by name`);
  return new Map(Object.entries(entries).map(([entry, one]) => {
    if (typeof one !== 'string' && !(one instanceof Graph)) throw new RlxError('missing', `entry ${entry} is ${classOf(one)}: it must be a graph or its text`, { name: entry });
    return [entry, typeof one === 'string' ? parseGraph(one) : one];
  }));
}

const openEntriesOf = (graphs: ReadonlyMap<string, Graph>, sizes: Readonly<Record<string, Size>>): Map<string, OpenEntry> =>
  new Map([...graphs].filter(([, one]) => isOpen(one)).map(([name, one]) => [name, new OpenEntry(name, one, sizes)]));

/** The text of a graph that declares all parameters and states of graphs, so that each plan has them at the same places. */
function holderOf(name: string, graphs: Iterable<Graph>): string {
  const ports = new Map<string, Graph['ports'][number]>();
  for (const port of [...graphs].flatMap((one) => one.ports)) {
    if (port.kind !== 'input' && (port.kind === 'param' || !ports.has(port.name))) ports.set(port.name, port);
  }
  const made = graph(name, (b) => {
    for (const { name: port, kind, dtype, shape } of ports.values()) {
      b.setState(port, kind === 'param' ? b.param(port, dtype as 'f32', shape) : b.state(port, dtype as 'f32', shape));
    }
    b.output(holder, b.full('i32', [], 0));
  });
  const text = made.text();
  made.free();
  return text;
}

/** A program's plan, its entries, and, by its own step numbers, the numbers of steps of all programs. */
interface Known { plan: Plan; entries: ReadonlyMap<string, Entry>; steps: Map<number, number>; /** The memory of padded inputs. */ padded: Map<string, TensorData> }

/** The options by which all programs of a module are compiled. */
interface Settings { name: string; sizes: Readonly<Record<string, Size>>; buckets: number; limits: Limits; padding: Padding; check(): void }

/** Programs that share parameters and states. */
class Family implements OpenProgram {
  readonly lost: Promise<RlxError>;
  readonly fallbackReason?: string;
  steps = 0;

  readonly #settings: Settings;
  readonly #host: Host;
  readonly #holder: string;
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

  constructor(settings: Settings, host: Host, holderText: string) {
    this.#settings = settings;
    this.#host = host;
    this.#holder = holderText;
    this.#buckets = new Buckets(settings.buckets, (program) => void this.#later(() => this.#drop(program)).catch(() => {}).finally(() => program.close()));
    this.lost = new Promise((resolve) => { this.#announce = resolve; });
    if (host.fallbackReason !== undefined) this.fallbackReason = host.fallbackReason;
  }

  /** Compiles the entries without open sizes, and sets parameters that declare a value. @internal */
  async start(graphs: ReadonlyMap<string, Graph>, open: ReadonlyMap<string, OpenEntry>): Promise<void> {
    await this.#analyze(open);
    this.#base = await this.#addClosed(graphs, open);
    await this.load(declaredParams(Object.fromEntries(graphs)), { allowMissing: true });
  }

  async #analyze(open: ReadonlyMap<string, OpenEntry>): Promise<void> {
    for (const entry of open.values()) await entry.analyze(this.#settings.padding);
  }

  async #addClosed(graphs: ReadonlyMap<string, Graph>, open: ReadonlyMap<string, OpenEntry>): Promise<Program> {
    const closed = [...graphs].filter(([name]) => !open.has(name));
    const program = await this.#compile(Object.fromEntries(closed.map(([name, one]) => [name, one.text()])), {});
    for (const [name, one] of closed) this.#closed.set(name, { program, writes: one.outputs.some(({ state }) => state) });
    for (const [name, one] of open) this.#open.set(name, one);
    this.#permanent.push(program);
    return program;
  }

  /** Compiles entries, and opens a program that has the states of all. */
  async #compile(entries: Readonly<Record<string, string>>, symbols: Sizes): Promise<Program> {
    const { name, limits, check } = this.#settings, { target, device } = this.#host;
    const job = jobOf({ name, entries: { [holder]: this.#holder, ...entries }, symbols, target, limits: { ...device !== undefined && { device }, ...limits } });
    const plan = decodePlan(await compileJob({ job, check }, {}));
    this.#check();
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

  #check(): void { if (this.#error) throw this.#error; }

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
      this.#check();
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
    const bucket = this.#buckets.acquire(`${entry.name} ${crops ? '' : 'exact '}${keyOf(entry.symbols, sizes)}`, async () =>
      crops ? this.#compile({ [entry.name]: await entry.padded(call) }, {}) : this.#compile({ [entry.name]: entry.text }, sizes));
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
    this.#check();
    const open = this.#open.get(entry);
    if (!open && !this.#closed.has(entry)) throw this.#unknown(entry);
    if (!open) return;
    this.#buckets.release(await this.#acquire(open, await open.call(open.given(sizes))));
  }

  async add(entries: OpenModule['entries']): Promise<any> {
    this.#check();
    const graphs = graphsOf(entries), known = new Map(statesOf(this.#base.plan).map((slot) => [slot.name, slot]));
    for (const [name, one] of graphs) {
      if (this.#open.has(name) || this.#closed.has(name)) throw new RlxError('name', `the program has an entry ${name} already`, { name });
      for (const port of one.ports) if (port.kind !== 'input') checkShared(name, port, known);
    }
    const open = openEntriesOf(graphs, this.#settings.sizes);
    await this.#analyze(open);
    if (open.size < graphs.size) await this.#addClosed(graphs, open);
    else for (const [name, one] of open) this.#open.set(name, one);
    return this;
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
    this.#check();
    if (!this.#open.has(entry) && !this.#closed.has(entry)) throw this.#unknown(entry);
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

const statesOf = ({ slots }: Plan): Slot[] => slots.filter(isState);

/** Refuses a parameter or state of an entry that the program lacks, or has of another type. */
function checkShared(op: string, { name, dtype, shape }: Graph['ports'][number], known: ReadonlyMap<string, Slot>): void {
  const slot = known.get(name);
  if (!slot) throw unknownName(`add: entry ${op} has a parameter or state that the program lacks:`, name, known.keys(), op);
  if (slot.dtype !== dtype) throw new RlxError('dtype', `add: ${name} of entry ${op} is ${dtype}: it must be ${slot.dtype}`, { op, name });
  if (`${slot.shape}` !== `${shape}`) throw new RlxError('shape', `add: ${name} of entry ${op} has the shape [${shape}]: it must be ${dtype}[${slot.shape}]`, { op, name, expected: slot.shape });
}

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
