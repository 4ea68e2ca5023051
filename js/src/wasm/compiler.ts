// The compiler of this thread: a WebAssembly module, which builds and differentiates graphs.

import { type ErrorKind, RlxError } from '../values/errors.js';
import { type Answerer, Instance } from './module.js';
import { Request, Response } from './wire.js';

let loading: Promise<WebAssembly.Module> | undefined;
let running: Answerer | undefined;
let starting: Promise<void> | undefined;

/** Loads the module. */
export type Load = () => Promise<WebAssembly.Module>;

/** Starts the compiler, unless it runs. A module that is loaded is used again. */
export async function startCompiler(load: Load, memory?: number): Promise<void> {
  if (running?.alive) return;
  return starting ??= start(load, memory).finally(() => { starting = undefined; });
}

async function start(load: Load, memory?: number): Promise<void> {
  running = await newCompiler(load, memory);
}

/** Starts another compiler, without objects. */
export async function newCompiler(load: Load, memory?: number): Promise<Instance> {
  loading ??= load();
  loading.catch(() => { loading = undefined; });
  return Instance.start(await loading, memory);
}

/** Runs a function with another compiler in place of this thread's. */
export function withCompiler<T>(other: Answerer, run: () => T): T {
  const before = running;
  running = other;
  try {
    return run();
  } finally {
    running = before;
  }
}

/** Ends the compiler and forgets its module. */
export function stopCompiler(): void { loading = running = starting = undefined; }

/** The module of the compiler, once it was started. */
export const compilerModule = (): Promise<WebAssembly.Module> | undefined => loading;

/** The error for a compiler that was not started, or was closed. */
export const notLoaded = (): RlxError => new RlxError('wasm', 'the compiler is not loaded: await init() first');

/** The compiler. Throws an {@link RlxError} of kind `wasm` if it does not run. */
export function compiler(): Answerer {
  if (!running?.alive) throw running ? new RlxError('wasm', 'the compiler failed: await init() to start it anew') : notLoaded();
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

/** Frees an object, if its module still has it. */
export function release(instance: Answerer, handle: number): void {
  if (instance.alive) invoke(new Request('free').u32(handle), instance);
}
