// Training goes on after the device is lost, from the last snapshot, as if it had not been.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { closeCompiler, graph, init, openProgram, train, Trainer } from '../dist/index.js';
import { fit, shuffled } from '../dist/fit.js';
import * as nn from '../dist/nn.js';
import { batch, linearPlan } from './linear.mjs';
import { openGPU } from './rig/dawn.mjs';

/** A GPU that keeps the devices that it gives; `give` says whether it has an adapter. */
let gpu;
before(async () => {
  const dawn = openGPU();
  gpu = {
    devices: [],
    give: () => true,
    async requestAdapter(options) {
      const adapter = gpu.give() ? await dawn.requestAdapter(options) : null;
      return adapter && new Proxy(adapter, { get: (target, name) => name === 'requestDevice'
        ? async (descriptor) => {
          const device = await target.requestDevice(descriptor);
          gpu.devices.push(device);
          return device;
        }
        : typeof target[name] === 'function' ? target[name].bind(target) : target[name] });
    },
  };
  await init({ gpu, worker: false, compileWorker: false, cache: false });
});
after(closeCompiler);

const destroy = () => gpu.devices.at(-1).destroy();

/** Destroys the device, and waits until that is known. */
async function lose() {
  const device = gpu.devices.at(-1);
  device.destroy();
  await device.lost;
  await new Promise((resolve) => { setTimeout(resolve); });
}

/** A program on the linear plan that recovers, with a snapshot every few steps, and what was stated. */
async function open(t, recover = {}, options = {}) {
  const stated = [], program = await openProgram(linearPlan(), { gpu, recover: { snapshotEvery: { steps: 4 }, onRecovered: (event) => { stated.push(event); }, ...recover }, ...options });
  t.after(() => program.close());
  await program.run('init');
  return { program, stated, trainer: new Trainer(program, { history: { ring: 'history', count: 'count' } }) };
}

const batches = (i) => ({ ...batch(i), rate: 0.2 });
const w = async (program) => [...await program.read('w')];

/** The parameters after some steps without a loss, and the loss of each. */
async function whole(t, steps) {
  const { program, trainer } = await open(t), losses = [];
  await trainer.run({ steps, batches, recover: false, onProgress: (p) => losses.push(...p.losses) });
  return { w: await w(program), losses };
}

test('a run whose device is lost twice ends as one without a loss, to the bit', async (t) => {
  const want = await whole(t, 40), { program, trainer, stated } = await open(t), at = new Map(), lostAt = new Set([11, 26]);
  const { steps, end } = await trainer.run({
    steps: 40, inputs: { rate: 0.2 }, every: 3,
    batches: (i) => {
      if (lostAt.delete(i)) destroy();
      return batch(i);
    },
    onProgress: ({ step, losses }) => losses.forEach((loss, k) => at.set(step - losses.length + 1 + k, loss)),
  });
  assert.deepEqual([steps, end, trainer.steps], [40, 'steps', 40]);
  assert.deepEqual(await w(program), want.w);
  assert.deepEqual([...at.entries()].sort(([a], [b]) => a - b), want.losses.map((loss, i) => [i + 1, loss]));
  assert.deepEqual(stated.map(({ step, reason }) => [step % 4, reason.kind]), [[0, 'lost'], [0, 'lost']]);
  for (const { step, lostSteps } of stated) assert.ok(step >= 4 && lostSteps >= 1 && lostSteps <= 12, `${step} ${lostSteps}`);
});

test('an iterator goes on with its next batches', async (t) => {
  const { trainer, stated } = await open(t), seen = [];
  const { steps, end } = await trainer.run({ steps: 20, batches: (function* () {
    for (let i = 0; ; i++) {
      seen.push(i);
      if (i === 10) destroy();
      yield { inputs: batches(i), rows: 4 };
    }
  })() });
  const [{ lostSteps }] = stated;
  assert.deepEqual([steps, end, trainer.steps], [20, 'steps', 20]);
  assert.ok(seen.length >= 20 + lostSteps && seen.every((n, i) => n === i), `${seen}`);
  const rest = await trainer.run({ steps: 100, batches: (function* () { for (let i = 0; i < 12; i++) yield { inputs: batches(i), rows: 4 }; })() });
  assert.deepEqual([rest.steps, rest.end], [12, 'batches']); // as many as three snapshots are apart
  assert.ok(rest.loss > 0);
});

