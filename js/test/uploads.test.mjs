// Large inputs from the host go to the device by buffers that are mapped again and again.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { graph, init, program } from '../dist/index.js';
import { countGPU } from './rig/counter.mjs';
import { openDawn } from './rig/dawn.mjs';

const shape = [512, 640], elements = 512 * 640; // 1.3 MB

let dawn, counter;
before(async () => {
  dawn = await openDawn();
  counter = countGPU();
  await init({ worker: false, compileWorker: false, cache: false });
});
after(() => dawn.close());

test('each run sees its own input, and nothing is created once the buffers are there', async () => {
  const entries = { main: graph('sum', (b) => b.output('y', b.input('x', 'f32', shape).sum())) };
  const opened = await program({ entries }, { device: dawn.device, worker: false, staging: 16 });
  const sums = (from, count) => Promise.all(Array.from({ length: count }, async (_, i) => {
    const { reading } = await opened.run('main', { x: new Float32Array(elements).fill(from + i) }, { read: ['y'] });
    return (await reading).values.y[0] / elements;
  }));
  assert.deepEqual(await sums(1, 1), [1], 'by the queue, while the code for large inputs is loaded');
  for (let run = 0; run < 3; run++) assert.deepEqual(await sums(2, 8), [2, 3, 4, 5, 6, 7, 8, 9]);
  counter.take();
  assert.deepEqual(await sums(10, 4), [10, 11, 12, 13]);
  const calls = counter.take();
  assert.equal(calls['queue.writeBuffer'] ?? 0, 0);
  assert.equal(calls['device.createBuffer'] ?? 0, 0);
  await opened.bind('main', { x: new Float32Array(elements).fill(3) });
  assert.ok(counter.take()['queue.writeBuffer'] > 0, 'what stays on the device is written by the queue');
  const { reading } = await opened.run('main', {}, { read: ['y'] });
  assert.equal((await reading).values.y[0], 3 * elements);
  opened.close();
  assert.ok(counter.take()['buffer.destroy'] >= 3, 'the buffers are given back');
});
