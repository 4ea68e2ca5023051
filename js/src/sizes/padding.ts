// Padding of open sizes: a WebAssembly module besides the compiler's, which is loaded when a program pads.

import { invoke } from '../wasm/compiler.js';
import { Instance, loadModule, type WasmSource } from '../wasm/module.js';
import { Request } from '../wasm/wire.js';
import type { Crop, Sizes } from './entry.js';

/** The package's module, once loaded. */
let loading: Promise<WebAssembly.Module> | undefined;

/** The module of a source, or the package's own. */
function moduleOf(source: WasmSource | undefined): Promise<WebAssembly.Module> {
  if (source !== undefined) return loadModule(source);
  loading ??= loadModule(new URL('./sizes.wasm', import.meta.url));
  loading.catch(() => { loading = undefined; });
  return loading;
}

/** The module that pads, started when it is first needed, and again after a failure. */
export class Padding {
  readonly #source: WasmSource | undefined;
  #running: Promise<Instance> | undefined;

  constructor(source?: WasmSource) { this.#source = source; }

  async instance(): Promise<Instance> {
    const running = await (this.#running ??= this.#start());
    return running.alive ? running : this.#running = this.#start();
  }

  async #start(): Promise<Instance> {
    try {
      return await Instance.start(await moduleOf(this.#source));
    } catch (reason) {
      this.#running = undefined;
      throw reason;
    }
  }
}

/** What padding means in a graph, for any sizes of its symbols. */
export class Analysis {
  readonly #padding: Padding;
  readonly #text: string;
  readonly #symbols: readonly string[];
  #instance: Instance | undefined;
  #handle = 0;

  /** Of a graph's text, in which some symbols are padded. */
  constructor(padding: Padding, text: string, symbols: readonly string[]) {
    this.#padding = padding;
    this.#text = text;
    this.#symbols = symbols;
  }

  /** Analyses the graph, unless that is done. Rejects with an {@link RlxError} of kind `unsupported` for a graph that cannot be padded. */
  async start(): Promise<Instance> {
    const instance = await this.#padding.instance();
    if (instance !== this.#instance) {
      this.#handle = invoke(new Request('analyze').text(this.#text).list(this.#symbols, (r, symbol) => r.text(symbol)), instance).u32();
      this.#instance = instance;
    }
    return instance;
  }

  /** The crops of the outputs, for true sizes and those to compile for; undefined if the padded graph does not serve them. */
  async fit(sizes: Sizes, bound: Sizes): Promise<ReadonlyMap<string, Crop> | undefined> {
    const instance = await this.start(), r = invoke(new Request('fit').u32(this.#handle).numbers(sizes, 'u32').numbers(bound, 'u32'), instance);
    if (!r.u32()) return undefined;
    const numbers = () => r.list(() => r.u32());
    return new Map(r.list(() => [r.text(), { dims: numbers(), box: numbers(), full: numbers() }]));
  }

  /** The padded graph for sizes to compile for, as text. */
  async pad(bound: Sizes): Promise<string> {
    const instance = await this.start();
    return invoke(new Request('pad').u32(this.#handle).numbers(bound, 'u32'), instance).text();
  }

  /** The values of inputs of a padded graph that hold true sizes. */
  async measure(names: readonly string[], sizes: Sizes): Promise<Record<string, number>> {
    const r = invoke(new Request('measure').list(names, (to, name) => to.text(name)).numbers(sizes, 'u32'), await this.start());
    const values = r.list(() => r.u32());
    return Object.fromEntries(names.map((name, i) => [name, values[i]!]));
  }
}
