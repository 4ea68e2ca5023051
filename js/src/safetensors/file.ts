// The safetensors file format: u64 length, a JSON header of that length, the elements.
// https://github.com/huggingface/safetensors

import { arrayOf, converted, type ConvertOptions } from './convert.js';
import { arrayType, sizeOf, type StoredData } from '../values/dtype.js';
import { checkOptions, classOf, need, RlxError, shown } from '../values/errors.js';
import type { StoredTensor } from '../values/tensor.js';

/**
 * A tensor of a file. Its element type is rlx's word for it (`i64`, `bf16`), or, where rlx has none,
 * the file's: then `data` throws an {@link RlxError} of kind `dtype`, and the others can be read.
 */
export interface FileTensor extends StoredTensor {
  /**
   * The tensor with another element type: always where that changes no value, as from f16 to f32, and
   * with `narrow` where it rounds. Throws an {@link RlxError} of kind `dtype` or `index`.
   */
  as(dtype: string, options?: ConvertOptions): FileTensor;
}

const names: Record<string, string> = {
  bool: 'BOOL', i8: 'I8', u8: 'U8', f8e4m3fn: 'F8_E4M3', f8e5m2: 'F8_E5M2', i16: 'I16', u16: 'U16', i32: 'I32', u32: 'U32', f16: 'F16', bf16: 'BF16', f32: 'F32',
  i64: 'I64', u64: 'U64', f64: 'F64', c64: 'C64',
};
/** The bits of an element of the format's types that have no name here. */
const otherBits: Record<string, number> = { F4: 4, F6_E2M3: 6, F6_E3M2: 6, F8_E8M0: 8, F8_E4M3FNUZ: 8, F8_E5M2FNUZ: 8 };
const dtypes = Object.fromEntries(Object.entries(names).map(([dtype, name]) => [name, dtype]));

/** A bound on the header, as the format's own readers have it. */
const maxHeader = 100 << 20;

const bad = (reason: string, cause?: unknown): RlxError => new RlxError('syntax', `safetensors: ${reason}`, cause === undefined ? {} : { cause });

/**
 * Writes tensors, sorted by name, and metadata: equal tensors have equal bytes. Throws an {@link
 * RlxError} of kind `dtype`, `shape` or `name` for a tensor that the format cannot hold, `syntax`
 * for metadata that are not strings.
 */
export function encodeSafetensors(tensors: Readonly<Record<string, StoredTensor>>, metadata?: Record<string, string>): Uint8Array<ArrayBuffer> {
  need(isObject(tensors), 'missing', 'encodeSafetensors: the first argument', 'an object of tensors', tensors);
  const entries = Object.entries(tensors).sort(([a], [b]) => a < b ? -1 : 1).map(([name, tensor]) => {
    if (!isSizes(tensor?.shape)) throw new RlxError('dtype', `safetensors: ${name} is ${classOf(tensor)}: it must be a tensor { dtype, shape, data }`, { name });
    const { dtype, shape, data } = tensor;
    return { name, dtype, shape, data };
  });
  const head = headOf(entries, metadata);
  for (const entry of entries) checkData(entry, entry.data);
  const file = new Uint8Array(head.length + entries.reduce((sum, { data }) => sum + data.byteLength, 0));
  file.set(head);
  let at = head.length;
  for (const { data } of entries) {
    file.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), at);
    at += data.byteLength;
  }
  return file;
}

/** The tensors of a header. */
type Described = { name: string; dtype: string; shape: readonly number[] };

/** The number of array elements of a tensor. */
const lengthOf = ({ dtype, shape }: Described): number => sizeOf(shape) * (dtype === 'c64' ? 2 : 1);

/** What precedes the elements of a file: the length of the header, and the header. */
export function headOf(entries: readonly Described[], metadata?: Record<string, string>): Uint8Array<ArrayBuffer> {
  if (!isTexts(metadata ?? {})) throw bad('metadata are texts by name');
  const header: Record<string, unknown> = Object.create(null); // which a tensor called __proto__ does not change
  if (metadata) header['__metadata__'] = metadata;
  let end = 0;
  for (const entry of entries) {
    const { name, dtype, shape } = Object(entry) as Described;
    if (typeof name !== 'string' || !isSizes(shape)) throw new RlxError('dtype', `safetensors: ${shown(name)} is ${classOf(entry)}: it must be { name, dtype, shape, read }`, { name });
    if (name === '__metadata__') throw new RlxError('name', `safetensors: no tensor can be called ${name}`, { name });
    if (name in header) throw new RlxError('name', `safetensors: ${name} is there twice`, { name });
    if (!Object.hasOwn(names, dtype)) throw new RlxError('dtype', `safetensors has no type for ${shown(dtype)}, the type of ${name}`, { name });
    header[name] = { dtype: names[dtype], shape, data_offsets: [end, end += lengthOf(entry) * arrayOf(dtype).BYTES_PER_ELEMENT] };
  }
  const json = new TextEncoder().encode(JSON.stringify(header)), length = Math.ceil(json.length / 8) * 8;
  const head = new Uint8Array(8 + length).fill(0x20, 8);
  new DataView(head.buffer).setBigUint64(0, BigInt(length), true);
  head.set(json, 8);
  return head;
}

