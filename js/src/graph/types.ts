// The types of values, and the names and sizes in calls of the compiler.

import type { Attribute } from '../wasm/wire.js';

/** A size: a number, or a polynomial in symbols, such as `'batch'` or `'2*n + 1'`. */
export type Dim = number | string;

/** Axes of a value, from 0, or from the last one by -1: a list, or a number for one axis. */
export type Axes = number | readonly number[];

/** Element type and shape of a value. */
export interface ValueType {
  readonly dtype: string;
  readonly shape: readonly Dim[];
}

/** An operand: a value of type V, or a number, which gets the element type of the op's other operands. */
export type OperandOf<V> = V | number | boolean;

/** The attributes of an op by name; those that are not given have their defaults. */
export type Attributes = Readonly<Record<string, Attribute | undefined>>;

/** A name of this package as the compiler has it: `padLo` is `pad_lo`. */
export const snake = (name: string): string => name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`);

/** Reads a size. */
export const dimOf = (text: string): Dim => /^\d+$/.test(text) ? Number(text) : text;
