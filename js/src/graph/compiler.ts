// The compiler: a WebAssembly module in this thread, which builds and differentiates graphs,
// and one in a worker, which turns them into plans.

import { checkOptions, type ErrorKind, RlxError } from '../values/errors.js';
import { Instance, loadModule, type WasmSource } from '../wasm/module.js';
import type { SessionOptions } from '../session/open.js';
import { startScript } from '../worker/remote.js';
import { Caller } from '../worker/rpc.js';
import { Request, Response } from '../wasm/wire.js';

export interface InitOptions extends Pick<SessionOptions, 'gpu' | 'device' | 'worker' | 'powerPreference'> {
  /** The compiler's WebAssembly module, if it is not the `rlx.wasm` beside this script. */
  wasm?: WasmSource;
  /**
   * Where graphs are compiled: true for a worker of its own, false for this thread, or a worker
   * that runs this package's `compiler-worker.js`. If not given it is a worker where there are any.
   */
  compileWorker?: boolean | Worker;
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
}

/** What is compiled: graphs of this thread's compiler, or in their text form, by entry. */
export interface Job {
  name: string;
  entries: { name: string; graph: { readonly handle: number; text(): string } | string }[];
  symbols: Readonly<Record<string, number>>;
  limits: Limits;
  target: Target;
}

/** What plans are for: a GPU, or the CPU by WebAssembly, with relaxed SIMD or without. */
export type Target = 'webgpu' | 'wasm' | 'wasm-relaxed';
export const targets: readonly Target[] = ['webgpu', 'wasm', 'wasm-relaxed'];

let options: InitOptions = {};
let loading: Promise<WebAssembly.Module> | undefined;
let running: Instance | undefined;
let starting: Promise<void> | undefined;
let remote: Promise<Caller> | undefined;

/** What {@link init} was given. */
export const initOptions = (): InitOptions => options;

/**
 * Loads the compiler. It is to be awaited before graphs are built; once more after an error of
 * kind `wasm`, which starts the module anew: graphs from before are gone then.
 */
export async function init(given?: InitOptions): Promise<void> {
  if (given) checkOptions('init', given, ['gpu', 'device', 'worker', 'powerPreference', 'wasm', 'compileWorker']);
  if (given && given.wasm !== options.wasm) loading = running = starting = remote = undefined;
  if (given) options = given;
  if (running?.alive) return;
  return starting ??= start().finally(() => { starting = undefined; });
}

async function start(): Promise<void> {
  loading ??= loadModule(options.wasm ?? new URL('./rlx.wasm', import.meta.url));
  loading.catch(() => { loading = undefined; });
  running = await Instance.start(await loading);
}

/** The compiler of this thread. */
export function compiler(): Instance {
  if (!running?.alive) throw new RlxError('wasm', running ? 'the compiler failed: await init() to start it anew' : 'the compiler is not loaded: await init() first');
  return running;
}

/** Makes a call, or throws the error that the compiler answers with. */
export function invoke(request: Request, instance = compiler()): Response {
  const response = new Response(instance.call(request.bytes));
  if (response.u32() === 0) return response;
  const kind = response.text() as ErrorKind, message = response.text(), op = response.text();
  const operands = response.list(() => response.text());
  throw new RlxError(kind, message, op ? { op, operands } : {});
}

/** Gives an object back, if its module still has it. */
export function release(instance: Instance, handle: number): void {
  if (instance.alive) invoke(new Request('free').u32(handle), instance);
}

/** Compiles in this thread. */
function compileWith(instance: Instance, { name, entries, symbols, limits, target }: Job): Uint8Array<ArrayBuffer> {
  const parsed: number[] = [];
  const handleOf = (text: string) => {
    const handle = invoke(new Request('parse').text(text), instance).u32();
    parsed.push(handle);
    return handle;
  };
  try {
    const graphs = entries.map((entry) => ({ name: entry.name, handle: typeof entry.graph === 'string' ? handleOf(entry.graph) : entry.graph.handle }));
    const request = new Request('compile').text(name).list(graphs, (r, graph) => r.text(graph.name).u32(graph.handle)).numbers(symbols, 'u32');
    for (const limit of [
      limits.maxStorageBuffersPerShaderStage, limits.maxStorageBufferBindingSize, limits.maxBufferSize,
      limits.maxComputeWorkgroupStorageSize, limits.maxComputeInvocationsPerWorkgroup,
    ]) request.f64(limit ?? 0);
    return invoke(request.u32(Number(limits.f16 ?? false)).u32(targets.indexOf(target)), instance).data() as Uint8Array<ArrayBuffer>;
  } finally {
    for (const handle of parsed) release(instance, handle);
  }
}

/** Compiles in a worker, where there is one, so that this thread is free meanwhile. */
export async function compileJob(job: Job): Promise<Uint8Array<ArrayBuffer>> {
  await init();
  const where = options.compileWorker ?? typeof Worker === 'function';
  if (where === false) return compileWith(compiler(), job);
  const entries = job.entries.map(({ name, graph }) => ({ name, graph: typeof graph === 'string' ? graph : graph.text() }));
  const worker = await (remote ??= openWorker(where));
  return worker.call('compile', { ...job, entries });
}

/** Starts the compiler in a worker. A worker that fails is left, and the next call starts another. */
async function openWorker(where: true | Worker): Promise<Caller> {
  const worker = where === true ? startScript(new URL('./compiler-worker.js', import.meta.url), 'rlx compiler') : where;
  const caller = new Caller(worker, (how) => {
    remote = undefined;
    return new RlxError('wasm', `the compiler's worker ${how}`);
  });
  try {
    await caller.call('start', await loading);
  } catch (reason) {
    remote = undefined;
    throw reason;
  }
  return caller;
}

/** The methods of a worker that compiles. */
export function compilerHandlers() {
  let module: WebAssembly.Module, instance: Instance | undefined;
  return {
    async start(given: WebAssembly.Module) {
      module = given;
      instance = await Instance.start(module);
    },
    async compile(job: Job) {
      if (!instance?.alive) instance = await Instance.start(module);
      return compileWith(instance, job);
    },
  };
}
