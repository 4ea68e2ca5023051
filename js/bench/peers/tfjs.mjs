// TensorFlow.js: its own optimiser and its own loss, as its guides write them.

import * as tf from '@tensorflow/tfjs-core';
import '@tensorflow/tfjs-core/dist/public/chained_ops/register_all_chained_ops.js';
import '@tensorflow/tfjs-core/dist/register_all_gradients.js';
import '@tensorflow/tfjs-backend-webgpu';
import { adam, convolutionParameters, initialParameters, languageParameters, makeBatches, makeTokens, randoms } from '../jobs.mjs';
import { networkOf, weightValues } from '../networks.mjs';

// firstNumber waits for a tensor by reading one element of it.
async function firstNumber(tensor) {
  const one = tf.tidy(() => tf.slice(tf.reshape(tensor, [-1]), [0], [1]));
  const [value] = await one.data();
  one.dispose();
  return value;
}

// repeated is a job of one function whose result replaces the last in each step.
function repeated(run, inputs) {
  let result;
  return {
    step() {
      result?.dispose();
      result = tf.tidy(run);
    },
    sync: () => firstNumber(result),
    dispose: () => tf.dispose([result, ...inputs]),
  };
}

function perceptron(variables, x) {
  let h = x;
  for (let i = 0; i < variables.length; i += 2) {
    h = tf.add(tf.matMul(h, variables[i]), variables[i + 1]);
    if (i + 2 < variables.length) h = tf.relu(h);
  }
  return h;
}

const mlp = ({ layers, batch, fresh, rate }) => training({
  lossOf: (variables, x, oneHot) => tf.losses.softmaxCrossEntropy(oneHot, perceptron(variables, x)),
  batches: makeBatches({ layers, batch }), fresh, rate, parameters: initialParameters(layers),
  upload: ({ x, oneHot }) => [tf.tensor2d(x, [batch, layers[0]]), tf.tensor2d(oneHot, [batch, layers.at(-1)])],
});

/** The network of the job cnn: features last, as this library has them, and before rows and columns behind the pictures. */
function convolutional([f1, c1, f2, c2, w1, b1, w2, b2], batch, x) {
  const layer = (h, f, c) => tf.relu(tf.add(tf.conv2d(h, f, 1, 'same'), c));
  const h = tf.transpose(tf.maxPool(layer(layer(x, f1, c1), f2, c2), 2, 2, 'valid'), [0, 3, 1, 2]);
  const dense = tf.relu(tf.add(tf.matMul(tf.reshape(h, [batch, 512]), w1), b1));
  return tf.add(tf.matMul(dense, w2), b2);
}

const cnn = ({ batch, rate, fresh = true }) => training({
  lossOf: (variables, x, oneHot) => tf.losses.softmaxCrossEntropy(oneHot, convolutional(variables, batch, x)),
  batches: makeBatches({ layers: [64, 10], batch }), fresh, rate, parameters: convolutionParameters(),
  variable: (tensor) => tensor.rank === 4 ? tf.transpose(tensor, [2, 3, 1, 0]) : tensor,
  upload: ({ x, oneHot }) => [tf.tensor4d(x, [batch, 8, 8, 1]), tf.tensor2d(oneHot, [batch, 10])],
});

/** A layer norm with a scale, over the last axis. */
function layerNorm(x, scale) {
  const { mean, variance } = tf.moments(x, -1, true);
  return tf.mul(tf.mul(tf.sub(x, mean), tf.rsqrt(tf.add(variance, 1e-5))), scale);
}

/** A block of a transformer. Rows of tokens are matrices: a product of a batch with one matrix is slower here. */
function block(x, [norm1, qkv, out, norm2, up, down], { batch, context, heads, width, hidden }) {
  const apart = (part) => tf.transpose(tf.reshape(part, [batch, context, heads, width / heads]), [0, 2, 1, 3]);
  const [q, k, v] = tf.split(tf.matMul(layerNorm(x, norm1), qkv), 3, 1).map(apart);
  const scores = tf.add(tf.mul(tf.matMul(q, k, false, true), 1 / Math.sqrt(width / heads)), hidden);
  const seen = tf.reshape(tf.transpose(tf.matMul(tf.softmax(scores), v), [0, 2, 1, 3]), [batch * context, width]);
  const y = tf.add(x, tf.matMul(seen, out));
  return tf.add(y, tf.matMul(tf.relu(tf.matMul(layerNorm(y, norm2), up)), down));
}

function lm({ vocab, context, width, heads, blocks, batch, rate }) {
  const hidden = tf.tensor(Float32Array.from({ length: context * context }, (_, i) => i % context > Math.floor(i / context) ? -1e9 : 0), [context, context]);
  const sizes = { batch, context, heads, width, hidden };
  const lossOf = ([table, positions, ...rest], ids, next) => {
    let x = tf.reshape(tf.add(tf.gather(table, ids), positions), [batch * context, width]);
    for (let i = 0; i < blocks; i++) x = block(x, rest.slice(6 * i, 6 * i + 6), sizes);
    const logits = tf.matMul(layerNorm(x, rest.at(-1)), table, false, true);
    return tf.losses.softmaxCrossEntropy(tf.oneHot(tf.reshape(next, [-1]), vocab), logits);
  };
  return training({
    lossOf, rate, fresh: true, batches: makeTokens({ context, batch, vocab }), parameters: languageParameters({ vocab, context, width, blocks }),
    upload: ({ ids, next }) => [tf.tensor2d(ids, [batch, context], 'int32'), tf.tensor2d(next, [batch, context], 'int32')],
  });
}

