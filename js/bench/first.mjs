// What a visitor waits for: the time from a graph's text to the result of its first training step,
// over Dawn on GPUs made of software, with nothing compiled or cached before. Each run has a process
// of its own, and the least of some counts, as others may use the machine.
//
//   node js/bench/first.mjs [ROUNDS]

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { init, parseGraph, train } from '../dist/index.js';
import { openGPU } from '../test/rig/dawn.mjs';
import { makeTokens, randoms } from './jobs.mjs';

const plans = join(import.meta.dirname, '../../build/plans'); // by plans/main.go

// The graphs that plans/main.go writes, with a batch each.
const graphs = {
  lm: () => makeTokens({ context: 16, batch: 16, vocab: 65 })[0],
  equation: () => ({ x: randoms(64, 1, 3) }),
};

const cases = [['lm', 'swiftshader'], ['lm', 'lavapipe'], ['lm', 'null'], ['equation', 'lavapipe'], ['equation', 'null']];

// once is one run: milliseconds until the compiler had started, and from there until the first loss was read.
async function once(name, backend) {
  const text = readFileSync(join(plans, `first-${name}.txt`), 'utf8'), inputs = graphs[name]();
  const gpu = openGPU({ backend });
  const begin = performance.now();
  await init();
  const started = performance.now();
  const trainer = await train(parseGraph(text), { gpu, on: 'gpu', optimizer: { kind: 'adamw' }, rate: 1e-3 });
  const compiled = performance.now();
  const { reading } = await trainer.session.run('step', inputs, { read: ['loss'] });
  await reading.catch(() => {}); // where nothing computes, what is read means nothing
  const end = performance.now();
  return { start: started - begin, compile: compiled - started, step: end - started };
}

function measure(name, backend, rounds) {
  const runs = Array.from({ length: rounds }, () => JSON.parse(execFileSync(process.execPath, [fileURLToPath(import.meta.url), 'once', name, backend], {
    env: { ...process.env, MESA_SHADER_CACHE_DISABLE: 'true' }, stdio: ['ignore', 'pipe', 'ignore'], encoding: 'utf8',
  })));
  return Object.fromEntries(['start', 'compile', 'step'].map((key) => [key, Math.min(...runs.map((run) => run[key]))]));
}

if (process.argv[2] === 'once') {
  console.log(JSON.stringify(await once(process.argv[3], process.argv[4])));
  process.exit(0);
}
console.table(cases.map(([name, backend]) => {
  const { start, compile, step } = measure(name, backend, Number(process.argv[2] ?? 3));
  return { graph: name, GPU: backend, 'compiler starts, ms': Math.round(start), 'plan and pipelines asked for, ms': Math.round(compile), 'first step, ms': Math.round(step) };
}));
