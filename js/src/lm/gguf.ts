// The GGUF file format, versions 2 and 3: metadata, a list of tensors, and their elements, packed in blocks.
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md

import { RlxError, shown } from '../values/errors.js';
import { type FileSource, openSource, type Source } from '../files/source.js';

/** A tensor of a file. */
export interface TensorInfo {
  name: string;
  /** Row-major, outermost first: a matrix of a linear layer is [out, in]. */
  shape: number[];
  /** How the elements are stored: `f32`, `f16`, `bf16`, `q4_0`, `q8_0`, `q4_k`, ... */
  type: string;
  /** Where the elements begin in the file, in bytes. */
  offset: number;
  /** The number of bytes of the elements. */
  bytes: number;
}

/** An open file of a model: its metadata, and its tensors, which are read when they are asked for. */
export interface ModelFile {
  /**
   * The keys of GGUF, or those of config.json. Of GGUF, integers of 64 bits are numbers, or bigints where a number does not hold them,
   * and arrays are typed arrays of numbers, or arrays of texts, booleans and arrays.
   */
  metadata: Map<string, unknown>;
  tensors: Map<string, TensorInfo>;
  /**
   * Reads the stored elements of a tensor, or their bytes from `begin` to `end`, into new memory, which is the caller's.
   * Rejects with an {@link RlxError} of kind `name`, `index` for bytes out of range, `closed`, or
   * `missing` if the file cannot be read.
   */
  read(name: string, begin?: number, end?: number): Promise<Uint8Array<ArrayBuffer>>;
  /** Ends the reads under way. */
  close(): void;
}

/** The types of ggml by their numbers: the name, the elements of a block, its bytes. */
const types: Readonly<Record<number, readonly [name: string, elements: number, bytes: number]>> = {
  0: ['f32', 1, 4], 1: ['f16', 1, 2], 2: ['q4_0', 32, 18], 3: ['q4_1', 32, 20], 6: ['q5_0', 32, 22], 7: ['q5_1', 32, 24],
  8: ['q8_0', 32, 34], 9: ['q8_1', 32, 40], 10: ['q2_k', 256, 84], 11: ['q3_k', 256, 110], 12: ['q4_k', 256, 144], 13: ['q5_k', 256, 176],
  14: ['q6_k', 256, 210], 15: ['q8_k', 256, 292], 16: ['iq2_xxs', 256, 66], 17: ['iq2_xs', 256, 74], 18: ['iq3_xxs', 256, 98],
  19: ['iq1_s', 256, 50], 20: ['iq4_nl', 32, 18], 21: ['iq3_s', 256, 110], 22: ['iq2_s', 256, 82], 23: ['iq4_xs', 256, 136],
  24: ['i8', 1, 1], 25: ['i16', 1, 2], 26: ['i32', 1, 4], 27: ['i64', 1, 8], 28: ['f64', 1, 8], 29: ['iq1_m', 256, 56], 30: ['bf16', 1, 2],
  34: ['tq1_0', 256, 54], 35: ['tq2_0', 256, 66], 39: ['mxfp4', 32, 17], 40: ['nvfp4', 64, 36], 41: ['q1_0', 128, 18],
};

// Bounds of a file's lists, against memory that a hostile file would take: each element of a list takes some bytes of the file as well.
const maxHeader = 512 << 20, maxKey = 1 << 16, maxNesting = 8, maxDims = 4, maxSize = 2 ** 48, maxParts = 4096;

const bad = (reason: string): RlxError => new RlxError('syntax', `GGUF: ${reason}`);

/** Thrown where the bytes read so far end before the header does. */
class Short { constructor(readonly needed: number) {} }

/** The least number of bytes of a value of the metadata, by its kind; and the arrays that hold the numbers. */
const text = 8, array = 9, bool = 7;
const kindBytes = [1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8];
const arrays = [Uint8Array, Int8Array, Uint16Array, Int16Array, Uint32Array, Int32Array, Float32Array, , , , BigUint64Array, BigInt64Array, Float64Array];

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

/** Reads a header from the beginning of a file of some size. */
class Reader {
  private at = 0;
  private readonly view: DataView;

  constructor(private readonly data: Uint8Array<ArrayBuffer>, private readonly size: number) {
    this.view = new DataView(data.buffer, data.byteOffset, data.length);
  }

  /** Skips n bytes and returns where they begin. */
  private take(n: number): number {
    const { at } = this;
    if (n > this.size - at) throw bad(`the file has ${this.size} bytes; at ${at} it needs ${n} more`);
    if (n > this.data.length - at) throw new Short(at + n);
    this.at += n;
    return at;
  }

