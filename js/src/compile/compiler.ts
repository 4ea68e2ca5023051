// The calls that compile, for the compiler in a worker or in this thread.

import type { StepOptions } from '../graph/graph.js';
import { stepRequest } from '../graph/step.js';
import type { Requires } from '../plan/plan.js';
import type { ProgramOptions } from '../runtime/open.js';
import { checkCount, checkOptions, RlxError } from '../values/errors.js';
import { compiler, compilerModule, invoke, newCompiler, notLoaded, release, startCompiler, stopCompiler } from '../wasm/compiler.js';
import { type Answerer, Instance, loadModule, type WasmSource } from '../wasm/module.js';
import { Request, type Response } from '../wasm/wire.js';
import { startScript } from '../worker/start.js';
import { Caller } from '../worker/rpc.js';
import { Cache, checkCache, clearStore } from './cache.js';
import type { PlanStore } from './plan-store.js';

export interface InitOptions extends Pick<ProgramOptions, 'gpu' | 'device' | 'worker' | 'powerPreference'> {
  /** The compiler's WebAssembly module, if it is not the `rlx.wasm` next to this script. */
  wasm?: WasmSource;
  /**
   * Where graphs are compiled: true for a new worker, false for this thread, or a worker that runs
   * this package's `compiler-worker.js`. The default is a worker if workers are available.
   */
  compileWorker?: boolean | Worker;
  /**
   * Where plans are kept between visits: true, the default, for IndexedDB if available, a store of
   * the caller's, or false for no cache. There is no cache for a module in the option `wasm` that
   * is not this package's.
   */
  cache?: boolean | PlanStore;
  /**
   * The memory in bytes that the compiler is to get by with, for hosts that have little, such as Workers with 128 MB: it then collects more
   * often, and slows down where graphs need more. 768 MiB if not given.
   */
  compilerMemory?: number;
  /**
   * The address of a compile service (the Go package wasm/edge, or `@rlx-go/rlx/edge`) to use
   * instead of a compiler loaded here. Graphs are sent as text. Building graphs here still needs
   * the compiler, so pass texts, or functions whose answers are cached; so does tuning, which measures here.
   */
  compileAt?: string | URL;
  /** Whether the compiler is loaded only when a graph is to be built or compiled. */
  lazy?: boolean;
}

/** Limits of a device that plans are made for. Those of every WebGPU device if not given. */
export interface Limits {
  maxStorageBuffersPerShaderStage?: number;
  maxStorageBufferBindingSize?: number;
  maxBufferSize?: number;
  maxComputeWorkgroupStorageSize?: number;
  maxComputeInvocationsPerWorkgroup?: number;
  /** Whether it computes with f16, which is the feature `shader-f16`. */
  f16?: boolean;
  /**
   * The subgroup size, if all subgroups have one size (`subgroupMinSize` and `subgroupMaxSize` of the
   * adapter's info) and it has the features `subgroups` and `subgroup-size-control`.
   */
  subgroup?: number;
  /**
   * The name of the device or its adapter, which selects the compiler's profile, for example the
   * number of processors. {@link program} sets it.
   */
  device?: string;
}

/** What a device must have for plans made for limits, by WebGPU's names of features and limits. @internal */
export const requirementsOf = ({ f16, subgroup, device: _, ...limits }: Limits): Pick<Requires, 'features' | 'limits'> =>
  ({ features: [...f16 ? ['shader-f16'] : [], ...subgroup ? ['subgroups', 'subgroup-size-control'] : []], limits: { ...limits } });

/** The input of a compilation: graphs in their text form, by entry. */
export interface Job {
  name: string;
  entries: { name: string; text: string; /** Has the entry be the training step of the text's graph, which is derived where it is compiled. */ step?: Omit<StepOptions, 'precision'> }[];
  symbols: Readonly<Record<string, number>>;
  limits: Limits;
  targets: readonly Target[];
}

/** The targets of plans: a GPU, or the CPU by WebAssembly, with or without relaxed SIMD. */
export type Target = 'webgpu' | 'wasm' | 'wasm-relaxed';
export const targets: readonly Target[] = ['webgpu', 'wasm', 'wasm-relaxed'];

let options: InitOptions = {};
/** How often the compiler was closed. */
let closings = 0;

/** A function that throws once the compiler is closed, so that pending work starts no new compiler. @internal */
export function openCheck(): () => void {
  const before = closings;
  return () => { if (closings !== before) throw notLoaded(); };
}

/** The compiler in a worker. */
interface Remote { caller: Caller; module: WebAssembly.Module; end(): void }
let remote: Promise<Remote> | undefined;
/** The number of calls in progress that need the worker, and of tunings that it holds. */
let uses = 0;
let resting: ReturnType<typeof setTimeout> | undefined;
/** The time before an idle worker ends, in milliseconds, where it keeps the process alive: in Bun and Deno. */
const restMs = 250;

/** The options of {@link init}. */
export const initOptions = (): InitOptions => options;

