// Modules that are compiled ahead of time: their plans, and how programs on them begin, without a bundler.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fetched } from '../dist/ahead.js';
import { ahead, closeCompiler, decodePlan, graph, init, initialParams } from '../dist/index.js';

before(() => init({ compileWorker: false, worker: false }));
after(closeCompiler);

const model = () => graph('model', (b) => {
  b.output('loss', b.input('x', 'f32', ['n']).mul(b.param('w', 'f32', ['n', 3]).sum([1])).mul(b.param('scale', 'f32', [], 2)).mean());
});
const symbols = { n: 4 }, module = () => ({ entries: { main: model() }, symbols });
const here = { on: 'cpu', worker: false };

test('a file has the plans of all targets, and programs begin as initialParams draws', async () => {
  const made = ahead(module), plan = decodePlan(await made.plan());
  assert.deepEqual([plan, ...plan.variants].map(({ target }) => target), ['webgpu', 'wasm', 'wasm']);
  for (const seed of [undefined, 7]) {
    const program = await made.open({ ...here, ...seed && { seed } }), want = initialParams(model().bind(symbols), {}, seed ?? 0);
    for (const name of ['w', 'scale']) assert.deepEqual(await program.read(name), want[name].data);
    program.close();
  }
  assert.equal(await made.plan(), await made.plan());
});

test('a variant for more capable devices comes first, and one that is equal takes no room', async () => {
  const plain = await ahead(module).plan(), big = graph('rows', (b) => b.output('y', b.input('x', 'f32', [64, 4096]).softmax()));
  assert.deepEqual(await ahead({ entries: { main: big } }, { variants: [{}] }).plan(), await ahead({ entries: { main: big } }).plan());
  const file = await ahead({ entries: { main: big } }, { variants: [{ subgroup: 32 }] }).plan(), plan = decodePlan(file);
  assert.deepEqual([plan, ...plan.variants].map(({ requires }) => requires.features.includes('subgroups')), [true, false, false, false]);
  assert.deepEqual(decodePlan(await ahead({ ...module(), target: 'wasm' }, { variants: [{ subgroup: 32 }] }).plan()).variants, []);
  assert.ok(plain.length > 0);
  await assert.rejects(ahead(module, { variants: [{ f17: true }] }).plan(), { kind: 'name', message: /limits has no option f17/ });
});

test('what a bundler leaves is fetched when it is opened', async () => {
  const file = await ahead(module).plan(), url = `data:application/octet-stream;base64,${Buffer.from(file).toString('base64')}`;
  const program = await fetched(url, [['w', 'f32', [4, 3], 'he'], ['scale', 'f32', [], 2]]).open(here);
  assert.deepEqual(await program.read('scale'), Float32Array.of(2));
  assert.ok((await program.read('w')).some((x) => x !== 0));
  program.close();
  await assert.rejects(fetched('http://127.0.0.1:1/square.rlxp', []).open(here), { kind: 'plan', message: /square\.rlxp cannot be loaded/ });
  await assert.rejects(fetched(url, []).open({ seed: -1 }), { kind: 'limit' });
});