  private u32(): number { return this.view.getUint32(this.take(4), true); }
  private u64(): number { return Number(this.view.getBigUint64(this.take(8), true)); }

  private text(most = Infinity, what = 'a text'): string {
    const length = this.u64();
    if (length > most) throw bad(`${what} of ${length} bytes`);
    const at = this.take(length);
    return utf8.decode(this.data.subarray(at, at + length));
  }

  private value(kind: number): unknown {
    if (kind === text) return this.text();
    if (kind === array) return this.array(0);
    if (!(kind in kindBytes)) throw bad(`a value of type ${kind}`);
    return kind === bool ? this.data[this.take(1)] !== 0 : plain(this.numbers(kind, 1)[0]!);
  }

  private numbers(kind: number, n: number) {
    const size = kindBytes[kind]! * n, at = this.take(size);
    return new arrays[kind]!(this.data.slice(at, at + size).buffer);
  }

  private array(depth: number): unknown {
    const kind = this.u32(), n = this.u64();
    if (!(kind in kindBytes) || depth > maxNesting || n > (this.size - this.at) / kindBytes[kind]!) throw bad(`an array of ${n} values of type ${kind}, ${depth} deep`);
    if (arrays[kind]) return this.numbers(kind, n);
    const out: unknown[] = [];
    for (let i = 0; i < n; i++) out.push(kind === text ? this.text() : kind === array ? this.array(depth + 1) : this.data[this.take(1)] !== 0);
    return out;
  }

  private metadata(keys: number): Map<string, unknown> {
    const out = new Map<string, unknown>();
    for (let i = 0; i < keys; i++) {
      const key = this.text(maxKey, 'a key'), value = this.value(this.u32());
      if (out.has(key)) throw bad(`key ${key} is there twice`);
      out.set(key, value);
    }
    return out;
  }

  /** An entry of the list of tensors. Its offset counts from where the tensors begin. */
  private tensor(): TensorInfo {
    const name = this.text(maxKey, "a tensor's name"), axes = this.u32(), shape: number[] = [];
    if (axes > maxDims) throw bad(`tensor ${name} has ${axes} axes`);
    let product = 1;
    for (let i = 0; i < axes; i++) {
      const n = this.u64();
      if (n > maxSize || (product *= n) > maxSize) throw bad(`tensor ${name} has more than 2^48 elements`);
      shape.unshift(n); // the file has them innermost first
    }
    const number = this.u32(), offset = this.u64(), [type, elements, bytes] = types[number] ?? [];
    if (!type) throw bad(`tensor ${name} has type ${number}, which is not known`);
    if ((shape.at(-1) ?? 1) % elements!) throw bad(`tensor ${name} of [${shape}]: rows of ${type} are blocks of ${elements}`);
    return { name, shape, type, offset, bytes: product / elements! * bytes! };
  }

  header(): { metadata: Map<string, unknown>; tensors: TensorInfo[] } {
    const at = this.take(4);
    if (this.view.getUint32(at) !== 0x47475546) throw bad('it does not begin with GGUF');
    const version = this.u32();
    if (version !== 2 && version !== 3) throw new RlxError('unsupported', `GGUF: ${version & 0xffff ? `version ${version}; 2 and 3 are known` : 'the file is big endian'}`);
    const count = this.u64(), metadata = this.metadata(this.u64()), tensors: TensorInfo[] = [];
    for (let i = 0; i < count; i++) tensors.push(this.tensor());
    const alignment = metadata.get('general.alignment') ?? 32;
    if (typeof alignment !== 'number' || !(alignment >= 1 && alignment <= 1 << 20) || alignment & (alignment - 1)) throw bad(`general.alignment is ${alignment}`);
    const begin = Math.ceil(this.at / alignment) * alignment;
    for (const one of tensors) {
      if (one.offset % alignment || one.offset > this.size - begin - one.bytes) throw bad(`tensor ${one.name}, ${one.type} of [${one.shape}], has ${one.bytes} bytes at ${one.offset}, which the file has not`);
      one.offset += begin;
    }
    return { metadata, tensors };
  }
}

/** A bigint as a number, where a number holds it. */
const plain = (n: number | bigint): number | bigint => typeof n === 'bigint' && BigInt.asIntN(54, n) === n ? Number(n) : n;

