// What a training step asks of WebGPU, counted.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openProgram, Trainer } from '../dist/runtime.js';
import { batch, close, linearPlan, reference } from './linear.mjs';
import { countGPU } from './rig/counter.mjs';
import { openDawn } from './rig/dawn.mjs';

let dawn, counter;
before(async () => {
  dawn = await openDawn();
  counter = countGPU();
});
after(() => dawn.close());

/** By default with so few runs in flight that none shares a submission. */
async function open(t, options = { inFlight: 2 }) {
  const program = await openProgram(linearPlan(), { device: dawn.device, ...options });
  t.after(() => program.close());
  return program;
}

/** What a run may do: with two dispatches, and each kernel reading scalars or not. */
const submission = (dispatches) => ({
  'device.createCommandEncoder': 1, 'encoder.beginComputePass': 1, 'pass.dispatchWorkgroups': dispatches, 'encoder.finish': 1, 'queue.submit': 1,
  'queue.onSubmittedWorkDone': 1,
});

/** The calls since the last take, without those that set what a dispatch needs. */
const taken = () => {
  const { 'pass.setPipeline': _, 'pass.setBindGroup': __, ...calls } = counter.take();
  return calls;
};

test('after step 2 a step is one encoder, one pass, one submission, and creates nothing', async (t) => {
  const program = await open(t);
  await program.run('init');
  for (let i = 0; i < 2; i++) await program.run('step', { ...batch(i), rate: 0.1 });
  for (let i = 2; i < 40; i++) {
    const reads = i % 8 === 0;
    counter.take();
    const { reading } = await program.run('step', { ...batch(i), rate: 0.1 }, reads ? { read: ['history'] } : {});
    assert.deepEqual(counter.writes().map(({ bytes }) => bytes), [48, 16], 'x and t: the scalars are there');
    assert.deepEqual(taken(), {
      ...submission(2), 'queue.writeBuffer': 2,
      ...(reads ? { 'encoder.copyBufferToBuffer': 2, 'buffer.mapAsync': 1 } : {}), // the history, and the status word with it
    }, `step ${i}`);
    await reading;
  }
});

test('a resident batch is written once', async (t) => {
  const program = await open(t);
  await program.bind('step', batch(0));
  await program.run('step', { rate: 0.1 });
  counter.take();
  await program.run('step', { rate: 0.1 });
  assert.deepEqual(taken(), submission(2));
});

test('the scalars of a step are written when they change', async (t) => {
  const program = await open(t);
  await program.bind('step', batch(0));
  const written = async (rate, steps = 1) => {
    counter.take();
    await program.run('step', { rate }, { steps });
    return taken()['queue.writeBuffer'] ?? 0;
  };
  const rates = [0.1, 0.1, 0.2, 0.1, [0.1, 0.1], 0.1, [0.1, 0.1], [0.1, 0.2], 0.1];
  const writes = [];
  for (const rate of rates) writes.push(await written(rate, rate.length));
  assert.deepEqual(writes, [1, 0, 1, 1, 1, 0, 1, 1, 0]);
});

test('eight steps in one run are one submission with one pass', async (t) => {
  const program = await open(t);
  await program.run('step', { ...batch(0), rate: 0.1 });
  counter.take();
  await program.run('step', { ...batch(0), rate: Array(8).fill(0.1) }, { steps: 8 });
  assert.deepEqual(taken(), { ...submission(16), 'queue.writeBuffer': 3 });
});

test('a tensor on the device becomes an input by a copy in the step\'s own encoder', async (t) => {
  const program = await open(t), { x, t: targets } = batch(0);
  const tensor = await program.upload({ dtype: 'f32', shape: [4, 3], data: x });
  await program.run('step', { x, t: targets, rate: 0.1 });
  counter.take();
  await program.run('step', { x: tensor, t: targets, rate: 0.1 });
  assert.deepEqual(taken(), { ...submission(2), 'queue.writeBuffer': 1, 'encoder.copyBufferToBuffer': 1 });
  tensor.dispose();
});

test('10,000 steps of a trainer need no more buffers than those in flight, and every loss is right', async (t) => {
  const program = await open(t, {}), want = reference();
  const trainer = new Trainer(program, { history: { ring: 'history', count: 'count' } });
  await program.run('init');
  const given = Array.from({ length: 16 }, (_, i) => ({ inputs: batch(i), rows: 4 }));
  const endless = function* () { for (let i = 0; ; i++) yield given[i % 16]; };
  const losses = [], steps = [];
  const run = (n) => trainer.run({
    steps: n, batches: endless(), inputs: { rate: 0.02 }, every: 4, onProgress: (p) => { losses.push(...p.losses); steps.push(p.step); },
  });
  await run(16);
  const live = counter.liveBuffers();
  counter.take();
  const summary = await run(10_000);
  const calls = taken();
  assert.equal(summary.steps, 10_000);
  assert.ok(counter.liveBuffers() - live < 64, `${counter.liveBuffers() - live} buffers more`);
  assert.deepEqual(Object.keys(calls).filter((name) => name.includes('create') && !name.includes('createBuffer')), ['device.createCommandEncoder']);
  assert.equal(calls['encoder.beginComputePass'], 10_000);
  assert.ok(calls['queue.submit'] <= 10_002, `${calls['queue.submit']} submissions`); // a read that was put off may go alone at the end
  const all = Array.from({ length: 10_016 }, (_, i) => want.step(given[i % 16].inputs, Math.fround(0.02)));
  assert.equal(steps.at(-1), 10_016);
  assert.ok(close(losses, all, 1e-4), `${losses.length} losses`);
  assert.equal(summary.loss, losses.at(-1));
});

test('kept tensors come from a pool', async (t) => {
  const program = await open(t);
  await program.run('init');
  (await program.keep('w')).dispose();
  counter.take();
  for (let i = 0; i < 20; i++) (await program.keep('w')).dispose();
  assert.equal(taken()['device.createBuffer'], undefined);
});
