// The jobs that rlx and its peers are timed at, the data they get, and the clock.
//
// A peer is a module with `open(): Promise<Peer>`; a Peer makes jobs:
//
//   name, version           for the table
//   matmul({ n })           C = A·B, n × n
//   matvec({ n })           y = A·x, n × n by n
//   softmax({ rows, cols }) along the rows
//   matvecs, softmaxes      of n, `together` to a submission (rlx alone)
//   lm({ vocab, context, width, heads, blocks, batch, rate })
//                           one AdamW step of a transformer that predicts the next of some tokens;
//                           a fresh batch each time
//   rows({ name, rows, cols })
//                           gelu, transpose, layernorm, cumsum along the rows, sumcolumns
//   cnn({ batch, rate })    one Adam step of two convolutions and two layers on pictures of 8 × 8
//   network({ name, ... })  the forward pass of a network of networks.mjs
//   mlp({ layers, batch, fresh, rate })
//                           one Adam step of a ReLU network on cross-entropy; `fresh` gives each step
//                           a batch from the host, otherwise the first stays on the device
//   bytes(…)                the same with an 8-bit batch (rlx alone)
//
// each a Promise<Job>:
//
//   step(i)    enqueues the job once and waits for nothing it need not wait for
//   sync()     reads a number computed from the last step's result: all before it is done then
//   loss()     (mlp) the loss of the last step, so that the peers can be seen to do the same work
//   dispose()  gives the memory back
//
// Every peer gets the same numbers and its own library's best way to say the job.

/** A generator of the same numbers everywhere: uniform in [-1, 1). */
export function uniform(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 31 - 1;
  };
}

/** A Float32Array of n uniform numbers in [-scale, scale). */
export function randoms(n, seed, scale = 1) {
  const next = uniform(seed), values = new Float32Array(n);
  for (let i = 0; i < n; i++) values[i] = next() * scale;
  return values;
}

/** A Float32Array of n numbers of a normal distribution around 0. */
export function normal(n, deviation, seed = 7) {
  const next = uniform(seed);
  return Float32Array.from({ length: n }, () => deviation * Math.sqrt(-2 * Math.log((next() + 1.0000001) / 2.0000002)) * Math.cos(Math.PI * next()));
}

/** Eight batches of tokens and those that follow them: { ids, next }, Int32Arrays of batch × context. */
export function makeTokens({ context, batch, vocab }) {
  return Array.from({ length: 8 }, (_, i) => {
    const random = uniform(3000 + i);
    const tokens = Int32Array.from({ length: batch * context + 1 }, () => Math.floor((random() + 1) / 2 * vocab));
    return { ids: tokens.slice(0, -1), next: tokens.slice(1) };
  });
}

/** The weights and biases a network starts with: [{ shape, data }], weight and bias by turns. */
export function initialParameters(layers) {
  return layers.slice(1).flatMap((outputs, i) => {
    const inputs = layers[i];
    return [
      { shape: [inputs, outputs], data: randoms(inputs * outputs, 100 + i, Math.sqrt(3 / inputs)) },
      { shape: [outputs], data: new Float32Array(outputs) },
    ];
  });
}

/** Filters and weights of the job cnn, features before rows and columns: [{ shape, data }]. */
export function convolutionParameters() {
  const shapes = [[16, 1, 3, 3], [16], [32, 16, 3, 3], [32], [512, 128], [128], [128, 10], [10]];
  return shapes.map((shape, i) => {
    const n = shape.reduce((a, b) => a * b, 1), inputs = shape.length > 2 ? n / shape[0] : shape[0];
    return { shape, data: shape.length > 1 ? randoms(n, 100 + i, Math.sqrt(3 / inputs)) : new Float32Array(n) };
  });
}

