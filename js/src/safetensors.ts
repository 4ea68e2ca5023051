// The safetensors file format: u64 length, a JSON header of that length, the elements.
// https://github.com/huggingface/safetensors

import { arrayType, checkType, sizeOf } from './values/dtype.js';
import { RlxError } from './values/errors.js';
import type { HostTensor } from './session/session.js';

const names: Record<string, string> = {
  bool: 'BOOL', i8: 'I8', u8: 'U8', i16: 'I16', u16: 'U16', i32: 'I32', u32: 'U32', f16: 'F16', bf16: 'BF16', f32: 'F32',
};
const dtypes = Object.fromEntries(Object.entries(names).map(([dtype, name]) => [name, dtype]));

interface Header { dtype: string; shape: number[]; data_offsets: [number, number] }

const bad = (reason: string): RlxError => new RlxError('syntax', `safetensors: ${reason}`);

/** Writes tensors, sorted by name, and metadata: equal tensors give equal bytes. */
export function encodeSafetensors(tensors: Readonly<Record<string, HostTensor>>, metadata?: Record<string, string>): Uint8Array<ArrayBuffer> {
  const entries = Object.entries(tensors).sort(([a], [b]) => a < b ? -1 : 1);
  const header: Record<string, unknown> = metadata ? { __metadata__: metadata } : {};
  let end = 0;
  for (const [name, { dtype, shape, data }] of entries) {
    if (!names[dtype]) throw new RlxError('dtype', `safetensors has no type for ${dtype}, the type of ${name}`, { name });
    checkType(name, dtype, data);
    if (data.length !== sizeOf(shape)) throw new RlxError('shape', `${name} has ${data.length} elements, not [${shape}]`, { name, shape });
    header[name] = { dtype: names[dtype], shape, data_offsets: [end, end += data.byteLength] };
  }
  const json = new TextEncoder().encode(JSON.stringify(header)), length = Math.ceil(json.length / 8) * 8;
  const file = new Uint8Array(8 + length + end).fill(0x20, 8, 8 + length);
  new DataView(file.buffer).setBigUint64(0, BigInt(length), true);
  file.set(json, 8);
  let at = 8 + length;
  for (const [, { data }] of entries) {
    file.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), at);
    at += data.byteLength;
  }
  return file;
}

/** Reads a file. Throws an {@link RlxError} of kind `syntax`, or `dtype` for types this library lacks. */
export function decodeSafetensors(file: Uint8Array | ArrayBuffer): { tensors: Record<string, HostTensor>; metadata: Record<string, string> } {
  const bytes = file instanceof Uint8Array ? file : new Uint8Array(file);
  if (bytes.length < 8) throw bad('the file is cut short');
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
  if (length > bytes.length - 8) throw bad('the header is cut short');
  let header: Record<string, Header>;
  try {
    header = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(8, 8 + length)));
    if (typeof header !== 'object' || header === null) throw bad('the header is no object');
  } catch (cause) {
    throw new RlxError('syntax', `safetensors: the header is not JSON: ${(cause as Error).message}`, { cause });
  }
  const { __metadata__: metadata = {}, ...described } = header as Record<string, Header> & { __metadata__?: Record<string, string> };
  const elements = bytes.slice(8 + length);
  return { tensors: Object.fromEntries(Object.entries(described).map(([name, one]) => [name, readTensor(name, one, elements)])), metadata };
}

function readTensor(name: string, described: Header, elements: Uint8Array<ArrayBuffer>): HostTensor {
  const { dtype: type, shape, data_offsets: offsets } = described ?? {};
  const dtype = Object.hasOwn(dtypes, type) ? dtypes[type]! : undefined;
  if (!dtype) throw new RlxError('dtype', `safetensors: ${name} has the type ${type}, which is not known here`, { name });
  const numbers = (list: unknown): list is number[] => Array.isArray(list) && list.every((n) => Number.isSafeInteger(n) && n >= 0);
  if (!numbers(shape) || !numbers(offsets)) throw bad(`${name} has no shape or no place`);
  const [begin, end] = offsets, maker = arrayType(dtype), size = sizeOf(shape);
  if (end > elements.length || end - begin !== size * maker.BYTES_PER_ELEMENT) throw bad(`${name} does not fit its shape [${shape}]`);
  return { dtype, shape, data: new maker(elements.buffer.slice(begin, end), 0, size) };
}
