// Training steps hold on to nothing: neither buffers of the device nor memory of the process.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { graph, init, train } from '../dist/index.js';
import { countGPU } from './rig/counter.mjs';
import { openDawn } from './rig/dawn.mjs';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');

/** What the process holds when what is garbage is gone, in bytes. */
async function held() {
  for (let i = 0; i < 3; i++) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 5)); // what waits for the end of an object has its turn
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

// 100,000 steps hold no more either, but take minutes where others work: an object that each step left would show here, too.
const steps = 10_000, mostBytes = 25 * steps;

test(`${steps} steps leave the number of buffers and the memory of the process as they were`, async (t) => {
  const { gpu } = await openDawn({ backend: 'null' });
  await init({ gpu, worker: false, compileWorker: false, cache: false });
  const counter = countGPU();
  const model = graph('line', { inputs: { x: ['f32', [8]], y: ['f32', [8]] }, params: { slope: ['f32'], offset: ['f32'] } }, (_, { x, y, slope, offset }) =>
    ({ loss: x.mul(slope).add(offset).sub(y).square().mean() }));
  const trainer = await train(model, { optimizer: { kind: 'adam' }, rate: 0.05 });
  const { program } = trainer, x = Float32Array.from({ length: 8 }, (_, i) => i);
  const run = async (n) => { // as a trainer does: the null backend computes nothing, so the losses have no meaning
    for (let i = 0; i < n; i++) {
      const { reading } = await program.run('step', { x, y: x, lr: 0.05 }, i % 64 === 63 ? { read: ['loss'] } : {});
      await reading;
    }
  };
  await run(2000); // engines compile what runs often, and pools get their size
  const buffers = counter.liveBuffers(), bytes = await held();
  counter.take();
  await run(steps);
  const calls = counter.take(), grown = await held() - bytes;
  // Pools of buffers have their size once as many runs as there can be, 64, were in flight together.
  assert.ok(counter.liveBuffers() <= buffers + 64, `${counter.liveBuffers()} buffers, before ${buffers}`);
  assert.deepEqual(Object.keys(calls).filter((name) => /create/.test(name) && !name.startsWith('device.createBuffer')), ['device.createCommandEncoder']);
  t.diagnostic(`${steps} steps: ${buffers} buffers, ${(grown / 1e3).toFixed(0)} KB more in the process`);
  assert.ok(grown < mostBytes, `the process holds ${grown} bytes more`);
  program.close();
});
