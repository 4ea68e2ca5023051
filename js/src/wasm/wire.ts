// The wire form of calls to the compiler, as the Go package wasm/internal/compiler reads and writes it.

import { classOf, RlxError, shown } from '../values/errors.js';

const encoder = new TextEncoder(), decoder = new TextDecoder();

/** An attribute of an op. */
export type Attribute = number | boolean | string | readonly (number | string)[];

/** A list: an array, or a typed array of numbers. */
const isList = (value: unknown): boolean => Array.isArray(value) || ArrayBuffer.isView(value);

/**
 * Writes a request. A value that is not of the type that its method writes throws an
 * {@link RlxError}, of kind `missing` where it is undefined and `attr` otherwise, that names it.
 */
export class Request {
  #bytes = new Uint8Array(256);
  #view = new DataView(this.#bytes.buffer);
  #size = 0;
  readonly #what: string;

  /** `what` names the caller in errors. */
  constructor(method: string, what = method) {
    this.#what = what;
    this.text(method);
  }

  #need(ok: boolean, name: string, type: string, given: unknown): void {
    if (!ok) throw new RlxError(given === undefined ? 'missing' : 'attr', `${this.#what}: ${name} is ${typeof given === 'number' ? given : classOf(given)}: it must be ${type}`, { op: this.#what, name });
  }

  /** The bytes written. */
  get bytes(): Uint8Array { return this.#bytes.subarray(0, this.#size); }

  /** Makes room for n bytes, and returns where they begin. */
  #room(n: number): number {
    const at = this.#size, size = at + n;
    if (size > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(size, 2 * this.#bytes.length));
      grown.set(this.bytes);
      this.#bytes = grown;
      this.#view = new DataView(grown.buffer);
    }
    this.#size = size;
    return at;
  }

  u32(n: number, name = 'a number'): this {
    this.#need(typeof n === 'number' && n >>> 0 === n, name, 'a whole number from 0 to 4294967295', n);
    const at = this.#room(4); // which may change the view
    this.#view.setUint32(at, n, true);
    return this;
  }

  f64(n: number, name = 'a number'): this {
    this.#need(typeof n === 'number', name, 'a number', n);
    const at = this.#room(8);
    this.#view.setFloat64(at, n, true);
    return this;
  }

  data(bytes: Uint8Array): this {
    const at = this.u32(bytes.length).#room(bytes.length);
    this.#bytes.set(bytes, at);
    return this;
  }

  text(text: string, name = 'a name'): this {
    this.#need(typeof text === 'string', name, 'a text', text);
    if (!/^[\0-\x7f]{0,64}$/.test(text)) return this.data(encoder.encode(text));
    // Most texts are short names, for which an encoder takes longer than the rest of a call.
    const at = this.u32(text.length).#room(text.length);
    for (let i = 0; i < text.length; i++) this.#bytes[at + i] = text.charCodeAt(i);
    return this;
  }

  list<T>(items: readonly T[], write: (request: this, item: T) => void, name = 'an argument'): this {
    this.#need(isList(items), name, 'a list', items);
    this.u32(items.length);
    for (const item of items) write(this, item);
    return this;
  }

  /** Names, or sizes. */
  texts(items: readonly (string | number)[], name = 'an argument'): this {
    return this.list(items, (r, item) => {
      this.#need(typeof item === 'string' || Number.isFinite(item), `an element of ${name}`, 'a text or a finite number', item); // "NaN" is a symbol
      r.text(shown(item));
    }, name);
  }

  /** Names with numbers, as counts (u32) or as reals (f64). */
  numbers(entries: Readonly<Record<string, number>>, kind: 'u32' | 'f64', name = 'an argument'): this {
    this.#need(Object(entries) === entries, name, 'an object of numbers by name', entries);
    return this.list(Object.entries(entries), (r, [of, n]) => r.text(of)[kind](n, of));
  }

  attribute(value: Attribute): this {
    switch (typeof value) {
      case 'number': return this.u32(0).f64(value);
      case 'boolean': return this.u32(1).u32(Number(value));
      case 'string': return this.u32(2).text(value);
      default: return this.u32(3).texts(value);
    }
  }
}

/** Reads a response. */
export class Response {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  u32(): number {
    this.#at += 4;
    return this.#view.getUint32(this.#at - 4, true);
  }

  f64(): number {
    this.#at += 8;
    return this.#view.getFloat64(this.#at - 8, true);
  }

  data(): Uint8Array {
    const n = this.u32();
    this.#at += n;
    return this.#bytes.subarray(this.#at - n, this.#at);
  }

  text(): string { return decoder.decode(this.data()); }

  list<T>(read: () => T): T[] { return Array.from({ length: this.u32() }, read); }
}
