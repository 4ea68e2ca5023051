// A program in another thread, over Dawn: Node's worker is made to look like a browser's.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Worker as Thread } from 'node:worker_threads';
import { liveTensors, openProgram, Trainer } from '../dist/runtime.js';
import { decodeSafetensors, encodeSafetensors } from '../dist/safetensors.js';
import { batch, close, linearPlan, linearPlanWith, reference } from './linear.mjs';

const body = `
import { parentPort } from 'node:worker_threads';
const { openGPU } = await import(${JSON.stringify(new URL('rig/dawn.mjs', import.meta.url).href)});
globalThis.navigator = { gpu: openGPU() };
globalThis.addEventListener = (type, listener) => parentPort.on('message', (data) => listener({ data }));
globalThis.postMessage = (message, transfer) => parentPort.postMessage(message, transfer);
await import(${JSON.stringify(new URL('../dist/worker.js', import.meta.url).href)});
`;

/** A thread with the face of a Worker. */
class BrowserWorker {
  listeners = new Set();
  constructor(script = body) { this.thread = new Thread(new URL(`data:text/javascript,${encodeURIComponent(script)}`)); }
  postMessage(message, transfer) { this.thread.postMessage(message, transfer); }
  addEventListener(type, listener, { signal }) {
    const heard = (data) => listener(type === 'error' ? { message: data.message } : { data });
    this.listeners.add(heard);
    this.thread.on(type, heard);
    signal.addEventListener('abort', () => {
      this.thread.off(type, heard);
      this.listeners.delete(heard);
    });
  }
  terminate() { this.thread.terminate(); }
}

let worker;
before(() => { worker = new BrowserWorker(); });
// Dawn in Node ends the process when a thread goes while the GPU still owes it an answer.
after(async () => {
  await new Promise((resolve) => setTimeout(resolve, 1500));
  worker.terminate();
});

test('a program in a worker has the same methods and gives the same values', async () => {
  const program = await openProgram(linearPlan(), { worker }), want = reference();
  assert.equal(program.plan.kernels[0].name, 'init');
  assert.match(program.device.description, /\w/);
  assert.equal((await program.run('init')).step, 1);
  for (let i = 0; i < 10; i++) {
    const { reading } = await program.run('step', { ...batch(i), rate: 0.2 }, { read: ['loss'] });
    assert.ok(close((await reading).values.loss, [want.step(batch(i), Math.fround(0.2))]));
  }
  assert.equal(program.steps, 11);
  const before = liveTensors(), kept = await program.keep('w');
  assert.ok(close(await kept.data(), want.w));
  await program.write('w', Float32Array.of(1, 2, 3));
  assert.deepEqual([...await program.read('w')], [1, 2, 3]);
  await program.write('w', kept);
  const { w } = await program.save();
  assert.ok(close(w.data, want.w));
  await program.load({ w: { dtype: 'f32', shape: [3], data: Float32Array.of(0.5, 1, 1.5) } });
  kept.dispose();
  assert.equal(liveTensors(), before);
  const { x, t } = batch(2), input = await program.upload({ dtype: 'f32', shape: [4, 3], data: x });
  await program.bind('step', { x: input, rate: 0.1 });
  const { step, reading } = await program.run('step', { t }, { read: ['loss', 'count'] });
  const { values } = await reading;
  assert.equal(step, program.steps);
  assert.ok(close(values.loss, [reference().step(batch(2), 0)]));
  assert.equal(values.count[0], 11);
  program.close();
});

test('memory that a caller uses no more moves to the worker', async () => {
  const program = await openProgram(linearPlan(), { worker }), [kept, moved] = [Float32Array.of(1, 2, 3), Float32Array.of(4, 5, 6)], within = new Float32Array(100).fill(7);
  await program.write('w', kept);
  assert.deepEqual([...kept], [1, 2, 3]);
  await program.take('w', { dtype: 'f32', shape: [3], data: moved });
  assert.equal(moved.length, 0);
  assert.deepEqual([...await program.read('w')], [4, 5, 6]);
  await program.take('w', { dtype: 'f32', shape: [3], data: within.subarray(10, 13) });
  assert.equal(within.length, 100, 'a part of larger memory is copied');
  assert.deepEqual([...await program.read('w')], [7, 7, 7]);
  await assert.rejects(program.take('none', { dtype: 'f32', shape: [], data: new Float32Array(1) }), { kind: 'name' });
  program.close();
});

