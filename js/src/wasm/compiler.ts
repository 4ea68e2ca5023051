// The compiler of this thread: a WebAssembly module, which builds and differentiates graphs.

import { type ErrorKind, RlxError } from '../values/errors.js';
import { Instance, loadModule, type WasmSource } from './module.js';
import { Request, Response } from './wire.js';

let loading: Promise<WebAssembly.Module> | undefined;
let running: Instance | undefined;
let starting: Promise<void> | undefined;

/** Starts the compiler, unless it runs. A module that is loaded is used again. */
export async function startCompiler(source: WasmSource): Promise<void> {
  if (running?.alive) return;
  return starting ??= start(source).finally(() => { starting = undefined; });
}

async function start(source: WasmSource): Promise<void> {
  loading ??= loadModule(source);
  loading.catch(() => { loading = undefined; });
  running = await Instance.start(await loading);
}

/** Ends the compiler and forgets its module. */
export function stopCompiler(): void { loading = running = starting = undefined; }

/** The module of the compiler, once it was started. */
export const compilerModule = (): Promise<WebAssembly.Module> | undefined => loading;

/** The compiler. Throws an {@link RlxError} of kind `wasm` if it does not run. */
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

/** Frees an object, if its module still has it. */
export function release(instance: Instance, handle: number): void {
  if (instance.alive) invoke(new Request('free').u32(handle), instance);
}
