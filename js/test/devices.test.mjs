// Reports of what devices and targets compute, the order of devices, policies.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { calibrate, chooseFor, devices, devicesFor, fastest, openFor, parsePolicy, ratesOf, reportOn, reportTarget } from '../dist/devices.js';
import { closeCompiler, graph, init, parseGraph, RlxError } from '../dist/index.js';
import { openGPU } from './rig/dawn.mjs';

const { lists, graphs } = JSON.parse(readFileSync(new URL('../../ir/irtest/cases/devices.json', import.meta.url), 'utf8'));
let gpu;
/** A WebGPU without adapters, and one whose adapter says that it is no software, and has other features. */
const none = { requestAdapter: async () => null };
const like = (info, more = {}) => ({ requestAdapter: async (options) => new Proxy(await gpu.requestAdapter(options), { get: (target, name) => name === 'info' ? info : more[name] ?? (typeof target[name] === 'function' ? target[name].bind(target) : target[name]) }) });

before(async () => {
  gpu = openGPU();
  await init({ compileWorker: false, worker: false, cache: false });
});
after(closeCompiler);

const model = () => graph('model', { inputs: { x: ['f32', ['batch', 8]] } }, (_, { x }) => ({ y: x.softmax(1).mul(2) }));
const large = (n) => graph('large', (b) => b.output('y', b.input('x', 'f32', [n]).exp()));

describe('lists of devices are those of Go', () => {
  for (const { list, kind, ...policy } of lists) {
    test(JSON.stringify(list), () => kind ? assert.throws(() => parsePolicy(list), { kind }) : assert.deepEqual({ ...parsePolicy(list) }, policy));
  }
});

describe('targets compute what Go says', () => {
  for (const { name, graph: lines, targets } of graphs) {
    for (const [target, rows] of Object.entries(targets)) {
      test(`${name}, ${target}`, async () => {
        const report = await reportTarget(parseGraph(`graph "main" {\n  ${lines.join('\n  ')}\n}\n`), target);
        assert.deepEqual(report.rows.map(({ op, level }) => [op, level]), rows.map(([op, level]) => [op, level]));
        for (const [i, { reason, level }] of report.rows.entries()) assert.ok(reason.includes(rows[i][2] ?? '') && !reason === (level !== 'unsupported'), reason);
        assert.equal(report.error?.kind, rows.some(([, level]) => level === 'unsupported') ? 'unsupported' : undefined);
        assert.deepEqual(report.unsupported, report.rows.filter(({ level }) => level === 'unsupported'));
      });
    }
  }
});

test('devices, and why one is missing', async () => {
  const [cpu, missing] = await devices({ gpu: none });
  assert.deepEqual([cpu.name, cpu.on, cpu.software, cpu.error], ['cpu', 'cpu', true, undefined]);
  assert.deepEqual([missing.name, missing.on, missing.error.kind], ['webgpu', 'gpu', 'device']);
  const [, software] = await devices({ gpu });
  assert.deepEqual([software.error, software.software], [undefined, true]);
  assert.ok(software.description.length > 5);
  const [, hard] = await devices({ gpu: like({ vendor: 'maker', architecture: 'chip' }) });
  assert.deepEqual([hard.description, hard.software], ['maker chip', false]);
});

test('a report has texts, and JSON as Go writes it', async () => {
  const report = await reportOn(model(), 'cpu'), bad = await reportOn(large(1 << 27), 'webgpu', { gpu });
  assert.match(`${report}`, /^cpu computes all 4 nodes: 3 native, 1 decomposed$/);
  assert.equal(report.rows[0].node, 'softmax f32[16,8]');
  assert.match(`${bad}`, /^webgpu cannot compute 1 of 1 nodes: 1 unsupported\n {2}large: exp f32\[134217728\]: .*takes 536870912 bytes/);
  const { rows, ...head } = JSON.parse(JSON.stringify(bad));
  assert.deepEqual([head.device, head.computes, rows[0].level, Object.keys(rows[0])], ['webgpu', false, 'unsupported', ['entry', 'node', 'level', 'reason']]);
  assert.deepEqual([bad.error.kind, bad.error.place.op], ['unsupported', 'exp']);
  assert.equal((await reportOn({ entries: { a: model(), b: model().text() }, symbols: { batch: 3 } }, 'cpu')).rows.filter(({ entry, node }) => entry === 'b' && node.includes('[3,8]')).length, 3);
});

test('a device that lacks the limits or the memory of a module refuses it as a whole', async () => {
  const limits = { maxStorageBuffersPerShaderStage: 8, maxBufferSize: 2 ** 40, maxStorageBufferBindingSize: 2 ** 31 };
  const beyond = await reportOn({ entries: { main: large(1 << 28) }, limits }, 'webgpu', { gpu: like({}, { limits: { maxStorageBufferBindingSize: 1 << 27, maxBufferSize: 1 << 28, maxStorageBuffersPerShaderStage: 8 } }) });
  assert.deepEqual([beyond.unsupported, beyond.error?.kind], [[], 'limit'], `${beyond}`);
  assert.match(`${beyond}`, /^webgpu refuses the module, and none of its 1 nodes: 1 native\n.*lacks maxStorageBufferBindingSize/);
  assert.equal(JSON.parse(JSON.stringify(beyond)).computes, false);
  const many = graph('many', (b) => { for (let i = 0; i < 6; i++) b.output(`y${i}`, b.input(`x${i}`, 'f32', [1 << 27]).exp()); });
  assert.equal((await reportOn(many, 'cpu')).error?.kind, 'memory'); // 6 GiB
});

