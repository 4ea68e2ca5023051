// ONNX models in a page.

import { type ModuleProgramOptions, program as programOf } from '../compile/train.js';
import { init, type Limits } from '../compile/compiler.js';
import { asyncAtCaller } from '../graph/caller-stack.js';
import { type Graph, parseGraph } from '../graph/graph.js';
import { type FileSource, openSource, type Source } from '../files/source.js';
import type { Program } from '../program/program.js';
import type { Input } from '../program/types.js';
import type { Size } from '../sizes/graph.js';
import { checkOptions, need, RlxError } from '../values/errors.js';
import type { HostTensor, StoredTensor } from '../values/tensor.js';
import type { WasmSource } from '../wasm/module.js';
import { type Imported, Importer, type OnnxInfo, type ImportOptions, type OpenFile } from './importer.js';
import { loadWeights, readWeight, Runs } from './runs.js';
import { skeleton } from './skeleton.js';

/** The files that a model has its weights in besides its own, by their paths in its folder: a list, or a function. */
export type External = Readonly<Record<string, FileSource>> | ((path: string) => FileSource | Promise<FileSource>);

/** Options of {@link openONNX}. */
export interface OnnxOptions extends ImportOptions {
  /** The files of weights outside the model's. If not given they are beside a model's address, and otherwise missing. */
  external?: External;
  /** The options of the programs of {@link OnnxModel.run}. */
  program?: ModuleProgramOptions;
  /** The WebAssembly module that imports, if it is not the `onnx.wasm` next to this script. */
  importer?: WasmSource;
}

/** Options of {@link OnnxModel.program}. */
export interface OnnxProgramOptions extends Omit<ModuleProgramOptions, 'worker' | 'code'> {
  /** The sizes that open sizes are compiled for, by symbol: each that is called, without padding, if not given. */
  sizes?: Readonly<Record<string, Size>>;
  /** The device's capabilities; by default those of every WebGPU device. */
  limits?: Limits;
}

/** A weight of a model: a parameter of its graph. */
export interface OnnxWeight { readonly name: string; readonly dtype: string; readonly shape: readonly number[] }

/** An ONNX model. */
export interface OnnxModel {
  /** The inputs that the model declares, without those that have a value. In shapes open sizes are symbols. */
  readonly inputs: readonly OnnxInfo[];
  readonly outputs: readonly OnnxInfo[];
  /**
   * The outputs for inputs: tensors `{ shape, data }`, or elements where no more than one size is open. The model is
   * compiled for the sizes of the inputs, and its weights are loaded, the first time that they come; four sizes are
   * kept. The value of an input that decides about shapes is compiled, too.
   */
  run(inputs: Readonly<Record<string, Input>>): Promise<Record<string, HostTensor>>;
  /**
   * The graph, which computes the outputs from the inputs, by the model's names, and whose parameters are the weights.
   * Open sizes are its symbols. Rejects with an {@link RlxError} of kind `unsupported` or `shape` where a size is no
   * polynomial of them, or an input decides about shapes: give the sizes in `symbols`, and the value in `values`.
   */
  graph(): Promise<Graph>;
  /** The weights of the graph, in the order of first use. Their elements are read when they are asked for. */
  weights(): Promise<readonly OnnxWeight[]>;
  /** Reads a weight. */
  read(name: string): Promise<StoredTensor>;
  /**
   * Loads the weights into a program, one after the other: into parameters of their names, or of these within a scope
   * in which a graph calls the model's.
   */
  load(program: Program, scope?: string): Promise<void>;
  /** A program of the graph, as its entry `run`, with the weights, for all sizes. The caller closes it. */
  program(options?: OnnxProgramOptions): Promise<Program>;
  /** Frees the model and the programs of {@link OnnxModel.run}. */
  close(): void;
}

/**
 * Opens an ONNX model: a Blob, bytes, or a URL whose server supports ranges. It reads the model without the elements of large
 * tensors, which are read when a program needs them.
 *
 * Rejects with an {@link RlxError} of kind `syntax` for a damaged file, and `missing` for one that cannot be loaded. A
 * node that cannot be imported rejects the first run, or the graph, with `unsupported` and its op.
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
  const source = await sourceOf(given);
  try {
    return new Model(await Importer.start(module, await skeleton(source), source, filesOf(external, given)), rest, program);
  } catch (reason) {
    source.close();
    throw reason;
  }
}

/** The bytes of a file behind an address that is read whole, as each weight would be another request. */
const wholeBytes = 1 << 24;

