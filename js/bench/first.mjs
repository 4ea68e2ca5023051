// What a visitor waits for: the time from a graph's text to the result of its first training step,
// over Dawn, with nothing compiled or cached before. Each run has a process and a cache of its own,
// and the run that took least counts, as others may use the machine.
//
//   go run ./js/bench/plans build/plans
//   node js/bench/first.mjs [ROUNDS]
//
// runs small graphs on GPUs made of software, and also where nothing computes: that is this project's
// and Dawn's own part. With RLX_DAWN_BACKEND=default the language models of jobs.mjs run on this
// machine's GPU, as a program for h200/pack.mjs too.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { init, parseGraph, train } from '../dist/index.js';
import { openGPU } from '../test/rig/dawn.mjs';
import { makeTokens, randoms } from './jobs.mjs';

const plans = process.env.RLX_PLANS ?? join(import.meta.dirname, '../../build/plans'); // by plans/main.go
const wasm = pathToFileURL(process.env.RLX_DATA ? join(process.env.RLX_DATA, 'rlx.wasm') : join(import.meta.dirname, '../dist/rlx.wasm'));

// The graphs that plans/main.go writes, with a batch each.
const graphs = {
  lm: () => makeTokens({ context: 16, batch: 16, vocab: 65 })[0],
  equation: () => ({ x: randoms(64, 1, 3) }),
  'gpt-4-128': () => makeTokens({ context: 128, batch: 32, vocab: 65 })[0],
  'gpt-6-384': () => makeTokens({ context: 256, batch: 64, vocab: 65 })[0],
};
const models = ['gpt-4-128', 'gpt-6-384'];
const parts = ['compiler', 'graph', 'adapter', 'plan', 'device', 'pipelines', 'parameters', 'step'];

// stamped tells when a session has its step's graph and parameters (and so asks for an adapter), its
// adapter, its plan (and so asks for a device), its device, and all pipelines that it asked for: first
// those that it runs with, and later those that drafts stand in for.
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

// once is one run: the milliseconds that each part took (compiler: to load and start it), those from the
// first pipelines to the last ones where there are drafts, and the first loss.
async function once(name, backend) {
  const text = readFileSync(join(plans, `first-${name}.txt`), 'utf8'), inputs = graphs[name](), at = {};
  let replaced;
  const drafts = new Promise((resolve) => { replaced = resolve; });
  const stamp = (part) => {
    at[part] = performance.now();
    if (part === 'drafts') replaced();
  };
  const gpu = stamped(openGPU({ backend }), stamp);
  let last = performance.now();
  await init({ wasm });
  stamp('compiler');
  const trainer = await train(parseGraph(text), { gpu, on: 'gpu', optimizer: { kind: 'adamw' }, rate: 1e-3 });
  stamp('parameters');
  const { reading } = await trainer.session.run('step', inputs, { read: ['loss'] });
  const loss = await reading.then(({ values }) => values.loss[0], () => NaN); // where nothing computes, what is read means nothing
  stamp('step');
  const times = {};
  for (const part of parts) [times[part], last] = [at[part] - last, at[part]];
  // Where there are drafts: Dawn does not live to see a process end while it compiles.
  if (trainer.session.plan.kernels.some(({ draft }) => draft)) await drafts;
  return { ...times, whole: at.drafts - at.pipelines, loss };
}

const bytesIn = (folder) => readdirSync(folder, { recursive: true }).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);

// fresh is one run in a process that finds no cache of any driver: with it goes what it left in one.
function fresh(name, backend) {
  const home = mkdtempSync(join(tmpdir(), 'rlx-first-'));
  try {
    const env = { ...process.env, HOME: home, XDG_CACHE_HOME: home, __GL_SHADER_DISK_CACHE_PATH: home, MESA_SHADER_CACHE_DISABLE: 'true' };
    const out = execFileSync(process.execPath, [fileURLToPath(import.meta.url), 'once', name, backend], { env, stdio: 'pipe', encoding: 'utf8' });
    return { ...JSON.parse(out), cached: bytesIn(home) };
  } finally {
    rmSync(home, { recursive: true });
  }
}

function row([name, backend], rounds) {
  const all = (run) => parts.reduce((sum, part) => sum + run[part], 0) - run.compiler;
  const runs = Array.from({ length: rounds }, () => fresh(name, backend)).sort((a, b) => all(a) - all(b));
  const [least] = runs, ms = (part) => Math.round(least[part]);
  return {
    model: name, GPU: backend, ...Object.fromEntries(parts.map((part) => [part, ms(part)])),
    'from graph': Math.round(all(least)), 'from plan': Math.round(all(least) - least.graph - least.plan), 'from graph, slowest': Math.round(all(runs.at(-1))),
    ...least.whole && { 'drafts replaced after': ms('whole') },
    'bytes cached': least.cached, ...backend !== 'null' && { loss: least.loss },
  };
}

if (process.argv[2] === 'once') {
  console.log(JSON.stringify(await once(process.argv[3], process.argv[4])));
  process.exit(0);
}
const software = [['lm', 'swiftshader'], ['lm', 'lavapipe'], ['lm', 'null'], ['equation', 'lavapipe'], ['equation', 'null'], ['gpt-4-128', 'null']];
const cases = process.env.RLX_DAWN_BACKEND === 'default' ? models.map((name) => [name, 'default']) : software;
console.log('milliseconds; the first step follows the parts before it');
console.table(cases.map((one) => row(one, Number(process.argv[2] ?? 3))));
