// Firefox and WebKit: training, threads and the conformance suite on the CPU, and in Firefox on
// WebGPU too, where another compiler (Naga) than Chromium's compiles kernels.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { suiteFolder } from '../conformance-suite.mjs';
import { missing, visit } from '../rig/browsers.mjs';
import { quickLavapipe } from '../rig/dawn.mjs';
import { isolation, strictCSP } from '../rig/serve.mjs';

const folder = (path) => fileURLToPath(new URL(path, import.meta.url));
const mounts = { '/dist': folder('../../dist'), '/test': folder('..'), '/suite': fileURLToPath(suiteFolder) };
const want = JSON.parse(readFileSync(new URL('../testdata/mlp_steps.json', import.meta.url), 'utf8'));

const training = (options) => `
import { init, parseGraph, train } from '/dist/index.js';
const { text, losses: { length: steps } } = ${JSON.stringify(want)};
const elements = (place, size) => Float32Array.from({ length: size }, (_, i) => (i * 7919 + place * 104729) % 1024 / 1024 - 0.5);
const params = { w1: elements(2, 15), b1: elements(3, 5), w2: elements(4, 15), b2: elements(5, 3) };
const inputs = { x: elements(0, 12), labels: Int32Array.of(0, 1, 2, 0) };
async function run(options) {
  const trainer = await train(parseGraph(text), { optimizer: { kind: 'adam' }, schedule: { kind: 'constant', rate: 0.125 }, params, ...options }), losses = [];
  await trainer.run({ steps, batches: () => inputs, onProgress: (p) => losses.push(...p.losses) });
  const { fallbackReason, device } = trainer.program;
  trainer.program.close();
  return { losses, fallbackReason, device: device.description };
}
export default async () => {
  await init();
  return [await run({ ...${JSON.stringify(options)}, worker: true }), await run({ ...${JSON.stringify(options)}, worker: false })];
};
`;

function check({ value, problems }, { device, reason }) {
  for (const { losses, fallbackReason, device: found } of value) {
    assert.equal(losses.length, want.losses.length);
    losses.forEach((loss, i) => assert.ok(Math.abs(loss - want.losses[i]) < 1e-4, `step ${i}: ${loss} instead of ${want.losses[i]}`));
    assert.match(found, device);
    if (reason) assert.match(fallbackReason, reason);
    else assert.equal(fallbackReason, undefined);
  }
  assert.deepEqual(problems, []);
}

const threads = `
import { graph, init, program } from '/dist/index.js';
const n = 256, numbers = (seed) => Float32Array.from({ length: n * n }, (_, i) => Math.sin(i * seed));
export default async () => {
  await init();
  const made = graph('product', (b) => b.output('y', b.input('x', 'f32', [n, n]).matmul(b.param('w', 'f32', [n, n])).softmax(-1)));
  const s = await program({ entries: { main: made } }, { on: 'cpu' });
  await s.write('w', numbers(0.71));
  const { reading } = await s.run('main', { x: numbers(0.37) }, { read: ['y'] }), { y } = (await reading).values;
  s.close();
  return { isolated: crossOriginIsolated, cores: navigator.hardwareConcurrency, y: [...new Uint32Array(y.buffer, y.byteOffset, n * n)].join() };
};
`;

/** A page that runs every nth of the modules whose plans have at most the given bytes. */
const conformance = (on, most = Infinity, nth = 1) => `
import { runConformance } from '/test/conformance.mjs';
export default async () => {
  const load = async (name) => (await fetch('/suite/' + name)).arrayBuffer();
  const adapter = ${on === 'gpu'} && await navigator.gpu.requestAdapter();
  const device = adapter ? await adapter.requestDevice({ requiredFeatures: ['shader-f16'] }) : undefined;
  return runConformance({ device, load, select: ({ bytes }, i) => bytes <= ${most} && i % ${nth} === 0 });
};
`;

function checkConformance({ value: { passed, failures, skipped, deviating }, problems }, least) {
  assert.deepEqual(failures, []);
  assert.deepEqual(skipped, []);
  assert.equal(deviating, 0);
  assert.ok(passed >= least, `only ${passed} results`);
  assert.deepEqual(problems, []);
}

for (const name of ['firefox', 'webkit']) {
  const skip = missing(name);

  test(`${name} trains on the CPU, and says why`, { skip }, async (t) => {
    check(await visit(t, name, { module: training({}), mounts, csp: strictCSP }), { device: /^CPU$/, reason: /WebGPU is not here/ });
  });

  test(`${name} computes with threads what it does with one`, { skip }, async (t) => {
    const module = threads, shared = await visit(t, name, { module, mounts, csp: strictCSP, headers: isolation }), alone = await visit(t, name, { module, mounts, csp: strictCSP });
    const started = ({ requests }) => requests.filter((path) => path.endsWith('/worker.js')).length - 1; // in addition to the program's
    assert.deepEqual([shared.value.isolated, alone.value.isolated], [true, false]);
    assert.ok(started(shared) > 0 && started(shared) < shared.value.cores, `${started(shared)} threads`);
    assert.equal(started(alone), 0);
    assert.equal(shared.value.y, alone.value.y);
    assert.deepEqual([...shared.problems, ...alone.problems], []);
  });

  test(`${name} passes the conformance suite on the CPU`, { skip }, async (t) => {
    checkConformance(await visit(t, name, { module: conformance('cpu'), mounts, csp: strictCSP }), 5300);
  });
}
test('webkit computes with one thread where an isolated page has no shared memory', { skip: missing('webkit') }, async (t) => {
  const { value, requests, problems } = await visit(t, 'webkit', { module: threads, mounts, csp: strictCSP, headers: isolation, sharedMemory: false });
  assert.ok(value.isolated && value.y);
  assert.equal(requests.filter((path) => path.endsWith('/worker.js')).length, 1, 'the program has a worker, and no thread');
  assert.deepEqual(problems, []);
});

test('firefox trains on WebGPU', { skip: missing('firefox') }, async (t) => {
  check(await visit(t, 'firefox', { module: training({ on: 'gpu' }), mounts, csp: strictCSP, webgpu: true, env: quickLavapipe }), { device: /^WebGPU$/ });
});

// Of the suite a third of the small plans: on lavapipe all of it takes minutes (`make conformance`). Native WebGPU runs
// every sample by the same compiler.
test('firefox passes the conformance suite on WebGPU, f16 included', { skip: missing('firefox') }, async (t) => {
  const whole = process.env.RLX_CONFORMANCE === 'whole', module = whole ? conformance('gpu', 32 << 10) : conformance('gpu', 3 << 10, 3);
  checkConformance(await visit(t, 'firefox', { module, mounts, csp: strictCSP, webgpu: true, env: quickLavapipe, seconds: whole ? 1200 : 240 }), whole ? 4300 : 150);
});
