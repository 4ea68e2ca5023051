// One first step of a graph, in Node or in a page: what first.mjs times.

import { init, parseGraph, train } from '../../dist/index.js';
import { makeTokens, randoms } from '../jobs.mjs';

// The graphs that plans/main.go writes, with a batch each.
const graphs = {
  lm: () => makeTokens({ context: 16, batch: 16, vocab: 65 })[0],
  equation: () => ({ x: randoms(64, 1, 3) }),
  'gpt-4-128': () => makeTokens({ context: 128, batch: 32, vocab: 65 })[0],
  'gpt-6-384': () => makeTokens({ context: 256, batch: 64, vocab: 65 })[0],
};

/** What a first step consists of, in order; compiler: to load and start it. */
export const parts = ['compiler', 'graph', 'adapter', 'plan', 'device', 'pipelines', 'parameters', 'step'];

// stamped records when a program has its step's graph and parameters (and so requests an adapter),
// its adapter, its plan (and so requests a device), its device, and all pipelines that it
// requested: first those that it runs with, and later those that replace drafts.
function stamped(gpu, stamp) {
  const replace = (object, method, make) => { object[method] = make(object[method].bind(object)); };
  let asked = false;
  replace(gpu, 'requestAdapter', (request) => async (options) => {
    if (!asked) stamp('graph');
    const adapter = await request(options);
    if (!asked) stamp('adapter');
    asked = true;
    replace(adapter, 'requestDevice', (open) => async (descriptor) => {
      stamp('plan');
      const device = await open(descriptor);
      stamp('device');
      let under = 0, part = 'pipelines';
      replace(device, 'createComputePipelineAsync', (create) => async (pipeline) => {
        under++;
        const made = await create(pipeline);
        if (--under === 0) {
          stamp(part);
          part = 'drafts';
        }
        return made;
      });
      return device;
    });
    return adapter;
  });
  return gpu;
}

/**
 * Does the first step of a visit to a page, in which a worker has the program: the milliseconds of it. Whatever the visit
 * before it has kept is not made again: its plan, and the compiler's answers.
 */
export async function visit(name, { text, wasm }) {
  const inputs = graphs[name](), start = performance.now();
  await init({ wasm, lazy: true });
  const trainer = await train(() => parseGraph(text), { on: 'gpu', optimizer: { kind: 'adamw' }, rate: 1e-3 });
  const { reading } = await trainer.program.run('step', inputs, { read: ['loss'] });
  await reading;
  return performance.now() - start;
}

/**
 * Does the first step of a graph's text on a GPU object: the milliseconds that each part took, those from
 * the first pipelines to the last ones (whole) where there are drafts, and the first loss.
 */
export async function firstStep(name, { text, gpu: found, wasm }) {
  const inputs = graphs[name](), at = {};
  let replaced;
  const drafts = new Promise((resolve) => { replaced = resolve; });
  const stamp = (part) => {
    at[part] = performance.now();
    if (part === 'drafts') replaced();
  };
  const gpu = stamped(found, stamp);
  let last = performance.now();
  await init({ wasm });
  stamp('compiler');
  const trainer = await train(parseGraph(text), { gpu, on: 'gpu', optimizer: { kind: 'adamw' }, rate: 1e-3 });
  stamp('parameters');
  const { reading } = await trainer.program.run('step', inputs, { read: ['loss'] });
  const loss = await reading.then(({ values }) => values.loss[0], () => NaN); // the null backend computes nothing, so the result has no meaning
  stamp('step');
  const times = {};
  for (const part of parts) [times[part], last] = [at[part] - last, at[part]];
  // Where there are drafts: Dawn does not live to see a process end while it compiles.
  if (trainer.program.plan.kernels.some(({ draft }) => draft)) await drafts;
  return { ...times, whole: at.drafts - at.pipelines, loss };
}
