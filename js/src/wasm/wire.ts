// The wire form of calls to the compiler, as the Go package wasm/compiler reads and writes it.

const encoder = new TextEncoder(), decoder = new TextDecoder();

/** An attribute of an op. */
export type Attribute = number | boolean | string | readonly (number | string)[];

/** Writes a request. */
export class Request {
  #bytes = new Uint8Array(256);
  #size = 0;

  constructor(method: string) { this.text(method); }

  /** What was written. */
  get bytes(): Uint8Array { return this.#bytes.subarray(0, this.#size); }

  #room(n: number): DataView {
    const size = this.#size + n;
    if (size > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(size, 2 * this.#bytes.length));
      grown.set(this.bytes);
      this.#bytes = grown;
    }
    const view = new DataView(this.#bytes.buffer, this.#size, n);
    this.#size = size;
    return view;
  }

  u32(n: number): this {
    this.#room(4).setUint32(0, n, true);
    return this;
  }

  f64(n: number): this {
    this.#room(8).setFloat64(0, n, true);
    return this;
  }

  data(bytes: Uint8Array): this {
    this.u32(bytes.length).#room(bytes.length);
    this.#bytes.set(bytes, this.#size - bytes.length);
    return this;
  }

  text(text: string): this { return this.data(encoder.encode(text)); }

  list<T>(items: readonly T[], write: (request: this, item: T) => void): this {
    this.u32(items.length);
    for (const item of items) write(this, item);
    return this;
  }

  texts(items: readonly (string | number)[]): this { return this.list(items, (r, item) => r.text(String(item))); }

  /** Names with numbers, as counts (u32) or as reals (f64). */
  numbers(entries: Readonly<Record<string, number>>, kind: 'u32' | 'f64'): this {
    return this.list(Object.entries(entries), (r, [name, n]) => r.text(name)[kind](n));
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
