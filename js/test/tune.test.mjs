// Tuning over Dawn in Node, where there is no IndexedDB: everything is measured, and a problem is reported.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { compile, decodePlan, graph, init, program, train } from '../dist/index.js';
import { openDawn } from './rig/dawn.mjs';

let dawn;
before(async () => {
  dawn = await openDawn();
  await init({ device: dawn.device });
});
after(() => dawn.close());

const sums = () => graph('sums', (b) => b.output('sums', b.input('x', 'f32', [2, 9000]).reduceSum([1])));

/** Options that collect reports. */
function listening() {
  const measured = [], problems = [];
  return { measured, problems, tune: { onMeasured: (group) => measured.push(group), onProblem: (problem) => problems.push(problem) } };
}

test('a program is tuned on its device, and the problem has a kind', async () => {
  const { measured, problems, tune } = listening();
  const made = await program({ entries: { main: sums() }, tune }, { on: 'gpu' });
  const { reading } = await made.run('main', { x: new Float32Array(18000).fill(0.5) }, { read: ['sums'] });
  assert.deepEqual([...(await reading).values.sums], [4500, 4500]);
  made.close();
  assert.equal(measured.length, 1);
  assert.ok(measured[0].tuned > 0 && measured[0].tuned <= measured[0].untuned);
  assert.deepEqual(problems.map(({ kind }) => kind), ['store']);
});

test('training is tuned, and is as it was', async () => {
  const model = graph('line', (b) => {
    const error = b.input('x', 'f32', [4, 9000]).matmul(b.param('w', 'f32', [9000, 1], 0)).sub(1);
    b.output('loss', error.mul(error).mean());
  });
  const { measured, tune } = listening(), losses = [];
  for (const option of [false, tune]) {
    const trainer = await train(model, { optimizer: { kind: 'sgd' }, rate: 1e-5, on: 'gpu', tune: option });
    losses.push((await trainer.run({ steps: 3, batches: () => ({ x: new Float32Array(36000).fill(0.5) }) })).loss);
    trainer.program.close();
  }
  assert.ok(measured.length > 0);
  assert.ok(Math.abs(losses[0] - losses[1]) < 1e-5 && losses[0] < 1, String(losses));
});

test('true is enough; then a problem is a warning', async (t) => {
  const warn = t.mock.method(console, 'warn', () => {});
  assert.ok(decodePlan(await compile({ entries: { main: sums() }, tune: true })).kernels.length > 0);
  assert.deepEqual(warn.mock.calls.map(({ arguments: [problem] }) => problem.kind), ['store']);
});

test('for WebAssembly nothing is measured', async () => {
  const { measured, problems, tune } = listening();
  const tuned = await compile({ entries: { main: sums() }, target: 'wasm', tune });
  assert.deepEqual(tuned, await compile({ entries: { main: sums() }, target: 'wasm' }));
  assert.deepEqual([measured, problems], [[], []]);
});

test('without a GPU tuning is an error, and with a misspelt option', async () => {
  await assert.rejects(compile({ entries: { main: sums() }, tune: { onmeasured() {} } }), { kind: 'name', message: /tune has no option onmeasured/ });
  await init({ gpu: { requestAdapter: async () => null } });
  await assert.rejects(compile({ entries: { main: sums() }, tune: true }), { kind: 'device', message: /no adapter/ });
  await init({ device: dawn.device });
});

test('a device that is lost while it measures is an error of its own kind', async () => {
  const device = await (await dawn.gpu.requestAdapter()).requestDevice();
  await init({ device });
  const tune = { onMeasured: () => device.destroy(), onProblem() {} };
  const made = graph('two', (b) => {
    const x = b.input('x', 'f32', [2, 9000]);
    b.output('sums', x.reduceSum([1]));
    b.output('greatest', x.reduceMax([0]));
    b.output('rows', b.input('y', 'f32', [3, 7000]).reduceMax([1]));
  });
  await assert.rejects(compile({ entries: { main: made }, tune }), { kind: 'lost' });
  await init({ device: dawn.device });
});

test('the device that trials run on has the features of the limits', async () => {
  const asked = [], adapter = { limits: {}, features: new Set(), info: {}, requestDevice: async (given) => { asked.push(given); throw new Error('none left'); } };
  const limits = { maxBufferSize: 1 << 28, f16: true, subgroup: 32, device: 'a name' };
  await init({ gpu: { requestAdapter: async () => adapter } });
  try {
    await assert.rejects(compile({ entries: { main: sums() }, limits, tune: { onProblem() {} } }), { kind: 'device' });
  } finally {
    await init({ device: dawn.device });
  }
  assert.deepEqual(asked.map(({ requiredFeatures, requiredLimits }) => ({ requiredFeatures, requiredLimits })), [{ requiredFeatures: ['shader-f16', 'subgroups', 'subgroup-size-control'], requiredLimits: { maxBufferSize: 1 << 28 } }]);
});

test('a compile service is asked for plans, but not for what is measured here', async () => {
  await init({ device: dawn.device, compileAt: 'http://127.0.0.1:1' });
  const { measured, tune } = listening(), line = graph('line', (b) => b.output('loss', b.input('x', 'f32', [2, 9000]).reduceSum([1]).mul(b.param('w', 'f32', [2], 1)).sub(4500).square().mean()));
  const trainer = await train(line, { optimizer: { kind: 'sgd' }, rate: 1e-9, on: 'gpu', tune });
  assert.equal((await trainer.run({ steps: 2, batches: () => ({ x: new Float32Array(18000).fill(0.5) }) })).loss, 0);
  trainer.program.close();
  assert.ok(measured.length > 0);
  await assert.rejects(compile({ entries: { main: sums() } }), { kind: 'wasm', message: /127\.0\.0\.1:1\/v1\/plans does not compile/ });
  await init({ device: dawn.device });
});
