// What all layers share: the context of a graph, scopes, parameters, checks.

import type { GraphBuilder, Value } from '../graph/builder.js';
import type { Called } from '../graph/caller-stack.js';
import type { Initial } from '../graph/initial.js';
import type { Dim } from '../graph/types.js';
import type { DType } from '../values/dtype.js';
import { checkOptions, checkWord, classOf, type ErrorKind, RlxError, shown } from '../values/errors.js';

/** Options of `lora`. */
export interface LoRAOptions {
  /** The rank of the added matrices. 8 if not given. */
  rank?: number;
  /** The added product is scaled by alpha / rank. The rank if not given. */
  alpha?: number;
  /** The dropout rate of the inputs of the added matrices. 0 if not given. */
  dropout?: number;
  /** The names of the layers that get matrices, the last parts of their scopes: `q_proj`. All if not given. */
  targets?: readonly string[];
}

/** The storage of the weight of a `linear` or an `embedding`, or of a `groupedLinear` or the experts of a `moe`, which have a format alone: see `stored`. Missing fields have the layer's defaults. */
export interface Storage {
  /**
   * The format in which rows are packed, one of `quantizedMatmul`: `q4_0`. The parameter is then u8 [out, bytes], [rows, bytes]
   * of an embedding or [experts, out, bytes], and frozen.
   */
  format?: string;
  /** The weight of a linear layer is [out, in], as PyTorch and GGUF files have it. Packed weights always are. */
  outIn?: boolean;
  /** The element type of numbers. They are converted where they are used. */
  dtype?: DType;
}

/** Options of `lora` with their defaults, and whether a layer gets matrices, by its scope. */
export type LowRank = Required<Omit<LoRAOptions, 'targets'>> & { fits(scope: string): boolean };

/** What the layers of one graph share while it is built. */
export interface Context {
  /** Undefined before `train` or `infer` was called. */
  training?: boolean;
  /** Whether declared parameters are frozen. */
  frozen: boolean;
  /** Whether parameters may have been declared before. */
  shared: boolean;
  /** The number of layers without a name, by scope and kind. */
  counts: Map<string, number>;
  /** What `linear` adds, if anything. */
  lora?: LowRank;
  /** The storage of weights, by full name. */
  stored?: (name: string) => Storage | undefined;
  /** The keys and values of earlier positions; undefined without a cache. */
  cache?: CacheContext;
  random: Stream;
}

/**
 * See {@link Context.cache}. `past` is the number of earlier positions, `steps` the number that a run adds. With `counts` the
 * program counts: `past` is that of each sequence of x, which continues the sequence `row` of `rows` if they are given.
 */
export interface CacheContext { length: number; past?: Value; steps?: Dim; counts?: boolean; rows?: number; row?: Value }

/** The random stream of a graph or of a block: the key of this step, the numbers that were folded into it, and where scopes within the block begin. */
export interface Stream { key?: Value; drawn: Set<number>; from?: number }

const contexts = new WeakMap<GraphBuilder, Context>();

/** A stream with number 0 in use: it derives the key of the next step. */
export const newStream = (key?: Value): Stream => ({ ...key && { key }, drawn: new Set([0]) });

/** The context of a graph and of the bodies in it. */
export function contextOf(b: GraphBuilder): Context {
  let found = contexts.get(b.root);
  if (!found) contexts.set(b.root, found = { frozen: false, shared: false, counts: new Map(), random: newStream() });
  return found;
}

/** Calls a function of the caller with a changed context, and restores the context. */
export function during<T>(b: GraphBuilder, change: Partial<Context>, build: () => T): T {
  const before = contextOf(b);
  contexts.set(b.root, { ...before, ...change });
  try {
    return b.outside(build);
  } finally {
    contexts.set(b.root, before);
  }
}

/** The number of earlier calls with the same text. */
export function count(b: GraphBuilder, text: string): number {
  const { counts } = contextOf(b), n = counts.get(text) ?? 0;
  counts.set(text, n + 1);
  return n;
}

/** The name of a layer whose parameters are in the open scope, without a separate scope. */
export const here = '.';

const { captureStackTrace } = Error as { captureStackTrace?(error: object, called: Called): void };

/** Throws unless a value has a class; the stack begins at the caller of `called`. */
export function checkGiven(called: Called, ok: unknown, what: string, must: string, given: unknown): void {
  if (ok) return;
  const error = new RlxError(given === undefined ? 'missing' : 'graph', `nn: ${what} is ${classOf(given)}: it must be ${must}`, { op: 'nn' });
  captureStackTrace?.(error, called);
  throw error;
}

