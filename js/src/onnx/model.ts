// ONNX models in a page.

import { program as programOf } from '../compile/train.js';
import { init, type Limits } from '../compile/compiler.js';
import { asyncAtCaller } from '../graph/caller-stack.js';
import { type Graph, type Output, parseGraph, type Port } from '../graph/graph.js';
import { type FileSource, openSource } from '../lm/source.js';
import type { Program } from '../program/program.js';
import type { Input } from '../program/types.js';
import type { ProgramOptions } from '../runtime/open.js';
import { arrayOf } from '../safetensors/convert.js';
import { bindDim } from '../sizes/dim.js';
import { OpenEntry, type Sizes } from '../sizes/entry.js';
import { isOpen, openInputs, type Size } from '../sizes/graph.js';
import { openSizes } from '../sizes/program.js';
import { checkOptions, classOf, RlxError, unknownName } from '../values/errors.js';
import type { HostTensor, StoredTensor } from '../values/tensor.js';
import type { WasmSource } from '../wasm/module.js';
import { Importer, type ImportOptions, type OpenFile, type Weight } from './importer.js';
import { skeleton } from './skeleton.js';

/** The files that a model has its weights in besides its own, by their paths in its folder: a list, or a function. */
export type External = Readonly<Record<string, FileSource>> | ((path: string) => FileSource | Promise<FileSource>);

/** Options of {@link openONNX}. */
export interface OnnxOptions extends ImportOptions {
  /** The files of weights outside the model's. If not given they are beside a model that is given by its address, and otherwise missing. */
  external?: External;
  /** The options of the program of {@link OnnxModel.run}. */
  program?: OnnxProgramOptions;
  /** The WebAssembly module that imports, if it is not the `onnx.wasm` next to this script. */
  importer?: WasmSource;
}

/** Options of {@link OnnxModel.program}. */
export interface OnnxProgramOptions extends Omit<ProgramOptions, 'worker' | 'code'> {
  /** The sizes that open sizes are compiled for, by symbol: each that is called, without padding, if not given. */
  sizes?: Readonly<Record<string, Size>>;
  /** The device's capabilities; by default those of every WebGPU device. */
  limits?: Limits;
}

/** A weight of a model: a parameter of its graph. */
export interface OnnxWeight { readonly name: string; readonly dtype: string; readonly shape: readonly number[] }

/** An ONNX model. */
export interface OnnxModel {
  /** Computes the model's outputs from its inputs, by the model's names. Its parameters are the weights. */
  readonly graph: Graph;
  /** The graph's inputs: names, element types, and shapes, in which open sizes are symbols. */
  readonly inputs: readonly Port[];
  readonly outputs: readonly Output[];
  /** The weights, in the order of first use. Their elements are read when they are asked for. */
  readonly weights: readonly OnnxWeight[];
  /** Reads a weight. */
  read(name: string): Promise<StoredTensor>;
  /**
   * Loads the weights into a program, one after the other: into parameters of their names, or of these within a scope, in which a
   * graph calls this model's.
   */
  load(program: Program, scope?: string): Promise<void>;
  /** A program of the graph, as its entry `run`, with the weights. The caller closes it. */
  program(options?: OnnxProgramOptions): Promise<Program>;
  /**
   * The outputs for inputs: tensors `{ shape, data }`, or elements where no more than one size is open. The first call compiles
   * the graph and loads the weights.
   */
  run(inputs: Readonly<Record<string, Input>>): Promise<Record<string, HostTensor>>;
  /** Frees the model and the program of {@link OnnxModel.run}. */
  close(): void;
}

/**
 * Opens an ONNX model: a Blob, bytes, or a URL whose server supports ranges. It reads the graph, and of the weights what shapes
 * depend on; large tensors are read when a program is opened. {@link init} is called if it was not.
 *
 * Rejects with an {@link RlxError} of kind `syntax` for a damaged file, `unsupported` for a node that cannot be imported, with
 * its op, or an input that decides about shapes and is not in `values`, and `missing` for a file that cannot be loaded.
 *
 * ```ts
 * const model = await openONNX('/models/classifier.onnx');
 * const { logits } = await model.run({ image: { shape: [1, 3, 224, 224], data } });
 * ```
 */
export async function openONNX(source: FileSource, options: OnnxOptions = {}): Promise<OnnxModel> {
  return asyncAtCaller(openONNX, () => opened(source, options));
}

