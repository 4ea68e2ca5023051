// Entries with open sizes of graphs: which sizes they are compiled for, and what padding means in them.

import type { Graph, Port } from '../graph/graph.js';
import { checkCount, checkOptions, classOf, RlxError, unknownName } from '../values/errors.js';
import { type Crop, type OpenEntry, type Sizes, type Sizing, symbolsOf, Unfit } from './entry.js';
import { Analysis, type Padding } from './padding.js';

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

/** The inputs of a graph with an open size. */
export const openInputs = (graph: Graph): Port[] => graph.ports.filter(({ kind, shape }) => kind === 'input' && shape.some((dim) => typeof dim === 'string'));

/** Whether a graph has open sizes. */
export const isOpen = (graph: Graph): boolean => graph.ports.some(({ shape }) => shape.some((dim) => typeof dim === 'string'));

/** The sizes of calls of a graph. */
export class GraphSizing implements Sizing {
  /** The symbols of the graph, sorted. */
  readonly symbols: readonly string[];
  readonly text: string;
  readonly #name: string;
  readonly #sizes: Readonly<Record<string, Size>>;
  readonly #padding: Padding;
  /** What padding means in its graph; undefined if all symbols are exact. */
  #analysis: Analysis | undefined;

  /** Throws an {@link RlxError} of kind `symbol` where something but an input has an open size, or no axis of an input has the size of a symbol. */
  constructor(name: string, graph: Graph, sizes: Readonly<Record<string, Size>>, padding: Padding) {
    this.#name = name;
    this.#sizes = sizes;
    this.#padding = padding;
    this.text = graph.text();
    const other = graph.ports.find(({ kind, shape }) => kind !== 'input' && shape.some((dim) => typeof dim === 'string'));
    if (other) throw new RlxError('symbol', `entry ${name}: ${other.kind} ${other.name} has the shape [${other.shape}]: only inputs may have open sizes`, { op: name, name: other.name });
    this.symbols = symbolsOf(name, openInputs(graph));
  }

  /** Finds out how to pad the graph. Rejects with an {@link RlxError} of kind `unsupported` for a graph that cannot be padded. */
  async analyze(): Promise<void> {
    const padded = this.symbols.filter((symbol) => !this.#sizes[symbol]?.exact);
    if (!padded.length) return;
    this.#analysis = new Analysis(this.#padding, this.text, padded);
    await this.#analysis.start().catch((reason: unknown) => {
      if (!(reason instanceof RlxError) || reason.kind !== 'unsupported') throw reason;
      throw new RlxError('unsupported', `entry ${this.#name} cannot be padded, sizes with exact: true are compiled for each size: ${reason.message}`, { ...reason.place, op: this.#name, cause: reason });
    });
  }

  most(symbol: string): number | undefined { return mostOf(this.#sizes[symbol]); }

  bound(sizes: Sizes): Sizes { return Object.fromEntries(this.symbols.map((symbol) => [symbol, bucketOf(sizes[symbol]!, this.#sizes[symbol])])); }

  async fit(sizes: Sizes, bound: Sizes): Promise<ReadonlyMap<string, Crop> | undefined> { return this.#analysis?.fit(sizes, bound); }

  measure(names: readonly string[], sizes: Sizes): Promise<Record<string, number>> { return this.#analysis!.measure(names, sizes); }

  /** The graph padded to sizes, as text. Rejects with {@link Unfit} if the graph cannot have the sizes, after which the call is compiled for its own. */
  async padded(bound: Sizes): Promise<string> {
    try {
      return await this.#analysis!.pad(bound);
    } catch (reason) {
      throw reason instanceof RlxError && reason.kind !== 'wasm' ? new Unfit(reason.message) : reason;
    }
  }
}

/** The largest size of a symbol. */
const mostOf = (size?: Size): number | undefined => size?.max ?? size?.buckets?.at(-1);

/** The size to compile for. */
function bucketOf(n: number, size?: Size): number {
  if (size?.exact) return n;
  return size?.buckets?.find((bucket) => bucket >= n) ?? Math.min(2 ** (32 - Math.clz32(n - 1)), mostOf(size) ?? Infinity);
}

/** Refuses options of symbols that no entry has. */
export function checkSizes(sizes: Readonly<Record<string, Size>>, entries: Iterable<OpenEntry>): void {
  const known = new Set([...entries].flatMap(({ symbols }) => symbols));
  for (const [symbol, size] of Object.entries(sizes)) {
    if (!known.has(symbol)) throw unknownName('sizes: the module has no symbol', symbol, known);
    checkOptions(`sizes: ${symbol}`, size, 'exact buckets max');
    const { exact, buckets, max } = size ?? {};
    if (buckets !== undefined) checkBuckets(symbol, buckets);
    if (exact && buckets?.length) throw new RlxError('attr', `sizes: ${symbol} is exact and has buckets: one of them is left out`, { name: symbol });
    if (max !== undefined) checkCount(`sizes: the max of ${symbol}`, max, 1);
  }
}

/** Refuses a list of buckets that does not ascend from 1. */
function checkBuckets(symbol: string, buckets: readonly number[]): void {
  if (Array.isArray(buckets) && buckets.every((n, i) => Number.isSafeInteger(n) && n >= 1 && n >= (buckets[i - 1] ?? 1))) return;
  throw new RlxError('attr', `sizes: the buckets of ${symbol} are ${Array.isArray(buckets) ? `[${buckets}]` : classOf(buckets)}: they must be whole numbers that ascend from 1`, { name: symbol });
}
