// The compile service in workerd, by the packed package: its plans are those of the compiler here,
// and its memory is bounded.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { closeCompiler, compile, graph, init, program } from '../dist/index.js';
import { installPacked } from '../test/rig/package.mjs';
import { files } from './readme.mjs';
import { serveWorker, used } from './workerd.mjs';

/** How many graphs are compiled in a row. */
const rounds = 1000;

let project, child, origin;
before(async () => {
  await init({ compileWorker: false, worker: false });
  project = await installPacked({ 'main.mjs': files['edge.mjs'] });
  await project.esbuild('main.mjs', '--bundle', '--format=esm', '--external:*.wasm', '--external:node:*', '--outdir=bundled', '--out-extension:.js=.mjs', '--log-level=error');
  ({ child, origin } = await serveWorker(project.folder, { 'main.mjs': 'bundled/main.mjs', 'rlx.wasm': 'node_modules/@rlx-go/rlx/dist/rlx.wasm' }));
});
after(async () => {
  closeCompiler();
  child?.kill();
  await project?.remove();
});

const model = (n) => graph('model', { inputs: { x: ['f32', [n, 3]] }, params: { w: ['f32', [3, 2]] } }, (_, { x, w }) => ({ loss: x.matmul(w).square().mean() }));
const post = (body, signal) => fetch(`${origin}/v1/plans`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body), signal });

test('a plan is that of the compiler, and is kept by its hash', async (t) => {
  const step = { optimizer: { kind: 'adamw', weightDecay: 0.1 }, history: 8 }, made = model(4);
  const want = await compile({ name: 'model', entries: { step: made.step(step) }, targets: ['webgpu', 'wasm'] });
  const start = used(child).cpu, request = { name: 'model', entries: [{ name: 'step', text: made.text(), step }], targets: ['webgpu', 'wasm'], limits: { maxComputeInvocationsPerWorkgroup: 300 } };
  const first = await post(request), between = used(child).cpu, second = await post(request), end = used(child).cpu;
  for (const response of [first, second]) {
    assert.equal(response.status, 200);
    assert.deepEqual(new Uint8Array(await response.arrayBuffer()), new Uint8Array(want));
  }
  t.diagnostic(`the processor: ${between - start} ms for the first, with the start of the compiler, and ${end - between} ms for the one that is kept`);
  const again = await fetch(origin + first.headers.get('location'));
  assert.match(again.headers.get('cache-control'), /immutable/);
  assert.equal(again.headers.get('access-control-allow-origin'), '*');
  assert.deepEqual(new Uint8Array(await again.arrayBuffer()), new Uint8Array(want));
  assert.equal((await fetch(origin + first.headers.get('location'), { headers: { 'if-none-match': again.headers.get('etag') } })).status, 304);
});

test('what does not fit is a problem', async () => {
  const text = model(4).text();
  for (const [body, status, kind] of [
    [{ entries: [] }, 422, 'attr'], [{ entries: [null] }, 400, 'syntax'], [{ entries: [{ name: 'g', text }], targets: ['wasm', 'wasm'] }, 422, 'name'],
    [{ entries: [{ name: 'g', text: 'graph (' }] }, 400, 'syntax'],
    [{ entries: [{ name: 'g', text: ' '.repeat(2 << 20) }] }, 413, 'limit'], [{ entries: [{ name: 'g', text }], targets: ['vulkan'] }, 422, 'name'],
    [{ entries: [{ name: 'g', text, step: { optimizer: { kind: 'magic' } } }] }, 422, 'name'],
  ]) {
    const response = await post(body), problem = await response.json();
    assert.deepEqual([response.status, problem.status, problem.kind, problem.type, response.headers.get('content-type')], [status, status, kind, `urn:rlx:${kind}`, 'application/problem+json'], JSON.stringify(problem));
  }
  assert.equal((await fetch(`${origin}/v1/plans/00`)).status, 404);
  assert.equal((await fetch(`${origin}/v1/plans/${'0'.repeat(64)}`, { method: 'HEAD' })).status, 404);
  assert.equal((await fetch(origin, { method: 'PUT' })).status, 404);
});

test('a long body in parts takes no memory', async () => {
  const begun = used(child), megabyte = new Uint8Array(1 << 20).fill(32);
  let parts = 0;
  const body = new ReadableStream({ pull(controller) { if (parts++ < 200) controller.enqueue(megabyte); else controller.close(); } });
  const answer = await fetch(`${origin}/v1/plans`, { method: 'POST', headers: { 'content-type': 'application/json' }, body, duplex: 'half' }).catch((error) => error);
  if (!(answer instanceof Error)) assert.equal(answer.status, 413); // or the connection is closed while the body is sent
  const { mb } = used(child);
  assert.ok(mb < begun.mb + 64, `${mb} MB, after ${begun.mb}`);
  assert.equal((await post({ entries: [{ name: 'g', text: model(5).text() }] })).status, 200, 'it answers others');
});

test('many graphs take bounded memory', async (t) => {
  const begun = used(child);
  for (let n = 1; n <= rounds; n++) assert.equal((await post({ entries: [{ name: 'g', text: model(n + 10).text() }] })).status, 200);
  const { cpu, mb } = used(child);
  t.diagnostic(`${rounds} graphs: ${((cpu - begun.cpu) / rounds).toFixed(1)} ms of the processor each, memory ${begun.mb | 0} MB before and ${mb | 0} MB after`);
  assert.ok(mb < begun.mb + 128, `${mb} MB, after ${begun.mb}`);
});

test('of 200 requests at once, half of which are given up, the others are answered, and so are those after them', async (t) => {
  const begun = used(child), statuses = {};
  await Promise.all(Array.from({ length: 200 }, async (_, n) => {
    const signal = n % 2 ? AbortSignal.timeout(n) : undefined;
    const answer = await post({ entries: [{ name: 'g', text: model(n + 5000).text() }] }, signal).then(async (response) => {
      await response.arrayBuffer();
      return response.status;
    }, (error) => error.name);
    statuses[answer] = (statuses[answer] ?? 0) + 1;
    if (!signal) assert.ok(answer === 200 || answer === 503, `request ${n}: ${answer}`);
  }));
  assert.ok(statuses[200] > 0 && statuses.TimeoutError > 0, JSON.stringify(statuses));
  assert.equal((await post({ entries: [{ name: 'g', text: model(9999).text() }] })).status, 200);
  const { mb } = used(child);
  t.diagnostic(`${JSON.stringify(statuses)}, memory ${begun.mb | 0} MB before and ${mb | 0} MB after`);
  assert.ok(mb < begun.mb + 128, `${mb} MB, after ${begun.mb}`);
});

test('compileAt asks it, and loads no compiler', async () => {
  const text = graph('double', (b) => b.output('y', b.input('x', 'f32', [2]).mul(2))).text();
  closeCompiler();
  await init({ wasm: 'file:///nowhere.wasm', compileAt: origin, lazy: true, worker: false });
  const s = await program({ entries: { main: text } }, { on: 'cpu' }), { reading } = await s.run('main', { x: Float32Array.of(1, 2) }, { read: ['y'] });
  assert.deepEqual([...(await reading).values.y], [2, 4]);
  s.close();
  await assert.rejects(compile({ entries: { main: text.replace('mul', 'mule') } }), (error) => error.kind !== 'wasm');
  await init({ compileAt: 'http://127.0.0.1:1', lazy: true, worker: false });
  await assert.rejects(compile({ entries: { main: text } }), { kind: 'wasm', message: /does not compile/ });
});
