// Models as ONNX files, which onnxruntime-web and transformers.js run.

import { networkOf, weightValues } from '../networks.mjs';

// A model file is a message of protocol buffers: a field is its number and wire type, then a varint, or a
// length and bytes.
const varint = (n) => n < 128 ? [n] : [n & 127 | 128, ...varint(n >>> 7)];
const field = (number, value) => {
  if (typeof value === 'number') return [...varint(number << 3), ...varint(value)];
  const bytes = typeof value === 'string' ? new TextEncoder().encode(value) : value;
  return [...varint(number << 3 | 2), ...varint(bytes.length), ...bytes];
};

/** The description of a tensor, of floats unless its kind is another: ValueInfoProto. */
const tensorInfo = (name, shape, kind = 1) => {
  const dims = shape.flatMap((n) => field(1, field(1, n)));
  return [...field(1, name), ...field(2, field(1, [...field(1, kind), ...field(2, dims)]))];
};

/** A tensor's name, shape and values: TensorProto. */
function tensor(name, dims, data) {
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength), kind = data instanceof BigInt64Array ? 7 : data instanceof Int32Array ? 6 : 1;
  return [dims.flatMap((n) => field(1, n)), field(2, kind), field(8, name), [9 << 3 | 2, ...varint(bytes.length)], bytes];
}

/** Bytes of nested lists of bytes. */
function joined(parts) {
  const flat = parts.flat(Infinity).filter((part) => !ArrayBuffer.isView(part) || part.length);
  const out = new Uint8Array(flat.reduce((n, part) => n + (part.length ?? 1), 0));
  let at = 0;
  for (const part of flat) {
    if (typeof part === 'number') out[at++] = part;
    else {
      out.set(part, at);
      at += part.length;
    }
  }
  return out;
}

/** A graph as it is written: nodes and initial values, and the shape of each value. */
export class Model {
  #nodes = [];
  #initial = [];

  /** Appends a node and gives its result, of a shape. Attributes are integers or lists of them, fractions or texts. */
  node(op, inputs, shape, attributes = {}) {
    const name = `v${this.#nodes.length}`;
    this.#nodes.push(joined([...inputs.map((input) => field(1, input?.name ?? '')), field(2, name), field(4, op), ...Object.entries(attributes).map(([key, value]) => field(5, attribute(key, value)))]));
    return { name, shape };
  }

  value(shape, data, name = `c${this.#initial.length}`) {
    this.#initial.push(joined(tensor(name, shape, data)));
    return { name, shape };
  }

  integers(list) { return this.value([list.length], BigInt64Array.from(list, BigInt)); }

