// Writes small GGUF files, version 3, for tests and for the demo.

const encoder = new TextEncoder(), alignment = 32;

/** Values of 32 bits and their kind in the metadata. */
export const u32 = (value) => ({ kind: 4, value }), f32 = (value) => ({ kind: 6, value });

const kinds = { f32: 0, f16: 1, q8_0: 8 };

class Writer {
  #parts = [];
  size = 0;

  bytes(data) {
    this.#parts.push(data);
    this.size += data.length;
    return this;
  }

  #number(bytes, set) {
    const view = new DataView(new ArrayBuffer(bytes));
    set(view);
    return this.bytes(new Uint8Array(view.buffer));
  }

  u32(n) { return this.#number(4, (view) => view.setUint32(0, n, true)); }
  u64(n) { return this.#number(8, (view) => view.setBigUint64(0, BigInt(n), true)); }
  f32(x) { return this.#number(4, (view) => view.setFloat32(0, x, true)); }

  text(text) {
    const data = encoder.encode(text);
    return this.u64(data.length).bytes(data);
  }

  pad() { return this.bytes(new Uint8Array(-this.size & alignment - 1)); }

  value(given) {
    if (typeof given === 'string') return this.u32(8).text(given);
    if (typeof given === 'boolean') return this.u32(7).bytes(Uint8Array.of(Number(given)));
    if (!Array.isArray(given)) return given.kind === 6 ? this.u32(6).f32(given.value) : this.u32(4).u32(given.value);
    this.u32(9).u32(typeof given[0] === 'number' ? 5 : 8).u64(given.length); // of i32, or of texts
    for (const one of given) typeof one === 'number' ? this.u32(one) : this.text(one);
    return this;
  }

  done() {
    const all = new Uint8Array(this.size);
    let at = 0;
    for (const part of this.#parts) {
      all.set(part, at);
      at += part.length;
    }
    return all;
  }
}

/** A file of metadata and of tensors: { shape, type, data }, of which data are the bytes. */
export function writeGGUF(metadata, tensors) {
  const w = new Writer().bytes(encoder.encode('GGUF')).u32(3).u64(Object.keys(tensors).length).u64(Object.keys(metadata).length);
  for (const [key, value] of Object.entries(metadata)) w.text(key).value(value);
  let offset = 0;
  for (const [name, { shape, type, data }] of Object.entries(tensors)) {
    w.text(name).u32(shape.length);
    for (const size of shape.toReversed?.() ?? [...shape].reverse()) w.u64(size);
    w.u32(kinds[type]).u64(offset);
    offset += Math.ceil(data.length / alignment) * alignment;
  }
  w.pad();
  for (const { data } of Object.values(tensors)) w.bytes(data).pad();
  return w.done();
}

/** Numbers as blocks of q8_0: 32 of 8 bits with a scale of 16. Subnormal scales are 0. */
export function packQ8(numbers) {
  const out = new Uint8Array(numbers.length / 32 * 34), view = new DataView(out.buffer);
  for (let block = 0; block < numbers.length / 32; block++) {
    const part = numbers.subarray(block * 32, (block + 1) * 32), scale = Math.max(...part.map(Math.abs)) / 127, [bits, rounded] = half(scale);
    view.setUint16(block * 34, bits, true);
    part.forEach((x, i) => view.setInt8(block * 34 + 2 + i, rounded ? Math.round(x / rounded) : 0));
  }
  return out;
}

/** A positive number as the next f16 above, so that no quotient exceeds the range: the bits and the value. */
function half(x) {
  const e = Math.floor(Math.log2(x));
  if (!(e >= -14)) return [0, 0];
  const f = Math.ceil((x / 2 ** e - 1) * 1024);
  return [(e + 15) * 1024 + f, (1 + f / 1024) * 2 ** e];
}
