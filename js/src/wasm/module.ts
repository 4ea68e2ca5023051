// A WebAssembly module made by Go: loading, starting and calling it.

import { asError, RlxError } from '../values/errors.js';
import { nextMessage } from '../values/task.js';

/** The version of the calls, as in the Go package wasm/internal/wire. */
const abi = 4;

/**
 * When memory is collected: later than by Go's default, as most compilations end before there is much
 * to collect, and as often as needed above a size. Where memory is short, by Go's default, and as often as that size asks for.
 */
const collector = (bytes?: number) => bytes === undefined ? { GOGC: '800', GOMEMLIMIT: '768MiB' } : { GOGC: '100', GOMEMLIMIT: `${bytes}` };

/** The source of a module: an address, its bytes, or the compiled module. */
export type WasmSource = string | URL | BufferSource | WebAssembly.Module;

interface GoRuntime {
  /** The variables of Go's environment. */
  env: Record<string, string>;
  importObject: WebAssembly.Imports;
  /** Resolves when the program ends, which it only does when it fails. */
  run(instance: WebAssembly.Instance): Promise<void>;
}

interface Exports {
  mem: WebAssembly.Memory;
  rlx_abi(): number;
  rlx_alloc(bytes: number): number;
  rlx_call(): number;
  rlx_out(): number;
  rlx_objects(): number;
}

/** Loads and compiles a module. Rejects with an {@link RlxError} of kind `wasm`. */
export async function loadModule(source: WasmSource): Promise<WebAssembly.Module> {
  try {
    return await compileFrom(source);
  } catch (reason) {
    throw asError(reason, 'wasm');
  }
}

/** Compiles a module, streaming if possible. */
async function compileFrom(source: WasmSource): Promise<WebAssembly.Module> {
  if (source instanceof WebAssembly.Module) return source;
  if (typeof source !== 'string' && !(source instanceof URL)) return WebAssembly.compile(source);
  const url = new URL(source, globalThis.location?.href ?? import.meta.url);
  if (url.protocol === 'file:') return WebAssembly.compile(await readFile(url));
  let response: globalThis.Response;
  try {
    response = await fetch(url);
  } catch (cause) {
    throw new RlxError('wasm', `${url} cannot be loaded: ${(cause as Error).message}`, { cause });
  }
  if (!response.ok) throw new RlxError('wasm', `${url} cannot be loaded: ${response.status} ${response.statusText}`);
  // Streaming requires the right media type, which some servers do not send.
  return response.headers.get('content-type')?.startsWith('application/wasm')
    ? WebAssembly.compileStreaming(response)
    : WebAssembly.compile(await response.arrayBuffer());
}

/** Node's fetch has no files. */
function readFile(url: URL): Promise<Uint8Array<ArrayBuffer>> {
  const { process } = globalThis as { process?: { getBuiltinModule?(name: string): { readFile(url: URL): Promise<Uint8Array<ArrayBuffer>> } } };
  if (!process?.getBuiltinModule) throw new RlxError('wasm', `${url} cannot be loaded from a file`);
  return process.getBuiltinModule('node:fs/promises').readFile(url);
}

/** What answers calls: a running module, or what has its answers. */
export interface Answerer {
  /** Whether it still answers. */
  readonly alive: boolean;
  /** The number of objects held for the host. */
  readonly objects: number;
  /** The bytes of its memory, which never shrinks. */
  readonly bytes: number;
  /** Answers a request. The response is the caller's own. */
  call(request: Uint8Array): Uint8Array;
}

/** A running module. */
export class Instance implements Answerer {
  readonly #exports: Exports;
  #ended: RlxError | undefined;

  private constructor(exports: Exports) { this.#exports = exports; }

  /** Starts a module that is to take some bytes of memory, if they are given. Rejects with an {@link RlxError} of kind `version` if it is made for another version of this package. */
  static async start(module: WebAssembly.Module, memory?: number): Promise<Instance> {
    await import('#wasm_exec');
    const go = new (globalThis as unknown as { Go: new () => GoRuntime }).Go();
    go.env = { ...collector(memory), ...go.env };
    const instance = await WebAssembly.instantiate(module, go.importObject), exports = instance.exports as unknown as Exports;
    const made = new Instance(exports);
    await nextMessage(); // the program's start is a task of its own
    void go.run(instance).catch(() => {}).then(() => made.#end('its program ended'));
    const found = exports.rlx_abi?.();
    if (found !== abi) throw new RlxError('version', `the WebAssembly module speaks version ${found} of the interface, this package ${abi}`);
    return made;
  }

  get alive(): boolean { return !this.#ended; }

  get objects(): number { return this.#exports.rlx_objects(); }

  get bytes(): number { return this.#exports.mem.buffer.byteLength; }

  #end(why: string, cause?: unknown): RlxError {
    return this.#ended ??= new RlxError('wasm', `the WebAssembly module failed: ${why}`, { cause });
  }

  call(request: Uint8Array): Uint8Array {
    if (this.#ended) throw this.#ended;
    const { mem, rlx_alloc, rlx_call, rlx_out } = this.#exports;
    try {
      const at = rlx_alloc(request.length);
      new Uint8Array(mem.buffer, at, request.length).set(request);
      const size = rlx_call();
      return new Uint8Array(mem.buffer, rlx_out(), size).slice();
    } catch (cause) { // out of memory, or a stack without end
      throw this.#end((cause as Error).message, cause);
    }
  }
}
