// Entries with open sizes: what their symbols are in a call.

import type { Graph, Port } from '../graph/graph.js';
import type { Input, Inputs } from '../program/types.js';
import { sizeOf } from '../values/dtype.js';
import { checkCount, checkOptions, classOf, RlxError, unknownName } from '../values/errors.js';

/** Says which sizes a symbol may have. */
export interface Size {
  /** The largest size; a larger one is refused. Unbounded if not given. */
  max?: number;
}

/** Sizes by symbol. */
export type Sizes = Readonly<Record<string, number>>;

const isSymbol = (dim: unknown): dim is string => typeof dim === 'string' && /^[A-Za-z_]\w*$/.test(dim);

/** The inputs of a graph with an open size. */
const openInputs = (graph: Graph): Port[] => graph.ports.filter(({ kind, shape }) => kind === 'input' && shape.some((dim) => typeof dim === 'string'));

/** Whether a graph has open sizes. */
export const isOpen = (graph: Graph): boolean => graph.ports.some(({ shape }) => shape.some((dim) => typeof dim === 'string'));

/** The error for an input or a parameter that has no value. */
export const missing = (op: string, how: string, { name, dtype, shape }: Pick<Port, 'name' | 'dtype' | 'shape'>): RlxError =>
  new RlxError('missing', `${op}: ${name} is missing: give ${dtype}[${shape}], or ${how}`, { op, name });

/** An entry whose symbols the shapes of its inputs give. */
export class OpenEntry {
  readonly name: string;
  readonly text: string;
  /** Its symbols, sorted. */
  readonly symbols: readonly string[];
  /** Whether a run changes parameters or states. */
  readonly writes: boolean;
  readonly #inputs: readonly Port[];
  readonly #sizes: Readonly<Record<string, Size>>;

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

  /** Sizes that are given by name, in the order of the symbols. Throws an {@link RlxError}: `symbol` for one without a size, `name` for one that is unknown, `limit`. */
  given(sizes: Sizes): Sizes {
    for (const symbol in sizes) if (!this.symbols.includes(symbol)) throw unknownName(`${this.name} has no symbol`, symbol, this.symbols, this.name);
    return Object.fromEntries(this.symbols.map((symbol) => {
      const n = sizes?.[symbol];
      if (n === undefined) throw new RlxError('symbol', `${this.name}: symbol ${symbol} has no size`, { op: this.name, name: symbol });
      return [symbol, this.#checked(symbol, n)];
    }));
  }

  #checked(symbol: string, n: number): number {
    checkCount(`${this.name}: size ${symbol}`, n, 1, this.#sizes[symbol]?.max);
    return n;
  }

  /** The shape of an input: what it says, or what its number of elements says of one open axis. */
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

  #wrong({ name, dtype, shape: expected }: Port, shape: readonly number[]): RlxError {
    return new RlxError('shape', `${this.name}: ${name} has the shape [${shape}]: it must be ${dtype}[${expected}]`, { op: this.name, name, shape });
  }
}

/** Refuses options of symbols that no entry has. */
export function checkSizes(sizes: Readonly<Record<string, Size>>, entries: Iterable<OpenEntry>): void {
  const known = new Set([...entries].flatMap(({ symbols }) => symbols));
  for (const [symbol, size] of Object.entries(sizes)) {
    if (!known.has(symbol)) throw unknownName('sizes: the module has no symbol', symbol, known);
    checkOptions(`sizes: ${symbol}`, size, 'max');
    if (size.max !== undefined) checkCount(`sizes: the max of ${symbol}`, size.max, 1);
  }
}