/** The parameters that a transformer of the job lm starts with, by name, where each is drawn alike: [{ name, shape, data }]. */
export function languageParameters({ vocab, context, width, blocks }) {
  const of = (name, ...shape) => ({ name, shape, data: shape.length > 1 ? normal(shape[0] * shape[1], name === 'table' || name === 'positions' ? 0.05 : 1 / Math.sqrt(shape[0]), 50 + name.length) : new Float32Array(shape[0]).fill(1) });
  const block = (at) => [
    of(`${at}norm1`, width), of(`${at}qkv`, width, 3 * width), of(`${at}out`, width, width),
    of(`${at}norm2`, width), of(`${at}up`, width, 4 * width), of(`${at}down`, 4 * width, width),
  ];
  return [of('table', vocab, width), of('positions', context, width), ...Array.from({ length: blocks }, (_, i) => block(`block${i}/`)).flat(), of('norm', width)];
}

/** Batch number i: { x, labels (Int32Array), oneHot (Float32Array) }. Eight different ones exist. */
export function makeBatches({ layers, batch }) {
  const inputs = layers[0], classes = layers.at(-1);
  return Array.from({ length: 8 }, (_, i) => {
    const next = uniform(1000 + i);
    const labels = Int32Array.from({ length: batch }, () => Math.floor((next() + 1) / 2 * classes));
    const oneHot = new Float32Array(batch * classes);
    labels.forEach((label, row) => { oneHot[row * classes + label] = 1; });
    return { x: randoms(batch * inputs, 2000 + i), labels, oneHot };
  });
}

/** Numbers of [-1, 1) as bytes, as pixels are. */
export const bytesOf = (x) => Uint8Array.from(x, (one) => 128 * (one + 1));

/** Adam as in its paper, the same for every peer. */
export const adam = { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 };

/** Steps a second in words, where slow devices make only a few, too. */
const stepsOf = (ms) => `${(1e3 / ms).toFixed(ms > 100 ? 1 : 0)} steps/s`;

const mlp = (layers, batch, fresh) => ({
  name: `mlp ${layers.join('-')} batch ${batch}, ${fresh ? 'fresh' : 'resident'}`, kind: 'mlp',
  options: { layers, batch, fresh, rate: 1e-3 }, rate: stepsOf,
});

/** The same with a fresh batch of bytes, as pixels are, which the device widens. */
function bytes(layers, batch) {
  const job = mlp(layers, batch, true);
  return { ...job, name: `${job.name}, 8-bit`, kind: 'bytes' };
}

/** The same in 16 bits. */
const halves = (layers, batch) => ({ ...bytes(layers, batch), name: `${mlp(layers, batch, true).name}, 16-bit`, kind: 'halves' });

/** The same of a data set on the device, of whose rows each step gets the numbers. */
const chosen = (layers, batch) => ({ ...bytes(layers, batch), name: `${mlp(layers, batch, true).name}, rows of a data set on the device`, kind: 'chosen' });

const matmul = (n) => ({ name: `matmul ${n}`, kind: 'matmul', options: { n }, rate: (ms) => `${(2 * n ** 3 / ms / 1e9).toFixed(2)} TFLOP/s` });

const rows = (name, moved) => ({
  name: `${name} 16384 × 4096`, kind: 'rows', options: { name, rows: 16384, cols: 4096 }, rate: (ms) => `${(4 * moved * 16384 * 4096 / ms / 1e6).toFixed(0)} GB/s`,
});

const lm = (context, width, heads, blocks, batch) => ({
  name: `lm ${blocks} × ${width}, context ${context}, batch ${batch}`, kind: 'lm',
  options: { vocab: 65, context, width, heads, blocks, batch, rate: 1e-3 }, rate: (ms) => `${(context * batch / ms * 1e3).toFixed(0)} tokens/s`,
});

const digits = [64, 64, 10], large = [784, 512, 512, 10];

/** Jobs small enough that the host's work dominates. */
export const hostJobs = [mlp(digits, 128, false), mlp(digits, 128, true)];

