// What a training step asks of WebGPU, counted.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openSession, Trainer } from '../dist/runtime.js';
import { batch, close, linearPlan, reference } from './linear.mjs';
import { openDawn } from './rig/dawn.mjs';

let dawn;
before(async () => { dawn = await openDawn(); });
after(() => dawn.close());

/**
 * A device that counts calls by name, in `counts`, those of its queue, its encoders and its
 * buffers included. Buffers made and destroyed are `createBuffer` and `destroyBuffer`.
 */
function counting(device) {
  const counts = {};
  const count = (name) => { counts[name] = (counts[name] ?? 0) + 1; };
  const watch = (object, wrap = {}) => {
    const originals = Object.fromEntries(Object.keys(wrap).map((name) => [name, object[name].bind(object)]));
    for (const [name, after] of Object.entries(wrap)) {
      object[name] = (...args) => {
        count(name);
        return after(originals[name](...args)) ?? undefined;
      };
    }
    return object;
  };
  const same = (x) => x;
  const buffer = (made) => {
    const destroy = made.destroy.bind(made);
    made.destroy = () => { count('destroyBuffer'); destroy(); };
    return watch(made, { mapAsync: same });
  };
  const encoder = (made) => watch(made, { beginComputePass: same, copyBufferToBuffer: same, clearBuffer: same, finish: same });
  watch(device, {
    createBuffer: buffer, createCommandEncoder: encoder, createBindGroup: same, createBindGroupLayout: same, createPipelineLayout: same,
    createShaderModule: same, createComputePipeline: same, createComputePipelineAsync: same, createQuerySet: same, createTexture: same,
    createSampler: same, pushErrorScope: same, popErrorScope: same,
  });
  watch(device.queue, { submit: same, writeBuffer: same, onSubmittedWorkDone: same });
  return { device, counts };
}

const difference = (after, before) => Object.fromEntries(Object.entries(after).map(([k, n]) => [k, n - (before[k] ?? 0)]).filter(([, n]) => n !== 0));

async function setUp(t) {
  const { device, counts } = counting(await (await dawn.gpu.requestAdapter()).requestDevice());
  t.after(() => device.destroy());
  return { session: await openSession(linearPlan(), { device }), counts };
}

test('after step 2 a step is one encoder, one pass, one submission, and creates nothing', async (t) => {
  const { session, counts } = await setUp(t);
  await session.run('init');
  for (let i = 0; i < 2; i++) await session.run('step', { ...batch(i), rate: 0.1 });
  for (let i = 2; i < 40; i++) {
    const before = { ...counts }, reads = i % 8 === 0;
    const { reading } = await session.run('step', { ...batch(i), rate: 0.1 }, reads ? { read: ['history'] } : {});
    assert.deepEqual(difference(counts, before), {
      createCommandEncoder: 1, beginComputePass: 1, finish: 1, submit: 1,
      writeBuffer: 3, // x, t, and the row of scalars
      onSubmittedWorkDone: 1,
      ...(reads ? { copyBufferToBuffer: 2, mapAsync: 1 } : {}), // the history, and the status word with it
    }, `step ${i}`);
    await reading;
  }
});

test('a resident batch is written once', async (t) => {
  const { session, counts } = await setUp(t);
  await session.bind('step', batch(0));
  await session.run('step', { rate: 0.1 });
  const before = { ...counts };
  await session.run('step', { rate: 0.1 });
  assert.equal(difference(counts, before).writeBuffer, 1);
});

test('eight steps in one run are one submission with one pass', async (t) => {
  const { session, counts } = await setUp(t);
  await session.run('step', { ...batch(0), rate: 0.1 });
  const before = { ...counts };
  await session.run('step', { ...batch(0), rate: Array(8).fill(0.1) }, { steps: 8 });
  assert.deepEqual(difference(counts, before), { createCommandEncoder: 1, beginComputePass: 1, finish: 1, submit: 1, writeBuffer: 3, onSubmittedWorkDone: 1 });
});

test('10,000 steps of a trainer leave the number of buffers as it was, and every loss is right', async (t) => {
  const { session, counts } = await setUp(t), trainer = new Trainer(session), want = reference();
  await session.run('init');
  const given = Array.from({ length: 16 }, (_, i) => ({ inputs: batch(i), rows: 4 }));
  const endless = function* () { for (let i = 0; ; i++) yield given[i % 16]; };
  const losses = [];
  const run = (steps) => trainer.run({ steps, batches: endless(), inputs: { rate: 0.02 }, every: 4, onProgress: (p) => losses.push([p.step, p.losses.at(-1)]) });
  await run(16);
  const before = { ...counts };
  const { loss, steps } = await run(10_000);
  const done = difference(counts, before);
  assert.equal(steps, 10_000);
  assert.equal((done.createBuffer ?? 0) - (done.destroyBuffer ?? 0), 0);
  for (const [name, n] of Object.entries(done)) {
    assert.ok(!name.startsWith('create') || name === 'createCommandEncoder', `${n} calls of ${name}`);
  }
  assert.ok(done.submit <= 10_000 + 10, `${done.submit} submissions`); // reads put off by a full ring may go alone at the end
  assert.equal(done.beginComputePass, 10_000);
  const all = Array.from({ length: 10_016 }, (_, i) => want.step(given[i % 16].inputs, Math.fround(0.02)));
  assert.ok(losses.length > 2000, `${losses.length} reports`);
  for (const [step, got] of losses) assert.ok(close([got], [all[step - 2]], 1e-4), `step ${step}: ${got} instead of ${all[step - 2]}`);
  assert.ok(close([loss], [all.at(-1)], 1e-4));
});

test('kept tensors come from a pool', async (t) => {
  const { session, counts } = await setUp(t);
  await session.run('init');
  (await session.keep('w')).dispose();
  const before = { ...counts };
  for (let i = 0; i < 20; i++) (await session.keep('w')).dispose();
  assert.equal(difference(counts, before).createBuffer, undefined);
});
