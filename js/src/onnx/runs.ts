// Runs of a model at the sizes of their inputs, which are given to the importer: many models compute with sizes what no
// polynomial says, such as halves that are rounded down, and an attempt with open sizes took as long as the import.

import { program as programOf, type ModuleProgramOptions } from '../compile/train.js';
import { type Output, parseGraph } from '../graph/graph.js';
import type { Program } from '../program/program.js';
import type { Input, Inputs } from '../program/types.js';
import { arrayOf } from '../safetensors/convert.js';
import { OpenEntry, type Sizes, symbolsOf } from '../sizes/entry.js';
import { arrayType, checkType, type TensorData } from '../values/dtype.js';
import { classOf, RlxError, unknownName } from '../values/errors.js';
import { type HostTensor, type StoredTensor, Tensor } from '../values/tensor.js';
import { type Imported, type Importer, type ImportOptions, NeedsValues, type OnnxInfo, type Weight } from './importer.js';

/** The sizes that are ready at a time. Each has the weights in memory of its own, which are read from the file once. */
const maxSizes = 4;
/** The elements of an input up to which it may decide about shapes, so that each value of it is compiled. */
const maxFixed = 4096;

/** A program for some sizes, what it needs of the inputs, and its weights. */
interface Ready { program: Program; inputs: ReadonlyMap<string, { shape: readonly number[]; dtype: string }>; outputs: readonly Output[]; weights: Imported['weights'] }

/** Loads the weights of an import into a program, one after the other. */
export async function loadWeights(importer: Importer, imported: Imported, program: Program, scope = ''): Promise<void> {
  for (const { name } of imported.weights) await program.load({ [scope ? `${scope}/${name}` : name]: await readWeight(importer, imported, name) }, { allowMissing: true });
}

/** Reads a weight of an import. */
export async function readWeight(importer: Importer, imported: Imported, name: string): Promise<StoredTensor> {
  const number = imported.weights.findIndex((one) => one.name === name), weight = imported.weights[number];
  if (!weight) throw unknownName('the model has no weight', name, imported.weights.map((one) => one.name));
  const { dtype, shape } = weight, bytes = await importer.read(imported, weight, number), type = arrayOf(dtype);
  return { dtype, shape, data: new type(bytes.buffer, 0, bytes.length / type.BYTES_PER_ELEMENT) };
}

/** The runs of a model. */
export class Runs {
  readonly #importer: Importer;
  readonly #inputs: readonly (OnnxInfo & { dtype: string; shape: NonNullable<OnnxInfo['shape']> })[];
  readonly #options: ImportOptions;
  readonly #where: ModuleProgramOptions;
  /** The inputs that decide about shapes, and so are computed with at import. */
  readonly #fixed = new Set<string>();
  /** Programs by sizes and fixed values, the one used last at the end. */
  readonly #ready = new Map<string, Promise<Ready>>();
  /** That of the last run, which is among them. */
  #last: Ready | undefined;
  #tail: Promise<unknown> = Promise.resolve();

