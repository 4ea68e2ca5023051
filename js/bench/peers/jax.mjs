// jax-js: every step is one jitted function, gradients by valueAndGrad. Arrays are used
// up by the functions they are given to; `.ref` keeps one.

import { defaultDevice, init, jit, lax, nn, numpy as np, tree, valueAndGrad } from '@jax-js/jax';
import { adam, convolutionParameters, initialParameters, makeBatches, randoms } from '../jobs.mjs';

const array = (data, shape) => np.array(data).reshape(shape);

// repeated is a job of one function whose result replaces the last in each step. A step waits: a
// result released before it is read is never computed.
function repeated(run, dispose) {
  let result;
  return {
    async step() {
      result?.dispose();
      result = run();
      await result.blockUntilReady();
    },
    sync: async () => {},
    dispose() {
      result?.dispose();
      dispose();
    },
  };
}

function crossEntropy(parameters, x, oneHot) {
  let h = x;
  for (let i = 0; i < parameters.length; i += 2) {
    h = np.matmul(h, parameters[i]).add(parameters[i + 1]);
    if (i + 2 < parameters.length) h = nn.relu(h);
  }
  const batch = h.shape[0];
  return nn.logSoftmax(h, -1).mul(oneHot).sum().mul(-1 / batch);
}

// convolutional is the network of rlx's plan cnn-BATCH, features before rows and columns.
function convolutional([f1, c1, f2, c2, w1, b1, w2, b2], x, oneHot) {
  const batch = x.shape[0], layer = (h, f, c) => nn.relu(lax.convGeneralDilated(h, f, [1, 1], 'SAME').add(c.reshape([1, -1, 1, 1])));
  const h = layer(layer(x, f1, c1), f2, c2).reshape([batch, 32, 4, 2, 4, 2]);
  const dense = nn.relu(np.matmul(np.max(h, [3, 5]).reshape([batch, 512]), w1).add(b1));
  return nn.logSoftmax(np.matmul(dense, w2).add(b2), -1).mul(oneHot).sum().mul(-1 / batch);
}

// trainStep maps the state and a batch to the loss and the next state.
const trainStep = (lossOf, rate) => jit((state, x, oneHot) => adamStep(lossOf, rate, state, x, oneHot));

function adamStep(lossOf, rate, state, x, oneHot) {
  const { p, m, v, power1, power2 } = state;
  const [loss, g] = valueAndGrad(lossOf)(p.map((q) => q.ref), x, oneHot);
  const decay1 = power1.mul(adam.beta1), decay2 = power2.mul(adam.beta2);
  const m2 = m.map((q, i) => q.mul(adam.beta1).add(g[i].ref.mul(1 - adam.beta1)));
  const v2 = v.map((q, i) => q.mul(adam.beta2).add(g[i].ref.mul(g[i]).mul(1 - adam.beta2)));
  const scale1 = np.array(1).sub(decay1.ref), scale2 = np.array(1).sub(decay2.ref);
  const p2 = p.map((q, i) => q.sub(m2[i].ref.div(scale1.ref).mul(rate).div(np.sqrt(v2[i].ref.div(scale2.ref)).add(adam.epsilon))));
  scale1.dispose();
  scale2.dispose();
  return [loss, { p: p2, m: m2, v: v2, power1: decay1, power2: decay2 }];
}

const mlp = ({ layers, batch, ...options }) => training(crossEntropy, { shape: [batch, layers[0]], parameters: initialParameters(layers), batches: makeBatches({ layers, batch }), ...options });

const cnn = ({ batch, ...options }) => training(convolutional, {
  shape: [batch, 1, 8, 8], parameters: convolutionParameters(), batches: makeBatches({ layers: [64, 10], batch }), ...options,
});

async function training(lossOf, { shape, parameters, batches, fresh, rate }) {
  const upload = ({ x, oneHot }) => [array(x, shape), array(oneHot, [shape[0], 10])];
  const resident = fresh ? undefined : upload(batches[0]);
  const p = parameters.map(({ data, shape }) => array(data, shape));
  const zeros = () => p.map((q) => np.zeros(q.shape));
  let state = { p, m: zeros(), v: zeros(), power1: np.array(1), power2: np.array(1) }, loss;
  const train = trainStep(lossOf, rate);
  return {
    step(i) {
      const [x, oneHot] = fresh ? upload(batches[i % batches.length]) : resident.map((a) => a.ref);
      loss?.dispose();
      [loss, state] = train(state, x, oneHot);
    },
    loss: async () => (await loss.ref.data())[0],
    sync: async () => (await np.sum(state.p[0].ref).data())[0],
    dispose() {
      loss?.dispose();
      tree.dispose(state);
      resident?.forEach((a) => a.dispose());
    },
  };
}

/** Opens jax-js on navigator.gpu, or on the CPU by WebAssembly. */
export async function open({ device = 'webgpu' } = {}) {
  const devices = await init();
  if (!devices.includes(device)) throw new Error(`jax-js finds no ${device}`);
  defaultDevice(device);
  return {
    name: 'jax-js',
    version: '0.1.25',
    async matmul({ n }) {
      const a = array(randoms(n * n, 1), [n, n]), b = array(randoms(n * n, 2), [n, n]);
      return repeated(() => np.matmul(a.ref, b.ref), () => [a, b].forEach((q) => q.dispose()));
    },
    async matvec({ n }) {
      const a = array(randoms(n * n, 1), [n, n]), x = array(randoms(n, 2), [n, 1]);
      return repeated(() => np.matmul(a.ref, x.ref), () => [a, x].forEach((q) => q.dispose()));
    },
    async softmax({ rows, cols }) {
      const a = array(randoms(rows * cols, 1), [rows, cols]);
      const softmax = jit((x) => nn.softmax(x, -1));
      return repeated(() => softmax(a.ref), () => a.dispose());
    },
    mlp,
    cnn,
  };
}