/** A job that trains: lossOf is of the variables and what upload makes of a batch. */
async function training({ lossOf, batches, fresh, rate, parameters, upload, variable = (tensor) => tensor }) {
  const resident = fresh ? undefined : upload(batches[0]);
  const variables = parameters.map(({ data, shape }) => tf.variable(variable(tf.tensor(data, shape))));
  const optimizer = tf.train.adam(rate, adam.beta1, adam.beta2, adam.epsilon);
  let loss;
  return {
    step(i) {
      const [x, y] = resident ?? upload(batches[i % batches.length]);
      loss?.dispose();
      loss = optimizer.minimize(() => lossOf(variables, x, y), true, variables);
      if (fresh) tf.dispose([x, y]);
    },
    loss: async () => (await loss.data())[0],
    sync: () => firstNumber(variables[0]),
    dispose() {
      optimizer.dispose();
      tf.dispose([loss, variables, resident].flat().filter(Boolean));
    },
  };
}

/** The operations of networks.mjs. */
const operations = (weights) => ({
  image: (x) => x,
  weight(name, shape) {
    weights[name] ??= tf.keep(tf.tensor(weightValues(name, shape), shape));
    return weights[name];
  },
  conv: (x, filter, bias, strides) => strides === 1
    ? tf.fused.conv2d({ x, filter, bias, strides, pad: 'same' })
    : tf.fused.conv2d({ x: filter.shape[0] === 1 ? x : tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]]), filter, bias, strides, pad: 'valid' }),
  patches: (x, filter, bias) => tf.fused.conv2d({ x, filter, bias, strides: filter.shape[0], pad: 'valid' }),
  pool: (x) => tf.maxPool(x, 2, 2, 'valid'),
  up: (x) => tf.image.resizeNearestNeighbor(x, [2 * x.shape[1], 2 * x.shape[2]]),
  join: (x, y) => tf.concat([x, y], 3),
  average: (x) => tf.mean(x, [1, 2]),
  tokens: (x) => tf.reshape(x, [x.shape[0], -1, x.shape[3]]),
  relu: tf.relu,
  gelu: (x) => tf.mul(tf.mul(x, 0.5), tf.add(tf.erf(tf.mul(x, Math.SQRT1_2)), 1)),
  add: tf.add,
  dense(x, w, b) { // rows as a matrix: a product of a batch with one matrix is slower here
    const y = tf.fused.matMul({ a: tf.reshape(x, [-1, w.shape[0]]), b: w, bias: b });
    return tf.reshape(y, [...x.shape.slice(0, -1), w.shape[1]]);
  },
  norm: (x, scale, bias) => tf.add(layerNorm(x, scale), bias),
  attend(qkv, heads) {
    const [batch, n, three] = qkv.shape, width = three / 3;
    const [q, k, v] = tf.split(qkv, 3, 2).map((part) => tf.transpose(tf.reshape(part, [batch, n, heads, width / heads]), [0, 2, 1, 3]));
    const scores = tf.mul(tf.matMul(q, k, false, true), 1 / Math.sqrt(width / heads));
    return tf.reshape(tf.transpose(tf.matMul(tf.softmax(scores), v), [0, 2, 1, 3]), [batch, n, width]);
  },
  first: (x) => tf.reshape(tf.slice(x, [0, 0, 0], [x.shape[0], 1, x.shape[2]]), [x.shape[0], x.shape[2]]),
  embed: (table, ids) => tf.gather(table, ids),
  lstm(x, wx, wh, b) {
    const [batch, time] = x.shape, width = wh.shape[0];
    const inputs = tf.unstack(tf.reshape(tf.add(tf.matMul(tf.reshape(x, [batch * time, -1]), wx), b), [batch, time, 4 * width]), 1);
    let h = tf.zeros([batch, width]), c = h;
    for (const input of inputs) {
      const [i, f, g, o] = tf.split(tf.add(input, tf.matMul(h, wh)), 4, 1);
      c = tf.add(tf.mul(tf.sigmoid(f), c), tf.mul(tf.sigmoid(i), tf.tanh(g)));
      h = tf.mul(tf.sigmoid(o), tf.tanh(c));
    }
    return h;
  },
});

/** A network's forward pass. */
async function network({ name, ...options }) {
  const { shape, data, ids, build } = networkOf({ name, ...options });
  const x = tf.tensor(data, shape, ids ? 'int32' : 'float32'), weights = {}, run = () => build(operations(weights), x);
  tf.dispose(tf.tidy(run));
  return { ...repeated(run, [x, ...Object.values(weights)]), loss: async () => (await tf.tidy(() => tf.mean(tf.square(run()))).data())[0] };
}

/** Opens TensorFlow.js on navigator.gpu. */
export async function open() {
  if (!(await tf.setBackend('webgpu'))) throw new Error('TensorFlow.js finds no WebGPU');
  await tf.ready();
  return {
    name: 'tfjs',
    version: tf.version_core,
    async matmul({ n }) {
      const a = tf.tensor2d(randoms(n * n, 1), [n, n]), b = tf.tensor2d(randoms(n * n, 2), [n, n]);
      return repeated(() => tf.matMul(a, b), [a, b]);
    },
    async matvec({ n }) {
      const a = tf.tensor2d(randoms(n * n, 1), [n, n]), x = tf.tensor2d(randoms(n, 2), [n, 1]);
      return repeated(() => tf.matMul(a, x), [a, x]);
    },
    async softmax({ rows, cols }) {
      const a = tf.tensor2d(randoms(rows * cols, 1), [rows, cols]);
      return repeated(() => tf.softmax(a), [a]);
    },
    mlp,
    cnn,
    lm,
    network,
  };
}
