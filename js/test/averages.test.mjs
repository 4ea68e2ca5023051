// Averages of parameters: entries that read them, and their values.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { averages } from '../dist/fit.js';
import { closeCompiler, graph, init, train } from '../dist/index.js';

before(() => init({ compileWorker: false, worker: false }));
after(closeCompiler);

/** A loss with the gradient 1 for w, and 2 for v. */
const line = () => graph('line', (b) => {
  const x = b.input('x', 'f32', [2]), w = b.param('w', 'f32', [2], 0), v = b.param('v', 'f32', [], 0);
  const y = w.mul(x).sum().add(v.mul(2));
  b.output('loss', y);
});
const value = () => graph('value', (b) => b.output('value', b.param('w', 'f32', [2], 0).add(b.input('x', 'f32', [2]))));
const options = { optimizer: { kind: 'sgd', average: 0.75 }, rate: 1, seed: 1, on: 'cpu' };
const ones = Float32Array.of(1, 1);

for (const name of [undefined, 'own']) test(`evalAverages reads the averages of the optimizer ${name ?? 'without a name'}`, async () => {
  const trainer = await train(line(), { ...options, ...name && { name }, entries: { now: value() }, evalAverages: { averaged: value() } });
  let w = 0, average = 0;
  for (let step = 0; step < 3; step++) {
    await trainer.step({ x: ones });
    w--;
    average = step ? 0.75 * average + 0.25 * w : w;
  }
  const read = async (entry) => (await (await trainer.program.run(entry, { x: ones }, { read: ['value'] })).reading).values.value[0];
  assert.equal(await read('now'), w + 1);
  const state = (await trainer.program.read(`optim/${name ? `${name}:` : ''}average/w`))[0], averaged = await read('averaged');
  assert.equal(state, average);
  assert.equal(averaged, average + 1);
  const params = await averages(trainer, name);
  assert.deepEqual(Object.keys(params).sort(), ['v', 'w']);
  assert.equal(params.w.data[0], state);
  assert.equal((await trainer.program.read('w'))[0], w); // as it was
  trainer.program.close();
});

test('averages of a parameter of 16 bits are rounded to its type', async () => {
  const model = graph('half', (b) => b.output('loss', b.param('w', 'bf16', [2], 0).convert('f32').sum()));
  const half = graph('value', (b) => b.output('value', b.param('w', 'bf16', [2], 0).convert('f32')));
  const trainer = await train(model, { ...options, evalAverages: { averaged: half } });
  await trainer.step({});
  const { w } = await averages(trainer);
  assert.equal(w.dtype, 'bf16');
  assert.ok(w.data instanceof Uint16Array);
  trainer.program.close();
});

test('wrong averages are refused', async () => {
  const plain = { ...options, optimizer: { kind: 'sgd' } };
  await assert.rejects(train(line(), { ...plain, evalAverages: { averaged: value() } }), { kind: 'graph', message: /evalAverages: entry averaged reads no parameter with an average/ });
  await assert.rejects(train(line(), { ...options, entries: { one: value() }, evalAverages: { one: value() } }), { kind: 'name', message: /another entry one/ });
  await assert.rejects(train(line(), { ...options, evalAverages: { one: 'graph' } }), { kind: 'missing', message: /entry one is String: it must be a graph/ });
  const trainer = await train(line(), plain);
  await assert.rejects(averages(trainer), { kind: 'unsupported', message: /keeps no averages/ });
  await assert.rejects(averages(), { kind: 'missing', message: /a Trainer/ });
  trainer.program.close();
});
