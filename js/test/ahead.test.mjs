// Modules that are compiled ahead of time: their plans, and how programs on them begin, without a bundler.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fetched } from '../dist/ahead.js';
import { ahead, closeCompiler, compile, decodePlan, graph, init, initialParams, openProgram } from '../dist/index.js';

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

/** What every WebGPU device has, by the specification. */
const defaults = {
  maxStorageBuffersPerShaderStage: 8, maxStorageBufferBindingSize: 2 ** 27, maxBufferSize: 2 ** 28, maxComputeWorkgroupStorageSize: 16384, maxComputeInvocationsPerWorkgroup: 256,
  maxComputeWorkgroupSizeX: 256, maxComputeWorkgroupSizeY: 256, maxComputeWorkgroupSizeZ: 64, maxComputeWorkgroupsPerDimension: 65535,
};

/** The device that a program asks an adapter for: features, and the limits beyond what every device has. */
async function askedOf(file, { features = [], limits = {}, subgroup: [subgroupMinSize, subgroupMaxSize] = [] }) {
  let asked;
  const adapter = {
    features: new Set(features), limits: { ...defaults, ...limits }, info: { ...subgroupMaxSize && { subgroupMinSize, subgroupMaxSize } },
    async requestDevice({ requiredFeatures, requiredLimits }) {
      asked = { features: [...requiredFeatures], limits: Object.fromEntries(Object.entries(requiredLimits).filter(([name, n]) => n > defaults[name])) };
      throw new Error('asked');
    },
  };
  await assert.rejects(openProgram(file, { gpu: { requestAdapter: async () => adapter }, on: 'gpu' }), { kind: 'device', message: /asked/ });
  return asked;
}

test('of several variants a device gets the first that it can run: by f16, subgroups of a size, and limits', async () => {
  const model = graph('model', (b) => {
    b.output('y', b.input('x', 'f16', [64, 4096]).softmax());
    b.output('z', b.input('u', 'f32', [512, 512]).matmul(b.input('v', 'f32', [512, 512])));
  });
  const large = { maxComputeInvocationsPerWorkgroup: 1024, maxComputeWorkgroupSizeX: 1024 };
  const variants = [{ f16: true, subgroup: 32 }, { f16: true }, { subgroup: 32 }, { maxComputeInvocationsPerWorkgroup: 1024 }];
  const file = await ahead({ entries: { main: model } }, { variants }).plan(), plan = decodePlan(file);
  const f16 = ['shader-f16'], warps = ['subgroups', 'subgroup-size-control'];
  assert.deepEqual([plan, ...plan.variants].filter(({ target }) => target === 'webgpu').map(({ requires }) => requires.features), [[...f16, ...warps], f16, warps, [], []]);

  const all = { features: [...f16, ...warps, 'timestamp-query'], limits: large, subgroup: [32, 32] };
  for (const [what, adapter, features, limits] of [
    ['all', all, [...f16, ...warps], {}],
    ['subgroups of several sizes', { ...all, subgroup: [16, 32] }, f16, {}],
    ['subgroups of another size', { ...all, subgroup: [64, 64] }, f16, {}],
    ['a size that the adapter does not say', { ...all, subgroup: [] }, f16, {}],
    ['subgroups whose size is not chosen', { ...all, features: [...f16, 'subgroups'] }, f16, {}],
    ['no f16', { ...all, features: warps }, warps, {}],
    ['limits alone', { limits: large }, [], large],
    ['a limit of several', { limits: { maxComputeInvocationsPerWorkgroup: 1024 } }, [], {}],
    ['what every device has', {}, [], {}],
  ]) assert.deepEqual(await askedOf(file, adapter), { features, limits }, what);

  const only = await compile({ entries: { main: model }, target: 'webgpu', limits: { f16: true, subgroup: 32 } });
  const refused = (adapter, message) => assert.rejects(openProgram(only, { gpu: { requestAdapter: async () => ({ limits: defaults, ...adapter }) }, on: 'gpu' }), { kind: 'limit', message });
  await refused({ features: new Set(warps), info: { subgroupMinSize: 32, subgroupMaxSize: 32 } }, /the device lacks shader-f16$/);
  await refused({ features: new Set([...f16, ...warps]), info: { subgroupMinSize: 8, subgroupMaxSize: 32 } }, /the device lacks its subgroup sizes$/);
  await refused({ features: new Set([...f16, ...warps]), info: { subgroupMinSize: 32, subgroupMaxSize: 32 }, limits: { ...defaults, maxComputeInvocationsPerWorkgroup: 128 } }, /lacks maxComputeInvocationsPerWorkgroup 256 \(here 128\)$/);
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
