// Programs with open sizes: a call binds them by the shapes of its inputs.

import { compileJob, jobOf } from '../compile/train.js';
import { init, initOptions, type Limits, openCheck, type Target } from '../compile/compiler.js';
import { asyncAtCaller } from '../graph/caller-stack.js';
import { Graph, graph, parseGraph } from '../graph/graph.js';
import { declaredParams } from '../graph/params.js';
import { decodePlan } from '../plan/decode.js';
import type { Plan, Slot } from '../plan/plan.js';
import type { BySymbol, EntryTypes, TypesOfGraphs } from '../program/types.js';
import { checkPlace, type ProgramOptions } from '../runtime/open.js';
import { checkCount, checkOptions, classOf, RlxError, unknownName } from '../values/errors.js';
import type { WasmSource } from '../wasm/module.js';
import { hostFor } from './choose.js';
import type { Host } from './device.js';
import { type OpenCall, OpenEntry, type Sizes } from './entry.js';
import { Family, holder, type Plans, type SizedProgram, statesOf } from './family.js';
import { checkSizes, GraphSizing, isOpen, openInputs, type Size } from './graph.js';
import { Padding } from './padding.js';

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
export interface OpenProgram<E extends EntryTypes = any> extends SizedProgram<E> {
  /** Adds entries, which share the program's parameters and states. */
  add<const G extends OpenModule['entries']>(entries: G): Promise<OpenProgram<E & TypesOfGraphs<G>>>;
}

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
export async function openSizes<const G extends OpenModule['entries']>(module: Omit<OpenModule, 'entries' | 'sizes'> & { entries: G; sizes?: BySymbol<TypesOfGraphs<G>, Size> }, options: OpenOptions = {}): Promise<OpenProgram<TypesOfGraphs<G>>> {
  return asyncAtCaller(openSizes, () => openOn(module as OpenModule, options) as Promise<OpenProgram<any>>);
}