/** Whether something is a value of a graph. */
export const isValue = (x: unknown): x is Value => typeof (x as Value | null)?.builder?.inside === 'function';

/** Runs a function over a builder: its errors begin at the caller of `called`. */
export function inside<T>(called: Called, b: GraphBuilder, run: () => T): T {
  checkGiven(called, typeof b?.inside === 'function', 'the first argument', 'a builder', b);
  return b.inside(called, run);
}

/** The builder of a value, for {@link inside}. */
export function builderOf(called: Called, x: Value): GraphBuilder {
  checkGiven(called, isValue(x), 'x', 'a value of a graph', x);
  return x.builder;
}

/** Refuses values that are not functions. */
export function checkBuild(called: Called, build: unknown): void {
  checkGiven(called, typeof build === 'function', 'what builds the layers', 'a function', build);
}

/** Options of all layers. */
export interface NameOption {
  /** The scope of the parameters. If not given it is the kind of layer and the number of those before it in the open scope: `linear0`. */
  name?: string;
}

/** The function of a kind of layer, for errors: `nn.batchNorm` of `batch_norm`. */
const opOf = (kind: string): string => `nn.${kind.replace(/_./g, ([, letter]) => letter!.toUpperCase())}`;

/** One layer while it is built: it declares parameters, and errors have its op, input and scope. */
export class Layer {
  readonly b: GraphBuilder;
  readonly kind: string;
  readonly x: Value;

  constructor(x: Value, kind: string) {
    this.b = x.builder;
    this.kind = kind;
    this.x = x;
  }

  /** Throws an error that names the layer's scope. */
  fail(kind: ErrorKind, message: string): never {
    const { x, b } = this, op = opOf(this.kind), type = `${x.dtype}[${x.shape}]`, scope = b.scopeName;
    throw new RlxError(kind, `${op}(${type})${scope && ` in ${scope}`}: ${message}`, { op, operands: [type] });
  }

  /** Throws an error of kind `attr` unless ok. */
  require(ok: boolean, message: string): void {
    if (!ok) this.fail('attr', message);
  }

  /** Throws unless n is an integer of at least min. */
  requireCount(n: number, what: string, min = 1): void {
    this.require(Number.isInteger(n) && n >= min, `${what} is ${shown(n)}, not an integer of at least ${min}`);
  }

  /** Throws unless x has at least n axes. */
  rank(n: number, what: string): void {
    if (this.x.shape.length < n) this.fail('shape', `x is not ${what}`);
  }

  /** A size of x that the shape of a parameter needs as a number. */
  size(axis: number): number {
    const size = this.x.shape.at(axis);
    if (size === undefined) this.fail('shape', `x has no axis ${axis}`);
    if (typeof size !== 'number') this.fail('symbol', `axis ${axis} of x, ${size}, is symbolic: the shape of a parameter needs a number`);
    return size;
  }

  /** Declares a parameter of x's element type, initialised by `given`, or else by `usual`. */
  param(name: string, given: Initial | undefined, usual: Initial, shape: readonly number[], dtype = this.x.dtype): Value {
    return declare(this.b, name, given ?? usual, shape, dtype, contextOf(this.b).frozen);
  }

  /** Whether `train` is in effect. */
  get training(): boolean {
    return contextOf(this.b).training ?? this.fail('graph', 'it differs between training and inference: call nn.train or nn.infer first');
  }

  /** Throws unless a rate is in [0, 1). */
  requireRate(rate: number): void {
    this.require(typeof rate === 'number' && rate >= 0 && rate < 1, `the dropout rate is ${shown(rate)}, not in [0, 1)`);
  }

  /** Dropout within a layer. */
  drop(x: Value, rate: number): Value {
    this.requireRate(rate);
    return rate === 0 || !this.training ? x : x.dropout(drawKey(this.b, 'dropout'), rate);
  }
}

/** Declares a parameter, or returns the one declared before if parameters are shared. */
export function declare(b: GraphBuilder, name: string, initial: Initial, shape: readonly number[], dtype: string, frozen: boolean): Value {
  return sharedPort(b, name, shape, dtype) ?? b.param(name, dtype as DType, shape, initial, frozen);
}

/** The port of that name and type that was declared before, if those are shared. */
export function sharedPort(b: GraphBuilder, name: string, shape: readonly number[], dtype: string): Value | undefined {
  const found = contextOf(b).shared && b.declared(b.scopeName ? `${b.scopeName}/${name}` : name);
  return found && found.dtype === dtype && `${found.shape}` === `${shape}` ? found : undefined;
}

