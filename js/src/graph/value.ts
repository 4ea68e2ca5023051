import { blameCallers } from './blame.js';
import type { GraphBuilder } from './builder.js';
import { ValueOps } from './ops.gen.js';
import { checkWord } from '../values/errors.js';
import type { Attribute } from '../wasm/wire.js';

/** A size: a number, or a polynomial in symbols, such as `'batch'` or `'2*n + 1'`. */
export type Dim = number | string;

/** Element type and shape of a value. */
export interface ValueType {
  readonly dtype: string;
  readonly shape: readonly Dim[];
}

/** An operand: a value, or a number, which gets the element type of the op's other operands. */
export type Operand = Value | number | boolean;

/** The attributes of an op by name; those that are not given have their defaults. */
export type Attributes = Readonly<Record<string, Attribute | undefined>>;

/** The result of an index out of range: zeros, the nearest element, or wrapped from the other end. */
export type Outside = 'fill' | 'clip' | 'wrap';
const outsides = 'fill clip wrap';

/** The compiler's code of an {@link Outside}. */
function numberOf(op: string, outside: Outside): number {
  checkWord(`${op}: outside`, outside, outsides);
  return outsides.split(' ').indexOf(outside);
}

/** A name of this package as the compiler has it: `padLo` is `pad_lo`. */
export const snake = (name: string): string => name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`);

/** Reads a size. */
export const dimOf = (text: string): Dim => /^\d+$/.test(text) ? Number(text) : text;

/**
 * A value in a graph under construction. Its ops are its methods; numbers may stand in for
 * other operands. Elementwise ops broadcast as NumPy does.
 */
export class Value extends ValueOps implements ValueType {
  readonly dtype: string;
  readonly shape: readonly Dim[];
  /** The graph it belongs to. */
  readonly builder: GraphBuilder;
  /** Its number there. @internal */
  readonly id: number;

  /** @internal */
  constructor(builder: GraphBuilder, id: number, { dtype, shape }: ValueType) {
    super();
    this.builder = builder;
    this.id = id;
    this.dtype = dtype;
    this.shape = shape;
  }

  /** @internal */
  protected override apply(op: string, operands: readonly (Operand | undefined)[], attributes?: Attributes): Value[] {
    return this.builder.apply(op, [this, ...operands], attributes);
  }

  /** The matrix product, over the last axis and the one before last; axes before those are batch axes. */
  matmul(y: Value): Value { return this.builder.call('matmul', [this, y]); }
  /** The mean over rows of the cross-entropy of logits and integer labels. A label out of range is an error at run time. */
  crossEntropyMean(labels: Value): Value { return this.builder.call('cross_entropy_mean', [this, labels]); }
  /**
   * The slices along an axis that indices tell; an index outside gives zeros, the nearest slice, or counts on from the
   * other end. With `unordered` the derivative may add f32 in any order: faster, and not the same from run to run.
   */
  take(indices: Value, axis = 0, outside: Outside = 'fill', unordered = false): Value {
    return this.builder.call(unordered ? 'take_unordered' : 'take', [this, indices], [axis, numberOf('take', outside)]);
  }
  /** The elements along an axis at indices of the same rank; indices out of range are as in `take`. */
  takeAlongAxis(indices: Value, axis = -1, outside: Outside = 'fill'): Value {
    return this.builder.call('take_along_axis', [this, indices], [axis, numberOf('takeAlongAxis', outside)]);
  }
  /** A new axis of size 1. */
  expandDims(axis: number): Value { return this.builder.call('expand_dims', [this], [axis]); }
  /** A random key made from this one and an integer. */
  foldIn(n: Operand): Value { return this.builder.call('fold_in', [this, this.builder.value(n, 'u32')]); }
}

[Value, ValueOps].forEach(blameCallers);