/** Reads the header of a file: first a fixed number of bytes, then twice as many until they hold it. */
async function readHeader(source: Source): Promise<ReturnType<Reader['header']>> {
  let data: Uint8Array<ArrayBuffer> = new Uint8Array(0), wanted = 1 << 20;
  for (;;) {
    if (wanted > maxHeader) throw bad(`the metadata have more than ${maxHeader} bytes`);
    const end = Math.min(wanted, source.size), grown = new Uint8Array(end);
    grown.set(data);
    grown.set(await source.bytes(data.length, end), data.length);
    data = grown;
    try {
      return new Reader(data, source.size).header();
    } catch (reason) {
      if (!(reason instanceof Short)) throw reason;
      wanted = Math.max(2 * data.length, reason.needed);
    }
  }
}

/** The other parts of a split model, given the address of its first part, NAME-00001-of-00003.gguf. */
function otherParts(given: readonly FileSource[], metadata: Map<string, unknown>): FileSource[] {
  const count = Number(metadata.get('split.count') ?? 1), [first] = given;
  if (given.length > 1 || !(count > 1)) return given.slice(1);
  const end = `-00001-of-${String(count).padStart(5, '0')}.gguf`, [path, query = ''] = String(first).split(/(?=[?#])(.*)/);
  if (typeof first !== 'string' && !(first instanceof URL)) throw new RlxError('missing', `GGUF: the file is one of ${count} of a model: open a list of all`);
  if (!path!.endsWith(end) || count > maxParts) throw bad(`it is one of ${count} files of a model; the name of the first ends in ${end}`);
  const stem = path!.slice(0, -end.length);
  return Array.from({ length: count - 1 }, (_, i) => `${stem}-${String(i + 2).padStart(5, '0')}-of-${String(count).padStart(5, '0')}.gguf${query}`);
}

/**
 * Opens a GGUF file: a Blob, bytes, or a URL whose server supports ranges. It reads the header;
 * tensors are read on request. A split model is given by the URL of its first file, or as a list
 * of all files. Rejects with an {@link RlxError} of kind `syntax` for a damaged file,
 * `unsupported` for an unknown version or a server without ranges, `missing` if it cannot be
 * loaded.
 */
export async function openGGUF(source: FileSource | readonly FileSource[]): Promise<ModelFile> {
  const given = Array.isArray(source) ? source as readonly FileSource[] : [source as FileSource];
  if (!given.length) throw new RlxError('missing', 'openGGUF: the list has no file');
  const parts: Source[] = [], places = new Map<string, Source>(), tensors = new Map<string, TensorInfo>();
  const add = async (one: FileSource): Promise<Map<string, unknown>> => {
    const part = await openSource(one), header = await readHeader(part);
    parts.push(part);
    for (const tensor of header.tensors) {
      if (tensors.has(tensor.name)) throw bad(`tensor ${tensor.name} is there twice`);
      tensors.set(tensor.name, tensor);
      places.set(tensor.name, part);
    }
    return header.metadata;
  };
  const metadata = await add(given[0]!); // later files may repeat metadata, which do not count
  for (const one of otherParts(given, metadata)) await add(one);
  checkParts(metadata, parts.length, tensors.size);
  return modelFile(metadata, tensors, (name) => places.get(name)!, () => { for (const part of parts) part.close(); });
}

function checkParts(metadata: Map<string, unknown>, parts: number, tensors: number): void {
  const count = Number(metadata.get('split.count') ?? 0) || 1, number = metadata.get('split.no') ?? 0, total = metadata.get('split.tensors.count');
  if (count !== parts || number !== 0) throw bad(`the first of ${parts} files is number ${number} of ${count} of a model, from 0`);
  if (total !== undefined && total !== tensors) throw bad(`the files have ${tensors} tensors; the first says ${total}`);
}

/** A file with tensors in one or several sources. */
export function modelFile(metadata: Map<string, unknown>, tensors: Map<string, TensorInfo>, sourceOf: (name: string) => Source, close: () => void): ModelFile {
  return {
    metadata, tensors, close,
    async read(name, begin = 0, end) {
      const tensor = tensors.get(name);
      if (!tensor) throw new RlxError('name', `there is no tensor ${shown(name)}`, { name: shown(name) });
      const last = end ?? tensor.bytes;
      if (!(Number.isInteger(begin) && Number.isInteger(last) && begin >= 0 && begin <= last && last <= tensor.bytes)) {
        throw new RlxError('index', `tensor ${name} has ${tensor.bytes} bytes: those from ${begin} to ${last} cannot be read`, { name });
      }
      return sourceOf(name).bytes(tensor.offset + begin, tensor.offset + last);
    },
  };
}