/** Refuses elements that are not those of a tensor. */
export function checkData(entry: Described, data: StoredData): void {
  const { name, dtype, shape } = entry;
  checkClass(name, dtype, data);
  const type = arrayOf(dtype), what = data.BYTES_PER_ELEMENT === type.BYTES_PER_ELEMENT ? 'elements' : 'bytes';
  if (data.byteLength !== lengthOf(entry) * type.BYTES_PER_ELEMENT) throw new RlxError('shape', `${name} has ${data.length} ${what}, not [${shape}]`, { name, shape });
  if (dtype === 'bool' && !areBools(data)) throw new RlxError('dtype', `${name} is bool, and has bytes other than 0 and 1`, { name });
}

/** Whether a program has the elements of a type as bytes. */
const isWide = (dtype: string): boolean => arrayOf(dtype) !== arrayType(dtype);

/** Refuses elements of another class than the dtype's, and than bytes for one that programs have as bytes. */
function checkClass(name: string, dtype: string, data: StoredData): void {
  const type = arrayOf(dtype), got = classOf(data);
  if (data instanceof type || dtype === 'f16' && got === 'Float16Array' || data instanceof Uint8Array && isWide(dtype)) return;
  throw new RlxError('dtype', `${name} is ${got}: it must be ${type.name}, of ${dtype}`, { name });
}

/** The location of a tensor in the bytes after the header. */
export interface Place { name: string; dtype: string; shape: number[]; begin: number; end: number }

/** Options of {@link decodeSafetensors}. */
export interface DecodeOptions {
  /** Returns only the tensors with these names, without copying others. Throws an {@link RlxError} of kind `missing` for an unknown one. */
  only?: readonly string[];
}

/**
 * Reads a file. The tensors have memory of their own, in all no more than the file has bytes.
 * Throws an {@link RlxError} of kind `syntax`. Tensors of types that this library lacks are there,
 * and throw one of kind `dtype` when their elements are asked for.
 */
export function decodeSafetensors(file: Uint8Array | ArrayBuffer, options?: DecodeOptions): { tensors: Record<string, FileTensor>; metadata: Record<string, string> } {
  checkOptions('decodeSafetensors', options, 'only');
  const bytes = file instanceof Uint8Array ? file : new Uint8Array(Object(file) as ArrayBuffer), begin = 8 + headerLength(bytes, bytes.length);
  const { places, metadata } = readHeader(bytes.subarray(8, begin), bytes.length - begin);
  const wanted = chosen(places, options?.only);
  return { tensors: Object.fromEntries(wanted.map(({ name, dtype, shape, begin: from, end }) => [name, unreadable(name, dtype, shape) ?? readTensor(name, dtype, shape, new Uint8Array(bytes.subarray(begin + from, begin + end)))])), metadata };
}

/** The bytes of the header of a file of some size, by its first 8 bytes. */
export function headerLength(bytes: Uint8Array, size: number): number {
  if (bytes.length < 8) throw bad('the file is cut short');
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
  if (length <= Math.min(maxHeader, size - 8)) return length;
  const [a, b, c] = bytes;
  if (a === 0x50 && b === 0x4b && c === 3 || a === 0x80 && b === 2) { // a ZIP archive, or a pickle
    throw bad('this is a file of torch.save or of NumPy: write safetensors.torch.save_file(model.state_dict(), name)');
  }
  throw bad(`the file is cut short: a header of ${length} bytes in a file of ${size}`);
}

/** Reads the header of a file: the offsets of its tensors in the `size` bytes after it. */
export function readHeader(text: Uint8Array, size: number): { places: Place[]; metadata: Record<string, string> } {
  const header = parse(text), { __metadata__: metadata = {}, ...described } = header;
  if (!isTexts(metadata)) throw bad('metadata are texts by name');
  const places = Object.entries(described).map(([name, one]) => readPlace(name, one));
  // JSON.parse keeps the last of repeated keys: there are fewer of them than in the text.
  const keys = Object.keys(header).length + 3 * places.length + Object.keys(metadata).length;
  if (countKeys(text) !== keys) throw bad('a key is there twice');
  checkPlaces(places, size);
  return { places, metadata };
}

