// Entries with open sizes: the values of their symbols in a call.

import type { Graph, Port } from '../graph/graph.js';
import type { Input, Inputs } from '../program/types.js';
import { sizeOf } from '../values/dtype.js';
import { checkCount, checkOptions, classOf, RlxError, unknownName } from '../values/errors.js';
import { Analysis, type Crop, type Padding, sizePrefix, type Sizes } from './padding.js';

/**
 * Lists the sizes that a symbol is compiled for. Calls of other sizes are padded to the next larger
 * one. Their results have the elements of a program for the true size, up to the order of sums.
 */
export interface Size {
  /** Whether to compile for each size that is called, without padding. */
  exact?: boolean;
  /** The sizes to compile for, ascending; the powers of two if not given. */
  buckets?: readonly number[];
  /** The largest size; a larger one is refused. The last of `buckets` if not given, or none. */
  max?: number;
}

const isSymbol = (dim: unknown): dim is string => typeof dim === 'string' && /^[A-Za-z_]\w*$/.test(dim);

/** The inputs of a graph with an open size. */
const openInputs = (graph: Graph): Port[] => graph.ports.filter(({ kind, shape }) => kind === 'input' && shape.some((dim) => typeof dim === 'string'));

/** Whether a graph has open sizes. */
export const isOpen = (graph: Graph): boolean => graph.ports.some(({ shape }) => shape.some((dim) => typeof dim === 'string'));

/** The error for an input or a parameter that has no value. */
export const missing = (op: string, how: string, { name, dtype, shape }: Pick<Port, 'name' | 'dtype' | 'shape'>): RlxError =>
  new RlxError('missing', `${op}: ${name} is missing: give ${dtype}[${shape}], or ${how}`, { op, name });

/** What follows from the sizes of a call. */
export interface OpenCall {
  readonly sizes: Sizes;
  /** The sizes to compile for. */
  readonly bound: Sizes;
  /** Where the outputs' true elements lie. Without it the call is compiled for its sizes. */
  crops?: ReadonlyMap<string, Crop>;
  /** True sizes by the names of inputs that hold them. */
  values?: Readonly<Record<string, number>>;
}

/** The error of a bucket whose sizes the padded graph cannot have, such as an odd size that is halved. */
export class Unfit extends Error {}

/** The number of calls that an entry keeps, by their sizes. */
const maxCalls = 1024;

/** An entry whose symbols are bound by the shapes of its inputs. */
export class OpenEntry {
  readonly name: string;
  readonly text: string;
  /** Its symbols, sorted. */
  readonly symbols: readonly string[];
  /** Whether a run changes parameters or states. */
  readonly writes: boolean;
  readonly #inputs: readonly Port[];
  readonly #sizes: Readonly<Record<string, Size>>;
  /** What padding means in its graph; undefined if all symbols are exact. */
  #analysis: Analysis | undefined;
  readonly #calls = new Map<string, OpenCall>();

  /** Throws an {@link RlxError} of kind `symbol` where something but an input has an open size, or no axis of an input has the size of a symbol. */
  constructor(name: string, graph: Graph, sizes: Readonly<Record<string, Size>>) {
    this.name = name;
    this.text = graph.text();
    this.writes = graph.outputs.some(({ state }) => state);
    this.#inputs = openInputs(graph);
    this.#sizes = sizes;
    const other = graph.ports.find(({ kind, shape }) => kind !== 'input' && shape.some((dim) => typeof dim === 'string'));
    if (other) throw new RlxError('symbol', `entry ${name}: ${other.kind} ${other.name} has the shape [${other.shape}]: only inputs may have open sizes`, { op: name, name: other.name });
    const dims = this.#inputs.flatMap(({ shape }) => shape.filter((dim) => typeof dim === 'string'));
    this.symbols = [...new Set(dims.filter(isSymbol))].sort();
    for (const symbol of dims.join(' ').match(/[A-Za-z_]\w*/g) ?? []) {
      if (!this.symbols.includes(symbol)) throw new RlxError('symbol', `entry ${name}: symbol ${symbol} is not the size of an axis of an input, only part of one`, { op: name, name: symbol });
    }
  }

