// rlx as a page uses it: graphs that are built and compiled where they run.

import { bytesOf, convolutionParameters, initialParameters, languageParameters, makeBatches, makeTokens, randoms } from '../jobs.mjs';
import { networkOf, weightValues } from '../networks.mjs';

/** The rows, columns and channels of filters [out, in, rows, columns] in the order [rows, columns, in, out]. */
function filtersLast({ shape: [outputs, inputs, rows, columns], data }) {
  const turned = new Float32Array(data.length);
  data.forEach((x, i) => {
    const place = i % (rows * columns), channel = Math.floor(i / (rows * columns)) % inputs, output = Math.floor(i / (rows * columns * inputs));
    turned[(place * inputs + channel) * outputs + output] = x;
  });
  return turned;
}

/** The operations of networks.mjs in a graph. */
const operations = (b) => ({
  image: (x) => x,
  weight: (name, shape) => b.param(name, 'f32', shape),
  conv(x, f, bias, stride) {
    const around = f.shape[0] >> 1;
    return x.conv2d(f, bias, { strides: [stride, stride], padLo: [around, around], padHi: [around, around] });
  },
  patches: (x, f, bias) => x.conv2d(f, bias, { strides: [f.shape[0], f.shape[0]] }),
  pool: (x) => x.maxPool({ sizes: [2, 2], strides: [2, 2] }),
  up: (x) => x.resize({ sizes: [2 * x.shape[1], 2 * x.shape[2]], mode: 'nearest' }),
  join: (x, y) => b.concatenate([x, y], 3),
  average: (x) => x.mean([1, 2]),
  tokens: (x) => x.reshape([x.shape[0], x.shape[1] * x.shape[2], x.shape[3]]),
  relu: (x) => x.relu(),
  gelu: (x) => x.gelu(),
  add: (x, y) => x.add(y),
  dense: (x, w, bias) => x.linear(w, bias),
  norm: (x, scale, bias) => x.layerNorm(scale, bias),
  attend(qkv, heads) {
    const [batch, n, three] = qkv.shape, width = three / 3;
    const [q, k, v] = qkv.split({ sizes: [width, width, width], axis: 2 }).map((part) => part.reshape([batch, n, heads, width / heads]).transpose([0, 2, 1, 3]));
    return q.attention(k, v).transpose([0, 2, 1, 3]).reshape([batch, n, width]);
  },
  first: (x) => x.slice({ start: [0, 0, 0], size: [x.shape[0], 1, x.shape[2]], stride: [1, 1, 1] }).reshape([x.shape[0], x.shape[2]]),
  embed: (table, ids) => table.embedding(ids),
  lstm(x, wx, wh, bias) {
    const [batch, time] = x.shape, width = wh.shape[0];
    const zeros = b.constant('f32', [1, batch, width], new Float32Array(batch * width)), none = b.constant('f32', [4 * width], new Float32Array(4 * width));
    const [, h] = x.transpose([1, 0, 2]).lstm(zeros, zeros, [wx, wh, bias, none]);
    return h.reshape([batch, width]);
  },
});

/** The loss of layers with a relu between. */
function perceptron(b, x, labels, layers) {
  let h = x;
  for (let i = 1; i < layers.length; i++) {
    h = h.linear(b.param(`w${i - 1}`, 'f32', [layers[i - 1], layers[i]]), b.param(`b${i - 1}`, 'f32', [layers[i]]));
    if (i + 1 < layers.length) h = h.relu();
  }
  return h.crossEntropyMean(labels);
}

