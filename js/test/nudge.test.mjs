// Firefox sees finished work only every 100 ms, or when something is submitted.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { linearPlan } from './linear.mjs';
import { openDawn } from './rig/dawn.mjs';

test('in Firefox, empty submissions go out while a read is awaited, and only then', async () => {
  Object.defineProperty(globalThis, 'navigator', { value: { userAgent: 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0' } });
  const { openProgram } = await import('../dist/runtime.js'); // it checks the browser when it is loaded
  const { device, close } = await openDawn();
  const { mapAsync } = GPUBuffer.prototype;
  GPUBuffer.prototype.mapAsync = async function (...args) {
    await mapAsync.apply(this, args);
    await new Promise((resolve) => setTimeout(resolve, 50));
  };
  let empty = 0;
  const submit = device.queue.submit.bind(device.queue);
  device.queue.submit = (commands) => {
    if (commands.length === 0) empty++;
    submit(commands);
  };
  const program = await openProgram(linearPlan(), { device });
  await program.run('init');
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(empty, 0);
  assert.deepEqual([...await program.read('w')], [0.5, 1, 1.5]);
  assert.ok(empty > 3, `${empty} empty submissions`);
  const before = empty;
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.ok(empty - before <= 1);
  program.close();
  close();
});