/** Jobs for a real GPU. */
export const gpuJobs = [
  matmul(1024), matmul(2048), matmul(4096),
  { name: 'matvec 4096', kind: 'matvec', options: { n: 4096 }, rate: (ms) => `${(4 * 4096 ** 2 / ms / 1e6).toFixed(0)} GB/s` },
  { name: 'softmax 4096 × 4096', kind: 'softmax', options: { rows: 4096, cols: 4096 }, rate: (ms) => `${(8 * 4096 ** 2 / ms / 1e6).toFixed(0)} GB/s` },
  { name: 'matvec 4096, 16 to a submission', kind: 'matvecs', options: { n: 4096, together: 16 }, rate: (ms) => `${(16 * 4 * 4096 ** 2 / ms / 1e6).toFixed(0)} GB/s` },
  { name: 'softmax 4096 × 4096, 16 to a submission', kind: 'softmaxes', options: { n: 4096, together: 16 }, rate: (ms) => `${(16 * 8 * 4096 ** 2 / ms / 1e6).toFixed(0)} GB/s` },
  rows('softmax', 2), rows('layernorm', 2), rows('gelu', 2), rows('transpose', 2), rows('cumsum', 2), rows('sumcolumns', 1),
  mlp(large, 128, false), mlp(large, 128, true), mlp(large, 4096, false), mlp(large, 4096, true), bytes(large, 128), bytes(large, 4096),
  lm(128, 128, 4, 4, 32), lm(256, 384, 6, 6, 64),
];

/** Jobs for a page without a GPU: products, and the training of digits. */
export const cpuJobs = [
  matmul(256), matmul(512), matmul(1024), matmul(2048),
  { name: 'softmax 1024 × 1024', kind: 'softmax', options: { rows: 1024, cols: 1024 }, rate: (ms) => `${(8 * 1024 ** 2 / ms / 1e6).toFixed(0)} GB/s` },
  mlp([64, 128, 64, 10], 128, false), mlp(large, 128, false),
  { name: 'cnn batch 128', kind: 'cnn', options: { batch: 128, rate: 1e-3 }, rate: stepsOf },
];

const cnn = (batch) => ({ name: `cnn, batch ${batch}`, kind: 'cnn', options: { batch, fresh: true, rate: 1e-3 }, rate: stepsOf });
/** Bytes a second in words, where slow devices have less than one of the unit, too. */
const gigabytes = (bytes, ms) => `${(bytes / ms / 1e6).toLocaleString('en', { maximumSignificantDigits: 3 })} GB/s`;
const softmax = (n) => ({ name: `softmax ${n} × ${n}`, kind: 'softmax', options: { rows: n, cols: n }, rate: (ms) => gigabytes(8 * n ** 2, ms) });
const matvec = (n) => ({ name: `matvec ${n}`, kind: 'matvec', options: { n }, rate: (ms) => gigabytes(4 * n ** 2, ms) });

const product = (n) => ({ ...matmul(n), rate: (ms) => `${(2 * n ** 3 / ms / 1e6).toLocaleString('en', { maximumSignificantDigits: 3 })} GFLOP/s` });

const forward = (name, options) => ({
  name: `${name} forward, batch ${options.batch}`, kind: 'network', options: { name, ...options }, rate: (ms) => `${(1e3 * options.batch / ms).toLocaleString('en', { maximumSignificantDigits: 3 })} samples/s`,
});

/** The forward passes of several families of networks, small enough for a device in software. */
export const networkJobs = [
  forward('resnet', { batch: 4, size: 32, widths: [16, 32, 64] }),
  forward('unet', { batch: 2, size: 32, widths: [16, 32, 64] }),
  forward('vit', { batch: 4, size: 32, patch: 4, width: 64, heads: 4, blocks: 4 }),
  forward('bert', { batch: 4, vocab: 1000, context: 64, width: 64, heads: 4, blocks: 4 }),
  forward('lstm', { batch: 16, time: 32, features: 64, width: 64 }),
];

