import { generator } from '../session/batches.js';
import { compileJob, initOptions, type Job, type Limits } from './compiler.js';
import { requestAdapter } from '../gpu/device.js';
import { arrayType, type TensorData } from '../values/dtype.js';
import { RlxError } from '../values/errors.js';
import type { Graph, Initial, StepOptions } from './graph.js';
import { openSession, type SessionOptions } from '../gpu/open.js';
import { openIn, startScript } from '../worker/remote.js';
import type { HostTensor, Session } from '../session/session.js';
import { Trainer } from '../session/trainer.js';

/** Graphs that are compiled together: entries share parameters and states. */
export interface Module {
  /** What the plan is called. `main` if not given. */
  name?: string;
  /** Graphs, or their text form. */
  entries: Readonly<Record<string, Graph | string>>;
  /** The sizes of symbolic dimensions. */
  symbols?: Readonly<Record<string, number>>;
  /** What the device allows. What every WebGPU device allows if not given. */
  limits?: Limits;
}

/** Where a session is to be: on a GPU, on the CPU, or on the CPU only where WebGPU is not there. */
export type Place = 'gpu' | 'cpu' | 'best';

export interface ModuleSessionOptions extends SessionOptions {
  /** `best` if not given. */
  on?: Place;
}

function jobOf({ name = 'main', entries, symbols = {}, limits = {} }: Module): Job {
  const texts = Object.entries(entries).map(([entry, graph]) => ({ name: entry, text: typeof graph === 'string' ? graph : graph.text() }));
  return { name, entries: texts, symbols, limits };
}

/** Compiles graphs to a plan file, which {@link openSession} runs, here or in a page without the compiler. */
export const compile = (module: Module): Promise<Uint8Array<ArrayBuffer>> => compileJob(jobOf(module));

/**
 * A session on graphs. Its device is the one that {@link init} was given, unless the options have
 * another. Where there is no WebGPU it is on the CPU, and its `fallbackReason` says why.
 */
export async function session(module: Module, { on = 'best', ...given }: ModuleSessionOptions = {}): Promise<Session> {
  const options = { ...sessionDefaults(), ...given };
  if (on === 'cpu') return sessionOnCPU(jobOf(module), options);
  try {
    if (!options.worker && !options.device) await requestAdapter(options); // before the compiler's work
    return await openSession(await compile(module), options);
  } catch (reason) {
    if (on === 'gpu' || !(reason instanceof RlxError) || reason.kind !== 'device') throw reason;
    return Object.assign(await sessionOnCPU(jobOf(module), options), { fallbackReason: reason.message });
  }
}

/** The fallback's module is loaded now, not before; it runs in a worker of its own where there are any. */
async function sessionOnCPU(job: Job, { worker = true }: SessionOptions): Promise<Session> {
  const wasm = initOptions().cpuWasm ?? new URL('./rlx-cpu.wasm', import.meta.url).href;
  if (worker === false || typeof Worker !== 'function') return (await import('../cpu/cpu-session.js')).openCPU(job, wasm);
  return openIn(startScript(new URL('./cpu-worker.js', import.meta.url), 'rlx cpu'), true, job, { wasm });
}

/** Sessions live in a worker where there are any and no device of the page's own was given. */
function sessionDefaults(): SessionOptions {
  const { gpu, device, powerPreference, worker = !gpu && !device && typeof Worker === 'function' } = initOptions();
  return { worker, ...gpu && { gpu }, ...device && { device }, ...powerPreference && { powerPreference } };
}

export interface TrainingOptions extends StepOptions, ModuleSessionOptions {
  /** The learning rate without a schedule: the input `lr`, to be changed by `trainer.session.bind('step', { lr })`. */
  rate?: number;
  /** More entries beside `step`, such as `eval`. */
  entries?: Readonly<Record<string, Graph>>;
  /** What parameters begin with, in place of what their declarations say. */
  params?: Readonly<Record<string, Initial>>;
  /** The seed of random parameters. 0 if not given. */
  seed?: number;
  symbols?: Readonly<Record<string, number>>;
  limits?: Limits;
}

/**
 * Makes a training step of a graph that has a loss, compiles it, opens a session and sets the
 * parameters.
 *
 * ```ts
 * const trainer = await train(model, { optimizer: { kind: 'adam' }, rate: 1e-3 });
 * await trainer.run({ steps: 1000, batches: batches({ x, labels }, { size: 32, shuffle: 1 }) });
 * ```
 */
export async function train(graph: Graph, options: TrainingOptions): Promise<Trainer> {
  const { optimizer, loss = 'loss', schedule, frozen, history = 64, rate, entries = {}, params = {}, seed = 0, symbols = {}, limits = {}, ...rest } = options;
  const bound = Object.keys(symbols).length > 0 ? graph.bind(symbols) : graph;
  const step = bound.step({ optimizer, loss, history, ...schedule && { schedule }, ...frozen && { frozen } });
  const made = await session({ name: graph.name, entries: { step, ...entries }, symbols, limits }, rest);
  try {
    await made.load(initialParams(bound, params, seed));
    if (rate !== undefined) await made.bind('step', { lr: rate });
  } catch (reason) {
    made.close();
    throw reason;
  }
  return new Trainer(made, { loss });
}

/** The values that a graph's parameters begin with, drawn in the order of their names. */
export function initialParams(graph: Graph, given: Readonly<Record<string, Initial>> = {}, seed = 0): Record<string, HostTensor> {
  const params = graph.ports.filter(({ kind }) => kind === 'param').sort((a, b) => a.name < b.name ? -1 : 1);
  for (const name in given) {
    if (!params.some((port) => port.name === name)) throw new RlxError('name', `graph ${graph.name} has no parameter ${name}`, { name });
  }
  const random = generator(seed);
  return Object.fromEntries(params.map(({ name, dtype, shape }) => {
    const dims = shape.map((d) => {
      if (typeof d === 'number') return d;
      throw new RlxError('symbol', `parameter ${name} has the size ${d}, which no symbol gives`, { name });
    });
    const initial = given[name] ?? graph.initial.get(name) ?? (dims.length > 1 ? 'glorot' : 0);
    return [name, { dtype, shape: dims, data: fill(name, dtype, dims, initial, random) }];
  }));
}

function fill(name: string, dtype: string, shape: readonly number[], initial: Initial, random: () => number): TensorData {
  if (typeof initial === 'object') return initial;
  const size = shape.reduce((n, d) => n * d, 1), type = arrayType(dtype), data = new type(new ArrayBuffer(size * type.BYTES_PER_ELEMENT), 0, size);
  if (typeof initial === 'number' && (initial === 0 || dtype !== 'f16' && dtype !== 'bf16')) return data.fill(initial);
  if (dtype !== 'f32') throw new RlxError('dtype', `parameter ${name} is ${dtype}: give its elements`, { name });
  // Both draw uniformly; the last axis is what a layer puts out, all others are what goes in.
  const out = shape.at(-1) ?? 1, into = size / Math.max(out, 1);
  const bound = Math.sqrt(initial === 'he' ? 6 / into : 6 / (into + out));
  for (let i = 0; i < size; i++) data[i] = (2 * random() - 1) * bound;
  return data;
}
