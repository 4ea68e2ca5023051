// Training in Chromium without WebGPU: on the CPU, in a worker, with the reason.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { closeShared, plainHost, shareChromium, watchLongTasks } from '../rig/chromium.mjs';
import { serve, strictCSP } from '../rig/serve.mjs';

const want = JSON.parse(readFileSync(new URL('../testdata/mlp_steps.json', import.meta.url), 'utf8'));
const html = '<!doctype html><html lang="en"><title>rlx</title><script type="module" src="/page.mjs"></script></html>';
const script = `
import { graph, init, parseGraph, program, train } from '/dist/index.js';
const { text, losses: { length: steps } } = ${JSON.stringify(want)};
const elements = (place, size) => Float32Array.from({ length: size }, (_, i) => (i * 7919 + place * 104729) % 1024 / 1024 - 0.5);
const inputs = { x: elements(0, 12), labels: Int32Array.of(0, 1, 2, 0) };
const params = { w1: elements(2, 15), b1: elements(3, 5), w2: elements(4, 15), b2: elements(5, 3) };
globalThis.train = async () => {
  await init();
  const trainer = await train(parseGraph(text), { optimizer: { kind: 'adam' }, schedule: { kind: 'constant', rate: 0.125 }, params });
  const losses = [];
  await trainer.run({ steps, batches: () => inputs, onProgress: (p) => losses.push(...p.losses) });
  const { fallbackReason, device } = trainer.program;
  trainer.program.close();
  return { losses, fallbackReason, device: device.description };
};
/** A convolutional network, whose compilation takes a while. */
const network = () => graph('network', (b) => {
  const x = b.input('x', 'f32', [8, 16, 16, 4]), labels = b.input('labels', 'i32', [8]);
  const first = x.conv2d(b.param('filter1', 'f32', [3, 3, 4, 16]), undefined, { padLo: [1, 1], padHi: [1, 1] }).relu().maxPool({ sizes: [2, 2] });
  const second = first.conv2d(b.param('filter2', 'f32', [3, 3, 16, 16]), undefined, { padLo: [1, 1], padHi: [1, 1] }).relu();
  b.output('loss', second.reshape([8, -1]).linear(b.param('w', 'f32', [1024, 10]), b.param('b', 'f32', [10])).crossEntropyMean(labels));
});
globalThis.longTrain = async (ownGPU) => {
  await init(ownGPU ? { gpu: navigator.gpu } : {});
  const given = { x: new Float32Array(8 * 16 * 16 * 4).fill(0.5), labels: new Int32Array(8) };
  await new Promise((done) => setTimeout(done, 200)); // the cost of loading is reported by then
  rigLongTasks.length = 0;
  const begun = performance.now();
  const trainer = await train(network(), { optimizer: { kind: 'adam' }, rate: 1e-3 });
  await trainer.run({ steps: 20, batches: () => given });
  const { fallbackReason } = trainer.program;
  const elapsed = performance.now() - begun;
  trainer.program.close();
  await new Promise((done) => setTimeout(done, 200));
  return { fallbackReason, busy: rigLongTasks.reduce((sum, { duration }) => sum + duration, 0) / elapsed };
};
globalThis.evaluate = async (worker) => {
  const made = await program({ entries: { loss: text } }, { on: 'cpu', worker });
  for (const name in params) await made.write(name, params[name]);
  const { reading } = await made.run('loss', inputs, { read: ['loss'] });
  const { loss } = (await reading).values;
  made.close();
  return { loss: loss[0], fallbackReason: made.fallbackReason };
};
globalThis.ready = true;
`;

let server;
before(async () => {
  server = await serve({
    '/': { body: html, type: 'text/html' }, '/page.mjs': { body: script }, '/dist': new URL('../../dist', import.meta.url).pathname, '/favicon.ico': { body: '' },
  }, { csp: strictCSP, hosts: [plainHost] });
});
after(() => Promise.all([server.close(), closeShared()]));

async function open(t, webgpu) {
  const browser = await shareChromium({ webgpu });
  t.after(() => browser.close());
  const page = await browser.open(`${server.origin}/`);
  await page.waitForFunction(() => globalThis.ready);
  server.requests.length = 0;
  return page;
}

const requested = (name) => server.requests.filter((path) => path.endsWith(`/${name}`)).length;

for (const [webgpu, reason] of [['absent', /WebGPU is not here/], ['no adapter', /no adapter/]]) {
  test(`with WebGPU ${webgpu}, training is on the CPU and reports why`, async (t) => {
    const page = await open(t, webgpu);
    const { losses, fallbackReason, device } = await page.evaluate(() => globalThis.train());
    assert.match(fallbackReason, reason);
    assert.match(device, /CPU/);
    assert.equal(losses.length, want.losses.length);
    losses.forEach((loss, i) => assert.ok(Math.abs(loss - want.losses[i]) < 1e-4, `step ${i}: ${loss} instead of ${want.losses[i]}`));
    assert.deepEqual([requested('compiler-worker.js'), requested('worker.js')], [1, 1]);
    assert.deepEqual(page.problems, []);
  });
}

test('a program on the text of graphs that asks for the CPU is there, in a worker or not', async (t) => {
  const page = await open(t, 'swiftshader');
  for (const worker of [true, false]) {
    const { loss, fallbackReason } = await page.evaluate((worker) => globalThis.evaluate(worker), worker);
    assert.ok(Math.abs(loss - want.losses[0]) < 1e-5);
    assert.equal(fallbackReason, undefined);
  }
  assert.deepEqual([requested('rlx.wasm'), requested('compiler-worker.js'), requested('worker.js')], [1, 1, 1]);
  assert.deepEqual(page.problems, []);
});

for (const ownGPU of [false, true]) {
  test(`training beside a GPU of software${ownGPU ? ' of the page' : ''} is on the CPU, in a worker: the page stays free`, async (t) => {
    const browser = await shareChromium({ webgpu: 'swiftshader' });
    t.after(() => browser.close());
    const page = await browser.open();
    await watchLongTasks(page);
    await page.goto(`${server.origin}/`);
    await page.waitForFunction(() => globalThis.ready);
    server.requests.length = 0;
    const { fallbackReason, busy } = await page.evaluate((own) => globalThis.longTrain(own), ownGPU);
    assert.match(fallbackReason, /software/);
    // Building the graph takes a moment of the page; compiling and running it, seconds, must not.
    assert.ok(busy < 0.4, `long tasks take ${Math.round(100 * busy)} % of the time`);
    assert.deepEqual([requested('compiler-worker.js'), requested('worker.js')], [1, 1]);
    assert.deepEqual(page.problems, []);
  });
}