/** The same for a GPU with memory of its own. */
export const largeNetworkJobs = [
  forward('resnet', { batch: 64, size: 64, widths: [64, 128, 256] }),
  forward('unet', { batch: 8, size: 128, widths: [64, 128, 256] }),
  forward('vit', { batch: 64, size: 64, patch: 8, width: 384, heads: 6, blocks: 12 }),
  forward('bert', { batch: 16, vocab: 30522, context: 128, width: 768, heads: 12, blocks: 12 }),
  forward('lstm', { batch: 64, time: 64, features: 256, width: 256 }),
];

/** Jobs of the site's page, by how large they are: for any device, and for GPUs with memory of their own. */
export const siteJobs = {
  small: [product(512), matvec(1024), softmax(1024), mlp([784, 128, 10], 64, true), cnn(64), lm(64, 64, 4, 2, 16)],
  large: [product(2048), matvec(4096), softmax(4096), mlp(large, 128, true), cnn(128), lm(128, 128, 4, 4, 32)],
  networks: networkJobs,
  largeNetworks: largeNetworkJobs,
  tiny: [product(64), mlp(digits, 32, true), forward('resnet', { batch: 1, size: 8, widths: [8] })],
};

/** The ways by which a large batch reaches a training step. */
const inputJobs = [mlp(large, 4096, true), halves(large, 4096), bytes(large, 4096), chosen(large, 4096), mlp(large, 4096, false)];

/** The sets of jobs by the names in pages' addresses. */
export const sets = { inputs: inputJobs, host: hostJobs, gpu: gpuJobs, cpu: cpuJobs, site: siteJobs.small, networks: networkJobs, largeNetworks: largeNetworkJobs };

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

/**
 * Makes a peer's job and takes three steps: everything is compiled then. Not every peer has every job.
 * @returns {Promise<{job: object, loss?: number}>} the loss of the third step, if it has one
 */
export async function start(peer, { kind, options }) {
  if (!peer[kind]) throw new Error('not asked');
  const job = await peer[kind](options);
  for (let i = 0; i < 3; i++) await job.step(i);
  const loss = await job.loss?.();
  await job.sync();
  return { job, loss };
}

/**
 * Times a started job: `repeats` times `steps` steps and one sync, after as many that do not count
 * (engines compile what runs often).
 * @returns {Promise<{host: number, wall: number}>} milliseconds per step, medians over the repeats:
 *   until the last step was enqueued, and until its result was read
 */
export async function time(job, { steps, repeats }) {
  const host = [], wall = [];
  for (let r = -repeats; r < repeats; r++) {
    const begin = performance.now();
    for (let i = 0; i < steps; i++) await job.step(i);
    const enqueued = performance.now();
    await job.sync();
    if (r < 0) continue;
    host.push((enqueued - begin) / steps);
    wall.push((performance.now() - begin) / steps);
  }
  return { host: median(host), wall: median(wall) };
}

// blind makes a peer whose reads may fail: the null backend computes nothing, so results have no
// meaning.
function blind(peer) {
  const forgive = (job) => ({ ...job, loss: undefined, sync: () => job.sync().catch(() => {}) });
  return { ...peer, mlp: async (options) => forgive(await peer.mlp(options)) };
}

/**
 * Runs jobs of one peer in turn.
 * @param {{steps: number, repeats: number, computes?: boolean}} timing computes is false on a device
 *   that runs nothing
 * @returns {Promise<object[]>} for each { peer, version, job, host, wall, loss, rate }: milliseconds per
 *   step, the loss of the third; or { peer, job, error } where the peer could not do it
 */
export async function runJobs(open, jobs, { computes = true, ...timing }) {
  const opened = await open();
  const peer = computes ? opened : blind(opened);
  const results = [];
  for (const spec of jobs) {
    const row = { peer: peer.name, version: peer.version, job: spec.name };
    try {
      const { job, loss } = await start(peer, spec);
      const times = await time(job, timing);
      results.push({ ...row, loss, ...times, rate: spec.rate(times.wall) });
      job.dispose();
    } catch (error) {
      results.push({ ...row, error: String(error?.message ?? error) });
    }
  }
  return results;
}