test('a trainer does not see the difference', async () => {
  const program = await openProgram(linearPlan(), { worker }), want = reference(), losses = [];
  const trainer = new Trainer(program, { history: { ring: 'history', count: 'count' } });
  await program.run('init');
  await trainer.run({ steps: 40, batches: batch, inputs: { rate: 0.2 }, onProgress: (p) => losses.push(...p.losses) });
  assert.ok(close(losses, Array.from({ length: 40 }, (_, i) => want.step(batch(i), Math.fround(0.2))), 1e-4));
  program.close();
});

test('a part of an array is sent without the rest', async (t) => {
  const program = await openProgram(linearPlan(), { worker }), all = new Float32Array(1 << 16), sent = [];
  all.set([1, 2, 3], 100);
  const post = MessagePort.prototype.postMessage;
  t.mock.method(MessagePort.prototype, 'postMessage', function (message, transfer) {
    sent.push(message);
    return post.call(this, message, transfer);
  });
  await program.write('w', all.subarray(100, 103));
  await program.load({ w: { dtype: 'f32', shape: [3], data: all.subarray(100, 103) } }, { allowMissing: true });
  const buffers = sent.flatMap(({ args = [] }) => args).map((x) => x?.w?.data ?? x).filter(ArrayBuffer.isView).map(({ buffer }) => buffer.byteLength);
  assert.deepEqual(buffers, [12, 12]);
  assert.deepEqual([...await program.read('w')], [1, 2, 3]);
  program.close();
});

test('errors cross with their kind and place', async () => {
  await assert.rejects(openProgram(linearPlan().subarray(0, 99), { worker }), { name: 'RlxError', kind: 'plan' });
  await assert.rejects(openProgram(linearPlanWith('var sum = 0.0;', 'var sum = zer;'), { worker }), { kind: 'shader', message: /zer/ });
  const program = await openProgram(linearPlan(), { worker });
  await assert.rejects(program.run('step', { ...batch(0), rate: 1, x: new Float32Array(1) }), (error) => {
    assert.deepEqual([error.kind, error.place.name, error.place.expected], ['shape', 'x', [4, 3]]);
    return true;
  });
  const bad = { label: new Int32Array(4), free: Int32Array.of(7, 0, 0, 0) };
  const { reading } = await program.run('pick', bad, { read: ['picked'] });
  await assert.rejects(reading, { kind: 'index', message: /pick\(free\)/ });
  program.close();
  await assert.rejects(program.read('w'), { kind: 'closed' });
});

test('a device of the page cannot be used in a worker', () => assert.rejects(openProgram(linearPlan(), { worker, gpu: {} }), { kind: 'device' }));

test('two programs on one worker get their own answers', async () => {
  const [one, two] = await Promise.all([openProgram(linearPlan(), { worker }), openProgram(linearPlan(), { worker })]);
  await one.write('w', Float32Array.of(1, 1, 1));
  await two.write('w', Float32Array.of(2, 2, 2));
  const pairs = await Promise.all(Array.from({ length: 50 }, () => Promise.all([one.read('w'), two.read('w')])));
  assert.deepEqual(pairs.filter(([a, b]) => a[0] !== 1 || b[0] !== 2), []);
  one.close();
  assert.deepEqual([...await two.read('w')], [2, 2, 2]);
  two.close();
  assert.equal(worker.listeners.size, 0);
});

test('what cannot be sent to a worker is refused by its method, and the program goes on', async () => {
  const program = await openProgram(linearPlan(), { worker });
  await assert.rejects(program.run('step', { ...batch(0), rate: () => 1 }), { name: 'RlxError', kind: 'dtype', message: /^run: / });
  await program.run('step', { ...batch(0), rate: 1 });
  program.close();
});

