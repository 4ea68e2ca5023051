// The module as Go's linker writes it (SHRINK=0) does what the one in the package does.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { compile, graph, init } from '../dist/index.js';

/** The plan of a training step for WebGPU and WebAssembly, compiled by the module in a file. */
async function plansBy(file) {
  await init({ wasm: readFileSync(new URL(file, import.meta.url)), compileWorker: false });
  const model = graph('mlp', (b) => {
    const hidden = b.input('x', 'f32', [4, 32]).linear(b.param('w', 'f32', [32, 8]), b.param('b', 'f32', [8])).gelu();
    b.output('loss', hidden.crossEntropyMean(b.input('labels', 'i32', [4])));
  });
  const entries = { step: model.step({ optimizer: { kind: 'adam' } }) };
  return Promise.all(['webgpu', 'wasm'].map((target) => compile({ entries, target })));
}

test('a module that was not shrunk makes the same plans', async () => {
  const linked = await plansBy('../../build/linked.wasm');
  assert.deepEqual(await plansBy('../dist/rlx.wasm'), linked);
});
