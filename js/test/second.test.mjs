// The wait of who comes again: the time to the first step of a small language model, whose plan was kept by the visit before.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import * as rlx from '../dist/index.js';
import { openGPU } from './rig/dawn.mjs';
import { firstStep } from './small-gpt.mjs';

/** The longest that the first step may take, in milliseconds, on a GPU that computes nothing: what is ours, and Dawn's. */
const bound = 300;

/** The most visits until one is as quick: others may use the machine. */
const visits = 40;

test('a second visit makes its first step within 0.3 s where the GPU computes nothing', async (t) => {
  const wasm = await WebAssembly.compile(readFileSync(new URL('../dist/rlx.wasm', import.meta.url))), cache = new Map(), { instantiate } = WebAssembly;
  let starts = 0;
  t.mock.method(WebAssembly, 'instantiate', (module, ...rest) => {
    if (module === wasm) starts++;
    return instantiate(module, ...rest);
  });
  t.after(rlx.closeCompiler);
  const visit = async () => {
    rlx.closeCompiler();
    const gpu = openGPU({ backend: 'null' }), begun = performance.now();
    await rlx.init({ wasm, compileWorker: false, worker: false, lazy: true, cache });
    const { close } = await firstStep(rlx, { gpu }), ms = performance.now() - begun;
    close();
    return ms;
  };
  const first = await visit(), starting = starts, times = [];
  assert.ok(starting > 0);
  while (times.length < visits && !(times.at(-1) <= bound)) times.push(await visit());
  assert.equal(starts, starting, 'the compiler is not started again');
  const text = times.map((ms) => ms.toFixed(0)).join(', ');
  t.diagnostic(`first ${first.toFixed(0)} ms, then ${text}`);
  assert.ok(times.at(-1) <= bound, `${text} ms`);
});
