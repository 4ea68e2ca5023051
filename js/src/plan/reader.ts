// The fields of a plan file, one after the other. Rules 1 to 6 of the Go package internal/compiler/plan.

import { refuse, typeBytes } from './validate.js';

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Reads fields between at and end, and throws past the end. */
export class Reader {
  at = 0;
  end: number;
  /** Whether the file's minor version is above ours: then records may have more fields. */
  newer = false;
  where = 'header';
  readonly #bytes: Uint8Array<ArrayBuffer>;
  readonly #view: DataView;

  constructor(bytes: Uint8Array<ArrayBuffer>) {
    this.#bytes = bytes;
    this.end = bytes.length;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  /** Throws: the file breaks a rule here. */
  fail(rule: number, reason = 'damaged'): never {
    return refuse(rule, `${this.where} at byte ${this.at}: ${reason}`);
  }

  /** Throws unless n bytes are there. */
  #room(n: number): void {
    if (n > this.end - this.at) this.fail(3);
  }

  /** Skips n bytes and returns their offset. */
  #skip(n: number): number {
    this.#room(n);
    return (this.at += n) - n;
  }

  take(n: number): Uint8Array<ArrayBuffer> { return this.#bytes.subarray(this.#skip(n), this.at); }

  tag(): string { return String.fromCharCode(...this.take(4)); }

  u32(): number { return this.#view.getUint32(this.#skip(4), true); }

  /** A number of 64 bits that is exact in JavaScript. */
  i64(): number {
    const n = Number(this.#view.getBigInt64(this.#skip(8), true));
    return Number.isSafeInteger(n) ? n : this.fail(4);
  }

  u64(): number {
    const n = this.i64();
    return n >= 0 ? n : this.fail(4);
  }

  triple(): number[] { return [this.u32(), this.u32(), this.u32()]; }

  oneOf<T>(values: readonly T[]): T { return values[this.u32()] ?? this.fail(6); }

  dtype(): string {
    const name = this.string();
    return Object.hasOwn(typeBytes, name) ? name : this.fail(6);
  }

  string(): string {
    const n = this.u32(), bytes = this.take(n);
    this.#skip(-n & 3);
    try {
      return utf8.decode(bytes);
    } catch {
      return this.fail(5);
    }
  }

  /** Every item takes at least `size` bytes, so the remaining bytes bound the count. */
  list<T>(item: () => T, size = 4): T[] {
    const n = this.u32();
    this.#room(n * size);
    return Array.from({ length: n }, item);
  }

  record<T>(body: () => T): T {
    const n = this.u32(), outer = this.end;
    this.#room(n + (-n & 3));
    this.end = this.at + n;
    const value = body();
    if (this.at < this.end && !this.newer) this.fail(3);
    this.at = this.end;
    this.end = outer;
    this.#skip(-n & 3);
    return value;
  }

  records<T>(item: () => T): T[] { return this.list(() => this.record(item)); }
}