/** A parameter that was declared before, by its full name. See the exported function `tie`. */
export function tieOf(b: GraphBuilder, name: string): Value {
  const found = b.declared(name);
  if (!found) throw new RlxError('name', `nn.tie: no parameter ${shown(name)} is declared so far`, { op: 'nn.tie', name: shown(name) });
  return found;
}

/**
 * Builds a layer for an exported function, `called`, in its scope. Options are checked against the known names. x is a
 * float value, unless the layer takes integers.
 */
export function layer<T>(called: Called, kind: string, x: Value, options: NameOption | undefined, known: string, build: (l: Layer) => T, integers = false): T {
  return inside(called, builderOf(called, x), () => {
    checkOptions(opOf(kind), options, `name ${known}`);
    const own = x.local, b = own.builder, name = options?.name || kind + count(b, `${b.scopeName}/${kind}`);
    const run = () => {
      const l = new Layer(own, kind);
      if (!integers && !/^b?f\d/.test(x.dtype)) l.fail('dtype', `x is ${x.dtype}, of no float type`);
      return build(l);
    };
    return name === here ? run() : b.scoped(name, run);
  });
}

/** The state of the random stream, see `key`. */
export const randomState = 'rng';

/** See the exported function `key`. */
export function drawKey(b: GraphBuilder, name: string): Value {
  const stream = contextOf(b).random, { root } = b;
  if (!stream.key) {
    stream.key = root.unscoped(() => root.state(randomState, 'u32', [2], { rule: 'key', args: [] }));
    root.unscoped(() => root.setState(randomState, stream.key!.foldIn(0)));
  }
  const path = `${b.scopeName.slice(stream.from)}:${name}`;
  let number = fnv32(`${path}#${count(b, path)}`);
  while (stream.drawn.has(number)) number = number + 1 >>> 0;
  stream.drawn.add(number);
  return stream.key.foldIn(number);
}

/** FNV-1a of 32 bits, as in the Go package nn. */
function fnv32(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}

/** PyTorch's initial rule of weights and biases: uniform in ±1/√in. */
export function fanIn(n: number): Initial {
  const bound = 1 / Math.sqrt(Math.max(n, 1));
  return { rule: 'uniform', args: [-bound, bound] };
}

/** The axis of channels: the last, or the one after the batch. */
export const channelAxis = (channelsFirst: boolean | undefined): number => channelsFirst ? 1 : -1;

/** Moves an axis of a value. */
export function moveAxis(x: Value, from: number, to: number): Value {
  const axes = x.shape.map((_, i) => i), at = (axis: number) => axis < 0 ? axis + axes.length : axis;
  const [moved] = axes.splice(at(from), 1);
  axes.splice(to < 0 ? to + x.shape.length : to, 0, moved!);
  return x.transpose(axes);
}

/** A function of a value with its channels last; the channels of the result move back. */
export function channelsLast(x: Value, channelsFirst: boolean | undefined, build: (x: Value) => Value): Value {
  return channelsFirst ? moveAxis(build(moveAxis(x, 1, -1)), -1, 1) : build(x);
}

/** A list with an entry for each axis, from a number, a list or nothing. */
export function perAxis(l: Layer, what: string, given: number | readonly number[] | undefined, usual: number, min: number, axes: number): readonly number[] {
  const list = typeof given === 'object' ? given : Array<number>(axes).fill(given ?? usual);
  l.require(Array.isArray(list) && list.length === axes, `${what} has ${shown((list as readonly number[] | null)?.length)} entries, not one for each of ${axes} axes`);
  for (const n of list) l.requireCount(n, what, min);
  return list;
}

/** A word for padding, as of `conv2d` of values. */
export type Padding = 'same' | 'valid';

/** Whether a layer keeps the sizes. Throws for other words, and where `pad` is given as well. */
export function isSame(l: Layer, { padding, pad }: { padding?: Padding; pad?: number | readonly number[] }): boolean {
  if (padding === undefined) return false;
  checkWord('padding', padding, 'same valid');
  l.require(pad === undefined, 'both padding and pad are given');
  return padding === 'same';
}

/** The padding of a window that keeps the sizes, with the odd element at the end. */
export function samePadding(window: readonly number[], dilations: readonly number[]): [low: number[], high: number[]] {
  const total = window.map((n, i) => (n - 1) * dilations[i]!);
  return [total.map((n) => Math.floor(n / 2)), total.map((n) => Math.ceil(n / 2))];
}
