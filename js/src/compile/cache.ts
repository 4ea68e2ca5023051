// Plans and the compiler's answers are kept, so that nothing is compiled twice, by any page of an origin.

import { crc32 } from '../plan/decode.js';
import { classOf, RlxError } from '../values/errors.js';
import type { WasmSource } from '../wasm/module.js';
import { hashOf } from './hash.js';
import { IndexedStore, type PlanStore } from './plan-store.js';

/** The number of bytes of the checksum before each value. */
const checkBytes = 4;

/** The custom section of the compiler's module with its hash, which build.mjs adds. */
const buildSection = 'rlx build';

let indexed: IndexedStore | undefined;

/** Refuses an option `cache` that is neither a boolean nor a store. */
export function checkCache(given: unknown): void {
  if (given === undefined || typeof given === 'boolean') return;
  for (const method of ['get', 'set', 'clear']) {
    if (typeof Object(given)[method] !== 'function') throw new RlxError('attr', `cache is ${classOf(given)}: it must be a boolean or have the methods get, set and clear`, { name: 'cache' });
  }
}

/** The values of one compiler in a store. Whatever fails in the store, they are as if they were not there. */
export class Cache {
  readonly #store: PlanStore;
  readonly #compiler: string;

  private constructor(store: PlanStore, compiler: string) {
    this.#store = store;
    this.#compiler = compiler;
  }

  /** The cache for the options of `init`; undefined if there is none, or the compiler's identity is unknown. */
  static of(given: boolean | PlanStore | undefined, wasm: WasmSource | undefined): Cache | undefined {
    const store = storeOf(given), compiler = compilerName(wasm);
    return store && compiler !== undefined ? new Cache(store, compiler) : undefined;
  }

  /** The key of a compilation's inputs other than the compiler. */
  async key(kind: string, ...parts: unknown[]): Promise<string | undefined> {
    const text = JSON.stringify([this.#compiler, kind, ...parts]);
    if (!globalThis.crypto?.subtle) return undefined; // a page without https
    return `${kind}-${await hashOf(new TextEncoder().encode(text))}`;
  }

  /** A value that is whole. */
  async get(key: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const found = await this.#try(() => this.#store.get(key));
    if (!(found instanceof Uint8Array) || found.length < checkBytes) return undefined;
    const value = found.slice(checkBytes);
    return new DataView(found.buffer, found.byteOffset).getUint32(0, true) === crc32(value) ? value : undefined;
  }

  async set(key: string, value: Uint8Array): Promise<void> {
    const checked = new Uint8Array(checkBytes + value.length);
    new DataView(checked.buffer).setUint32(0, crc32(value), true);
    checked.set(value, checkBytes);
    await this.#try(() => this.#store.set(key, checked));
  }

  async #try<T>(run: () => T | Promise<T>): Promise<T | undefined> {
    try {
      return await run();
    } catch { // no room, another form, or forbidden here
      return undefined;
    }
  }
}

function storeOf(given: boolean | PlanStore = true): PlanStore | undefined {
  if (typeof given === 'object') return given;
  return given && hasDatabase() ? indexed ??= new IndexedStore() : undefined;
}

/** In some pages even the access to it throws. */
function hasDatabase(): boolean {
  try {
    return globalThis.indexedDB !== undefined;
  } catch {
    return false;
  }
}

/** The identity of a compiler; undefined for a module of another build, or if it has none. */
function compilerName(wasm: WasmSource | undefined): string | undefined {
  if (wasm === undefined) return compilerBuild;
  if (typeof wasm === 'string' || wasm instanceof URL) return `${compilerBuild} ${wasm}`;
  if (!(wasm instanceof WebAssembly.Module)) return undefined;
  const [section] = WebAssembly.Module.customSections(wasm, buildSection);
  return section && new TextDecoder().decode(section) === compilerBuild ? compilerBuild : undefined;
}

/** Removes all plans from the store of an option `cache`; from IndexedDB if not given. */
export async function clearStore(given: boolean | PlanStore | undefined): Promise<void> {
  const store = storeOf(typeof given === 'object' ? given : true);
  try {
    await store?.clear();
  } catch (cause) {
    throw new RlxError('store', `the store of plans cannot be cleared: ${(cause as Error).message}`, { cause });
  }
}