async function opened(given: FileSource, options: OnnxOptions): Promise<OnnxModel> {
  checkOptions('openONNX', options, 'external symbols shapes values frozen narrow maxSteps roundScales activationBits program importer');
  const { external, program, importer: module, ...rest } = options ?? {};
  const source = await openSource(given), openFile = filesOf(external, given);
  let importer: Importer | undefined;
  try {
    const message = await skeleton(source);
    importer = await Importer.start(module, message, source, openFile);
    const { text, weights } = await importer.import(rest);
    await init();
    return new Model(importer, parseGraph(text), weights, program);
  } catch (reason) {
    (importer ?? source).close();
    throw reason;
  }
}

/** Opens external files: those of the options, or those in the folder of an address. */
function filesOf(external: External | undefined, model: FileSource): OpenFile {
  return async (path) => {
    if (typeof external === 'function') return openSource(await external(path));
    if (external && Object.hasOwn(external, path)) return openSource(external[path]!);
    if (external || typeof model !== 'string' && !(model instanceof URL)) {
      throw new RlxError('missing', `ONNX: the model has weights in the file ${path}: give it in external`, { name: path });
    }
    const beside = new URL(model, globalThis.location?.href);
    return openSource(new URL(path.split('/').map(encodeURIComponent).join('/'), beside));
  };
}

class Model implements OnnxModel {
  readonly graph: Graph;
  readonly #importer: Importer;
  readonly #weights: readonly Weight[];
  readonly #options: OnnxProgramOptions | undefined;
  #running: Promise<Program> | undefined;
  #closed = false;

  constructor(importer: Importer, graph: Graph, weights: readonly Weight[], options?: OnnxProgramOptions) {
    this.#importer = importer;
    this.graph = graph;
    this.#weights = weights;
    this.#options = options;
  }

  get inputs(): readonly Port[] { return this.graph.ports.filter(({ kind }) => kind === 'input'); }
  get outputs(): readonly Output[] { return this.graph.outputs; }
  get weights(): readonly OnnxWeight[] { return this.#weights.map(({ name, dtype, shape }) => ({ name, dtype, shape })); }

  #check(): void { if (this.#closed) throw new RlxError('closed', 'the model is closed'); }

  async read(name: string): Promise<StoredTensor> {
    this.#check();
    const number = this.#weights.findIndex((one) => one.name === name), weight = this.#weights[number];
    if (!weight) throw unknownName('the model has no weight', name, this.#weights.map((one) => one.name));
    const { dtype, shape } = weight, bytes = await this.#importer.read(weight, number), type = arrayOf(dtype);
    return { dtype, shape, data: new type(bytes.buffer, 0, bytes.length / type.BYTES_PER_ELEMENT) };
  }

  async load(program: Program, scope = ''): Promise<void> {
    for (const { name } of this.#weights) await program.load({ [scope ? `${scope}/${name}` : name]: await this.read(name) }, { allowMissing: true });
  }

  async program(options: OnnxProgramOptions = {}): Promise<Program> {
    this.#check();
    const { sizes = Object.fromEntries(this.graph.symbols.map((symbol) => [symbol, { exact: true }])), limits = {}, ...rest } = options ?? {};
    const module = { name: this.graph.name, entries: { run: this.graph }, limits };
    const made: Program = await (isOpen(this.graph) ? openSizes({ ...module, sizes }, rest) : programOf(module, rest));
    try {
      await this.load(made);
    } catch (reason) {
      made.close();
      throw reason;
    }
    return made;
  }

  async run(inputs: Readonly<Record<string, Input>>): Promise<Record<string, HostTensor>> {
    this.#check();
    if (Object(inputs) !== inputs) throw new RlxError('missing', `run: the inputs are ${classOf(inputs)}: they must be values by name`);
    const sizes = this.#sizes(inputs);
    this.#running ??= this.program(this.#options).catch((reason) => {
      this.#running = undefined;
      throw reason;
    });
    const program = await this.#running, { reading } = await program.run('run', inputs, { read: this.outputs.map(({ name }) => name) });
    const { values } = await reading!;
    return Object.fromEntries(this.outputs.map(({ name, dtype, shape }) =>
      [name, { dtype, shape: shape.map((dim) => typeof dim === 'number' ? dim : bindDim(dim, sizes)!), data: values[name]! }]));
  }

  /** The sizes of the symbols in inputs. */
  #sizes(inputs: Readonly<Record<string, Input>>): Sizes {
    const { symbols } = this.graph;
    if (!symbols.length) return {};
    return new OpenEntry({ name: 'run', inputs: openInputs(this.graph), symbols }, unbounded, false).sizes(inputs);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#running?.then((program) => program.close(), () => {});
    this.#importer.close();
    this.graph.free();
  }
}

/** Sizes of calls without a bound. */
const unbounded = { most: () => undefined, bound: (sizes: Sizes) => sizes, fit: async () => undefined, measure: async () => ({}) };