/** A trainer of a network with dropout, a schedule and a metric. */
async function network(t, options = {}) {
  const model = graph('loss', (b) => {
    nn.train(b);
    const x = b.input('x', 'f32', [4, 2]), labels = b.input('labels', 'i32', [4]);
    const logits = nn.linear(nn.dropout(nn.linear(x, 8).relu(), 0.3), 2);
    nn.metric(nn.accuracy(logits, labels), 'accuracy');
    b.output('loss', logits.crossEntropyMean(labels));
  });
  const trainer = await train(model, { optimizer: { kind: 'adam' }, schedule: { kind: 'cosine', rate: 0.1, steps: 40 }, seed: 2, on: 'gpu', ...options });
  t.after(() => trainer.program.close());
  return trainer;
}

test('a loop goes on with the batches, random numbers, schedule, metrics and reports after the snapshot', async (t) => {
  const x = Float32Array.from({ length: 40 }, (_, i) => Math.sin(3 * i)), labels = Int32Array.from({ length: 20 }, (_, i) => i % 2);
  const data = shuffled({ x: { dtype: 'f32', shape: [20, 2], data: x }, labels: { dtype: 'i32', shape: [20], data: labels } }, 4, 1);
  const run = async (recover, cuts = new Set()) => {
    const trainer = await network(t, { recover }), reports = new Map(), { devices } = gpu;
    const source = (epoch) => function* () {
      for (const one of data(epoch)) {
        if (cuts.delete(trainer.steps)) devices.at(-1).destroy();
        yield one;
      }
    }();
    await fit(trainer, { data: Object.assign(source, { epochSteps: data.epochSteps }), epochs: 6, every: 4, callbacks: [({ step, epoch, loss, metrics }) => { reports.set(step, { epoch, loss, metrics }); }] });
    return { values: Object.fromEntries(Object.entries(await trainer.save()).map(([name, { data }]) => [name, [...data]])), reports: [...reports].sort(([a], [b]) => a - b) };
  };
  const stated = [], want = await run(false), got = await run({ snapshotEvery: { steps: 3 }, onRecovered: (event) => { stated.push(event); } }, new Set([7, 22]));
  assert.equal(stated.length, 2);
  assert.deepEqual(got, want);
});

test('calls in progress reject, later ones wait, and bound inputs are there', async (t) => {
  const { program, trainer, stated } = await open(t), { x, t: target } = batch(3);
  await program.bind('step', { x, t: target, rate: 0.1 });
  x.fill(0); // the program has a copy
  const kept = await program.upload({ dtype: 'f32', shape: [4, 3], data: x });
  await trainer.run({ steps: 5, batches: () => ({}) });
  const { lost } = program;
  await lose();
  await assert.rejects(trainer.step({}), { name: 'RlxError', kind: 'lost' });
  const values = await w(program);
  assert.deepEqual([stated.length, trainer.steps], [1, stated[0].step]);
  assert.equal(await Promise.race([lost, 'not resolved']), 'not resolved');
  await program.run('step', {});
  assert.notDeepEqual(await w(program), values);
  await assert.rejects(program.run('step', { x: kept }), { kind: 'name', message: /belongs to another program/ });
  const fresh = await open(t);
  await fresh.trainer.run({ steps: stated[0].step, batches: () => ({ ...batch(3), rate: 0.1 }), recover: false });
  assert.deepEqual(values, await w(fresh.program));
});

