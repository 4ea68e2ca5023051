// The storage of weights.

import type { GraphBuilder, Value } from '../graph/builder.js';
import type { Initial } from '../graph/initial.js';
import type { DType } from '../values/dtype.js';
import { checkBuild, checkGiven, contextOf, during, inside, type Layer, type Storage, tieOf } from './layer.js';

/** The elements of a block of each packed format, and its bytes. */
const packedBlocks: Readonly<Record<string, readonly [elements: number, bytes: number]>> = {
  q4_0: [32, 18], q4_1: [32, 20], q5_0: [32, 22], q5_1: [32, 24], q8_0: [32, 34],
  q2_k: [256, 84], q3_k: [256, 110], q4_k: [256, 144], q5_k: [256, 176], q6_k: [256, 210], q8_k: [256, 292],
  iq4_nl: [32, 18], iq4_xs: [256, 136], mxfp4: [32, 17], nvfp4: [64, 36], f8_e4m3: [1, 1], f8_e5m2: [1, 1],
};

/** The elements and the bytes of a block of a packed format; undefined for a format that `quantizedMatmul` does not support. */
export function packedBlock(format: string): readonly [elements: number, bytes: number] | undefined {
  return Object.hasOwn(packedBlocks, format) ? packedBlocks[format] : undefined;
}

/**
 * Builds layers with the storage that `by` returns for each weight of a `linear`, an
 * `embedding`, a `groupedLinear` or the experts of a `moe` (a format alone), those within other layers included. It gets the full name of the
 * parameter, `layers/0/linear1/weight` or `moe/experts/w1`; undefined means the default.
 */
export function stored<T>(b: GraphBuilder, by: (name: string) => Storage | undefined, build: () => T): T {
  checkGiven(stored, typeof by === 'function', 'what says how weights are stored', 'a function', by);
  checkBuild(stored, build);
  return inside(stored, b, () => during(b, { stored: by }, build));
}

/** The weight of a layer, converted from its storage. */
export interface Weight extends Storage { value: Value }

/** The weight of an earlier layer by its full name, as rows. */
export const tiedWeight = ({ b }: Layer, name: string): Weight => ({ ...contextOf(b).stored?.(name), outIn: true, value: tieOf(b, name) });

/**
 * Declares the weight of a layer: rows are the outputs of a linear layer, or the entries of a table; `dtype` is the element type
 * that it has by default.
 */
export function declareWeight(l: Layer, init: Initial | undefined, usual: Initial, [rows, columns]: [rows: number, columns: number], dtype: DType, table: boolean): Weight {
  const name = 'weight', storage = storageOf(l.b, name), { format, outIn, dtype: own = dtype } = storage;
  return {
    ...storage,
    value: format === undefined ? l.param(name, init, usual, outIn || table ? [rows, columns] : [columns, rows], own) : declarePacked(l, name, format, [rows], columns),
  };
}

/** What `by` of {@link stored} returns for the parameter of a name in the open scope; no fields without one. */
export function storageOf(b: GraphBuilder, name: string): Storage {
  return inside(storageOf, b, () => contextOf(b).stored?.((b.scopeName && `${b.scopeName}/`) + name) ?? {});
}

/** Declares a frozen parameter of packed rows of a number of elements, [...lead, bytes]. */
export function declarePacked(l: Layer, name: string, format: string, lead: readonly number[], columns: number): Value {
  const [elements, bytes] = packedBlock(format) ?? l.fail('attr', `the format is ${format}: it must be one of ${Object.keys(packedBlocks).join(', ')}`);
  if (columns % elements) l.fail('shape', `rows have ${columns} elements: ${format} needs whole blocks of ${elements}`);
  return l.b.param(name, 'u8', [...lead, columns / elements * bytes], undefined, true);
}

/** x·weight, [..., out]. */
export function times(weight: Weight, x: Value): Value {
  const { format } = weight;
  return format === undefined ? x.linear(matrix(weight, x.dtype)) : x.quantizedMatmul(weight.value, { format });
}

/** Numbers as [in, out], of an element type. */
export function matrix({ value, outIn }: Weight, dtype: string): Value {
  return converted(outIn ? value.transpose([1, 0]) : value, dtype);
}

/** Rows of a table at ids, of an element type. */
export function rowsAt({ value, format }: Weight, ids: Value, dtype: DType, unordered?: boolean): Value {
  if (format === undefined) return converted(value.embedding(ids, unordered), dtype);
  const at = ids.checkIndex({ bound: [value.shape[0]!], what: 'embedding index' });
  return value.take(at, 0, 'clip').dequantize({ format, dtype });
}

const converted = (x: Value, dtype: string): Value => x.dtype === dtype ? x : x.convert(dtype as DType);
