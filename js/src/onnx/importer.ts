// The importer: a WebAssembly module besides the compiler's, which is loaded when a model is opened. It asks for what it
// needs of the model's files.

import type { Source } from '../files/source.js';
import { type Dim, dimOf } from '../graph/types.js';
import { converted } from '../safetensors/convert.js';
import { classOf, RlxError, unknownName } from '../values/errors.js';
import type { HostTensor, StoredTensor } from '../values/tensor.js';
import { invoke, release } from '../wasm/compiler.js';
import { Instance, loadModule, type WasmSource } from '../wasm/module.js';
import { Request, type Response } from '../wasm/wire.js';
import { own } from './skeleton.js';

/** Options of an import, with the Go package's defaults. */
export interface ImportOptions {
  /** Sizes of the model's symbols. Others stay open. */
  symbols?: Readonly<Record<string, number>>;
  /** The shapes of inputs of which the model has none. */
  shapes?: Readonly<Record<string, readonly Dim[]>>;
  /** Values of inputs, which the graph then lacks. An input that decides about shapes must be fixed so. */
  values?: Readonly<Record<string, HostTensor>>;
  /** Whether the weights are frozen parameters, which training does not change. */
  frozen?: boolean;
  /**
   * Whether i32 stands for int64 wherever all values are proven to be in range; int64 inputs are then i32, and the
   * caller ensures that they are. True if not given: programs in a page have no int64.
   */
  narrow?: boolean;
  /** Bounds the iterations of loops with an unknown number; no bound if not given. */
  maxSteps?: number;
  /** Whether f32 scales of weights of 4 and 8 bits are rounded to f16, so that their products are faster. */
  roundScales?: boolean;
  /** 8 rounds what such weights are multiplied with to 8 bits. */
  activationBits?: 8;
}

/** An input or output as the model declares it. */
export interface OnnxInfo {
  readonly name: string;
  /** The element type by ONNX's name, such as `float16` or `int4`. */
  readonly element: string;
  /** The element type that the graph has the value with; none for what is no tensor of numbers. */
  readonly dtype?: string;
  /** The sizes, in which symbols are open; none if the model declares no shape. */
  readonly shape?: readonly Dim[];
}

/** A weight as the importer knows it: where a file has its elements, if one has them as a device stores them. */
export interface Weight { name: string; dtype: string; shape: readonly number[]; file: string; offset: number; length: number }

/** A graph as text, and its weights. */
export interface Imported { handle: number; text: string; weights: readonly Weight[] }

/** The error for inputs of which one decides about shapes: it must be fixed. */
export class NeedsValues extends RlxError {
  readonly inputs: readonly string[];
  constructor(inputs: readonly string[], message: string) {
    super('unsupported', inputs.length ? `${message}: give the value of ${inputs.join(' or ')} in values` : message, inputs.length ? { name: inputs[0]! } : {});
    this.inputs = inputs;
  }
}

/** The answers of an import, as the Go package wasm/internal/importer has them. */
const needsFiles = 0, needsValues = 2;

/** Opens the file of a path in the model's folder. */
export type OpenFile = (path: string) => Promise<Source>;

/** More rounds of an import than it needs to get what it computes with. */
const maxRounds = 256;

/** The package's module, once loaded. */
let loading: Promise<WebAssembly.Module> | undefined;

/** The module of a source, or the package's own. */
function moduleOf(source: WasmSource | undefined): Promise<WebAssembly.Module> {
  if (source !== undefined) return loadModule(source);
  loading ??= loadModule(new URL('./onnx.wasm', import.meta.url));
  loading.catch(() => { loading = undefined; });
  return loading;
}

/** A model in a module of its own, whose memory goes with it. */
export class Importer {
  #running: Instance | undefined;
  readonly #handle: number;
  readonly #open: OpenFile;
  readonly #files = new Map<string, Source>();
  readonly inputs: readonly OnnxInfo[];
  readonly outputs: readonly OnnxInfo[];

  private constructor(instance: Instance, r: Response, source: Source, open: OpenFile) {
    this.#running = instance;
    this.#handle = r.u32();
    this.inputs = r.list(() => declared(r));
    this.outputs = r.list(() => declared(r));
    this.#open = open;
    this.#files.set(own, source);
  }

  /** Opens a model: the message without the elements of large tensors, and its file. */
  static async start(module: WasmSource | undefined, message: Uint8Array, source: Source, open: OpenFile): Promise<Importer> {
    const instance = await Instance.start(await moduleOf(module));
    return new Importer(instance, invoke(new Request('open').data(message).f64(source.size), instance), source, open);
  }