/** Opens rlx: `rlx` is the module of the package. A step runs in the thread that calls it. */
export async function open({ rlx, wasm }) {
  await rlx.init({ worker: false, compileWorker: false, cache: false, ...wasm && { wasm } });
  const compiled = (entries) => rlx.program({ entries }, { worker: false, on: 'gpu', drafts: false });

  /** A job whose result is a state, so that nothing is read but one element of it. */
  async function resident(shape, inputs, build) {
    const program = await compiled({
      step: rlx.graph('step', (b) => {
        b.state('y', 'f32', shape);
        b.setState('y', build(...Object.entries(inputs).map(([name, [dims]]) => b.input(name, 'f32', dims))));
      }),
      probe: rlx.graph('probe', (b) => {
        const y = b.state('y', 'f32', shape);
        b.setState('y', y);
        b.output('first', y.slice({ start: [0, 0], size: [1, 1], stride: [1, 1] }));
      }),
    });
    await program.bind('step', Object.fromEntries(Object.entries(inputs).map(([name, [, data]]) => [name, data])));
    return {
      step: () => program.run('step'),
      async sync() {
        const { reading } = await program.run('probe', {}, { read: ['first'] });
        await reading;
      },
      dispose: () => program.close(),
    };
  }

  /** A job that trains: `build` gives the loss from the inputs, parameters are written in the order of their names. */
  async function training(inputs, build, values, batches, { rate, fresh = true, optimizer = { kind: 'adam' }, bound }) {
    const model = rlx.graph('step', (b) => b.output('loss', build(b, ...Object.entries(inputs).map(([name, [dtype, dims]]) => b.input(name, dtype, dims)))));
    const program = await compiled({ step: model.step({ optimizer, schedule: { kind: 'constant', rate } }) });
    for (const [name, data] of Object.entries(values)) await program.write(name, data);
    if (bound ?? !fresh) await program.bind('step', bound ?? batches[0]);
    const loss = async () => (await program.read('loss'))[0];
    return { step: (i) => program.run('step', fresh ? batches[i % batches.length] : {}), sync: loss, loss, dispose: () => program.close() };
  }

  const named = (parameters) => Object.fromEntries(parameters.map(({ data }, i) => [`${i % 2 ? 'b' : 'w'}${i >> 1}`, data]));

  /** A network's forward pass. */
  async function network({ name, ...options }) {
    const { shape, data, ids, build } = networkOf({ name, ...options }), weights = {};
    let result;
    const step = rlx.graph('step', (b) => {
      const o = operations(b), weight = (called, dims) => {
        weights[called] = dims;
        return o.weight(called, dims);
      };
      const y = build({ ...o, weight }, b.input('x', ids ? 'i32' : 'f32', shape));
      result = y.shape;
      b.state('y', 'f32', result);
      b.setState('y', y);
    });
    const program = await compiled({
      step,
      probe: rlx.graph('probe', (b) => {
        const y = b.state('y', 'f32', result);
        b.setState('y', y);
        b.output('first', y.square().mean());
      }),
    });
    for (const [called, dims] of Object.entries(weights)) await program.write(called, weightValues(called, dims));
    await program.bind('step', { x: data });
    const first = async () => {
      const { reading } = await program.run('probe', {}, { read: ['first'] });
      return (await reading).values.first[0];
    };
    return { step: () => program.run('step'), sync: first, loss: first, dispose: () => program.close() };
  }

  return {
    name: 'rlx',
    version: '0.2.0',
    network,
    matmul: ({ n }) => resident([n, n], { a: [[n, n], randoms(n * n, 1)], b: [[n, n], randoms(n * n, 2)] }, (a, b) => a.matmul(b)),
    matvec: ({ n }) => resident([n, 1], { a: [[n, n], randoms(n * n, 1)], x: [[n, 1], randoms(n, 2)] }, (a, x) => a.matmul(x)),
    softmax: ({ rows, cols }) => resident([rows, cols], { a: [[rows, cols], randoms(rows * cols, 1)] }, (a) => a.softmax()),

    bytes(options) { return this.mlp({ ...options, dtype: 'u8', narrow: bytesOf }); },

    halves(options) { return this.mlp({ ...options, dtype: 'f16', narrow: (x) => new Float16Array(x) }); },

    mlp({ layers, batch, dtype = 'f32', narrow = (x) => x, ...options }) {
      const batches = makeBatches({ layers, batch }).map(({ x, labels }) => ({ x: narrow(x), labels }));
      return training({ x: [dtype, [batch, layers[0]]], labels: ['i32', [batch]] }, (b, x, labels) => perceptron(b, x.convert('f32'), labels, layers), named(initialParameters(layers)), batches, options);
    },

    chosen({ layers, batch, ...options }) {
      const [width] = layers, batches = makeBatches({ layers, batch }), rows = batches.length * batch, all = new Float32Array(rows * width), labels = new Int32Array(rows);
      batches.forEach((one, i) => {
        all.set(one.x, i * batch * width);
        labels.set(one.labels, i * batch);
      });
      // As an order that is shuffled has them: 7919 has no divisor in common with the number of rows.
      const chosen = batches.map((_, i) => ({ rows: Int32Array.from({ length: batch }, (_, j) => (i * batch + j) * 7919 % rows) }));
      return training({ all: ['f32', [rows, width]], labels: ['i32', [rows]], rows: ['i32', [batch]] }, (b, all, labels, rows) => perceptron(b, all.take(rows), labels.take(rows), layers),
        named(initialParameters(layers)), chosen, { ...options, bound: { all, labels } });
    },

    cnn({ batch, ...options }) {
      const parameters = convolutionParameters(), values = named(parameters.map((one) => one.shape.length === 4 ? { data: filtersLast(one) } : one));
      const batches = makeBatches({ layers: [64, 10], batch }).map(({ x, labels }) => ({ x, labels }));
      return training({ x: ['f32', [batch, 8, 8, 1]], labels: ['i32', [batch]] }, (b, x, labels) => {
        const filter = (h, i, from, to) => h.conv2d(b.param(`w${i}`, 'f32', [3, 3, from, to]), b.param(`b${i}`, 'f32', [to]), { padLo: [1, 1], padHi: [1, 1] }).relu();
        const pooled = filter(filter(x, 0, 1, 16), 1, 16, 32).maxPool({ sizes: [2, 2], strides: [2, 2] });
        const dense = pooled.transpose([0, 3, 1, 2]).reshape([batch, 512]).linear(b.param('w2', 'f32', [512, 128]), b.param('b2', 'f32', [128])).relu();
        return dense.linear(b.param('w3', 'f32', [128, 10]), b.param('b3', 'f32', [10])).crossEntropyMean(labels);
      }, values, batches, options);
    },

    lm({ context, width, heads, blocks, batch, vocab, rate }) {
      const size = [batch, context], values = Object.fromEntries(languageParameters({ vocab, context, width, blocks }).map(({ name, data }) => [name, data]));
      const dense = (b, x, name, from, to) => x.matmul(b.param(name, 'f32', [from, to]));
      const norm = (b, x, name) => x.layerNorm(b.param(name, 'f32', [width]));
      const block = (b, x, at) => {
        const apart = (part) => part.reshape([batch, context, heads, width / heads]).transpose([0, 2, 1, 3]);
        const [q, k, v] = dense(b, norm(b, x, `${at}norm1`), `${at}qkv`, width, 3 * width).split({ sizes: [width, width, width], axis: 2 }).map(apart);
        const seen = q.attention(k, v, undefined, { causal: true }).transpose([0, 2, 1, 3]).reshape([batch, context, width]);
        const y = x.add(dense(b, seen, `${at}out`, width, width));
        return y.add(dense(b, dense(b, norm(b, y, `${at}norm2`), `${at}up`, width, 4 * width).relu(), `${at}down`, 4 * width, width));
      };
      return training({ ids: ['i32', size], next: ['i32', size] }, (b, ids, next) => {
        const table = b.param('table', 'f32', [vocab, width]);
        let x = table.embedding(ids).add(b.param('positions', 'f32', [context, width]));
        for (let i = 0; i < blocks; i++) x = block(b, x, `block${i}/`);
        return norm(b, x, 'norm').matmul(table.transpose([1, 0])).crossEntropyMean(next);
      }, values, makeTokens({ context, batch, vocab }), { rate });
    },
  };
}