async function openOn(module: OpenModule, given: OpenOptions): Promise<OpenProgram> {
  checkOptions('openSizes', module, 'name entries sizes buckets limits');
  checkOptions('openSizes', given, 'on device gpu powerPreference maxSteps memory inFlight staging drafts padding');
  const { on = 'best', padding, ...rest } = given ?? {}, { name = 'main', sizes = {}, buckets = 16, limits = {} } = module ?? {} as OpenModule;
  checkPlace(on);
  checkCount('buckets', buckets, 1);
  await init();
  const check = openCheck(), graphs = graphsOf(module?.entries);
  const padder = new Padding(padding), open = openEntriesOf(graphs, sizes, padder);
  checkSizes(sizes, [...open.values()].map(({ entry }) => entry));
  const { gpu, device, powerPreference } = initOptions();
  const { host, ...place } = await hostFor({ ...gpu && { gpu }, ...device && { device }, ...powerPreference && { powerPreference }, ...rest, on }, limits);
  try {
    const compiler = new Compiled({ name, buckets, sizes, limits: { ...place.device !== undefined && { device: place.device }, ...limits }, target: place.target, check, padder }, holderOf(name, graphs.values()));
    const made = new CompiledFamily(compiler, host);
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

/** An entry with open sizes and its graph. */
interface OpenGraph { entry: OpenEntry; sizing: GraphSizing }

const openEntriesOf = (graphs: ReadonlyMap<string, Graph>, sizes: Readonly<Record<string, Size>>, padding: Padding): Map<string, OpenGraph> =>
  new Map([...graphs].filter(([, one]) => isOpen(one)).map(([name, one]) => {
    const sizing = new GraphSizing(name, one, sizes, padding);
    return [name, { entry: new OpenEntry({ name, inputs: openInputs(one), symbols: sizing.symbols }, sizing, one.outputs.some(({ state }) => state)), sizing }];
  }));

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

/** The options by which all programs of a module are compiled. */
interface Settings { name: string; buckets: number; sizes: Readonly<Record<string, Size>>; limits: Limits; target: Target; padder: Padding; check(): void }

/** Compiles the plans of a family. */
class Compiled implements Plans {
  readonly settings: Settings;
  readonly buckets: number;
  readonly #holder: string;
  readonly #graphs = new Map<string, GraphSizing>();

  constructor(settings: Settings, holderText: string) {
    this.settings = settings;
    this.buckets = settings.buckets;
    this.#holder = holderText;
  }

  /** Finds out how to pad graphs, whose entries can then be compiled. */
  async analyze(open: ReadonlyMap<string, OpenGraph>): Promise<void> {
    for (const [name, { sizing }] of open) {
      await sizing.analyze();
      this.#graphs.set(name, sizing);
    }
  }

  async plan({ name }: OpenEntry, { crops, bound, sizes }: OpenCall): Promise<Plan> {
    const one = this.#graphs.get(name)!;
    return crops ? this.compile({ [name]: await one.padded(bound) }, {}) : this.compile({ [name]: one.text }, sizes);
  }

  /** A plan of entries that has the parameters and states of all. */
  async compile(entries: Readonly<Record<string, string>>, symbols: Sizes): Promise<Plan> {
    const { name, target, limits, check } = this.settings, job = jobOf({ name, entries: { [holder]: this.#holder, ...entries }, symbols, target, limits });
    return decodePlan(await compileJob({ job, check }, {}));
  }
}

class CompiledFamily extends Family implements OpenProgram {
  readonly #compiler: Compiled;

  constructor(compiler: Compiled, host: Host) {
    super(compiler, host);
    this.#compiler = compiler;
  }

  /** Compiles the entries without open sizes, and sets parameters that declare a value. */
  async start(graphs: ReadonlyMap<string, Graph>, open: ReadonlyMap<string, OpenGraph>): Promise<void> {
    await this.#compiler.analyze(open);
    await this.#addGraphs(graphs, open);
    await this.load(declaredParams(Object.fromEntries(graphs)), { allowMissing: true });
  }

  async #addGraphs(graphs: ReadonlyMap<string, Graph>, open: ReadonlyMap<string, OpenGraph>): Promise<void> {
    const closed = [...graphs].filter(([name]) => !open.has(name));
    const plan = await this.#compiler.compile(Object.fromEntries(closed.map(([name, one]) => [name, one.text()])), {});
    await this.addClosed(plan, new Map(closed.map(([name, one]) => [name, one.outputs.some(({ state }) => state)])));
    this.addOpen([...open.values()].map(({ entry }) => entry));
  }

  async add(entries: OpenModule['entries']): Promise<any> {
    this.check();
    const graphs = graphsOf(entries), known = new Map(statesOf(this.plan).map((slot) => [slot.name, slot]));
    for (const [name, one] of graphs) {
      if (this.has(name)) throw new RlxError('name', `the program has an entry ${name} already`, { name });
      for (const port of one.ports) if (port.kind !== 'input') checkShared(name, port, known);
    }
    const { sizes, padder } = this.#compiler.settings, open = openEntriesOf(graphs, sizes, padder);
    await this.#compiler.analyze(open);
    if (open.size < graphs.size) await this.#addGraphs(graphs, open);
    else this.addOpen([...open.values()].map(({ entry }) => entry));
    return this;
  }
}

/** Refuses a parameter or state of an entry that the program lacks, or has of another type. */
function checkShared(op: string, { name, dtype, shape }: Graph['ports'][number], known: ReadonlyMap<string, Slot>): void {
  const slot = known.get(name);
  if (!slot) throw unknownName(`add: entry ${op} has a parameter or state that the program lacks:`, name, known.keys(), op);
  if (slot.dtype !== dtype) throw new RlxError('dtype', `add: ${name} of entry ${op} is ${dtype}: it must be ${slot.dtype}`, { op, name });
  if (`${slot.shape}` !== `${shape}`) throw new RlxError('shape', `add: ${name} of entry ${op} has the shape [${shape}]: it must be ${dtype}[${slot.shape}]`, { op, name, expected: slot.shape });
}
