// Tensors on the device.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { liveTensors, openProgram, scope } from '../dist/runtime.js';
import { batch, close, linearPlan, reference } from './linear.mjs';
import { openDawn } from './rig/dawn.mjs';

let dawn, program;
before(async () => {
  dawn = await openDawn();
  program = await openProgram(linearPlan(), { device: dawn.device });
  await program.run('init');
});
after(() => {
  program.close();
  dawn.close();
});

const f32 = (shape, data) => ({ dtype: 'f32', shape, data: Float32Array.from(data) });

test('a tensor is an input as often as you like', async () => {
  const { x, t } = batch(1), want = reference();
  const a = await program.upload(f32([4, 3], x)), b = await program.upload(f32([4], t));
  for (let i = 0; i < 3; i++) {
    const { reading } = await program.run('step', { x: a, t: b, rate: 0.1 }, { read: ['loss'] });
    assert.ok(close((await reading).values.loss, [want.step(batch(1), Math.fround(0.1))]));
  }
  assert.deepEqual(await a.data(), x);
  a.dispose();
  b.dispose();
});

test('a kept tensor is a copy of its moment', async () => {
  await program.run('init');
  const kept = await program.keep('w');
  await program.run('step', { ...batch(0), rate: 0.5 });
  assert.deepEqual([...await kept.data()], [0.5, 1, 1.5]);
  assert.notDeepEqual([...await program.read('w')], [0.5, 1, 1.5]);
  await program.write('w', kept);
  assert.deepEqual([...await program.read('w')], [0.5, 1, 1.5]);
  assert.deepEqual([kept.dtype, kept.shape, kept.size], ['f32', [3], 3]);
  kept.dispose();
});

test('wrong tensors are refused', async () => {
  const { x, t } = batch(0), small = await program.upload(f32([3, 4], x)), integers = await program.upload({ dtype: 'i32', shape: [4, 3], data: new Int32Array(12) });
  await assert.rejects(program.run('step', { x: small, t, rate: 0 }), { kind: 'shape', message: /\[3,4\]/ });
  await assert.rejects(program.run('step', { x: integers, t, rate: 0 }), { kind: 'dtype', message: /x is i32: it must be f32/ });
  await assert.rejects(program.upload(f32([2, 2], x)), { kind: 'shape' });
  await assert.rejects(program.upload({ dtype: 'i32', shape: [12], data: x }), { kind: 'dtype' });
  const other = await openProgram(linearPlan(), { device: dawn.device });
  await assert.rejects(other.run('step', { x: small, t, rate: 0 }), { kind: 'shape' });
  const fits = await other.upload(f32([4, 3], x));
  await assert.rejects(program.run('step', { x: fits, t, rate: 0 }), { kind: 'name', message: /another program/ });
  for (const tensor of [small, integers, fits]) tensor.dispose();
  other.close();
  await assert.rejects(small.data(), { kind: 'closed' });
  await assert.rejects(program.run('step', { x: small, t, rate: 0 }), (e) => e.kind === 'shape' || e.kind === 'closed');
});

test('live tensors are counted, and dispose twice is once', async () => {
  const before = liveTensors(), a = await program.upload(f32([2], [1, 2])), b = await program.keep('w');
  assert.equal(liveTensors(), before + 2);
  a.dispose();
  a.dispose();
  b[Symbol.dispose]();
  assert.equal(liveTensors(), before);
});

test('a scope disposes of what was made in it, but for what is released', async () => {
  const before = liveTensors(), inner = scope();
  const a = await program.upload(f32([1], [1])), b = inner.release(await program.upload(f32([1], [2])));
  inner[Symbol.dispose]();
  assert.equal(liveTensors(), before + 1);
  await assert.rejects(a.data(), { kind: 'closed' });
  assert.deepEqual([...await b.data()], [2]);
  b.dispose();
});
