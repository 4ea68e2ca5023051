// What functions over a builder share: checks of operands and options, literals.

import type { GraphBuilder, Value } from '../graph/builder.js';
import type { Called } from '../graph/caller-stack.js';
import { part } from '../graph/part.js';
import type { Dim } from '../graph/types.js';
import { checkOptions, classOf, type ErrorKind, RlxError, shown } from '../values/errors.js';

/** A number for all axes, or a list with one for each. */
export type PerAxis = number | readonly number[];

/** Whether this is a value of a graph. */
export const isValue = (x: unknown): x is Value => typeof (x as Value | null)?.builder?.inside === 'function';
const typeOf = ({ dtype, shape }: Value): string => `${dtype}[${shape}]`;

/** A function while it is built: its errors have its name and the types of its operands. */
export class Check {
  readonly op: string;
  readonly operands: readonly Value[];
  readonly b: GraphBuilder;

  constructor(op: string, operands: readonly Value[]) {
    this.op = op;
    this.operands = operands;
    this.b = operands[0]!.builder;
  }

  fail(kind: ErrorKind, message: string): never {
    const types = this.operands.map(typeOf);
    throw new RlxError(kind, `${this.op}(${types.join(', ')}): ${message}`, { op: this.op, operands: types });
  }

  /** Throws an error of kind `attr` unless ok. */
  attr(ok: boolean, message: string): void { if (!ok) this.fail('attr', message); }

  /** Throws an error of kind `shape` unless ok. */
  shape(ok: boolean, message: string): void { if (!ok) this.fail('shape', message); }

  /** Requires operands of one float type of 16 bits or more. */
  floats(): void {
    const [{ dtype: first }] = this.operands as [Value];
    for (const { dtype } of this.operands) {
      if (!/^b?f(16|32|64)$/.test(dtype)) this.fail('dtype', `an operand is ${dtype}: it must be of a float type of 16 bits or more`);
      if (dtype !== first) this.fail('dtype', `an operand is ${dtype}: it must be ${first} as the first is`);
    }
  }

  /** A size that must be a number. */
  size(x: Value, axis: number, name: string): number {
    const size = x.shape.at(axis);
    if (size === undefined) this.fail('shape', `${name} has no axis ${axis}`);
    if (typeof size !== 'number') this.fail('symbol', `axis ${axis} of ${name} is ${size}: it must be a number`);
    return size;
  }

  /** An axis from the front. */
  axis(axis: number, rank: number): number {
    this.attr(Number.isInteger(axis) && axis >= -rank && axis < rank, `axis is ${shown(axis)}: it must be in [${-rank}, ${rank})`);
    return axis < 0 ? axis + rank : axis;
  }

  /** One of some words, separated by spaces; the first if it is not given. */
  word<W extends string>(name: string, given: W | undefined, words: string): W {
    const known = words.split(' ');
    this.attr(given === undefined || known.includes(given), `${name} is ${shown(given)}: it must be one of ${known.join(', ')}`);
    return given ?? known[0] as W;
  }

  /** A list with an entry for each axis, from a number, a list or nothing. */
  perAxis(what: string, given: PerAxis | undefined, usual: number, least: number, axes: number): readonly number[] {
    const list = typeof given === 'object' ? given : Array<number>(axes).fill(given ?? usual);
    this.attr(Array.isArray(list) && list.length === axes, `${what} must have one entry for each of ${axes} axes`);
    for (const n of list) this.attr(Number.isInteger(n) && n >= least, `${what} has ${shown(n)}: it must be a whole number of ${least} or more`);
    return list;
  }
}

/** Builds an exported function, `called`; errors begin at its caller. */
export function calling<T>(called: Called, op: string, operands: readonly Value[], options: unknown, known: string, build: (c: Check) => T): T {
  const wrong = operands.find((x) => !isValue(x));
  if (!operands.every(isValue)) throw new RlxError(wrong === undefined ? 'missing' : 'graph', `${op}: an operand is ${classOf(wrong)}: it must be a value of a graph`, { op });
  return operands[0]!.builder.inside(called, () => {
    checkOptions(op, options, known);
    return build(new Check(op, operands));
  });
}

/** The type in which values of a type are computed: f32 for narrower floats. */
export const wide = (x: Value): Value => /^b?f16$/.test(x.dtype) ? x.convert('f32') : x;

/** The result in the type of an operand. */
export const narrow = (y: Value, { dtype }: Value): Value => y.dtype === dtype ? y : y.convert(dtype as 'f32');

/** A literal of numbers, of the element type of a value. */
export const numbers = (like: Value, list: readonly number[], shape: readonly number[] = [list.length]): Value =>
  like.builder.constant(like.dtype as 'f32', shape, (like.dtype === 'f64' ? Float64Array : Float32Array).from(list) as Float32Array);

/** A literal of indices. */
export const indices = (b: GraphBuilder, list: readonly number[], shape: readonly number[] = [list.length]): Value => b.constant('i32', shape, Int32Array.from(list));

/** A number in the shape of a value. */
export const full = (like: Value, n: number): Value => like.builder.full(like.dtype as 'f32', like.shape, n);

/** One position of an axis, without it. */
export const item = (x: Value, axis: number, at: number): Value => part(x, axis, at, 1).squeeze([axis]);

/** The whole numbers up to n. */
export const counting = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

/** x times a number. */
export const scale = (x: Value, by: number): Value => x.mul(full(x, by));

/** x plus a number. */
export const plus = (x: Value, by: number): Value => x.add(full(x, by));

/** x where the condition holds, and a number elsewhere. */
export const where = (condition: Value, x: Value, otherwise: number): Value => condition.select(x, full(x, otherwise));

/** A value in another shape, whose last axes are those of the value or those of its axes of size 1. */
export function broadcastTo(x: Value, shape: readonly Dim[]): Value {
  const from = shape.length - x.shape.length;
  return same(x.shape, shape) ? x : x.broadcastInDim({ shape, axes: x.shape.map((_, i) => from + i) });
}

const same = (a: readonly Dim[], b: readonly Dim[]): boolean => a.length === b.length && a.every((size, i) => size === b[i]);

/** Values of one type in their common shape. */
export function broadcast(...values: readonly Value[]): Value[] {
  const { shape } = values.reduce((common, x) => common.add(x.stopGradient())); // for its shape; the value is not used
  return values.map((x) => broadcastTo(x, shape));
}

/** The precision of values computed in at least f32: the distance of 1 from the next number. */
export const epsilon = ({ dtype }: Value): number => dtype === 'f64' ? 2 ** -52 : 2 ** -23;
