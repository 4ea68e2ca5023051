// TensorFlow.js: its own optimiser and its own loss, as its guides write them.

import * as tf from '@tensorflow/tfjs-core';
import '@tensorflow/tfjs-core/dist/public/chained_ops/register_all_chained_ops.js';
import '@tensorflow/tfjs-core/dist/register_all_gradients.js';
import '@tensorflow/tfjs-backend-webgpu';
import { adam, initialParameters, makeBatches, randoms } from '../jobs.mjs';

// firstNumber waits for a tensor by reading one element of it.
async function firstNumber(tensor) {
  const one = tf.tidy(() => tf.slice(tf.reshape(tensor, [-1]), [0], [1]));
  const [value] = await one.data();
  one.dispose();
  return value;
}

// repeated is a job of one function whose result each step replaces the last.
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

function network(variables, x) {
  let h = x;
  for (let i = 0; i < variables.length; i += 2) {
    h = tf.add(tf.matMul(h, variables[i]), variables[i + 1]);
    if (i + 2 < variables.length) h = tf.relu(h);
  }
  return h;
}

async function mlp({ layers, batch, fresh, rate }) {
  const batches = makeBatches({ layers, batch });
  const upload = ({ x, oneHot }) => [tf.tensor2d(x, [batch, layers[0]]), tf.tensor2d(oneHot, [batch, layers.at(-1)])];
  const resident = fresh ? undefined : upload(batches[0]);
  const variables = initialParameters(layers).map(({ data, shape }) => tf.variable(tf.tensor(data, shape)));
  const optimizer = tf.train.adam(rate, adam.beta1, adam.beta2, adam.epsilon);
  let loss;
  return {
    step(i) {
      const [x, oneHot] = resident ?? upload(batches[i % batches.length]);
      loss?.dispose();
      loss = optimizer.minimize(() => tf.losses.softmaxCrossEntropy(oneHot, network(variables, x)), true, variables);
      if (fresh) tf.dispose([x, oneHot]);
    },
    loss: async () => (await loss.data())[0],
    sync: () => firstNumber(variables[0]),
    dispose() {
      optimizer.dispose();
      tf.dispose([loss, variables, resident].flat().filter(Boolean));
    },
  };
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
  };
}
