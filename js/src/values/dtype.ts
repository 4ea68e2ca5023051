import { classOf, RlxError } from './errors.js';

/** The element types a tensor on WebGPU can have. */
export type DType = 'bool' | 'i8' | 'u8' | 'f8e4m3fn' | 'f8e5m2' | 'i16' | 'u16' | 'i32' | 'u32' | 'f16' | 'bf16' | 'f32';

/**
 * The elements of a tensor, row-major. A `bool` tensor is a Uint8Array of 0 and 1; floats of 8
 * bits are the bits in a Uint8Array, `f16` and `bf16` in a Uint16Array; packed types, and
 * those of 64 bits and more, which programs on the CPU have, are their bytes.
 */
export type TensorData = Int8Array | Uint8Array | Int16Array | Uint16Array | Int32Array | Uint32Array | Float32Array;

/** The elements of a tensor in a file, which may be wider than a program's; a `c64` is two numbers. */
export type StoredData = TensorData | Float64Array | BigInt64Array | BigUint64Array;

type ArrayType = { new (buffer: ArrayBuffer, offset: number, length: number): TensorData; readonly BYTES_PER_ELEMENT: number };

/** The class of typed array that holds the elements of each dtype. @internal */
export const arrayTypes: Record<string, ArrayType> = {
  bool: Uint8Array, u8: Uint8Array, f8e4m3fn: Uint8Array, f8e5m2: Uint8Array, i8: Int8Array,
  u16: Uint16Array, f16: Uint16Array, bf16: Uint16Array, i16: Int16Array,
  u32: Uint32Array, i32: Int32Array, f32: Float32Array,
};

/** The class of typed array that holds a dtype's elements. */
export const arrayType = (dtype: string): ArrayType => arrayTypes[dtype] ?? Uint8Array;

/** The number of elements of a shape. */
export const sizeOf = (shape: readonly number[]): number => shape.reduce((n, d) => n * d, 1);

/** The maximum of `of` over items, and of `min`. */
export const maxOf = <T>(items: readonly T[], of: (item: T) => number, min: number): number => items.reduce((max, item) => Math.max(max, of(item)), min);

/** n, rounded up to a multiple of a unit. */
export const roundUp = (n: number, unit: number): number => Math.ceil(n / unit) * unit;

/** The length of the typed array that holds a tensor; `bytes` is its size on the device. */
export const arrayLength = (dtype: string, shape: readonly number[], bytes: number): number => dtype in arrayTypes ? sizeOf(shape) : bytes;

/** The elements of a tensor from its bytes on the device, which become the tensor's own. */
export function fromDevice(dtype: string, shape: readonly number[], bytes: ArrayBuffer): TensorData {
  if (dtype === 'bool') return Uint8Array.from(new Uint32Array(bytes));
  return new (arrayType(dtype))(bytes, 0, arrayLength(dtype, shape, bytes.byteLength));
}

/** The bytes of a tensor in the device's form: a view if possible, else a copy; `last`, bytes of as many elements, if they are in the same memory. */
export function toDevice(dtype: string, data: TensorData, last?: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const { buffer, byteOffset, byteLength } = dtype === 'bool' ? Uint32Array.from(data) : data;
  if (last?.buffer === buffer && last.byteOffset === byteOffset) return last;
  const bytes = new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength);
  if (byteLength % 4 === 0) return bytes;
  const padded = new Uint8Array(roundUp(byteLength, 4));
  padded.set(bytes);
  return padded;
}

/** Refuses elements of another class than the dtype's. `what` begins the message. */
export function checkType(what: string, dtype: string, data: TensorData): void {
  const type = arrayType(dtype);
  if (data instanceof type) return;
  const got = classOf(data);
  if (dtype !== 'f16' || got !== 'Float16Array') {
    throw new RlxError('dtype', `${what} is ${got}: it must be ${type.name}, of ${dtype}`);
  }
}
