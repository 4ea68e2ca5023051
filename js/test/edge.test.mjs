// The compile service on this thread: what an attacker sends is refused before it takes memory or time.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, test } from 'node:test';
import { closeCompiler, graph, init } from '../dist/index.js';
import { edge } from '../dist/edge.js';

const wasm = await WebAssembly.compile(readFileSync(new URL('../dist/rlx.wasm', import.meta.url)));
await init({ wasm, worker: false, compileWorker: false, cache: false });
const text = graph('double', (b) => b.output('y', b.input('x', 'f32', [2]).mul(2))).text();
after(closeCompiler);

const address = 'https://edge.test/v1/plans', headers = { 'content-type': 'application/json' };
const post = (service, body) => service.fetch(new Request(address, { method: 'POST', headers, body: typeof body === 'string' || body instanceof ReadableStream ? body : JSON.stringify(body), duplex: 'half' }));
const request = (name = 'g') => ({ entries: [{ name, text }] });

/** A response's status and the kind of its problem. */
async function refusal(response) {
  const { kind, status } = await response.json();
  assert.equal(status, response.status);
  return [status, kind];
}

test('a service without options is refused', () => {
  for (const options of [undefined, null, 'rlx.wasm']) assert.throws(() => edge(options), { name: 'RlxError', kind: 'missing', message: /the options of edge/ });
});

test('a body without a length is read no further than it may be', async () => {
  let parts = 0;
  const endless = new ReadableStream({ pull(controller) { parts++; controller.enqueue(new Uint8Array(1000).fill(32)); } });
  assert.deepEqual(await refusal(await post(edge({ wasm, maxBody: 10_000 }), endless)), [413, 'limit']);
  assert.ok(parts < 20, `${parts} parts were read`);
  assert.deepEqual(await refusal(await post(edge({ wasm, maxBody: 100 }), `{"name": "${'ä'.repeat(60)}"}`)), [413, 'limit'], 'bytes count, not letters');
});

test('a body that is packed is refused', async () => {
  const refused = await edge({ wasm }).fetch(new Request(address, { method: 'POST', headers: { ...headers, 'content-encoding': 'gzip' }, body: '{}' }));
  assert.equal(refused.headers.get('accept-encoding'), 'identity');
  assert.deepEqual(await refusal(refused), [415, 'syntax']);
});

test('a body that does not come, or breaks off, is refused, and its stream is cancelled', async () => {
  let cancelled = 0;
  const slow = new ReadableStream({ start(controller) { controller.enqueue(new TextEncoder().encode('{"entries": [')); }, cancel() { cancelled++; return new Promise(() => {}); } });
  assert.deepEqual(await refusal(await post(edge({ wasm, bodyTime: 20 }), slow)), [408, 'timeout']);
  assert.equal(cancelled, 1);
  const broken = new ReadableStream({ pull(controller) { controller.error(new Error('the connection is gone')); } });
  assert.deepEqual(await refusal(await post(edge({ wasm }), broken)), [400, 'syntax']);
});

test('the time for a body does not end a request while it is compiled', async () => {
  const store = { get: () => new Promise((resolve) => setTimeout(resolve, 100)), set() {}, clear() {} };
  assert.equal((await post(edge({ wasm, bodyTime: 20, store }), request('slow'))).status, 200);
});

test('a text is refused for its length before it is derived, and for its steps', async () => {
  const service = edge({ wasm, maxNodes: 20 });
  assert.deepEqual(await refusal(await post(service, { entries: [{ name: 'g', text: `${text}${'\n'.repeat(30)}` }] })), [413, 'limit']);
  assert.equal((await post(service, request())).status, 200);
});

test('constants that attributes describe are refused before they are computed', async () => {
  const window = (length) => `graph "w" {\n  %0 = window() {kind="kaiser" length=${length} symmetric=false beta=3 dtype=f32} : f32[${length}]\n  output "y" = %0\n}`;
  const refused = await post(edge({ wasm }), { entries: [{ name: 'w', text: window(1 << 24) }] });
  assert.deepEqual(await refusal(refused), [413, 'limit']);
  assert.equal((await post(edge({ wasm }), { entries: [{ name: 'w', text: window(64) }] })).status, 200);
});

test('requests beyond those that may wait are refused, and others are answered in turn', async () => {
  const names = ['a', 'b', 'c', 'd', 'e'];
  let asked = 0, open;
  const all = new Promise((resolve) => { open = resolve; });
  // None is compiled before all are here.
  const get = async () => {
    if (++asked === names.length) open();
    await all;
  };
  const service = edge({ wasm, maxWaiting: 2, store: { get, set() {}, clear() {} } });
  const responses = await Promise.all(names.map((name) => post(service, request(name))));
  // Their hashes are computed by threads, so that any of them may be the last.
  assert.deepEqual(responses.map(({ status }) => status).sort(), [200, 200, 200, 503, 503]);
  const at = responses.findIndex(({ status }) => status === 503);
  assert.equal(responses[at].headers.get('retry-after'), '1');
  assert.deepEqual(await refusal(responses[at]), [503, 'busy']);
  assert.equal((await post(service, request(names[at]))).status, 200, 'afterwards there is room');
});

test('the same request of several at once is compiled once', async () => {
  const kept = new Map(), set = [], store = { get: (key) => kept.get(key), set(key, value) { set.push(key); kept.set(key, value); }, clear() {} };
  const service = edge({ wasm, store }), responses = await Promise.all(Array.from({ length: 4 }, () => post(service, request('same'))));
  assert.deepEqual(responses.map(({ status }) => status), [200, 200, 200, 200]);
  assert.equal(set.filter((key) => key.startsWith('plan-')).length, 1);
});

test('all bodies together are bounded, and those of requests that have ended do not count', async () => {
  const service = edge({ wasm, maxBodies: 2000, bodyTime: 60_000 });
  let end;
  const slow = new ReadableStream({
    start(controller) {
      controller.enqueue(new Uint8Array(1900).fill(32));
      end = () => controller.error(new Error('the connection is gone'));
    },
  });
  const first = post(service, slow);
  await new Promise((resolve) => setTimeout(resolve, 50)); // its beginning is received
  assert.deepEqual(await refusal(await post(service, request())), [503, 'busy']);
  end();
  assert.deepEqual(await refusal(await first), [400, 'syntax']);
  for (let i = 0; i < 30; i++) assert.equal((await post(service, request())).status, 200);
});

test('a store is asked for hashes alone', async () => {
  const asked = [], store = { get(key) { asked.push(key); }, set() {}, clear() {} }, service = edge({ wasm, store });
  for (const hash of ['00', '..%2F..%2Fsecret', 'A'.repeat(64)]) assert.deepEqual(await refusal(await service.fetch(new Request(`${address}/${hash}`))), [404, 'missing']);
  assert.deepEqual(asked, []);
  assert.equal((await service.fetch(new Request(`${address}/${'a'.repeat(64)}`, { method: 'HEAD' }))).status, 404);
  assert.deepEqual(asked, [`plan-${'a'.repeat(64)}`]);
});

test('after a restart a plan has the hash that it had', async () => {
  const [before, again] = [await post(edge({ wasm }), request()), await post(edge({ wasm }), request())];
  assert.equal(before.headers.get('location'), again.headers.get('location'));
});
