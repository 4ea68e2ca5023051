// What the importer reads of a model's file: the message without the elements of large tensors, which it then has as
// external data of the path ".", the file itself. https://github.com/onnx/onnx/blob/main/onnx/onnx.proto

import type { Source } from '../files/source.js';
import { RlxError } from '../values/errors.js';

/** The path of the model's own file: that of its folder, which no file has. */
export const own = '.';

/** The messages that may have tensors in them, and which of their fields are such messages, or tensors. */
type Kind = 'model' | 'graph' | 'node' | 'attribute' | 'function' | 'tensor';
const inside: Record<Exclude<Kind, 'tensor'>, Readonly<Record<number, Kind>>> = {
  model: { 7: 'graph', 25: 'function' },
  graph: { 1: 'node', 5: 'tensor' },
  function: { 7: 'node', 11: 'attribute' },
  node: { 5: 'attribute' },
  attribute: { 5: 'tensor', 6: 'graph', 10: 'tensor', 11: 'graph' },
};

/** The fields of a tensor. */
const dims = 1, dataType = 2, floatData = 4, raw = 9, doubleData = 10, externalData = 13, dataLocation = 14;
/** The element types that are floats, and become parameters. */
const floats = new Set([1, 10, 11, 16, 17, 18, 19, 20, 23, 24, 27, 28]);
/** Packed lists of these fields are the bytes of tensors of one type: they are stored as raw data are. */
const packed: Readonly<Record<number, number>> = { [floatData]: 1, [doubleData]: 11 };

/** Elements of fewer bytes stay in the message: a window has them anyway. */
const least = 1024;
/** The integers of a tensor that the importer computes with, as the Go package ir/format/onnx has it. */
const folded = 1 << 14;
/** The bytes that are read at once. */
const windowBytes = 1 << 16;
/** The bytes of a message without large tensors: a bound for damaged files. */
const maxKept = 1 << 28;
/** Graphs are nested up to 64 times, three messages each. */
const maxDepth = 256;

const bad = (at: number, reason: string): RlxError => new RlxError('syntax', `ONNX: byte ${at}: ${reason}`);

/** A field of a message: its number and form, a varint's value, and where its contents and the next field begin. */
interface Field { number: number; form: number; value: number; body: number; next: number }

/** A model without the elements of its large tensors. */
export async function skeleton(source: Source): Promise<Uint8Array> {
  return new Reader(source).message('model', 0, source.size, 0);
}

class Reader {
  readonly #source: Source;
  /** The bytes in memory, from a position on. */
  #window = new Uint8Array(0);
  #from = 0;
  #kept = 0;