  /** The file of the model: inputs are { name, shape, kind }, and `y` is the result, under the name `output`. */
  file(inputs, y, output = 'y') {
    const last = joined([field(1, y.name), field(2, output), field(4, 'Identity')]);
    const part = (number, bytes) => [[number << 3 | 2, ...varint(bytes.length)], bytes];
    const graph = joined([
      [...this.#nodes, last].map((bytes) => part(1, bytes)), field(2, 'g'), this.#initial.map((bytes) => part(5, bytes)),
      inputs.map(({ name, shape, kind }) => field(11, tensorInfo(name, shape, kind))), field(12, tensorInfo(output, y.shape)),
    ]);
    return joined([field(1, 8), part(7, graph), field(8, field(2, 20))]);
  }
}

const float = (x) => [...new Uint8Array(Float32Array.of(x).buffer)];

/** AttributeProto. */
function attribute(name, value) {
  if (typeof value === 'string') return [...field(1, name), ...field(4, value), ...field(20, 3)];
  if (Array.isArray(value)) return [...field(1, name), ...value.flatMap((n) => field(8, n)), ...field(20, 7)];
  if (Number.isInteger(value)) return [...field(1, name), ...field(3, value), ...field(20, 2)];
  return [...field(1, name), 2 << 3 | 5, ...float(value), ...field(20, 1)];
}

const product = (shape) => shape.reduce((a, b) => a * b, 1);

/** Values with the axes in another order. */
function transposed(data, shape, order) {
  const out = new data.constructor(data.length), strides = shape.map((_, i) => product(shape.slice(i + 1)));
  const dims = order.map((axis) => shape[axis]), at = dims.map(() => 0);
  for (let i = 0; i < out.length; i++) {
    out[i] = data[at.reduce((sum, x, axis) => sum + x * strides[order[axis]], 0)];
    for (let axis = at.length - 1; axis >= 0 && ++at[axis] === dims[axis]; axis--) at[axis] = 0;
  }
  return out;
}

/** The operations of networks.mjs as nodes; images have their channels first, as onnxruntime's do. */
function operations(m) {
  const same = (op) => (x) => m.node(op, [x], x.shape), both = (op) => (x, y) => m.node(op, [x, y], x.shape);
  const reshape = (x, shape) => m.node('Reshape', [x, m.integers(shape)], shape);
  const transpose = (x, perm) => m.node('Transpose', [x], perm.map((axis) => x.shape[axis]), { perm });
  const matmul = (x, y) => m.node('MatMul', [x, y], [...x.shape.slice(0, -1), y.shape.at(-1)]);
  const conv = (x, f, b, stride, pad) => {
    const { shape: [size, , from, to], data } = f, out = x.shape.slice(2).map((n) => (n + 2 * pad - size) / stride + 1 | 0);
    const filter = m.value([to, from, size, size], transposed(data, f.shape, [3, 2, 0, 1]));
    return m.node('Conv', [x, filter, b], [x.shape[0], to, ...out], { strides: [stride, stride], pads: [pad, pad, pad, pad], kernel_shape: [size, size] });
  };
  const resized = (op, x, half, attributes, more = []) => m.node(op, [x, ...more], [x.shape[0], x.shape[1], x.shape[2] * half, x.shape[3] * half], attributes);
  return {
    image: (x) => x,
    weight(name, shape) {
      const data = weightValues(name, shape);
      return shape.length === 4 ? { shape, data } : m.value(shape, data, name);
    },
    conv: (x, f, b, stride) => conv(x, f, b, stride, f.shape[0] >> 1),
    patches: (x, f, b) => conv(x, f, b, f.shape[0], 0),
    pool: (x) => resized('MaxPool', x, 1 / 2, { kernel_shape: [2, 2], strides: [2, 2] }),
    up: (x) => resized('Resize', x, 2, { mode: 'nearest', coordinate_transformation_mode: 'asymmetric', nearest_mode: 'floor' }, [undefined, m.value([4], Float32Array.of(1, 1, 2, 2))]),
    join: (x, y) => m.node('Concat', [x, y], [x.shape[0], x.shape[1] + y.shape[1], x.shape[2], x.shape[3]], { axis: 1 }),
    average: (x) => reshape(m.node('GlobalAveragePool', [x], [x.shape[0], x.shape[1], 1, 1]), [x.shape[0], x.shape[1]]),
    tokens: (x) => transpose(reshape(x, [x.shape[0], x.shape[1], x.shape[2] * x.shape[3]]), [0, 2, 1]),
    relu: same('Relu'), gelu: same('Gelu'), add: both('Add'),
    dense(x, w, b) {
      const y = matmul(x, w);
      return m.node('Add', [y, b], y.shape);
    },
    norm: (x, scale, bias) => m.node('LayerNormalization', [x, scale, bias], x.shape, { axis: x.shape.length - 1, epsilon: 1e-5 }),
    attend(qkv, heads) {
      const [batch, n, three] = qkv.shape, width = three / 3;
      const parts = transpose(reshape(qkv, [batch, n, 3, heads, width / heads]), [2, 0, 3, 1, 4]);
      const [q, k, v] = [0, 1, 2].map((i) => m.node('Gather', [parts, m.value([], BigInt64Array.of(BigInt(i)))], parts.shape.slice(1), { axis: 0 }));
      const scores = matmul(q, transpose(k, [0, 1, 3, 2])), scaled = m.node('Mul', [scores, m.value([], Float32Array.of(1 / Math.sqrt(width / heads)))], scores.shape);
      return reshape(transpose(matmul(m.node('Softmax', [scaled], scores.shape, { axis: 3 }), v), [0, 2, 1, 3]), [batch, n, width]);
    },
    first: (x) => m.node('Gather', [x, m.value([], BigInt64Array.of(0n))], [x.shape[0], x.shape[2]], { axis: 1 }),
    lstm() { throw new Error('no LSTM on WebGPU'); },
    embed: (table, ids) => m.node('Gather', [table, ids], [...ids.shape, table.shape[1]], { axis: 0 }),
  };
}

/** A network of networks.mjs: { bytes, input }, its file and [shape, data] of its input. */
export function networkFile(options, input = 'x', output = 'y') {
  const { shape, data, ids, build } = networkOf(options), m = new Model();
  const channels = shape.length === 4 ? [shape[0], shape[3], shape[1], shape[2]] : shape;
  const x = { name: input, shape: channels, kind: ids ? 6 : 1 }, y = build(operations(m), x);
  return { bytes: m.file([x], y, output), input: [channels, shape.length === 4 ? transposed(data, shape, [0, 3, 1, 2]) : data] };
}