test('the states after a run are copied once nothing happens', async (t) => {
  let rested;
  const copied = new Promise((resolve) => { rested = resolve; });
  const { program, trainer, stated } = await open(t, { snapshotEvery: { seconds: 3600 }, onSnapshot: ({ step }) => { if (step === 9) rested(); } });
  await trainer.run({ steps: 9, batches });
  const want = await w(program);
  const awake = setInterval(() => {}, 1000); // the wait for the copy keeps no process alive
  await copied;
  clearInterval(awake);
  await lose();
  assert.deepEqual(await w(program), want);
  assert.deepEqual(stated.map(({ step, lostSteps }) => [step, lostSteps]), [[9, 0]]);
});

test('states that are set after a snapshot are not undone', async (t) => {
  const { program, trainer } = await open(t, { snapshotEvery: { seconds: 3600 } });
  await trainer.run({ steps: 5, batches });
  await program.write('w', Float32Array.of(1, 2, 3));
  await lose();
  await assert.rejects(program.read('w'), { kind: 'lost', message: /not recovered: there is no snapshot/ });
  assert.equal((await program.lost).kind, 'lost');
});

test('a third loss within a minute ends the program', async (t) => {
  const { program, trainer, stated } = await open(t);
  const run = trainer.run({ steps: 40, batches: (i) => {
    if (i % 10 === 9) destroy();
    return batches(i);
  } });
  await assert.rejects(run, { kind: 'lost', message: /it was not recovered: 3 devices were lost within a minute$/ });
  assert.equal(stated.length, 2);
  await assert.rejects(program.save(), { kind: 'lost' });
});

test('a device that is not there at once is asked for again', async (t) => {
  const { trainer, stated } = await open(t);
  let refusals = 1;
  t.after(() => { gpu.give = () => true; });
  const { steps } = await trainer.run({ steps: 12, batches: (i) => {
    if (i === 6 && refusals === 1) {
      gpu.give = () => refusals-- <= 0;
      destroy();
    }
    return batches(i);
  } });
  assert.deepEqual([steps, stated.length, refusals], [12, 1, -1]);
});

test('without recovery, and with states larger than the limit, a lost device is an error', async (t) => {
  const warnings = t.mock.method(console, 'warn', () => {});
  for (const [options, steps] of [[{ recover: { memory: 4 } }, 12], [{ recover: false }, 12]]) {
    const program = await openProgram(linearPlan(), { gpu, ...options }), trainer = new Trainer(program, { history: { ring: 'history', count: 'count' } });
    await program.run('init');
    const run = trainer.run({ steps, batches: (i) => {
      if (i === 7) destroy();
      return batches(i);
    } });
    await assert.rejects(run, { kind: 'lost' });
    program.close();
  }
  assert.match(warnings.mock.calls[0].arguments[0], /^rlx: no snapshots are made, and a lost device ends the training: the states take \d+ bytes, and recover\.memory is 4$/);
  assert.equal(warnings.mock.callCount(), 1);
});

test("a device of the caller is replaced by the caller's function", async (t) => {
  const make = async () => (await gpu.requestAdapter()).requestDevice();
  await assert.rejects(openProgram(linearPlan(), { device: await make(), recover: true }), { kind: 'attr', message: /recover: device is not given/ });
  const { trainer, stated } = await open(t, { device: make }, { device: await make(), gpu: undefined }), before = gpu.devices.length;
  await trainer.run({ steps: 8, batches: (i) => {
    if (i === 5 && gpu.devices.length === before) destroy();
    return batches(i);
  } });
  assert.deepEqual([stated.length, gpu.devices.length, trainer.steps], [1, before + 1, 8]);
});

test('options are checked', async () => {
  for (const [recover, kind] of [[{ every: 3 }, 'name'], [{ snapshotEvery: { steps: 0 } }, 'limit'], [{ snapshotEvery: { seconds: -1 } }, 'attr'], [{ memory: -1 }, 'limit'], [{ onRecovered: 'x' }, 'attr'], [3, 'attr']]) {
    await assert.rejects(openProgram(linearPlan(), { gpu, recover }), { name: 'RlxError', kind }, JSON.stringify(recover));
  }
});