  constructor(source: Source) { this.#source = source; }

  /** Whether bytes are in memory. */
  #has(at: number, n: number): boolean { return at >= this.#from && at + n <= this.#from + this.#window.length; }

  /** Reads n bytes, and those after them that a window has room for. */
  async load(at: number, n: number): Promise<void> {
    this.#window = await this.#source.bytes(at, Math.min(Math.max(at + n, at + windowBytes), this.#source.size));
    this.#from = at;
  }

  /** Bytes of the file that stay in the message. */
  async #copy(begin: number, end: number): Promise<Uint8Array> {
    if ((this.#kept += end - begin) > maxKept) throw new RlxError('unsupported', `ONNX: besides the elements of large tensors the model has more than ${maxKept} bytes`);
    if (!this.#has(begin, end - begin)) return this.#source.bytes(begin, end);
    return this.#window.subarray(begin - this.#from, end - this.#from);
  }

  /** A varint at a position, and where it ends. Numbers above 2^53 are rounded: none that is used is so large. */
  #varint(begin: number, end: number): [number, number] {
    let value = 0, scale = 1;
    for (let at = begin; at < end && at < begin + 10; at++, scale *= 128) {
      const byte = this.#window[at - this.#from]!;
      value += (byte & 127) * scale;
      if (byte < 128) return [value, at + 1];
    }
    throw bad(begin, 'a number does not end');
  }

  /** The field at a position of a message that ends at another. */
  #field(at: number, end: number): Field {
    const [tag, after] = this.#varint(at, end), number = Math.floor(tag / 8), form = tag % 8;
    if (!number || number >= 2 ** 29) throw bad(at, `a field has the number ${number}`);
    let value = 0, body = after, next = after;
    if (form === 0) [value, next] = this.#varint(after, end);
    else if (form === 1 || form === 5) next = after + (form === 1 ? 8 : 4);
    else if (form === 2) {
      [value, body] = this.#varint(after, end);
      next = body + value;
    } else throw bad(at, `field ${number} has the wire type ${form}`);
    if (next > end) throw bad(at, `field ${number} needs ${next - end} bytes more than its message has`);
    return { number, form, value, body, next };
  }

  /** A message with tensors in it, as it is given to the importer. */
  async message(kind: Kind, begin: number, end: number, depth: number): Promise<Uint8Array> {
    if (depth > maxDepth) throw bad(begin, `messages are nested more than ${maxDepth} times`);
    if (kind === 'tensor') return this.#tensor(begin, end);
    const parts: Uint8Array[] = [];
    let at = begin, done = begin;
    const flush = async (to: number) => {
      if (to > done) parts.push(await this.#copy(done, to));
      done = to;
    };
    while (at < end) {
      const most = Math.min(20, end - at);
      if (!this.#has(at, most)) {
        await flush(at);
        await this.load(at, most);
      }
      const { number, form, body, next } = this.#field(at, end), inner = form === 2 && next - body >= least ? inside[kind][number] : undefined;
      if (inner) {
        await flush(at);
        const made = await this.message(inner, body, next, depth + 1);
        parts.push(bytesField(number, made));
        done = next;
      }
      at = next;
    }
    await flush(end);
    return joined(parts);
  }

  /** A tensor: if it is large, with the place of its elements instead of them. */
  async #tensor(begin: number, end: number): Promise<Uint8Array> {
    const parts: Uint8Array[] = [], data: Field[] = [];
    let at = begin, done = begin, type = 0, elements = 1, elsewhere = false;
    while (at < end) {
      const most = Math.min(20, end - at);
      if (!this.#has(at, most)) await this.load(at, most);
      const field = this.#field(at, end), { number, form, value, body, next } = field;
      if (number === dims && form === 0) elements *= value;
      else if (number === dims && form === 2) elements *= await this.#product(body, next);
      else if (number === dataType) type = value;
      else if (number === externalData || number === dataLocation) elsewhere = true;
      else if (number === raw || form === 2 && number in packed) {
        if (at > done) parts.push(await this.#copy(done, at));
        data.push(field);
        done = next;
      }
      at = next;
    }
    const [one] = data, large = one && one.next - one.body >= least && (floats.has(type) || elements > folded);
    if (data.length !== 1 || elsewhere || !large || one!.number !== raw && packed[one!.number] !== type) return this.#copy(begin, end);
    if (end > done) parts.push(await this.#copy(done, end));
    const { body, next } = one!;
    return joined([...parts, entry('location', own), entry('offset', `${body}`), entry('length', `${next - body}`), Uint8Array.of(dataLocation << 3, 1)]);
  }

  /** The product of a packed list of sizes. */
  async #product(begin: number, end: number): Promise<number> {
    if (end - begin > windowBytes) throw bad(begin, `a tensor has ${end - begin} bytes of sizes`);
    if (!this.#has(begin, end - begin)) await this.load(begin, end - begin);
    let product = 1;
    for (let at = begin, value: number; at < end; product *= value) [value, at] = this.#varint(at, end);
    return product;
  }
}

const encoder = new TextEncoder();

function varint(n: number): number[] {
  const out: number[] = [];
  for (; n > 127; n = Math.floor(n / 128)) out.push(n % 128 + 128);
  return [...out, n];
}

/** A field of bytes. */
const bytesField = (number: number, bytes: Uint8Array): Uint8Array => joined([Uint8Array.from([...varint(number * 8 + 2), ...varint(bytes.length)]), bytes]);

/** An entry of a tensor's external data. */
const entry = (key: string, value: string): Uint8Array => bytesField(externalData, joined([bytesField(1, encoder.encode(key)), bytesField(2, encoder.encode(value))]));

function joined(parts: readonly Uint8Array[]): Uint8Array {
  if (parts.length === 1) return parts[0]!;
  const out = new Uint8Array(parts.reduce((n, part) => n + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}