  get #instance(): Instance {
    if (!this.#running) throw new RlxError('closed', 'the model is closed');
    return this.#running;
  }

  #request(method: string, handle = this.#handle): Request { return new Request(method, 'openONNX').u32(handle); }

  /** Imports the graph. Rejects with {@link NeedsValues} where an input decides about shapes. */
  async import(options: ImportOptions): Promise<Imported> {
    const values = Object.entries(options.values ?? {}).map(([name, value]) => this.#value(name, value));
    const r = await this.#answer(() => request(this.#request('import'), options, values));
    return { handle: r.u32(), text: r.text(), weights: r.list(() => ({ name: r.text(), dtype: r.text(), shape: r.list(() => dimOf(r.text()) as number), ...placeIn(r) })) };
  }

  /** A value of an input, of the type that the model declares. */
  #value(name: string, value: HostTensor): [string, StoredTensor] {
    const input = this.inputs.find((one) => one.name === name), dtype = input?.dtype;
    if (!input) throw unknownName('values: the model has no input', name, this.inputs.map((one) => one.name));
    if (!ArrayBuffer.isView(value?.data) || !Array.isArray(value.shape)) throw new RlxError('attr', `values: ${name} is ${classOf(value)}: it must be a tensor { dtype, shape, data }`, { name });
    return [name, dtype === undefined || value.dtype === dtype ? value : { dtype, shape: value.shape, data: converted(name, value, dtype) }];
  }

  /** The bytes of a weight, as a device stores them. */
  async read({ handle }: Imported, { file, offset, length }: Weight, number: number): Promise<Uint8Array<ArrayBuffer>> {
    if (file) return (await this.#file(file)).bytes(offset, offset + length);
    return new Uint8Array((await this.#answer(() => this.#request('weight', handle).u32(number))).data());
  }

  /** Forgets an import. */
  free({ handle }: Imported): void { if (this.#running) release(this.#running, handle); }

  /** The answer to a request that is made again when what it needs was given. */
  async #answer(ask: () => Request): Promise<Response> {
    for (let round = 0; round < maxRounds; round++) {
      const r = invoke(ask(), this.#instance), answer = r.u32();
      if (answer === needsValues) {
        const names = r.list(() => r.text());
        throw new NeedsValues(this.inputs.map(({ name }) => name).filter((name) => names.includes(name)), r.text());
      }
      if (answer !== needsFiles) return r;
      for (const { file, offset, length } of r.list(() => placeIn(r))) {
        const source = await this.#file(file);
        if (!length) invoke(this.#request('size').text(file).f64(source.size), this.#instance);
        else invoke(this.#request('give').text(file).f64(offset).data(await source.bytes(offset, offset + length)), this.#instance);
      }
    }
    throw new RlxError('unsupported', `ONNX: the importer computes with the elements of more than ${maxRounds} large tensors`);
  }

  async #file(path: string): Promise<Source> {
    const known = this.#files.get(path);
    if (known) return known;
    const source = await this.#open(path);
    this.#files.set(path, source);
    return source;
  }

  /** Closes the files, and drops the module and its memory. */
  close(): void {
    for (const source of this.#files.values()) source.close();
    this.#running = undefined;
  }
}

const placeIn = (r: Response): { file: string; offset: number; length: number } => ({ file: r.text(), offset: r.f64(), length: r.f64() });

function declared(r: Response): OnnxInfo {
  const name = r.text(), element = r.text(), dtype = r.text(), shaped = r.u32() === 1, shape = r.list(() => dimOf(r.text()));
  return { name, element, ...dtype && { dtype }, ...shaped && { shape } };
}

function request(r: Request, { symbols = {}, shapes = {}, frozen = false, narrow = true, maxSteps = 0, roundScales = false, activationBits }: ImportOptions, values: readonly [string, StoredTensor][]): Request {
  r.numbers(symbols, 'u32', 'symbols').list(Object.entries(shapes), (to, [name, shape]) => to.text(name).texts(shape, `the shape of ${name}`), 'shapes');
  r.list(values, (to, [name, { dtype, shape, data }]) => to.text(name).text(dtype).texts(shape).data(new Uint8Array(data.buffer, data.byteOffset, data.byteLength)));
  return r.u32(Number(frozen)).u32(Number(narrow)).u32(maxSteps, 'maxSteps').u32(Number(roundScales)).u32(activationBits ?? 0, 'activationBits');
}
