// Runs that share a submission while the device has other work: each sees its own inputs and scalars, in order.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openProgram } from '../dist/runtime.js';
import { batch, close, linearPlan, reference } from './linear.mjs';
import { countGPU } from './rig/counter.mjs';
import { openDawn } from './rig/dawn.mjs';

let dawn, counter;
before(async () => {
  dawn = await openDawn();
  counter = countGPU();
});
after(() => dawn.close());

/**
 * A program whose runs are not reported as done until `end` is called. The code of mapped buffers is there: it is loaded once a
 * third run is in flight, and until then each run is submitted.
 */
async function busy(t) {
  const program = await openProgram(linearPlan(), { device: dawn.device, inFlight: 32 }), { queue } = dawn.device, done = [];
  queue.onSubmittedWorkDone = () => new Promise((resolve) => done.push(resolve));
  const end = () => done.splice(0).forEach((resolve) => resolve());
  t.after(() => {
    delete queue.onSubmittedWorkDone;
    program.close();
  });
  await program.run('init');
  for (let tries = 0, loaded = false; !loaded; tries++) {
    assert.ok(tries < 1000, 'a third run waits once the code is there');
    counter.take();
    for (let i = 0; i < 4; i++) await program.run('step', { ...batch(0), rate: 0 });
    loaded = counter.take()['queue.submit'] < 4;
    do {
      end();
      await new Promise((resolve) => setTimeout(resolve, 5)); // those that wait are submitted when others are done
    } while (done.length);
  }
  await program.read('w');
  return { program, end };
}

const rates = [0.1, 0.1, 0.2, 0.1, 0.3, 0.3, 0.3, 0.3];

test('runs share a submission while two others are in flight, and compute what runs alone do', async (t) => {
  const { program } = await busy(t), want = reference();
  counter.take();
  for (const [i, rate] of rates.entries()) {
    await program.run('step', { ...batch(i), rate });
    want.step(batch(i), Math.fround(rate));
  }
  assert.equal(counter.take()['queue.submit'], 2, 'the others wait');
  assert.ok(close(await program.read('w'), want.w, 1e-5));
  assert.equal(counter.take()['queue.submit'], 2, 'those that waited, and the read');
});

test('what waits is submitted when a run is done, for a read of a run, before a write, and when it is enough', async (t) => {
  const { program, end } = await busy(t), submits = () => counter.take()['queue.submit'] ?? 0, w = Float32Array.of(3, 1, 4);
  const run = (n, options) => Promise.all(Array.from({ length: n }, (_, i) => program.run('step', { ...batch(i), rate: 0.1 }, options)));
  counter.take();
  await run(3);
  assert.equal(submits(), 2);
  end();
  await new Promise((resolve) => setTimeout(resolve));
  assert.equal(submits(), 1);
  await run(3);
  submits();
  const [{ reading }] = await run(1, { read: ['count'] });
  assert.equal(submits(), 1);
  assert.equal((await reading).values.count[0], (await reading).step - 1);
  await run(1);
  assert.equal(submits(), 0);
  await program.write('w', w);
  assert.equal(submits(), 1);
  assert.deepEqual(await program.read('w'), w);
  submits();
  await run(8);
  assert.equal(submits(), 1);
});