  /** Finds out how to pad the graph. Rejects with an {@link RlxError} of kind `unsupported` for a graph that cannot be padded. */
  async analyze(padding: Padding): Promise<void> {
    const padded = this.symbols.filter((symbol) => !this.#sizes[symbol]?.exact);
    if (!padded.length) return;
    this.#analysis = new Analysis(padding, this.text, padded);
    await this.#analysis.start().catch((reason: unknown) => {
      if (!(reason instanceof RlxError) || reason.kind !== 'unsupported') throw reason;
      throw new RlxError('unsupported', `entry ${this.name} cannot be padded, sizes with exact: true are compiled for each size: ${reason.message}`, { ...reason.place, op: this.name, cause: reason });
    });
  }

  /** The call for sizes of the symbols. */
  async call(sizes: Sizes): Promise<OpenCall> {
    const key = keyOf(this.symbols, sizes), known = this.#calls.get(key);
    if (known) return known;
    const call: OpenCall = { sizes, bound: Object.fromEntries(this.symbols.map((symbol) => [symbol, bucketOf(sizes[symbol]!, this.#sizes[symbol])])) };
    const crops = await this.#analysis?.fit(sizes, call.bound);
    if (crops) call.crops = crops;
    if (this.#calls.size >= maxCalls) this.#calls.clear();
    this.#calls.set(key, call);
    return call;
  }

  /** The padded graph of a call, as text. Rejects with {@link Unfit} if the graph cannot have the sizes, after which the call is compiled for its own. */
  async padded(call: OpenCall): Promise<string> {
    try {
      return await this.#analysis!.pad(call.bound);
    } catch (reason) {
      throw reason instanceof RlxError && reason.kind !== 'wasm' ? new Unfit(reason.message) : reason;
    }
  }

  /**
   * The values of inputs of a call's padded graph that hold true sizes, and the shapes of its inputs with open sizes. Throws an
   * {@link RlxError} of kind `shape` for an axis, such as one of `n+1`, that has another size.
   */
  async measured(call: OpenCall, names: readonly string[], inputs: Inputs): Promise<{ values: Record<string, number>; shapes: Map<string, readonly number[]> }> {
    const parts = this.#inputs.flatMap(({ shape }) => shape.filter((dim) => typeof dim === 'string').map((dim) => sizePrefix + dim));
    const known = call.values ??= await this.#analysis!.measure([...new Set([...names, ...parts])], call.sizes), shapes = new Map<string, readonly number[]>();
    for (const port of this.#inputs) {
      const shape = this.#shape(port, inputs[port.name]), expected = port.shape.map((dim) => typeof dim === 'string' ? known[sizePrefix + dim]! : dim);
      if (`${shape}` !== `${expected}`) throw this.#wrong(port, shape, expected);
      shapes.set(port.name, shape);
    }
    return { values: Object.fromEntries(names.map((name) => [name, known[name]!])), shapes };
  }

  /**
   * The sizes of the symbols for inputs. Throws an {@link RlxError}: `missing` for an input that is not given, `symbol` if two
   * inputs differ, `shape` for a shape that does not fit, or that is not known, `limit` for a size above the largest.
   */
  sizes(inputs: Inputs): Sizes {
    const sizes: Record<string, number> = {}, from: Record<string, string> = {};
    for (const port of this.#inputs) {
      const shape = this.#shape(port, inputs[port.name]);
      for (const [axis, dim] of port.shape.entries()) {
        const n = shape[axis]!, first = isSymbol(dim) ? sizes[dim] : dim;
        if (!isSymbol(dim)) {
          if (typeof dim === 'number' && n !== dim) throw this.#wrong(port, shape);
        } else if (first === undefined) {
          [sizes[dim], from[dim]] = [this.#checked(dim, n), port.name];
        } else if (first !== n) {
          throw new RlxError('symbol', `${this.name}: size ${dim} is ${first} in input ${from[dim]} and ${n} in input ${port.name}`, { op: this.name, name: port.name });
        }
      }
    }
    return sizes;
  }

  /**
   * Sizes by name, in the order of the symbols. Throws an {@link RlxError}: `symbol` for one
   * without a size, `name` for an unknown one, `limit`.
   */
  given(sizes: Sizes): Sizes {
    for (const symbol in sizes) if (!this.symbols.includes(symbol)) throw unknownName(`${this.name} has no symbol`, symbol, this.symbols, this.name);
    return Object.fromEntries(this.symbols.map((symbol) => {
      const n = sizes?.[symbol];
      if (n === undefined) throw new RlxError('symbol', `${this.name}: symbol ${symbol} has no size`, { op: this.name, name: symbol });
      return [symbol, this.#checked(symbol, n)];
    }));
  }

  #checked(symbol: string, n: number): number {
    checkCount(`${this.name}: size ${symbol}`, n, 1, mostOf(this.#sizes[symbol]));
    return n;
  }

  /** The shape of an input: as given, or derived from the number of its elements where one axis is open. */
  #shape(port: Port, value: Input | undefined): readonly number[] {
    if (value === undefined) throw missing(this.name, 'bind it', port);
    const { shape, length } = Object(value) as { shape?: readonly number[]; length?: number };
    if (shape) {
      if (shape.length !== port.shape.length) throw this.#wrong(port, shape);
      return shape;
    }
    const open = port.shape.filter((dim) => typeof dim === 'string'), rest = sizeOf(port.shape.filter((dim) => typeof dim === 'number'));
    if (length === undefined || open.length > 1) {
      throw new RlxError('shape', `${this.name}: ${port.name} is ${classOf(value)}, whose shape is not known: give { shape, data } for ${port.dtype}[${port.shape}]`, { op: this.name, name: port.name });
    }
    if (length % rest) throw new RlxError('shape', `${this.name}: ${port.name} has ${length} elements: it must be ${port.dtype}[${port.shape}]`, { op: this.name, name: port.name, shape: [length] });
    return port.shape.map((dim) => typeof dim === 'number' ? dim : length / rest);
  }

  #wrong({ name, dtype, shape: declared }: Port, shape: readonly number[], expected: Port['shape'] = declared): RlxError {
    return new RlxError('shape', `${this.name}: ${name} has the shape [${shape}]: it must be ${dtype}[${expected}]`, { op: this.name, name, shape });
  }
}

/** The largest size of a symbol. */
const mostOf = (size?: Size): number | undefined => size?.max ?? size?.buckets?.at(-1);

/** The size to compile for. */
function bucketOf(n: number, size?: Size): number {
  if (size?.exact) return n;
  return size?.buckets?.find((bucket) => bucket >= n) ?? Math.min(2 ** (32 - Math.clz32(n - 1)), mostOf(size) ?? Infinity);
}

/** Sizes as text. */
export const keyOf = (symbols: readonly string[], sizes: Sizes): string => symbols.map((symbol) => `${symbol}=${sizes[symbol]}`).join(', ');

/** Refuses options of symbols that no entry has. */
export function checkSizes(sizes: Readonly<Record<string, Size>>, entries: Iterable<OpenEntry>): void {
  const known = new Set([...entries].flatMap(({ symbols }) => symbols));
  for (const [symbol, size] of Object.entries(sizes)) {
    if (!known.has(symbol)) throw unknownName('sizes: the module has no symbol', symbol, known);
    checkOptions(`sizes: ${symbol}`, size, 'exact buckets max');
    const { buckets, max } = size ?? {};
    if (buckets !== undefined) checkBuckets(symbol, buckets);
    if (max !== undefined) checkCount(`sizes: the max of ${symbol}`, max, 1);
  }
}

/** Refuses a list of buckets that does not ascend from 1. */
function checkBuckets(symbol: string, buckets: readonly number[]): void {
  if (Array.isArray(buckets) && buckets.every((n, i) => Number.isSafeInteger(n) && n >= 1 && n >= (buckets[i - 1] ?? 1))) return;
  throw new RlxError('attr', `sizes: the buckets of ${symbol} are ${Array.isArray(buckets) ? `[${buckets}]` : classOf(buckets)}: they must be whole numbers that ascend from 1`, { name: symbol });
}
