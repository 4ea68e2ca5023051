// Copies of the true elements of padded arrays.

import type { TensorData } from '../values/dtype.js';
import { sizeOf } from '../values/dtype.js';
import type { Crop } from './entry.js';

/**
 * Copies the box at the start of each axis between two row-major arrays of the given sizes. `box` has
 * its number of elements along each axis.
 */
function copyBox(to: TensorData, from: TensorData, box: readonly number[], toDims: readonly number[], fromDims: readonly number[]): void {
  let inner = box.length, run = 1; // elements that are contiguous in both arrays
  while (inner > 0) {
    inner--;
    run *= box[inner]!;
    if (toDims[inner] !== box[inner] || fromDims[inner] !== box[inner]) break;
  }
  const copyRows = (axis: number, at: number, start: number, toStep: number, fromStep: number): void => {
    if (axis === inner) return to.set(from.subarray(start, start + run), at);
    const toRow = toStep / toDims[axis]!, fromRow = fromStep / fromDims[axis]!;
    for (let i = 0; i < box[axis]!; i++) copyRows(axis + 1, at + i * toRow, start + i * fromRow, toRow, fromRow);
  };
  copyRows(0, 0, 0, sizeOf(toDims), sizeOf(fromDims));
}

type ArrayClass = new (length: number) => TensorData;

/** The elements of an array at the start of each axis of a larger one, with zeros around them, in memory from a call before if it fits. */
export function padded(data: TensorData, dims: readonly number[], into: readonly number[], memory?: TensorData): TensorData {
  const fits = memory?.constructor === data.constructor, to = fits ? memory.fill(0) : new (data.constructor as ArrayClass)(sizeOf(into));
  copyBox(to, data, dims, into, dims);
  return to;
}

/** The true elements of an output. */
export function cropped(data: TensorData, { box, full }: Crop): TensorData {
  if (box.every((n, axis) => n === full[axis])) return data;
  const to = new (data.constructor as ArrayClass)(sizeOf(box));
  copyBox(to, data, box, box, full);
  return to;
}
