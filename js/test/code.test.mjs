// Plans for the CPU are code: modules without the kernels are refused, and kernels that do not
// return can be stopped.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker as Thread } from 'node:worker_threads';
import { compile, decodePlan, graph, init, openProgram } from '../dist/index.js';
import { seal } from './linear.mjs';

let file;
before(async () => {
  await init();
  const sum = graph('sum', (b) => b.output('y', b.input('x', 'f32', [4]).mul(b.input('s', 'f32', [])).mean()));
  file = await compile({ entries: { main: sum }, target: 'wasm' });
});

const i32 = 0x7f;
const vector = (items) => [items.length, ...items.flat()];
const text = (s) => vector([...Buffer.from(s)]);
const section = (id, content) => [id, content.length, ...content];

/** A module of functions that are exported by name and have some parameters, results and code. */
function moduleOf(functions, exports = functions.map(({ name }, i) => [...text(name), 0, i])) {
  return Uint8Array.from([
    0, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
    ...section(1, vector(functions.map(({ params, results = [] }) => [0x60, ...vector(params), ...vector(results)]))),
    ...section(2, vector([[...text('rlx'), ...text('memory'), 2, 1, 0, 0x80, 0x80, 4]])),
    ...section(3, vector(functions.map((_, i) => i))),
    ...section(7, vector(exports)),
    ...section(10, vector(functions.map(({ code = [] }) => vector([0, ...code, 0x0b])))),
  ]);
}

/** The plan with another module. */
function withCode(code) {
  const bytes = Buffer.from(file), at = bytes.indexOf('CODE'), end = at + 12 + bytes.readUInt32LE(at + 8), pad = Buffer.alloc(-code.length & 3);
  const u32 = (n) => Buffer.from(Uint32Array.of(n).buffer);
  return seal(new Uint8Array(Buffer.concat([bytes.subarray(0, at + 8), u32(4 + code.length), u32(code.length), code, pad, bytes.subarray(end + (-end & 3))])));
}

/** A function for each kernel of the plan, with what a change makes of it. */
function kernels(change = (one) => one) {
  const { kernels, entries: [{ steps }] } = decodePlan(file);
  return steps.map(({ kernel, groups, bindings }) => {
    const { source: name, scalarBytes, counters } = kernels[kernel];
    return change({ name, params: Array(bindings.length + Number(scalarBytes > 0) + counters + (groups[0] > 1 ? 3 : 0)).fill(i32) });
  });
}

const open = (code, options) => openProgram(withCode(code), { on: 'cpu', ...options });

test('a module of functions that do nothing is a plan', async () => {
  const program = await open(moduleOf(kernels()));
  await program.run('main', { x: new Float32Array(4), s: 1 });
  assert.deepEqual([...await program.read('y')], [0]);
  program.close();
});

for (const [what, code] of Object.entries({
  'fewer parameters': () => moduleOf(kernels(({ name, params }) => ({ name, params: params.slice(1) }))),
  'more parameters': () => moduleOf(kernels(({ name, params }) => ({ name, params: [...params, i32] }))),
  'another name': () => moduleOf(kernels(({ params }) => ({ name: 'other', params }))),
  'a memory in its place': () => moduleOf(kernels(), kernels().map(({ name }) => [...text(name), 2, 0])),
})) test(`a kernel with ${what} is refused before it is called`, async () => {
  await assert.rejects(open(code()), { name: 'RlxError', kind: 'plan', message: /rule 45/ });
});

test('what is no module, or fails, is an error of ours', async () => {
  await assert.rejects(open(Uint8Array.of(1, 2, 3, 4)), { name: 'RlxError', kind: 'device' });
  const trap = await open(moduleOf(kernels((one) => ({ ...one, code: [0] }))));
  await assert.rejects(trap.run('main', { x: new Float32Array(4), s: 1 }), { name: 'RlxError', kind: 'wasm' });
});

/** A thread with the face of a browser's Worker. */
class BrowserWorker {
  static ended = 0;
  constructor(url) {
    this.thread = new Thread(new URL(`data:text/javascript,${encodeURIComponent(`
      import { parentPort } from 'node:worker_threads';
      globalThis.addEventListener = (type, listener) => parentPort.on('message', (data) => listener({ data }));
      globalThis.postMessage = (message, transfer) => parentPort.postMessage(message, transfer);
      await import(${JSON.stringify(url.href)});
    `)}`));
    this.thread.on('exit', () => BrowserWorker.ended++);
  }
  postMessage(message, transfer) { this.thread.postMessage(message, transfer); }
  addEventListener(type, listener, { signal }) {
    const heard = (data) => listener(type === 'error' ? { message: data.message } : { data });
    this.thread.on(type, heard);
    signal.addEventListener('abort', () => this.thread.off(type, heard));
  }
  terminate() { this.thread.terminate(); }
}

test('a run that does not return ends with its program, in a worker', async (t) => {
  const before = globalThis.Worker;
  globalThis.Worker = BrowserWorker;
  t.after(() => { globalThis.Worker = before; });
  const endless = [0x03, 0x40, 0x0c, 0, 0x0b]; // loop br 0 end
  const program = await open(moduleOf(kernels((one) => ({ ...one, code: endless }))), { worker: true });
  const run = program.run('main', { x: new Float32Array(4), s: 1 });
  assert.equal(await Promise.race([run, sleep(100, 'under way')]), 'under way');
  program.close();
  await assert.rejects(run, { name: 'RlxError', kind: 'closed' });
  for (let i = 0; i < 100 && !BrowserWorker.ended; i++) await sleep(50);
  assert.equal(BrowserWorker.ended, 1, 'the thread goes on');
});

