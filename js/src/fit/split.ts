// Rows to train with and rows to test with.

import { batches } from '../runtime/batches.js';
import { checkCount, checkOptions, need, RlxError } from '../values/errors.js';
import type { HostTensor } from '../values/tensor.js';

type Columns = Readonly<Record<string, HostTensor>>;

/** Options of {@link splitRows}. */
export interface SplitOptions {
  /** Chooses the rows: another seed, other rows. 0 if not given. */
  seed?: number;
  /** A tensor, such as the labels: rows with equal values of it are a class, and each part has its share of each class, up to one row. */
  stratify?: string;
}

/** Rows of some data. */
export type Part<D extends Columns> = { readonly [N in keyof D]: { readonly dtype: D[N]['dtype']; readonly shape: readonly number[]; readonly data: D[N]['data'] } };

/**
 * Divides the rows of data, along the first axis of each tensor, into rows to train with and rows to test with: the fraction `test` of
 * them, rounded, and at least one in each part. Rows keep their order; tensors are copies. The rows depend on their number, the seed and
 * the classes alone, and `SplitRows` of the Go package chooses the same ones. Throws an {@link RlxError}: `attr` for a fraction
 * that is not between 0 and 1 and for a class of a single row, `name` if `stratify` is unknown, `shape` for fewer than two rows
 * or tensors with different numbers of them, `limit` for a seed that is no count, `dtype`.
 */
export function splitRows<const D extends Columns>(data: D, test: number, options?: SplitOptions): { training: Part<D>; testing: Part<D> } {
  checkOptions('splitRows', options, 'seed stratify');
  const { seed = 0, stratify } = options ?? {};
  need(typeof test === 'number' && test > 0 && test < 1, 'attr', 'splitRows: test', 'between 0 and 1', test);
  checkCount('splitRows: seed', seed, 0, 2 ** 32 - 1);
  batches(data, { size: 1 }); // which checks the data
  const rows = Object.values(data)[0]!.shape[0]!;
  if (rows < 2) throw new RlxError('shape', `splitRows: there is ${rows} row: there must be two or more`);
  const classes = classesOf(data, rows, stratify), tested = new Uint8Array(rows);
  const begin = mixed(seed + 0x9e3779b9), rank = (row: number) => mixed(mixed(row) ^ begin);
  shares(classes, rows, Math.min(Math.max(Math.round(test * rows), 1), rows - 1)).forEach((n, i) => {
    for (const row of classes[i]!.sort((a, b) => rank(a) - rank(b)).slice(0, n)) tested[row] = 1;
  });
  const part = (as: number) => Object.fromEntries(Object.entries(data).map(([name, x]) => [name, rowsWhere(x, tested, as)])) as Part<D>;
  return { training: part(0), testing: part(1) };
}

/** The rows of each class, in the order of their first rows. */
function classesOf(data: Columns, rows: number, stratify: string | undefined): number[][] {
  if (stratify === undefined) return [Array.from({ length: rows }, (_, row) => row)];
  if (!Object.hasOwn(data, stratify)) throw new RlxError('name', `splitRows: stratify is ${stratify}, which is none of the tensors`, { name: stratify });
  const { buffer, byteOffset, byteLength } = data[stratify]!.data, bytes = new Uint8Array(buffer, byteOffset, byteLength), size = byteLength / rows;
  const classes = new Map<string, number[]>();
  for (let row = 0; row < rows; row++) {
    const label = bytes.subarray(row * size, (row + 1) * size).join(), known = classes.get(label);
    if (known) known.push(row);
    else classes.set(label, [row]);
  }
  const single = [...classes.values()].find(({ length }) => length === 1);
  if (single) throw new RlxError('attr', `splitRows: stratify is ${stratify}: row ${single[0]} is the only one of its class: each class must have two rows or more`);
  return [...classes.values()];
}

/** The number of rows of each class among `n` of all rows: by largest remainders, the first class of equal ones. */
function shares(classes: readonly number[][], rows: number, n: number): number[] {
  const out = classes.map(({ length }) => Math.floor(length * n / rows)), left = n - out.reduce((a, b) => a + b);
  const order = [...classes.keys()].sort((a, b) => classes[b]!.length * n % rows - classes[a]!.length * n % rows);
  for (const i of order.slice(0, left)) out[i]!++;
  return out;
}

/** The last step of MurmurHash3 (A. Appleby), which spreads each bit over all: a bijection of 32 bits. */
function mixed(x: number): number {
  let h = x;
  h = Math.imul(h ^ h >>> 16, 0x85ebca6b);
  h = Math.imul(h ^ h >>> 13, 0xc2b2ae35);
  return (h ^ h >>> 16) >>> 0;
}

/** The rows of a tensor that are chosen or not, in order. */
function rowsWhere({ dtype, shape, data }: HostTensor, chosen: Uint8Array, as: number): HostTensor {
  const rows = chosen.reduce((n, c) => n + Number(c === as), 0), width = data.length / chosen.length;
  const out = new (data.constructor as { new (length: number): typeof data })(rows * width);
  let at = 0;
  chosen.forEach((c, row) => {
    if (c !== as) return;
    out.set(data.subarray(row * width, (row + 1) * width), at);
    at += width;
  });
  return { dtype, shape: [rows, ...shape.slice(1)], data: out };
}