function chosen(places: Place[], only: readonly string[] | undefined): Place[] {
  if (only === undefined) return places;
  need(Array.isArray(only), 'attr', 'decodeSafetensors: only', 'a list of names', only);
  return only.map((name) => {
    const found = places.find((place) => place.name === name);
    if (!found) throw new RlxError('missing', `safetensors: the file has no tensor ${shown(name)}`, { name: shown(name) });
    return found;
  });
}

function parse(text: Uint8Array): Record<string, unknown> {
  let header: unknown;
  try {
    header = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(text));
  } catch (cause) {
    throw bad(`the header is not JSON: ${(cause as Error).message}`, cause);
  }
  if (!isObject(header)) throw bad('the header is no object');
  return header;
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value);
const isTexts = (value: unknown): value is Record<string, string> => isObject(value) && Object.values(value).every((text) => typeof text === 'string');
const isSizes = (value: unknown): value is number[] => Array.isArray(value) && value.every((n) => Number.isSafeInteger(n) && n >= 0);
const areBools = (bytes: StoredData): boolean => (bytes as Uint8Array).every((byte) => byte <= 1);

/** The number of keys in the objects of a JSON text: that of the colons outside of strings. */
function countKeys(json: Uint8Array): number {
  let keys = 0, inside = false;
  for (let i = 0; i < json.length; i++) {
    if (json[i] === 0x5c) i++; // a backslash and the escaped character
    else if (json[i] === 0x22) inside = !inside;
    else if (json[i] === 0x3a && !inside) keys++;
  }
  return keys;
}

function readPlace(name: string, described: unknown): Place {
  const { dtype: type, shape, data_offsets: offsets, ...others } = isObject(described) ? described : {};
  if (typeof type !== 'string' || !isSizes(shape) || !isSizes(offsets) || offsets.length !== 2 || Object.keys(others).length > 0) {
    throw bad(`${name} is not a dtype, a shape and two data_offsets`);
  }
  const dtype = Object.hasOwn(dtypes, type) ? dtypes[type]! : type, [begin, end] = offsets as [number, number], bits = bitsIn(dtype);
  if (bits && end - begin !== Math.ceil(sizeOf(shape) * bits / 8) || end < begin) throw bad(`${name} does not fit its shape [${shape}]`);
  return { name, dtype, shape, begin, end };
}

/** The bits of an element; undefined of a type that the format did not have when this was written. */
function bitsIn(dtype: string): number | undefined {
  if (dtype === 'c64') return 64;
  return Object.hasOwn(names, dtype) ? 8 * arrayOf(dtype).BYTES_PER_ELEMENT : Object.hasOwn(otherBits, dtype) ? otherBits[dtype] : undefined;
}

/** Makes sure that the tensors cover all bytes, with no gap and no overlap. */
function checkPlaces(places: Place[], size: number): void {
  let at = 0;
  for (const { name, begin, end } of [...places].sort((a, b) => a.begin - b.begin || a.end - b.end)) {
    if (begin !== at) throw bad(`${name} begins at byte ${begin}, the tensor before it ends at ${at}`);
    at = end;
  }
  if (at !== size) throw bad(`${size < at ? 'the file is cut short: ' : ''}${size} bytes of elements, ${at} of them a tensor's`);
}

/** A tensor of its bytes. */
export function readTensor(name: string, dtype: string, shape: number[], bytes: Uint8Array<ArrayBuffer>): FileTensor {
  if (dtype === 'bool' && !areBools(bytes)) throw bad(`${name} is BOOL, and has bytes other than 0 and 1`);
  return convertible(name, { dtype, shape, data: new (arrayOf(dtype) as { new (bytes: ArrayBuffer): StoredData })(bytes.buffer) });
}

/** Adds `as`, which neither a loop over the properties nor a copy to another thread sees. @internal */
export const convertible = (name: string, tensor: StoredTensor): FileTensor => Object.defineProperty(tensor, 'as', {
  value: (dtype: string, options?: ConvertOptions) => {
    checkOptions('as', options, 'narrow bytes');
    const data = converted(name, tensor, dtype, options ?? {}), { buffer, byteOffset, byteLength } = data;
    return convertible(name, { dtype, shape: tensor.shape, data: options?.bytes && isWide(dtype) ? new Uint8Array(buffer, byteOffset, byteLength) : data });
  },
}) as FileTensor;

/** A tensor of a type that is not known here, whose elements cannot be asked for; undefined for another. */
export function unreadable(name: string, dtype: string, shape: number[]): FileTensor | undefined {
  if (Object.hasOwn(names, dtype)) return undefined;
  const refuse = () => { throw new RlxError('dtype', `safetensors: ${name} has the type ${dtype}, which is not known here`, { name }); };
  return Object.defineProperties({ dtype, shape }, { data: { get: refuse, configurable: true }, as: { value: refuse } }) as unknown as FileTensor;
}
