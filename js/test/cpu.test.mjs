// Programs on the CPU: kernels in WebAssembly in this thread, without any GPU.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { before, test } from 'node:test';
import { batches, compile, decodePlan, graph, init, openProgram, planCode, parseGraph, program, train } from '../dist/index.js';
import { decodeSafetensors, encodeSafetensors } from '../dist/safetensors.js';

const want = JSON.parse(readFileSync(new URL('testdata/mlp_steps.json', import.meta.url), 'utf8'));
const near = (got, wanted, tolerance = 1e-5) => {
  assert.equal(got.length, wanted.length);
  wanted.forEach((x, i) => assert.ok(Math.abs(got[i] - x) <= tolerance * (1 + Math.abs(x)), `${got} instead of ${wanted}`));
};

// The numbers that the losses were computed with, by the place of the port.
const elements = (place, size) => Float32Array.from({ length: size }, (_, i) => (i * 7919 + place * 104729) % 1024 / 1024 - 0.5);
const inputs = { x: elements(0, 12), labels: Int32Array.of(0, 1, 2, 0) };
const params = { w1: elements(2, 15), b1: elements(3, 5), w2: elements(4, 15), b2: elements(5, 3) };

before(() => init());

test('without WebGPU training is on the CPU, with the losses of the reference, and reports why', async () => {
  const losses = [], schedule = { kind: 'constant', rate: 0.125 };
  const trainer = await train(parseGraph(want.text), { optimizer: { kind: 'adam' }, schedule, params });
  await trainer.run({ steps: want.losses.length, batches: () => inputs, every: 4, onProgress: (p) => losses.push(...p.losses) });
  near(losses, want.losses);
  assert.match(trainer.program.fallbackReason, /WebGPU is not here/);
  assert.match(trainer.program.device.description, /CPU/);
  trainer.program.close();
});

test('without an adapter a program is on the CPU, unless it must not be', async () => {
  const module = { entries: { loss: want.text } }, gpu = { requestAdapter: async () => null };
  const made = await program(module, { gpu });
  assert.match(made.fallbackReason, /no adapter/);
  made.close();
  const asked = await program(module, { on: 'cpu' });
  assert.equal(asked.fallbackReason, undefined);
  asked.close();
  await assert.rejects(program(module, { gpu, on: 'gpu' }), { kind: 'device' });
});

/** A running sum of rows, and what is picked from it. */
const open = () => program({
  entries: {
    add: graph('add', (g) => {
      const total = g.state('total', 'f32', [3]), next = total.add(g.input('x', 'f32', [3]).mul(g.input('scale', 'f32', [])));
      g.setState('total', next);
      g.output('mean', next.mean());
      g.output('up', next.gt(total));
    }),
    wide: graph('wide', (g) => g.output('y', g.input('x', 'f64', [2]).mul(g.input('x2', 'f64', [2])))),
    pick: graph('pick', (g) => g.output('y', g.param('table', 'f32', [3]).take(g.input('at', 'i32', [2]).checkIndex({ bound: [3], what: 'at' }), 0))),
  },
}, { on: 'cpu' });

test('values of 64 bits come in batches, are saved and loaded', async (t) => {
  const made = await program({ entries: { add: graph('add', (g) => {
    const w = g.state('w', 'i64', [2]);
    g.setState('w', w.add(g.input('x', 'i64', [2])));
  }) } }, { on: 'cpu' });
  t.after(() => made.close());
  await made.load(decodeSafetensors(encodeSafetensors({ w: { dtype: 'i64', shape: [2], data: BigInt64Array.of(1n, -1n << 62n) } })).tensors);
  const data = new Uint8Array(BigInt64Array.of(2n, 3n, 4n, 5n).buffer);
  for (const { inputs } of batches({ x: { dtype: 'i64', shape: [4], data } }, { size: 2, epochs: 1 })) await made.run('add', inputs);
  assert.deepEqual(decodeSafetensors(encodeSafetensors(await made.save())).tensors.w.data, BigInt64Array.of(7n, 8n - (1n << 62n)));
  assert.throws(() => batches({ x: { dtype: 'i64', shape: [3], data } }, { size: 1 }), { kind: 'shape' });
});

test('runs, bindings, readings and tensors are as on a GPU', async (t) => {
  const made = await open();
  t.after(() => made.close());
  const x = Float32Array.of(1, 2, 3);
  const { step, reading } = await made.run('add', { x, scale: [1, 10, 100] }, { steps: 3, read: ['total', 'mean', 'up'] });
  assert.equal(step, 3);
  const { step: at, values } = await reading;
  assert.deepEqual([at, [...values.total], [...values.mean], [...values.up]], [3, [111, 222, 333], [222], [1, 1, 1]]);
  await made.bind('add', { x, scale: -1 });
  x.fill(0); // a bound value is the given one
  await made.run('add');
  near(await made.read('total'), [110, 220, 330]);
  const kept = await made.keep('total'), up = await made.upload({ dtype: 'f32', shape: [3], data: Float32Array.of(5, 5, 5) });
  await made.run('add', { x: up, scale: 2 });
  near(await made.read('total'), [120, 230, 340]);
  await made.write('total', kept);
  near((await made.save()).total.data, [110, 220, 330]);
  await made.load({ total: { dtype: 'f32', shape: [3], data: Float32Array.of(1, 1, 1) } }, { allowMissing: true });
  near((await made.readAll(['total'])).values.total, [1, 1, 1]);
  await assert.rejects(made.run('add', { scale: 1 }), { kind: 'missing', message: /x is missing: give f32\[3\]/ }); // it was given anew
  kept.dispose();
  up.dispose();
});

