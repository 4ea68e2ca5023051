// Checking what a user gives before it goes to the device.

import { arrayLength, arrayType, checkType, toDevice, type TensorData } from '../values/dtype.js';
import { RlxError } from '../values/errors.js';
import type { Slot } from '../plan/plan.js';
import type { Input } from './session.js';
import { Tensor } from '../values/tensor.js';

const sameShape = (a: readonly number[], b: readonly number[]): boolean => a.length === b.length && a.every((n, i) => n === b[i]);

function checkShape(op: string, { name, dtype, shape: expected }: Slot, shape: readonly number[]): void {
  if (sameShape(shape, expected)) return;
  throw new RlxError('shape', `${op}: ${name} is ${dtype}[${expected}], given with the shape [${shape}]`, { op, name, shape, expected });
}

/** Refuses elements outside the slot's range. */
function checkRange(op: string, { name, range }: Slot, data: TensorData): void {
  if (!range) return;
  const [lo, hi] = range;
  for (let i = 0; i < data.length; i++) {
    const v = data[i]!;
    if (v < lo || v >= hi) throw new RlxError('index', `${op}: ${name} has ${v} as element ${i}, outside [${lo}, ${hi})`, { op, name });
  }
}

/** The device's bytes for a tensor that is given from the host. Throws an {@link RlxError} that names the slot. */
export function hostBytes(op: string, slot: Slot, value: Exclude<Input, Tensor>): Uint8Array<ArrayBuffer> {
  const { name, dtype, shape: expected } = slot;
  const what = `${op}: ${name}`;
  let data: TensorData;
  if (typeof value === 'number' || typeof value === 'boolean') {
    checkShape(op, slot, []);
    data = new (arrayType(dtype))(new ArrayBuffer(4), 0, 1);
    data[0] = Number(value);
    if (dtype !== 'f32' && data[0] !== Number(value)) throw new RlxError('dtype', `${what} is ${dtype}, given as ${value}`, { op, name });
  } else {
    const shaped = value as { data: TensorData; shape: readonly number[] };
    data = shaped?.shape ? shaped.data : value as TensorData;
    checkType(what, dtype, data);
    if (shaped.shape) checkShape(op, slot, shaped.shape);
    const size = arrayLength(dtype, expected, slot.bytes);
    if (data.length !== size) {
      const empty = data.length === 0 ? ': an empty batch has no result' : '';
      const place = { op, name, shape: [data.length], expected };
      throw new RlxError('shape', `${what} is ${dtype}[${expected}] of ${size} elements, given with ${data.length}${empty}`, place);
    }
  }
  checkRange(op, slot, data);
  return toDevice(dtype, data);
}

/** Checks a tensor on the device, and returns what its owner knows it by. */
export function deviceInput(op: string, slot: Slot, tensor: Tensor, owner: object): unknown {
  const { name, dtype } = slot;
  if (tensor.dtype !== dtype) throw new RlxError('dtype', `${op}: ${name} is ${dtype}, given as ${tensor.dtype}`, { op, name });
  checkShape(op, slot, tensor.shape);
  return tensor.handleOf(owner);
}

/** Writes a scalar into a row at its place. */
export function putScalar(op: string, { name, dtype, offset }: Slot, value: unknown, row: DataView, at: number): void {
  const n = typeof value === 'boolean' ? Number(value) : value;
  if (typeof n !== 'number') {
    const given = Object.prototype.toString.call(value).slice(8, -1);
    throw new RlxError('dtype', `${op}: ${name} is one ${dtype}, given as ${given}`, { op, name });
  }
  at += offset;
  if (dtype === 'f32') return row.setFloat32(at, n, true);
  const [lo, hi] = dtype === 'i32' ? [-0x80000000, 0x7fffffff] : [0, dtype === 'bool' ? 1 : 0xffffffff];
  if (!Number.isInteger(n) || n < lo || n > hi) throw new RlxError('dtype', `${op}: ${name} is ${dtype}, given as ${n}`, { op, name });
  row.setInt32(at, n, true);
}