/**
 * Loads the compiler. Await it before graphs are built, and again after an error of kind `wasm`,
 * which restarts the module without the earlier graphs.
 */
export async function init(given?: InitOptions): Promise<void> {
  if (given) checkOptions('init', given, 'gpu device worker powerPreference wasm compileWorker compilerMemory compileAt cache lazy');
  if (given?.compilerMemory !== undefined) checkCount('compilerMemory', given.compilerMemory, 1);
  if (given) checkCache(given.cache);
  if (given && given.wasm !== options.wasm) closeCompiler();
  if (given) options = given;
  if (!given?.lazy) await startCompiler(load, options.compilerMemory);
}

const wasmSource = (): WasmSource => options.wasm ?? new URL('./rlx.wasm', import.meta.url);

const workerOption = (): boolean | Worker => options.compileWorker ?? typeof Worker === 'function';

/**
 * Loads the compiler's module. In a page its worker does, and starts the module first: threads share the code of a
 * module, so the page's thread neither ends its compilation nor compiles the functions of its start.
 */
async function load(): Promise<WebAssembly.Module> {
  const where = workerOption(), source = wasmSource();
  if (where !== false && !options.compileAt && 'document' in globalThis) {
    try {
      return (await (remote ??= openWorker(where, source))).module;
    } catch {} // without a worker this thread loads it, or has the error
  }
  return loadModule(source);
}

/** Starts a compiler without objects. @internal */
export const freshCompiler = (): Promise<Answerer> => newCompiler(load, options.compilerMemory);

/** The cache of plans; undefined if there is none. @internal */
export const planCache = (): Cache | undefined => Cache.of(options.cache, options.wasm);

/** Removes all plans that are kept between visits, in IndexedDB or in the store that {@link init} was given. */
export const clearCache = (): Promise<void> => clearStore(options.cache);

/**
 * Ends the compiler and its worker, and frees the memory of both. Graphs become invalid,
 * compilations in progress reject, and programs stay usable. {@link init} restarts it.
 */
export function closeCompiler(): void {
  closings++;
  endWorker();
  stopCompiler();
}

function endWorker(): void {
  remote?.then(({ end }) => end(), () => {});
  remote = undefined;
}

/** Counts uses of the worker; an idle one is terminated where it would keep the process alive. */
function use(more: number): void {
  uses += more;
  clearTimeout(resting);
  const { process } = globalThis as { process?: { versions?: { node?: string } } };
  if (uses === 0 && process?.versions?.node) resting = setTimeout(endWorker, restMs);
}

/** Makes a call about a job. The compiler owns the job's graphs during the call. */
function ask(instance: Answerer, method: string, { name, entries, symbols, limits, targets: given }: Job, more = (r: Request) => r): Response {
  const graphs: { name: string; handle: number }[] = [];
  try {
    for (const { name: entry, text, step } of entries) {
      const graph = { name: entry, handle: invoke(new Request('parse').text(text), instance).u32() }, { handle } = graph;
      graphs.push(graph);
      if (!step) continue;
      graph.handle = invoke(stepRequest(handle, step), instance).u32();
      release(instance, handle);
    }
    const request = new Request(method).text(name).list(graphs, (r, graph) => r.text(graph.name).u32(graph.handle)).numbers(symbols, 'u32');
    for (const limit of [
      limits.maxStorageBuffersPerShaderStage, limits.maxStorageBufferBindingSize, limits.maxBufferSize,
      limits.maxComputeWorkgroupStorageSize, limits.maxComputeInvocationsPerWorkgroup,
    ]) request.f64(limit ?? 0);
    return invoke(more(request.u32(Number(limits.f16 ?? false)).u32(limits.subgroup ?? 0).text(limits.device ?? '').list(given, (r, target) => r.u32(targets.indexOf(target)))), instance);
  } finally {
    for (const { handle } of graphs) release(instance, handle);
  }
}

type PlanFile = Uint8Array<ArrayBuffer>;

/** A group of kernels that can be scheduled in several ways. */
export interface Group {
  /** The key that equal groups of any graph share. */
  key: string;
  /** The name of its kernels. */
  name: string;
  /** Its schedules, the default first. */
  schedules: string[];
}

/** The groups of a job, and its handle in the compiler until `forget`. */
export interface Choices { tuning: number; groups: Group[] }

/** How a target computes a node. */
export interface NodeReport {
  /** The entry of the node. */
  entry: string;
  /** The node: its op, or the kind of port, its name and its types. */
  node: string;
  op: string;
  /** `native`: by kernels; `claimed`: a composite by one kernel; `decomposed`: a composite by its body. */
  level: 'native' | 'claimed' | 'decomposed' | 'unsupported';
  /** Why the node is unsupported; empty if it is supported. */
  reason: string;
}
const levels = ['native', 'claimed', 'decomposed', 'unsupported'] as const;

