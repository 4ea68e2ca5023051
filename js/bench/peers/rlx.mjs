// rlx: plans compiled ahead of time (plans/main.go), replayed by the runtime alone.

import { openProgram } from '../../dist/runtime.js';
import { bytesOf, convolutionParameters, initialParameters, makeBatches, makeTokens, normal, randoms } from '../jobs.mjs';

// loadPlan reads a plan: from the page's server, or from a folder in Node.
async function loadPlan(name) {
  const folder = globalThis.process?.env.RLX_PLANS;
  if (folder) return (await import('node:fs')).readFileSync(`${folder}/${name}.rlxp`);
  return (await fetch(`/plans/${name}.rlxp`)).arrayBuffer();
}

// suffix is the suffix of the plans' names for the device that is measured.
let suffix = '';

const openPlan = async (name) => openProgram(await loadPlan(name + suffix), { drafts: false });

// common has the members of every job: a number of the last result, and its memory given back.
const common = (program) => ({
  async sync() {
    const { reading } = await program.run('probe', {}, { read: ['first'] });
    return (await reading).values.first[0];
  },
  dispose: () => program.close(),
});

// resident is a job whose inputs stay on the device; together of its steps make a submission.
async function resident(plan, inputs, together = 1) {
  const program = await openPlan(plan);
  await program.bind('step', inputs);
  return { step: () => program.run('step', undefined, { steps: together }), ...common(program) };
}

// rows is a function of a matrix: name is that of its plan.
const rows = ({ name, rows, cols }) => resident(`${name}-${rows}x${cols}`, { a: randoms(rows * cols, 1) });

function mlp({ layers, batch, bytes, ...options }) {
  const batches = makeBatches({ layers, batch });
  if (bytes) for (const one of batches) one.x = bytesOf(one.x);
  return training(`mlp-${layers.join('-')}-${batch}${bytes ? '-u8' : ''}`, { parameters: initialParameters(layers), batches, ...options });
}

// cnn has the features last, where jax-js has them first: in pictures, filters, and the rows of the
// next layer.
async function cnn({ batch, ...options }) {
  const parameters = convolutionParameters().map(({ shape, data }) => {
    if (shape.length < 4) return { data };
    const [outputs, inputs, rows, columns] = shape, turned = new Float32Array(data.length);
    data.forEach((x, i) => {
      const place = i % (rows * columns), channel = Math.floor(i / (rows * columns)) % inputs, output = Math.floor(i / (rows * columns * inputs));
      turned[(place * inputs + channel) * outputs + output] = x;
    });
    return { data: turned };
  });
  const dense = parameters[4].data, turned = new Float32Array(dense.length);
  for (let c = 0; c < 32; c++) for (let at = 0; at < 16; at++) turned.set(dense.subarray((c * 16 + at) * 128, (c * 16 + at + 1) * 128), (at * 32 + c) * 128);
  parameters[4] = { data: turned };
  return training(`cnn-${batch}`, { parameters, batches: makeBatches({ layers: [64, 10], batch }), ...options });
}

async function training(plan, { parameters, batches: data, fresh, rate }) {
  const program = await openPlan(plan);
  for (const [i, { data: values }] of parameters.entries()) await program.write(`${i % 2 ? 'b' : 'w'}${i >> 1}`, values);
  const batches = data.map(({ x, labels }) => ({ x, labels, lr: rate }));
  if (!fresh) await program.bind('step', { x: batches[0].x, labels: batches[0].labels });
  const fixed = { lr: rate };
  return {
    step: (i) => program.run('step', fresh ? batches[i % batches.length] : fixed),
    loss: async () => (await program.read('loss'))[0],
    ...common(program),
  };
}

async function lm({ context, width, heads, blocks, batch, vocab, rate }) {
  const program = await openPlan(`lm-${context}-${width}-${heads}-${blocks}-${batch}`);
  for (const { name, role, shape } of program.plan.slots) {
    if (role !== 'param') continue;
    const n = shape.reduce((a, b) => a * b, 1);
    const data = name.endsWith('/scale') ? new Float32Array(n).fill(1) : shape.length > 1 ? normal(n, 1 / Math.sqrt(shape[0])) : new Float32Array(n);
    await program.write(name, data);
  }
  const batches = makeTokens({ context, batch, vocab }).map((tokens) => ({ ...tokens, lr: rate }));
  return {
    step: (i) => program.run('step', batches[i % batches.length]),
    loss: async () => (await program.read('loss'))[0],
    ...common(program),
  };
}

/** Opens rlx; each job makes a new device from navigator.gpu, or runs on the CPU. */
export async function open({ device } = {}) {
  suffix = device === 'wasm' ? '.wasm' : '';
  return {
    name: 'rlx',
    version: '0.2.0',
    matmul: ({ n }) => resident(`matmul-${n}`, { a: randoms(n * n, 1), b: randoms(n * n, 2) }),
    matvec: ({ n }) => resident(`matvec-${n}`, { a: randoms(n * n, 1), b: randoms(n, 2) }),
    matvecs: ({ n, together }) => resident(`matvec-${n}`, { a: randoms(n * n, 1), b: randoms(n, 2) }, together),
    softmaxes: ({ n, together }) => resident(`softmax-${n}x${n}`, { a: randoms(n * n, 1) }, together),
    softmax: (options) => rows({ ...options, name: 'softmax' }),
    rows,
    mlp,
    bytes: (options) => mlp({ ...options, bytes: true }),
    cnn,
    lm,
  };
}