  constructor(importer: Importer, inputs: readonly OnnxInfo[], options: ImportOptions, where: ModuleProgramOptions) {
    this.#importer = importer;
    this.#inputs = inputs.map((one) => {
      if (!one.dtype) throw new RlxError('unsupported', `run: input ${one.name} is of ${one.element}: it must be a tensor of numbers`, { name: one.name });
      if (!one.shape) throw new RlxError('shape', `run: the model declares no shape of input ${one.name}: give it in shapes`, { name: one.name });
      return { ...one, dtype: one.dtype, shape: one.shape };
    });
    this.#options = options;
    this.#where = where;
  }

  /** Runs the model after the runs before. */
  run(inputs: Inputs): Promise<Record<string, HostTensor>> {
    const turn = this.#tail.then(() => this.#run(inputs));
    this.#tail = turn.catch(() => {});
    return turn;
  }

  async #run(given: Inputs): Promise<Record<string, HostTensor>> {
    const sizes = this.#sizes(given);
    for (;;) {
      const values: Record<string, HostTensor> = {};
      for (const name of this.#fixed) values[name] = await this.#value(name, given[name]!, sizes);
      try {
        return await this.#runAt(given, sizes, values);
      } catch (reason) {
        const next = reason instanceof NeedsValues ? reason.inputs.find((name) => !this.#fixed.has(name) && given[name] !== undefined) : undefined;
        if (next === undefined) throw reason;
        this.#fixed.add(next);
      }
    }
  }

  /** Runs the program for some sizes. */
  async #runAt(given: Inputs, sizes: Sizes, values: Record<string, HostTensor>): Promise<Record<string, HostTensor>> {
    const { program, inputs, outputs } = this.#last = await this.#readyFor(sizes, values), fed: Record<string, Input> = {};
    for (const [name, { shape, dtype }] of inputs) fed[name] = await ofPort(name, given[name]!, shape, dtype);
    const { reading } = await program.run('run', fed, { read: outputs.map(({ name }) => name) }), read = (await reading!).values;
    return Object.fromEntries(outputs.map(({ name, dtype, shape }) => [name, { dtype, shape: shape as number[], data: read[name]! }]));
  }

  /** The sizes of the model's symbols in inputs. */
  #sizes(given: Inputs): Sizes {
    for (const { name, dtype, shape } of this.#inputs) {
      if (given[name] === undefined) throw new RlxError('missing', `run: input ${name} is missing: give ${dtype}[${shape}]`, { op: 'run', name });
    }
    for (const name in given) if (!this.#inputs.some((one) => one.name === name)) throw unknownName('run: the model has no input', name, this.#inputs.map((one) => one.name), 'run');
    const open = this.#inputs.filter(({ shape }) => shape.some((dim) => typeof dim === 'string'));
    return open.length ? new OpenEntry({ name: 'run', inputs: open, symbols: symbolsOf('run', open) }, unbounded, false).sizes(given) : {};
  }

  /** The value of an input that decides about shapes. */
  async #value(name: string, given: Input, sizes: Sizes): Promise<HostTensor> {
    const { dtype, shape } = this.#inputs.find((one) => one.name === name)!, dims = shape.map((dim) => typeof dim === 'number' ? dim : sizes[dim]!);
    const { data } = given instanceof Tensor ? { data: await given.data() } : ArrayBuffer.isView(given) ? { data: given } : Object(given) === given ? given as HostTensor : { data: number(dtype, given) };
    if (!ArrayBuffer.isView(data)) throw new RlxError('dtype', `run: ${name} is ${classOf(given)}: it must be ${dtype}[${shape}]`, { op: 'run', name });
    if (data.length > maxFixed) throw new RlxError('unsupported', `run: input ${name} decides about shapes and has ${data.length} elements: they may be ${maxFixed}`, { name });
    return { dtype, shape: dims, data };
  }

  #readyFor(sizes: Sizes, values: Record<string, HostTensor>): Promise<Ready> {
    const key = JSON.stringify([sizes, Object.entries(values).map(([name, { data }]) => [name, [...data]])]);
    const known = this.#ready.get(key) ?? this.#prepare(sizes, values).catch((reason) => {
      this.#ready.delete(key);
      throw reason;
    });
    this.#ready.delete(key);
    this.#ready.set(key, known);
    const [[oldest, old]] = this.#ready as unknown as [[string, Promise<Ready>]];
    if (this.#ready.size > maxSizes) {
      this.#ready.delete(oldest);
      old.then(({ program }) => program.close(), () => {});
    }
    return known;
  }

  /** Compiles the model for some sizes, and loads the weights. */
  async #prepare(sizes: Sizes, values: Record<string, HostTensor>): Promise<Ready> {
    const { symbols, values: given } = this.#options, imported = await this.#importer.import({ ...this.#options, symbols: { ...symbols, ...sizes }, values: { ...given, ...values } });
    const graph = parseGraph(imported.text);
    try {
      const program: Program = await programOf({ name: graph.name, entries: { run: graph } }, this.#where);
      await this.#load(imported, program).catch((reason: unknown) => {
        program.close();
        throw reason;
      });
      const inputs = graph.ports.filter(({ kind }) => kind === 'input').map(({ name, shape, dtype }) => [name, { shape: shape as number[], dtype }] as const);
      return { program, inputs: new Map(inputs), outputs: graph.outputs, weights: imported.weights };
    } finally {
      graph.free();
      this.#importer.free(imported);
    }
  }

  /** Loads weights: from the program for other sizes that has them, or from the file. */
  async #load(imported: Imported, program: Program): Promise<void> {
    const last = this.#last, known = new Map(last?.weights.filter(({ file }) => file).map((one) => [placeOf(one), one.name]));
    for (const one of imported.weights) {
      const { name, dtype, shape } = one, from = known.get(placeOf(one));
      const tensor = from === undefined ? await readWeight(this.#importer, imported, name) : { dtype, shape, data: await last!.program.read(from) };
      await program.load({ [name]: tensor }, { allowMissing: true });
    }
  }

  close(): void { for (const ready of this.#ready.values()) ready.then(({ program }) => program.close(), () => {}); }
}

/** The type of a weight and its place, by which weights of two imports are the same: names depend on which others there are. */
const placeOf = ({ dtype, shape, file, offset, length }: Weight): string => `${dtype}[${shape}] ${offset} ${length} ${file}`;

/** A value as a port takes it: of one number where the port has no axis. */
async function ofPort(name: string, given: Input, shape: readonly number[], dtype: string): Promise<Input> {
  if (shape.length || given instanceof Tensor || typeof given !== 'object') return given;
  const { data } = ArrayBuffer.isView(given) ? { data: given } : given as HostTensor;
  if (!ArrayBuffer.isView(data)) throw new RlxError('dtype', `run: ${name} is ${classOf(given)}: it must be one ${dtype}`, { op: 'run', name });
  checkType(`run: ${name}`, dtype, data);
  if (data.length !== 1) throw new RlxError('shape', `run: ${name} has ${data.length} elements: it must be ${dtype}[] of 1`, { op: 'run', name });
  return data[0]!;
}

/** One number of an element type. */
function number(dtype: string, value: unknown): TensorData {
  const data = new (arrayType(dtype))(new ArrayBuffer(8), 0, 1);
  data[0] = Number(value);
  return data;
}

/** Sizes of calls without a bound: a cache of tokens is empty at first. */
const unbounded = { least: 0, most: () => undefined, bound: (sizes: Sizes) => sizes, fit: async () => undefined, measure: async () => ({}) };