test('what is no call ends nothing and is not answered, and only methods of a program are called', async () => {
  const program = await openProgram(linearPlan(), { worker }), { port1, port2 } = new MessageChannel();
  worker.postMessage({ port: port2 }, [port2]);
  let next = 0;
  const answers = new Map(), answer = (method, args = []) => {
    const id = ++next;
    port1.postMessage({ id, method, args });
    return new Promise((resolve) => answers.set(id, resolve));
  };
  const unasked = [];
  port1.onmessage = ({ data }) => {
    if (data.life !== undefined || 'life' in data) return;
    (answers.get(data.id) ?? ((given) => unasked.push(given)))(data);
  };
  for (const junk of [null, undefined, 5, '', 'run', [], {}, { id: 'x', method: 'open' }, { method: 'open', args: [] }, new Map(), { id: null }]) {
    port1.postMessage(junk);
    worker.postMessage(junk);
  }
  worker.postMessage({ port: {} });
  const refused = async (method, args) => assert.match((await answer(method, args)).error.message, /the worker has no method .*: there are open/);
  for (const method of ['toString', '__proto__', 'constructor', 'hasOwnProperty', 'valueOf', '', 'nothing', null, undefined, 5, {}]) await refused(method);
  for (const args of [null, 5, 'x', {}]) await refused('open', args);
  await refused('run'); // before a program exists
  assert.equal((await answer('open', [null])).error.kind, 'plan');
  assert.equal((await answer('open', [linearPlan(), null])).error, undefined);
  const wrong = [null, undefined, 5, -1, 'x', true, {}, [], { tensor: 9 }, { w: null }, new Uint8Array(3), { tensor: { tensor: 1 } }, [null]];
  for (const method of ['run', 'reading', 'bind', 'write', 'read', 'readAll', 'save', 'load', 'upload', 'keep', 'data', 'free', 'open']) {
    for (const one of wrong) {
      for (const args of [[one], [one, one], ['step', one, one], ['w', one]]) {
        const { value, error } = await answer(method, args);
        assert.ok(error === undefined || error.message && error.kind !== 'internal', `${method}: ${JSON.stringify(args)} is answered by ${JSON.stringify({ value, error })}`);
      }
    }
  }
  assert.ok('w' in (await answer('save')).value);
  assert.deepEqual(unasked, []);
  port1.close();
  assert.deepEqual([...await program.read('w')], [0, 0, 0]); // the other program goes on
  program.close();
});

test('a program in a worker holds what it loads to the plan, and widens what a file has', async () => {
  const program = await openProgram(linearPlan(), { worker });
  const half = decodeSafetensors(encodeSafetensors({
    w: { dtype: 'f16', shape: [3], data: Uint16Array.of(0x3c00, 0xc000, 0x3800) }, 'bn/num_batches_tracked': { dtype: 'i64', shape: [], data: BigInt64Array.of(7n) },
  })).tensors;
  await assert.rejects(program.load(half), { kind: 'name', message: /without allowExtra: .* no parameter or state bn\/num_batches_tracked: there are w/ });
  await assert.rejects(program.load({}), { kind: 'missing', message: /load: w is missing: give f32\[3\], or allowMissing/ });
  await program.load(half, { allowExtra: true });
  assert.deepEqual([...await program.read('w')], [1, -2, 0.5]);
  program.close();
});

/** A worker that opens a program and answers nothing else. */
const silent = `
import { parentPort } from 'node:worker_threads';
parentPort.on('message', ({ port }) => {
  port.onmessage = ({ data: { id, method } }) => {
    if (method === 'open') port.postMessage({ id, value: { plan: { slots: [], entries: [] }, device: { name: 'webgpu', description: 'none' } } });
  };
});
`;

test('a worker that is ended in the middle of a step rejects what is under way, and the program is lost', async () => {
  const worker = new BrowserWorker(silent), program = await openProgram(linearPlan(), { worker });
  const calls = [program.run('step', {}), program.read('w'), program.save()];
  worker.terminate();
  for (const call of calls) await assert.rejects(call, { name: 'RlxError', kind: 'lost', message: /worker was ended/ });
  assert.equal((await program.lost).kind, 'lost');
  await assert.rejects(program.run('step', {}), { kind: 'lost' });
  program.close();
});
