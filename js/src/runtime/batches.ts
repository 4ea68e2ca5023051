import { checkHost } from '../program/inputs.js';
import type { Inputs } from '../program/types.js';
import { arrayLength, checkType, sizeOf, type TensorData } from '../values/dtype.js';
import { checkOptions, RlxError, shown } from '../values/errors.js';
import { byName } from '../values/named.js';
import type { HostTensor } from '../values/tensor.js';

/** The handling of a last, smaller batch. */
export type LastBatch =
  /** Its rows are left out of this epoch. */
  | 'drop'
  /** It is filled up with zeros, and the f32 input of this name is 1 for real rows and 0 for others. */
  | { mask: string }
  /** It runs in a separate entry, compiled for that number of rows. */
  | { entry: string };

export interface BatchOptions<L extends LastBatch = LastBatch> {
  /** Rows in a batch. */
  size: number;
  /** The handling of remaining rows. Required if the data is not a multiple of `size`. */
  last?: L;
  /** A seed: each epoch takes the rows in another order. Without it they come in their own. */
  shuffle?: number;
  /** How often to go through the data. Without end if not given. */
  epochs?: number;
}

/** Inputs for a step, and the entry to run it with, if that is another one. */
export interface Batch<I = Inputs> { inputs: I; entry?: string; rows: number }

/** The inputs of batches of some data. */
export type Rows<D extends Readonly<Record<string, HostTensor>>> = { readonly [N in keyof D]: { data: D[N]['data']; shape: number[] } };

/** The input that marks real rows. */
type MaskOf<L> = [L] extends [never] ? unknown : L extends { readonly mask: infer M extends string } ? { readonly [N in M]: Float32Array } : unknown;

/**
 * Cuts data into batches along the first axis. The arrays of a batch are used again for the
 * next one, so a batch is good until the next is asked for. Throws an {@link RlxError} at once:
 * `name`, `dtype`, `shape`, `limit`.
 */
export function batches<D extends Readonly<Record<string, HostTensor>>, const L extends LastBatch = never>(data: D, options: BatchOptions<L>): Generator<Batch<Rows<D> & MaskOf<L>>, void, void> {
  checkOptions('batches', options, 'size last shuffle epochs');
  const { size, last, shuffle, epochs = Infinity } = options ?? {};
  const columns = Object.entries(data ?? {}), rows = columns[0]?.[1]?.shape?.[0] ?? 0;
  for (const [name, column] of columns) {
    checkHost('batches', name, column);
    const { dtype, shape, data: given } = column;
    checkType(`batches: ${name}`, dtype, given);
    if (given.length !== arrayLength(dtype, shape, 8 * sizeOf(shape))) throw new RlxError('shape', `batches: ${name} has ${given.length} elements, not [${shape}]`, { name, shape });
    if (shape[0] !== rows) throw new RlxError('shape', `batches: ${name} has ${shape[0]} rows, others ${rows}`, { name, shape });
  }
  if (!(Number.isInteger(size) && size > 0 && (last === 'drop' ? rows >= size : rows))) throw new RlxError('shape', `batches: no batch: ${rows} rows by ${shown(size)}`);
  if (last !== 'drop') checkOptions('last', last, 'mask entry');
  const { mask, entry }: { mask?: string; entry?: string } = Object(last), short = last === 'drop' ? 0 : rows % size;
  if (short && !mask && !entry) {
    throw new RlxError('shape', `batches: ${short} of ${rows} rows are left over: set last to 'drop', { mask } or { entry }`);
  }
  const order = Uint32Array.from({ length: rows }, (_, i) => i);
  const full = collector(columns, size), rest = entry ? collector(columns, short) : full;
  const random = shuffle === undefined ? undefined : generator(shuffle);
  const batch = (at: number, rows: number, collect = full): Batch => {
    const inputs = collect(order.subarray(at, at + rows));
    return { inputs: mask ? { ...inputs, [mask]: new Float32Array(size).fill(1, 0, rows) } : inputs, rows };
  };
  return function* (): Generator<Batch<any>, void, void> {
    for (let epoch = 0; epoch < epochs; epoch++) {
      if (random) shuffleRows(order, random);
      for (let at = 0; at + size <= rows; at += size) yield batch(at, size);
      if (short) yield { ...batch(rows - short, short, rest), ...entry && { entry } };
    }
  }();
}

/** Returns a function that collects rows into reused arrays; missing rows are zeros. */
function collector(columns: [string, HostTensor][], size: number): (rows: Uint32Array) => Record<string, { data: TensorData; shape: number[] }> {
  const into = columns.map(([name, { shape, data }]) => {
    const width = data.length / shape[0]!, made = new (data.constructor as { new (length: number): TensorData })(size * width);
    return { name, width, from: data, data: made, shape: [size, ...shape.slice(1)] };
  });
  return (rows) => byName(into, ({ width, from, data, shape }) => {
    rows.forEach((row, i) => data.set(from.subarray(row * width, (row + 1) * width), i * width));
    data.fill(0, rows.length * width);
    return { data, shape };
  });
}

function shuffleRows(order: Uint32Array, random: () => number): void {
  for (let i = order.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [order[i], order[j]] = [order[j]!, order[i]!];
  }
}

/** Numbers in [0, 1), the same for the same seed: SplitMix32. */
function generator(seed: number): () => number {
  return () => {
    seed = seed + 0x9e3779b9 | 0;
    let z = Math.imul(seed ^ seed >>> 16, 0x21f0aaad);
    z = Math.imul(z ^ z >>> 15, 0x735a2d97);
    return ((z ^ z >>> 15) >>> 0) / 2 ** 32;
  };
}
