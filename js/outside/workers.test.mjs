// The compile service in Go, wasm/edge/workers, in workerd: its plans are those of the compiler here. `make workers` builds it.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { closeCompiler, compile, graph, init } from '../dist/index.js';
import { serveWorker, used } from './workerd.mjs';

const built = new URL('../../build/workers', import.meta.url).pathname, files = ['worker.mjs', 'runtime.mjs', 'wasm_exec.js', 'app.wasm'];

let worker;
before(async () => {
  await init({ compileWorker: false, worker: false });
  worker = await serveWorker(built, Object.fromEntries(files.map((name) => [name, name])));
});
after(() => {
  closeCompiler();
  worker?.child.kill();
});

const post = (body, headers) => fetch(`${worker.origin}/v1/plans`, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) });

test('the worker in Go answers with the plan of the compiler, whatever its client can unpack, and with problems', async (t) => {
  const made = graph('model', { inputs: { x: ['f32', [4, 3]] }, params: { w: ['f32', [3, 2]] } }, (_, { x, w }) => ({ loss: x.matmul(w).square().mean() }));
  const step = { optimizer: { kind: 'adamw', weightDecay: 0.1 }, history: 8 }, targets = ['webgpu', 'wasm'];
  const want = await compile({ name: 'model', entries: { step: made.step(step) }, targets }), request = { name: 'model', entries: [{ name: 'step', text: made.text(), step }], targets };
  for (const encoding of ['gzip', 'gzip, br', 'identity']) {
    const start = performance.now(), response = await post(request, { 'accept-encoding': encoding }), body = new Uint8Array(await response.arrayBuffer());
    t.diagnostic(`${encoding}: ${(performance.now() - start).toFixed(0)} ms`);
    assert.equal(response.status, 200);
    assert.deepEqual(body, new Uint8Array(want), encoding);
    assert.match(response.headers.get('location'), /^\/v1\/plans\/[\da-f]{64}$/);
  }
  const refused = await post({ entries: [] });
  assert.equal(refused.headers.get('content-type'), 'application/problem+json');
  assert.equal((await refused.json()).status, refused.status);
});

test('many graphs take bounded memory', async (t) => {
  const rounds = 100, begun = used(worker.child);
  for (let n = 1; n <= rounds; n++) {
    const made = graph('model', { inputs: { x: ['f32', [n + 10, 3]] }, params: { w: ['f32', [3, 2]] } }, (_, { x, w }) => ({ loss: x.matmul(w).square().mean() }));
    const response = await post({ entries: [{ name: 'g', text: made.text() }] });
    await response.arrayBuffer();
    assert.equal(response.status, 200);
  }
  const { cpu, mb } = used(worker.child);
  t.diagnostic(`${rounds} graphs: ${((cpu - begun.cpu) / rounds).toFixed(1)} ms of the processor each, memory ${begun.mb | 0} MB before and ${mb | 0} MB after`);
  assert.ok(mb < begun.mb + 128, `${mb} MB, after ${begun.mb}`);
});
