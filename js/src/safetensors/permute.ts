// Axes in another order.

import type { StoredData } from '../values/dtype.js';

/** A copy of an array, of a shape, whose axis i is the axis `order[i]` of the array. */
export function permuted<D extends StoredData>(data: D, shape: readonly number[], order: readonly number[]): D {
  const strides = shape.map((_, axis) => shape.slice(axis + 1).reduce((n, size) => n * size, 1));
  const sizes = order.map((axis) => shape[axis]!), steps = order.map((axis) => strides[axis]!), at = sizes.map(() => 0);
  const out = new (data.constructor as { new (length: number): D })(data.length);
  for (let i = 0, from = 0; i < out.length; i++) {
    out[i] = data[from]!;
    for (let axis = order.length - 1; axis >= 0; axis--) {
      from += steps[axis]!;
      if (++at[axis]! < sizes[axis]!) break;
      from -= steps[axis]! * sizes[axis]!;
      at[axis] = 0;
    }
  }
  return out;
}
