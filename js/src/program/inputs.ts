// Checks of user inputs before they go to the device.

import type { Slot } from '../plan/plan.js';
import { arrayLength, arrayType, checkType, type TensorData, toDevice } from '../values/dtype.js';
import { classOf, type ErrorKind, type ErrorPlace, need, RlxError } from '../values/errors.js';
import { type HostTensor, Tensor } from '../values/tensor.js';
import type { Input } from './types.js';

/** The properties of a slot that a value is checked against. */
type Held = Pick<Slot, 'name' | 'dtype' | 'bytes' | 'range'> & { shape: readonly number[] };

/** An error about one value: its message begins with the op and the name. */
export const wrong = (kind: ErrorKind, op: string, name: string, what: string, place?: ErrorPlace): RlxError =>
  new RlxError(kind, `${op}: ${name} ${what}`, { op, name, ...place });

function checkShape(op: string, { name, dtype, shape: expected }: Held, shape: readonly number[]): void {
  if (shape.length !== expected.length || expected.some((n, i) => n !== shape[i])) throw wrong('shape', op, name, `has the shape [${shape}]: it must be ${dtype}[${expected}]`, { shape, expected });
}

/** Refuses another element type than the slot's. */
export function checkDType(op: string, { name, dtype }: Held, given: unknown): void {
  if (given !== dtype) throw wrong('dtype', op, name, `is ${given}: it must be ${dtype}`);
}

/** Refuses elements outside the slot's range. */
function checkRange(op: string, { name, range }: Held, data: TensorData): void {
  if (!range) return;
  const [lo, hi] = range;
  for (let i = 0; i < data.length; i++) {
    const v = data[i]!;
    if (v < lo || v >= hi) throw wrong('index', op, name, `has ${v} as element ${i}, outside [${lo}, ${hi})`);
  }
}

const isNumber = (value: unknown): value is number | boolean => typeof value === 'number' || typeof value === 'boolean';

/** The memory of one number, zero after its bytes. */
const word = new Uint8Array(4);

/** The device's bytes for a number, until the next call. */
function numberBytes(op: string, slot: Held, value: number | boolean): Uint8Array<ArrayBuffer> {
  const { dtype } = slot, n = Number(value), element = new (arrayType(dtype))(word.buffer, 0, 1);
  checkShape(op, slot, []);
  word.fill(0);
  element[0] = n;
  // A number is not the bits of a narrow float, nor 64 bits.
  if (dtype !== 'f32' && (element[0] !== n || dtype === 'bool' && n > 1 || /f|64/.test(dtype))) checkDType(op, slot, n);
  checkRange(op, slot, element);
  return word;
}

/**
 * The device's bytes for a tensor that is given from the host: `last`, those of an earlier value, if the memory is the same. Throws an
 * {@link RlxError} that names it.
 */
export function hostBytes(op: string, slot: Held, value: Exclude<Input, Tensor>, last?: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  if (isNumber(value)) return numberBytes(op, slot, value).slice();
  const { name, dtype, shape: expected } = slot, { shape } = Object(value) as { shape?: readonly number[] };
  const data = shape ? (value as { data: TensorData }).data : value as TensorData;
  checkType(`${op}: ${name}`, dtype, data);
  if (shape) checkShape(op, slot, shape);
  const size = arrayLength(dtype, expected, slot.bytes);
  if (data.length !== size) throw wrong('shape', op, name, `has ${data.length || 'no'} elements: it must be ${dtype}[${expected}] of ${size}`, { shape: [data.length], expected });
  checkRange(op, slot, data);
  return toDevice(dtype, data, last);
}

/** Checks a tensor on the device, and returns its owner's handle. */
export function deviceInput(op: string, slot: Slot, tensor: Tensor, owner: object): unknown {
  checkDType(op, slot, tensor.dtype);
  checkShape(op, slot, tensor.shape);
  return tensor.handleOf(owner);
}

/** Throws unless the value is a tensor in host memory. */
export function checkHost(op: string, name: string, value: HostTensor): void {
  if (!Array.isArray(value?.shape)) throw wrong('dtype', op, name, `is ${classOf(value)}: it must be a tensor { dtype, shape, data }`);
}

/** Throws unless the value is a list of names to read. */
export function checkNames(names: readonly string[]): readonly string[] {
  need(Array.isArray(names), 'name', 'what to read', 'a list of names', names);
  return names;
}

/** The error for an input that no run and no binding gave, and for a parameter that is read without a value or is not among those to load. */
export const missing = (op: string, { name, role, dtype, shape: expected }: Slot): RlxError =>
  wrong('missing', op, name, `is missing: give ${dtype}[${expected}], or ${op === 'load' ? 'allowMissing' : role === 'param' ? 'load it' : 'bind it'}`, { expected });

/** The device's bytes of a scalar in step k, until the next call: of one value, or, in a run of `steps` steps, of one in a list. */
export function scalarBytes(op: string, slot: Slot, value: Input, k: number, steps: number): Uint8Array {
  const { name, dtype } = slot;
  if (steps && Array.isArray(value)) {
    if (value.length !== steps) throw wrong('shape', op, name, `has ${value.length} values for ${steps} steps`, { shape: [value.length], expected: [steps] });
    value = value[k] as Input;
  }
  if (!isNumber(value)) throw wrong('dtype', op, name, `is ${classOf(value)}: it must be one ${dtype}`);
  return numberBytes(op, slot, value);
}
