// ONNX models for tests: a writer by onnx.proto, and the arrays of an .npz file.

import { inflateRawSync } from 'node:zlib';

const varint = (n) => {
  const out = [];
  for (; n > 127; n = Math.floor(n / 128)) out.push(n % 128 + 128);
  return [...out, n];
};

/** A message of fields [number, value]: a number, a text, bytes, an f32 ({ f32 }), or the fields of a message. */
export function message(...fields) {
  return Buffer.concat(fields.filter(Boolean).map(([number, value]) => {
    if (typeof value === 'number') return Buffer.from([...varint(number * 8), ...varint(value)]);
    if (value.f32 !== undefined) return Buffer.from([...varint(number * 8 + 5), ...new Uint8Array(Float32Array.of(value.f32).buffer)]);
    const bytes = typeof value === 'string' ? Buffer.from(value) : ArrayBuffer.isView(value) ? Buffer.from(value.buffer, value.byteOffset, value.byteLength) : message(...value);
    return Buffer.concat([Buffer.from([...varint(number * 8 + 2), ...varint(bytes.length)]), bytes]);
  }));
}

const types = { Float32Array: 1, Uint8Array: 2, Int8Array: 3, Int32Array: 6, BigInt64Array: 7 };

/** A TensorProto of a typed array: with its elements, or at a place { location, offset, length }. */
export const tensor = (name, dims, data, place) => [
  ...dims.map((n) => [1, n]), [2, types[data.constructor.name]], [8, name],
  ...place ? Object.entries(place).map(([key, value]) => [13, [[1, key], [2, `${value}`]]]).concat([[14, 1]]) : [[9, data]],
];

/** A NodeProto. Attributes are whole numbers, lists of them, tensors or graphs ({ tensor }, { graph }). */
export const node = (op, inputs, outputs, attributes = {}, domain) => [
  ...inputs.map((name) => [1, name]), ...outputs.map((name) => [2, name]), [4, op], domain && [7, domain],
  ...Object.entries(attributes).map(([name, value]) => [5, [[1, name], ...
    typeof value === 'number' ? [[3, value], [20, 2]] : Array.isArray(value) ? [...value.map((n) => [8, n]), [20, 7]] : value.tensor ? [[5, value.tensor], [20, 4]] : [[6, value.graph], [20, 5]]]]),
];

/** A ValueInfoProto of an element type's number; sizes are numbers or symbols. */
export const info = (name, type, shape) => [[1, name], [2, [[1, [[1, type], shape && [2, shape.map((dim) => [1, [typeof dim === 'number' ? [1, dim] : [2, dim]]])]]]]]];

/** A GraphProto. */
export const graphOf = (nodes, initializers, inputs, outputs) => [
  ...nodes.map((one) => [1, one]), [2, 'main'], ...initializers.map((one) => [5, one]), ...inputs.map((one) => [11, one]), ...outputs.map((one) => [12, one]),
];

/** A model of operator set 17. */
export const modelOf = (...graph) => message([1, 8], [8, [[2, 17]]], [7, graphOf(...graph)]);

/** A model of two layers, x [batch, 16] → y [batch, 3], and its weights, the first large enough to be read apart. */
export function perceptron(placeOf = () => undefined) {
  const fill = (n, at) => Float32Array.from({ length: n }, (_, i) => Math.sin(i * 1.3 + at) / 3);
  const weights = { w0: [[16, 32], fill(512, 1)], b0: [[32], fill(32, 2)], w1: [[32, 3], fill(96, 3)], b1: [[3], fill(3, 4)] };
  const nodes = [node('MatMul', ['x', 'w0'], ['m0']), node('Add', ['m0', 'b0'], ['a0']), node('Relu', ['a0'], ['h']), node('MatMul', ['h', 'w1'], ['m1']), node('Add', ['m1', 'b1'], ['y'])];
  const initializers = Object.entries(weights).map(([name, [dims, data]]) => tensor(name, dims, data, placeOf(name, data)));
  return { bytes: modelOf(nodes, initializers, [info('x', 1, ['batch', 16])], [info('y', 1, ['batch', 3])]), weights };
}

/** The outputs of the perceptron, by its formula. */
export function perceptronOf({ w0: [, w0], b0: [, b0], w1: [, w1], b1: [, b1] }, x) {
  const layer = (row, w, b) => Array.from(b, (bias, j) => row.reduce((sum, v, i) => sum + v * w[i * b.length + j], bias));
  const rows = Array.from({ length: x.length / 16 }, (_, r) => Array.from(x.slice(16 * r, 16 * r + 16)));
  return rows.flatMap((row) => layer(layer(row, w0, b0).map((v) => Math.max(v, 0)), w1, b1));
}

/** The arrays of an .npz file whose entries are deflated, by name: { dims, data }. */
export function arraysOf(file) {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength), arrays = new Map(), end = file.lastIndexOf(Buffer.from('PK\x05\x06'));
  for (let at = view.getUint32(end + 16, true), n = view.getUint16(end + 10, true); n > 0; n--) {
    const size = view.getUint32(at + 20, true), [name, extra, comment] = [28, 30, 32].map((k) => view.getUint16(at + k, true)), local = view.getUint32(at + 42, true);
    const begin = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
    const array = inflateRawSync(file.subarray(begin, begin + size)), header = array.readUInt16LE(8), text = array.subarray(10, 10 + header).toString();
    const type = { '<f4': Float32Array, '|u1': Uint8Array, '<i4': Int32Array, '<i8': BigInt64Array }[/'descr': '([^']+)'/.exec(text)[1]];
    const dims = /'shape': \(([^)]*)\)/.exec(text)[1].split(',').filter((part) => part.trim()).map(Number);
    arrays.set(file.subarray(at + 46, at + 46 + name).toString().replace(/\.npy$/, ''), { dims, data: new type(Uint8Array.from(array.subarray(10 + header)).buffer) });
    at += 46 + name + extra + comment;
  }
  return arrays;
}
