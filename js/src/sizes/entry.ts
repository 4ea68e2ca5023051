// Entries with open sizes: the values of their symbols in a call.

import type { ValueType } from '../graph/types.js';
import type { Input, Inputs } from '../program/types.js';
import { sizeOf } from '../values/dtype.js';
import { checkCount, classOf, RlxError, unknownName } from '../values/errors.js';

/** Sizes by symbol. */
export type Sizes = Readonly<Record<string, number>>;

/** The beginning of the names of inputs that hold true sizes, as in the Go package internal/compiler/padding. */
export const sizePrefix = 'size:';

/** The location of an output's true elements in the padded one. Both are reshaped so that the elements are at the start of each axis. */
export interface Crop {
  /** The true shape. */
  readonly dims: readonly number[];
  /** The true and the padded sizes of the axes of the reshaped output. */
  readonly box: readonly number[];
  readonly full: readonly number[];
}

/** An input with an open size. */
export interface OpenInput extends ValueType { readonly name: string }

const isSymbol = (dim: unknown): dim is string => typeof dim === 'string' && /^[A-Za-z_]\w*$/.test(dim);

/** The symbols that are sizes of axes of inputs, sorted. Throws an {@link RlxError} of kind `symbol` for one that is only part of sizes. */
export function symbolsOf(name: string, inputs: readonly OpenInput[]): string[] {
  const dims = inputs.flatMap(({ shape }) => shape.filter((dim) => typeof dim === 'string')), symbols = [...new Set(dims.filter(isSymbol))].sort();
  for (const symbol of dims.join(' ').match(/[A-Za-z_]\w*/g) ?? []) {
    if (!symbols.includes(symbol)) throw new RlxError('symbol', `entry ${name}: symbol ${symbol} is not the size of an axis of an input, only part of one`, { op: name, name: symbol });
  }
  return symbols;
}

/** The error for an input or a parameter that has no value. */
export const missing = (op: string, how: string, { name, dtype, shape }: OpenInput): RlxError =>
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

/** What the sizes of calls of an entry are padded to. */
export interface Sizing {
  /** The smallest size of all symbols, 1 if not given. */
  readonly least?: number;
  /** The largest size of a symbol, if there is one. */
  most(symbol: string): number | undefined;
  /** The sizes to compile for. */
  bound(sizes: Sizes): Sizes;
  /** The crops of the outputs, for true sizes and those to compile for; undefined if the padded graph does not serve them. */
  fit(sizes: Sizes, bound: Sizes): Promise<ReadonlyMap<string, Crop> | undefined>;
  /** The values of inputs of a padded graph that hold true sizes. */
  measure(names: readonly string[], sizes: Sizes): Promise<Record<string, number>>;
}

/** An entry whose symbols are bound by the shapes of its inputs. */
export class OpenEntry {
  readonly name: string;
  /** Its symbols, sorted. */
  readonly symbols: readonly string[];
  /** Whether a run changes parameters or states. */
  readonly writes: boolean;
  readonly #inputs: readonly OpenInput[];
  readonly #sizing: Sizing;
  readonly #calls = new Map<string, OpenCall>();

  /** The entry of inputs with open sizes. */
  constructor({ name, inputs, symbols }: { name: string; inputs: readonly OpenInput[]; symbols: readonly string[] }, sizing: Sizing, writes: boolean) {
    this.name = name;
    this.symbols = symbols;
    this.writes = writes;
    this.#inputs = inputs;
    this.#sizing = sizing;
  }

  /** The call for sizes of the symbols. */
  async call(sizes: Sizes): Promise<OpenCall> {
    const key = keyOf(this.symbols, sizes), known = this.#calls.get(key);
    if (known) return known;
    const call: OpenCall = { sizes, bound: this.#sizing.bound(sizes) }, crops = await this.#sizing.fit(sizes, call.bound);
    if (crops) call.crops = crops;
    if (this.#calls.size >= maxCalls) this.#calls.clear();
    this.#calls.set(key, call);
    return call;
  }

  /**
   * The values of inputs of a call's padded graph that hold true sizes, and the shapes of its inputs with open sizes. Throws an
   * {@link RlxError} of kind `shape` for an axis, such as one of `n+1`, that has another size.
   */
  async measured(call: OpenCall, names: readonly string[], inputs: Inputs): Promise<{ values: Record<string, number>; shapes: Map<string, readonly number[]> }> {
    const parts = this.#inputs.flatMap(({ shape }) => shape.filter((dim) => typeof dim === 'string').map((dim) => sizePrefix + dim));
    const known = call.values ??= await this.#sizing.measure([...new Set([...names, ...parts])], call.sizes), shapes = new Map<string, readonly number[]>();
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
    checkCount(`${this.name}: size ${symbol}`, n, this.#sizing.least ?? 1, this.#sizing.most(symbol));
    return n;
  }

  /** The shape of an input: as given, or derived from the number of its elements where one axis is open. */
  #shape(port: OpenInput, value: Input | undefined): readonly number[] {
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

  #wrong({ name, dtype, shape: declared }: OpenInput, shape: readonly number[], expected: OpenInput['shape'] = declared): RlxError {
    return new RlxError('shape', `${this.name}: ${name} has the shape [${shape}]: it must be ${dtype}[${expected}]`, { op: this.name, name, shape });
  }
}

/** Sizes as text. */
export const keyOf = (symbols: readonly string[], sizes: Sizes): string => symbols.map((symbol) => `${symbol}=${sizes[symbol]}`).join(', ');
