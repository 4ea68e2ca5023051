// The checksum of a checkpoint: that of Go's package rlx.

import { RlxError } from '../values/errors.js';
import type { StoredTensor } from '../values/tensor.js';

/** The key of the metadata under which the checksum is. Files of earlier versions have none. */
const key = 'rlx.crc32c';

/** The CRC-32Cs of a byte with 0 to 3 zero bytes after it. */
let tables: Uint32Array[] | undefined;

function makeTables(): Uint32Array[] {
  const all = [0, 1, 2, 3].map(() => new Uint32Array(256)), first = all[0]!;
  for (let i = 0; i < 256; i++) {
    let crc = i;
    for (let bit = 0; bit < 8; bit++) crc = crc >>> 1 ^ (crc & 1 && 0x82f63b78);
    first[i] = crc;
  }
  for (const [n, table] of all.slice(1).entries()) all[n]!.forEach((crc, i) => { table[i] = crc >>> 8 ^ first[crc & 255]!; });
  return all;
}

/** Adds bytes to a CRC-32C. */
function update(before: number, bytes: Uint8Array): number {
  const [t0, t1, t2, t3] = (tables ??= makeTables()) as [Uint32Array, Uint32Array, Uint32Array, Uint32Array], { length } = bytes;
  let crc = ~before, i = 0;
  for (; i + 4 <= length; i += 4) {
    crc ^= bytes[i]! | bytes[i + 1]! << 8 | bytes[i + 2]! << 16 | bytes[i + 3]! << 24;
    crc = t3[crc & 255]! ^ t2[crc >>> 8 & 255]! ^ t1[crc >>> 16 & 255]! ^ t0[crc >>> 24]!;
  }
  for (; i < length; i++) crc = crc >>> 8 ^ t0[(crc ^ bytes[i]!) & 255]!;
  return ~crc;
}

/** The exclusive or of the CRC-32Cs of tensors and metadata, each over its name, a zero byte and its bytes, in hexadecimal digits. */
function checksum(tensors: Readonly<Record<string, StoredTensor>>, metadata: Readonly<Record<string, string>>): string {
  const encoder = new TextEncoder();
  let sum = 0;
  const add = (name: string, bytes: Uint8Array): void => { sum ^= update(update(0, encoder.encode(`${name}\0`)), bytes); };
  for (const [name, { data }] of Object.entries(tensors)) add(name, new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  for (const [name, text] of Object.entries(metadata)) if (name !== key) add(`\0${name}`, encoder.encode(text));
  return (sum >>> 0).toString(16).padStart(8, '0');
}

/** The metadata of a checkpoint with its checksum. */
export const withChecksum = (tensors: Readonly<Record<string, StoredTensor>>, metadata: Readonly<Record<string, string>>): Record<string, string> =>
  ({ ...metadata, [key]: checksum(tensors, metadata) });

/** Throws an {@link RlxError} of kind `syntax` unless a file has the checksum of its metadata, or none there. */
export function checkChecksum(file: string, tensors: Readonly<Record<string, StoredTensor>>, metadata: Readonly<Record<string, string>>): void {
  const want = metadata[key], got = checksum(tensors, metadata);
  if (want !== undefined && want !== got) throw new RlxError('syntax', `safetensors: ${file} is damaged: ${key} of its metadata is ${want}, and its contents have ${got}`, { name: file });
}