test('elements that JavaScript has no arrays for here are bytes', async () => {
  const made = await open(), bytes = (...x) => new Uint8Array(Float64Array.from(x).buffer);
  const { reading } = await made.run('wide', { x: bytes(1.5, 2), x2: bytes(2, 1e300) }, { read: ['y'] });
  assert.deepEqual([...new Float64Array((await reading).values.y.buffer)], [3, 2e300]);
  made.close();
});

test('errors are of their kind and leave everything as it was', async () => {
  const made = await open(), x = new Float32Array(3).fill(1);
  await made.write('table', Float32Array.of(7, 8, 9));
  for (const [call, kind, message] of [
    [() => made.run('fly'), 'name', /add, wide, pick/],
    [() => made.run('add', { x, scale: 1, y: 2 }), 'name', /y/],
    [() => made.run('add', { x }), 'missing', /scale is missing: give f32\[\]/],
    [() => made.run('add', { x: new Float32Array(2), scale: 1 }), 'shape', /x has 2 elements: it must be f32\[3\] of 3/],
    [() => made.run('add', { x: new Int32Array(3), scale: 1 }), 'dtype', /x is Int32Array: it must be Float32Array, of f32/],
    [() => made.run('add', { x, scale: [1, 2] }, { steps: 3 }), 'shape', /2 values for 3 steps/],
    [() => made.run('add', { x, scale: 1 }, { read: ['sum'] }), 'name', /sum/],
    [() => made.run('add', { x, scale: 1 }, { steps: 0 }), 'limit', /run of add is 0/],
    [() => made.run('pick', { at: Int32Array.of(0, 3) }), 'index', /at/],
    [() => made.load({ total: { dtype: 'f32', shape: [3], data: x }, table: { dtype: 'f32', shape: [2], data: new Float32Array(2) } }), 'shape', /table/],
    [() => made.write('mean', 1), 'name', /total/],
    [() => made.read('mean'), 'name', /mean/],
  ]) await assert.rejects(call(), { name: 'RlxError', kind, message });
  assert.deepEqual([made.steps, [...await made.read('total')]], [0, [0, 0, 0]]);
  const { reading } = await made.run('pick', { at: Int32Array.of(2, 0) }, { read: ['y'] });
  assert.deepEqual([...(await reading).values.y], [9, 7]);
  made.close();
  made.close();
  for (const call of [() => made.run('add', { x, scale: 1 }), () => made.bind('add', { x }), () => made.read('total'), () => made.save()]) {
    await assert.rejects(call(), { kind: 'closed' });
  }
  await assert.rejects(program({ entries: { loss: 'graph' } }, { on: 'cpu' }), { kind: 'syntax' });
});

test('code that was compiled before is taken as it is; that of another plan is refused', async () => {
  const planOf = (name, make) => compile({ entries: { main: graph(name, (b) => b.output('y', make(b.input('x', 'f32', [2])))) }, target: 'wasm' });
  const file = await planOf('twice', (x) => x.mul(2)), other = await planOf('sum', (x) => x.cumsum());
  const code = await WebAssembly.compile(planCode(file)), { compile: compiles } = WebAssembly;
  const refuse = async () => { throw new WebAssembly.CompileError('code generation disallowed by embedder'); }; // as workerd does
  WebAssembly.compile = refuse;
  try {
    await assert.rejects(openProgram(file), { kind: 'wasm' });
    const made = await openProgram(file, { code }), { reading } = await made.run('main', { x: Float32Array.of(1, 2) }, { read: ['y'] });
    assert.deepEqual([...(await reading).values.y], [2, 4]);
    made.close();
    await assert.rejects(openProgram(other, { code }), { kind: 'plan', message: /code is not planCode of main/ });
  } finally {
    WebAssembly.compile = compiles;
  }
  await assert.rejects(openProgram(file, { code: await WebAssembly.compile(decodePlan(file).code) }), { kind: 'plan' });
  await assert.rejects(openProgram(file, { code: planCode(file) }), { kind: 'wasm' });
});

test('a row that is too long for the memory of a workgroup is sorted', async () => {
  const n = 300_000, x = Float32Array.from({ length: n }, (_, i) => (i * 7919) % 1009 - 500); // equal keys keep their order
  const order = graph('order', { inputs: { x: ['f32', [n]] } }, (_, { x: v }) => ({ values: v.sort()[0], places: v.argsort() }));
  const made = await program({ entries: { order } }, { on: 'cpu' });
  await made.run('order', { x });
  const wanted = Int32Array.from({ length: n }, (_, i) => i).sort((a, b) => x[a] - x[b] || a - b);
  assert.deepEqual(await made.read('places'), wanted);
  assert.deepEqual(await made.read('values'), x.toSorted());
  made.close();
});