/** What a run of an entry takes on any device: operations of products, bytes of kernels, kernels, bytes of inputs and outputs. */
export interface Work { operations: number; bytes: number; kernels: number; transfer: number }

/** The calls that compile, for graphs in their text form. */
const methodsOf = (instance: () => Answerer | Promise<Answerer>) => ({
  /** The plan file of a job. */
  async compile(job: Job) { return ask(await instance(), 'compile', job).data() as PlanFile; },
  /** How the first target of a job computes its nodes, and the work of each entry. `accepted` says that the target's compiler accepts the job. */
  async report(job: Job, accepted: boolean): Promise<{ rows: NodeReport[]; work: Work[] }> {
    const r = ask(await instance(), 'report', job, (request) => request.u32(Number(accepted)));
    return {
      rows: r.list(() => ({ entry: r.text(), node: r.text(), op: r.text(), level: levels[r.u32()]!, reason: r.text() })),
      work: r.list(() => ({ operations: r.f64(), bytes: r.f64(), kernels: r.f64(), transfer: r.f64() })),
    };
  },
  async choices(job: Job): Promise<Choices> {
    const r = ask(await instance(), 'choices', job);
    return { tuning: r.u32(), groups: r.list(() => ({ key: r.text(), name: r.text(), schedules: r.list(() => r.text()) })) };
  },
  /** A plan whose entry `run` computes a group by one of its schedules. */
  async trial(tuning: number, group: number, schedule: number) {
    return invoke(new Request('trial').u32(tuning).u32(group).u32(schedule), await instance()).data() as PlanFile;
  },
  /** The plan file of a job, with the numbers of its groups' schedules. */
  async tuned(tuning: number, schedules: readonly number[]) {
    return invoke(new Request('tuned').u32(tuning).list(schedules, (r, n) => r.u32(n)), await instance()).data() as PlanFile;
  },
  async forget(tuning: number) { release(await instance(), tuning); },
});

type Methods = ReturnType<typeof methodsOf>;
type Answer<M extends keyof Methods> = Awaited<ReturnType<Methods[M]>>;

/** Calls the compiler in a worker if possible, so that this thread stays free. */
export async function call<M extends keyof Methods>(method: M, ...args: Parameters<Methods[M]>): Promise<Answer<M>> {
  await init();
  compiler(); // it may have been closed meanwhile
  const where = workerOption();
  if (where === false) return (methodsOf(compiler)[method] as (...args: unknown[]) => Promise<Answer<M>>)(...args);
  use(1);
  try {
    const module = await compilerModule()!, { caller } = await (remote ??= openWorker(where, module)), answer = await caller.call<Answer<M>>(method, ...args);
    if (method === 'choices') use(1); // the worker holds the tuning until `forget`
    return answer;
  } finally {
    use(method === 'forget' ? -2 : -1);
  }
}

/** The plan file of a job: a cached one, or compiled now. The extra parts are dependencies besides the job. */
export async function plan(job: Job, make: () => Promise<PlanFile>, ...parts: unknown[]): Promise<PlanFile> {
  const cache = planCache(), sorted = (of: object) => Object.entries(of).sort(([a], [b]) => a < b ? -1 : 1);
  const key = await cache?.key('plan', 1, job.name, job.entries, sorted(job.symbols), sorted(job.limits), job.targets, ...parts);
  const found = key === undefined ? undefined : await cache!.get(key);
  if (found) return found;
  const made = await make();
  if (key !== undefined) void cache!.set(key, made);
  return made;
}

/** Starts the compiler in a worker. After a failure the next call starts another. */
async function openWorker(where: true | Worker, source: WasmSource): Promise<Remote> {
  const own = where === true, worker = own ? startScript(new URL('./compiler-worker.js', import.meta.url), 'rlx compiler') : where;
  let ended = false;
  const caller = new Caller(worker, (how) => {
    if (!ended) endWorker();
    return new RlxError('wasm', `the compiler's worker ${how}`);
  });
  const end = () => {
    ended = true;
    caller.end(new RlxError('closed', 'the compiler was closed'));
    if (own) worker.terminate();
  };
  try {
    return { caller, module: await caller.call('start', sendable(source), options.compilerMemory), end };
  } catch (reason) {
    remote = undefined;
    end();
    throw reason;
  }
}

/** A source as a worker understands it, whose address is another. */
const sendable = (source: WasmSource): WasmSource =>
  typeof source === 'string' || source instanceof URL ? new URL(source, globalThis.location?.href).href : source;

/** The methods of a worker that compiles. */
export function compilerHandlers() {
  let module: WebAssembly.Module, memory: number | undefined, instance: Instance | undefined;
  return {
    async start(source: WasmSource, bytes?: number) {
      [module, memory] = [await loadModule(source), bytes];
      instance = await Instance.start(module, memory);
      return module;
    },
    ...methodsOf(async () => {
      if (!instance?.alive) instance = await Instance.start(module, memory);
      return instance;
    }),
  };
}