/** Opens the model's file. */
async function sourceOf(given: FileSource): Promise<Source> {
  const source = await openSource(given);
  if (typeof given !== 'string' && !(given instanceof URL) || source.size > wholeBytes) return source;
  return openSource(await source.bytes(0, source.size));
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
  readonly inputs: readonly OnnxInfo[];
  readonly outputs: readonly OnnxInfo[];
  readonly #importer: Importer;
  readonly #options: ImportOptions;
  readonly #where: ModuleProgramOptions;
  #imported: Promise<Imported> | undefined;
  #graph: Graph | undefined;
  #runs: Runs | undefined;
  #closed = false;

  constructor(importer: Importer, options: ImportOptions, where: ModuleProgramOptions = {}) {
    const { narrow = true, symbols = {}, shapes = {}, values = {} } = options;
    this.#importer = importer;
    this.#options = options;
    this.#where = where;
    this.outputs = importer.outputs;
    this.inputs = importer.inputs.filter(({ name }) => !Object.hasOwn(values, name)).map((one) => {
      const shape = (shapes[one.name] ?? one.shape)?.map((dim) => symbols[dim] ?? dim);
      return { ...one, ...one.dtype === 'i64' && narrow && { dtype: 'i32' }, ...shape && { shape } };
    });
  }

  #check(): void { if (this.#closed) throw new RlxError('closed', 'the model is closed'); }

  async run(inputs: Readonly<Record<string, Input>>): Promise<Record<string, HostTensor>> {
    this.#check();
    need(Object(inputs) === inputs, 'missing', 'run: what is given', 'inputs by name', inputs);
    await init();
    return (this.#runs ??= new Runs(this.#importer, this.inputs, this.#options, this.#where)).run(inputs);
  }

  /** Imports the graph, once. It is parsed again where the compiler was started anew, or the graph was freed. */
  async #import(): Promise<{ graph: Graph; imported: Imported }> {
    this.#check();
    const importing = this.#imported ??= this.#importer.import(this.#options);
    importing.catch((reason: unknown) => { if (reason instanceof RlxError && reason.kind === 'missing') this.#imported = undefined; }); // another attempt may load the file
    const imported = await importing;
    await init();
    try {
      void this.#graph?.handle;
    } catch {
      this.#graph = undefined;
    }
    return { graph: this.#graph ??= parseGraph(imported.text), imported };
  }

  async graph(): Promise<Graph> { return (await this.#import()).graph; }

  async weights(): Promise<readonly OnnxWeight[]> { return (await this.#import()).imported.weights.map(({ name, dtype, shape }) => ({ name, dtype, shape })); }

  async read(name: string): Promise<StoredTensor> { return readWeight(this.#importer, (await this.#import()).imported, name); }

  async load(program: Program, scope?: string): Promise<void> { await loadWeights(this.#importer, (await this.#import()).imported, program, scope); }

  async program(options: OnnxProgramOptions = {}): Promise<Program> {
    const graph = await this.graph(), { sizes = Object.fromEntries(graph.symbols.map((symbol) => [symbol, { exact: true }])), limits = {}, ...rest } = options ?? {};
    const module = { name: graph.name, entries: { run: graph }, limits }, made = await this.#open(module, graph.symbols.length > 0 && sizes, rest);
    try {
      await this.load(made);
    } catch (reason) {
      made.close();
      throw reason;
    }
    return made;
  }

  async #open(module: { name: string; entries: { run: Graph }; limits: Limits }, sizes: OnnxProgramOptions['sizes'] | false, options: ModuleProgramOptions): Promise<Program> {
    if (!sizes) return programOf(module, options);
    const { openSizes } = await import('../sizes/program.js');
    return openSizes({ ...module, sizes }, options);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#runs?.close();
    this.#graph?.free();
    this.#importer.close();
  }
}