test('the order is by kind, and by rates once all devices have them', async () => {
  const names = async (given) => (await devicesFor(model(), { gpu: given })).map(({ device }) => device.name);
  const fast = like({ vendor: 'maker', architecture: 'fast' });
  assert.deepEqual([await names(gpu), await names(fast), await names(none)], [['cpu', 'webgpu'], ['webgpu', 'cpu'], ['cpu']]);
  assert.deepEqual([(await fastest({ gpu })).name, (await fastest({ gpu: fast })).name], ['cpu', 'webgpu']);
  const [cpu, other] = await devices({ gpu: fast });
  assert.equal(await ratesOf(cpu), undefined);
  const rates = await calibrate('cpu');
  assert.ok(Object.values(rates).length === 5 && rates.operations > 1e7 && rates.bytes > 1e7 && rates.transfer > 1e6 && rates.call > 0 && rates.kernel >= 0, JSON.stringify(rates));
  assert.deepEqual(await ratesOf(cpu), rates);
  assert.equal(await names(fast).then(([first]) => first), 'webgpu', 'one device without rates');
  await calibrate('webgpu', { gpu: fast });
  assert.ok((await ratesOf(other)).operations < rates.operations);
  assert.deepEqual([await names(fast), (await fastest({ gpu: fast })).name], [['cpu', 'webgpu'], 'cpu'], 'a GPU in software is slower by its rates');
});

test('a policy chooses the first device that can compute the module', async (t) => {
  const chosen = async (list, module = model()) => (await chooseFor(module, { devices: list, gpu })).device.name;
  assert.equal(await chosen('webgpu,cpu'), 'webgpu');
  assert.equal(await chosen('cuda,webgpu,cpu'), 'webgpu');
  assert.equal(await chosen('webgpu,cpu', large(1 << 27)), 'cpu');
  assert.equal(await chosen({ prefer: ['webgpu'] }), 'webgpu');
  assert.equal(await chosen('-webgpu'), 'cpu');
  assert.equal(await chosen({ deny: ['cpu'] }), 'webgpu');
  process.env.RLX_DEVICE = 'webgpu,cpu';
  t.after(() => { delete process.env.RLX_DEVICE; });
  assert.equal((await chooseFor(model(), { gpu })).device.name, 'webgpu');
  assert.equal((await chooseFor(model(), { gpu, devices: 'cpu' })).device.name, 'cpu');
  const opened = await openFor({ entries: { model: model() }, symbols: { batch: 1 } }, { gpu });
  await opened.run('model', { x: new Float32Array(8) });
  assert.deepEqual([opened.device.name, [...await opened.read('y')]], ['webgpu', Array(8).fill(0.25)]);
  opened.close();
  process.env.RLX_DEVICE = ',';
  await assert.rejects(chooseFor(model()), { kind: 'name' });
});

describe('what is refused', () => {
  const cases = [
    ['an unknown device', () => reportOn(model(), 'abacus'), 'name', /abacus: there are cpu, webgpu/],
    ['a device of Go', () => reportOn(model(), 'cuda'), 'name', /cuda/],
    ['an unknown target', () => reportTarget(model(), 'spirv'), 'name', /spirv/],
    ['a GPU that is not there', () => reportOn(model(), 'webgpu', { gpu: none }), 'device', /no adapter/],
    ['to calibrate it', () => calibrate('webgpu', { gpu: none }), 'device', /no adapter/],
    ['a module that no device computes', () => chooseFor(large(1 << 29), { gpu, devices: 'webgpu,cpu' }), 'unsupported', /webgpu cannot compute .*; cpu cannot compute /],
    ['devices that are not there', () => chooseFor(model(), { gpu: none, devices: 'cuda,webgpu' }), 'device', /there is no device cuda.*; .*no adapter/],
    ['unknown devices alone', () => chooseFor(model(), { devices: 'cuda,tpu' }), 'name', /cuda.*tpu/],
    ['a policy without devices', () => chooseFor(model(), { devices: '-cpu,-webgpu' }), 'name', /denies every device/],
    ['a policy with another field', () => chooseFor(model(), { devices: { first: ['cpu'] } }), 'name', /first/],
    ['a policy with a text', () => chooseFor(model(), { devices: { only: 'cpu' } }), 'attr', /only/],
    ['an unknown option', () => devicesFor(model(), { on: 'gpu' }), 'name', /on/],
    ['where, twice', () => openFor({ entries: { model: model() } }, { devices: 'cpu', on: 'gpu' }), 'name', /on/],
    ['no module', () => reportOn(undefined, 'cpu'), 'missing', /entries/],
  ];
  for (const [name, call, kind, message] of cases) {
    test(name, () => assert.rejects(async () => call(), (error) => {
      assert.ok(error instanceof RlxError && error.kind === kind, `${error.kind}: ${error.message}`);
      assert.match(error.message, message);
      return true;
    }));
  }
});

test('openFor passes on the options of a program, such as the bound on its memory', async () => {
  const model = graph('m', { inputs: { x: ['f32', [4, 2]] }, params: { w: ['f32', [2, 2]] } }, (_, { x, w }) => ({ y: x.matmul(w) }));
  await assert.rejects(openFor({ entries: { model } }, { devices: 'cpu', memory: 100 }), { kind: 'memory', message: /may take 100/ });
});
