// A program over Dawn, on a software GPU with default limits.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { openProgram } from '../dist/runtime.js';
import { decodeSafetensors, encodeSafetensors } from '../dist/safetensors.js';
import { batch, close, linearPlan, linearPlanWith, reference, seal } from './linear.mjs';
import { openDawn, openGPU } from './rig/dawn.mjs';
import { isError } from './rig/is-error.mjs';
import { sharingPlan, stateBytes, statePlan } from './state.mjs';

let dawn;
before(async () => { dawn = await openDawn(); });
after(() => dawn.close());

/** A program on the test's own device, closed at the end of the test. */
async function open(t, options = {}) {
  const program = await openProgram(linearPlan(), { device: dawn.device, ...options });
  t.after(() => program.close());
  return program;
}

/** A device besides the test's own: an adapter gives but one. */
const newDevice = async () => (await dawn.gpu.requestAdapter()).requestDevice();

test('losses and weights of 50 steps equal the reference', async (t) => {
  const program = await open(t), want = reference();
  await program.run('init');
  assert.deepEqual([...await program.read('w')], [0.5, 1, 1.5]);
  for (let i = 0; i < 50; i++) {
    const { reading, step } = await program.run('step', { ...batch(i), rate: 0.3 }, { read: ['loss'] });
    const { step: readAt, values } = await reading;
    const loss = want.step(batch(i), Math.fround(0.3));
    assert.equal(step, i + 2);
    assert.equal(readAt, step);
    assert.ok(close(values.loss, [loss]), `step ${i}: ${values.loss} instead of ${loss}`);
  }
  assert.ok(close(await program.read('w'), want.w));
  assert.deepEqual([...await program.read('count')], [50]);
});

test('repeats count, nested, and a copy ends in a state', async (t) => {
  const program = await open(t);
  await program.run('fold', { seed: 5 });
  let a = 5, b = 0;
  for (let i = 0; i < 3; i++) for (let j = 0; j < 2; j++) a = 2 * a + i, b += 10 * i + j;
  const { values } = await program.readAll(['folded', 'kept']);
  assert.deepEqual([...values.folded], [a, b]);
  assert.deepEqual([...values.kept], [a, b]);
});

test('several steps in one run take a scalar each', async (t) => {
  const program = await open(t), want = reference(), rates = [0.3, 0.2, 0.1, 0.05];
  await program.run('init');
  await program.run('step', { ...batch(0), rate: rates }, { steps: 4 });
  const losses = rates.map((rate) => want.step(batch(0), Math.fround(rate)));
  assert.equal(program.steps, 5);
  assert.ok(close((await program.read('history')).subarray(0, 4), losses));
  await program.run('step', { ...batch(0), rate: 0.1 }, { steps: 3 });
  for (let i = 0; i < 3; i++) losses.push(want.step(batch(0), Math.fround(0.1)));
  assert.ok(close((await program.read('history')).subarray(0, 7), losses));
});

test('a bound input need not be given, until it is given once', async (t) => {
  const program = await open(t), want = reference(), { x, t: targets } = batch(3);
  await program.run('init');
  await program.bind('step', { x, rate: 0.1 });
  for (let i = 0; i < 3; i++) {
    await program.run('step', { t: targets }, { steps: 2 });
    want.step(batch(3), Math.fround(0.1));
    want.step(batch(3), Math.fround(0.1));
  }
  assert.ok(close(await program.read('w'), want.w));
  await program.run('step', { x, t: targets });
  await assert.rejects(program.run('step', { t: targets }), isError('missing', /x is missing: give f32\[4,3\], or bind/));
});

test('runs that are not awaited happen in order', async (t) => {
  const program = await open(t), want = reference();
  const runs = [program.run('init')];
  for (let i = 0; i < 20; i++) runs.push(program.run('step', { ...batch(i), rate: 0.1 }));
  const steps = (await Promise.all(runs)).map(({ step }) => step);
  assert.deepEqual(steps, Array.from({ length: 21 }, (_, i) => i + 1));
  for (let i = 0; i < 20; i++) want.step(batch(i), Math.fround(0.1));
  assert.ok(close(await program.read('w'), want.w));
});

test('a read has the values of the step it was asked after', async (t) => {
  const program = await open(t);
  await program.run('init');
  const reads = [];
  for (let i = 0; i < 3; i++) {
    await program.run('step', { ...batch(i), rate: 0.1 });
    reads.push(program.read('count'));
  }
  assert.deepEqual((await Promise.all(reads)).map(([n]) => n), [1, 2, 3]);
});

describe('wrong inputs are refused before anything is written', async () => {
  const good = { ...batch(0), rate: 0.1 };
  const rows = [
    ['a shape of other sizes', 'step', { ...good, x: { data: new Float32Array(12), shape: [3, 4] } }, 'shape', /x has the shape \[3,4\]: it must be f32\[4,3\]/],
    ['another rank', 'step', { ...good, x: { data: new Float32Array(12), shape: [12] } }, 'shape', /\[12\]/],
    ['too many elements', 'step', { ...good, x: new Float32Array(15) }, 'shape', /has 15 elements: it must be f32\[4,3\] of 12/],
    ['an empty batch', 'step', { ...good, x: new Float32Array(0) }, 'shape', /x has no elements: it must be f32\[4,3\] of 12/],
    ['another dtype', 'step', { ...good, x: new Float64Array(12) }, 'dtype', /x is Float64Array: it must be Float32Array, of f32/],
    ['integers for floats', 'step', { ...good, t: new Int32Array(4) }, 'dtype', /t is Int32Array: it must be Float32Array, of f32/],
    ['a list for a tensor', 'step', { ...good, t: [1, 2, 3, 4] }, 'dtype', /Array/],
    ['nothing for a tensor', 'step', { ...good, t: null }, 'dtype', /t is Null: it must be Float32Array/],
    ['a number for a tensor', 'step', { ...good, t: 1 }, 'shape', /t has the shape \[\]: it must be f32\[4\]/],
    ['an unknown name', 'step', { ...good, y: 1 }, 'name', /no input y: there are x, t, rate/],
    ['a missing tensor', 'step', { t: good.t, rate: 0.1 }, 'missing', /x is missing: give f32\[4,3\], or bind/],
    ['a missing scalar', 'step', { x: good.x, t: good.t }, 'missing', /rate is missing: give f32\[\]/],
    ['a tensor for a scalar', 'step', { ...good, rate: new Float32Array(1) }, 'dtype', /rate is Float32Array: it must be one f32/],
    ['a text for a scalar', 'step', { ...good, rate: '0.1' }, 'dtype', /rate is String: it must be one f32/],
    ['a fraction for an integer', 'fold', { seed: 1.5 }, 'dtype', /seed is 1.5: it must be u32/],
    ['a negative unsigned', 'fold', { seed: -1 }, 'dtype', /is -1: it must be u32/],
    ['a label above its range', 'pick', { label: Int32Array.of(0, 1, 4, 2), free: new Int32Array(4) }, 'index', /label has 4 as element 2, outside \[0, 4\)/],
    ['a label below its range', 'pick', { label: Int32Array.of(-1, 0, 0, 0), free: new Int32Array(4) }, 'index', /-1 as element 0/],
    ['an unknown entry', 'train', good, 'name', /no entry train: there are init, step/],
  ];
  for (const [what, entry, inputs, kind, text] of rows) {
    test(what, async (t) => {
      const program = await open(t);
      await program.run('init');
      await assert.rejects(program.run(entry, inputs), isError(kind, text));
      assert.equal(program.steps, 1);
      await program.run('step', good); // and the program goes on
      assert.deepEqual([...await program.read('count')], [1]);
    });
  }
  const weight = { dtype: 'f32', shape: [3], data: new Float32Array(3) }, stored = (tensors) => decodeSafetensors(encodeSafetensors(tensors)).tensors;
  const calls = [
    ['reading an unknown value', (s) => s.read('nothing'), 'name', /no value nothing/],
    ['reading another entry\'s output', (s) => s.read('prediction'), 'name', /no value prediction/],
    ['writing an output', (s) => s.write('loss', 1), 'name', /no parameter or state loss/],
    ['writing another shape', (s) => s.write('w', new Float32Array(4)), 'shape', /w has 4 elements: it must be f32\[3\]/],
    ['loading another dtype', (s) => s.load({ w: { dtype: 'i32', shape: [3], data: new Int32Array(3) } }), 'dtype', /w is i32: it must be f32/],
    ['loading another shape', (s) => s.load({ w: { dtype: 'f32', shape: [1, 3], data: new Float32Array(3) } }), 'shape', /\[1,3\]/],
    ['too many steps in a run', (s) => s.run('step', good, { steps: 65 }), 'limit', /run of step is 65, not a whole number from 1 to 64/],
    ['no steps in a run', (s) => s.run('step', good, { steps: 0 }), 'limit', /run of step is 0/],
    ['a text in place of the list of names to read', (s) => s.run('step', good, { read: 'loss' }), 'name', /what to read is String: it must be a list of names/],
    ['reading many by a text', (s) => s.readAll('loss'), 'name', /list of names/],
    ['nothing in place of inputs', (s) => s.run('step', null), 'missing', /x is missing/],
    ['loading nothing in place of a tensor', (s) => s.load({ w: null }), 'dtype', /w is Null: it must be a tensor/],
    ['loading elements without their shape', (s) => s.load({ w: new Float32Array(3) }), 'dtype', /w is Float32Array: it must be a tensor/],
    ['loading without a parameter', (s) => s.load({}), 'missing', /load: w is missing: give f32\[3\], or allowMissing/],
    ['loading what is no parameter', (s) => s.load({ W: weight, w: weight }), 'name', /without allowExtra: .* no parameter or state W: there are w,/],
    ['loading a wider type than the parameter has', (s) => s.load(stored({ w: { dtype: 'f64', shape: [3], data: new Float64Array(3) } })), 'dtype', /w is f64, wanted as f32: as\('f32', \{ narrow: true \}\) rounds/],
    ['uploading nothing', (s) => s.upload(undefined), 'dtype', /is Undefined: it must be/],
    ['uploading too few elements', (s) => s.upload({ dtype: 'f32', shape: [2, 3], data: new Float32Array(5) }), 'shape', /the tensor has 5 elements: it must be f32\[2,3\] of 6/],
    ['uploading elements of another class', (s) => s.upload({ dtype: 'i32', shape: [2], data: new Float32Array(2) }), 'dtype', /the tensor is Float32Array: it must be Int32Array, of i32/],
    ['a misspelt option', (s) => s.run('step', good, { reed: ['loss'] }), 'name', /no option reed/],
    ['too few values for the steps', (s) => s.run('step', { ...good, rate: [1, 2] }, { steps: 3 }), 'shape', /2 values for 3 steps/],
  ];
  for (const [what, call, kind, text] of calls) {
    test(what, async (t) => {
      const program = await open(t);
      await program.run('step', good);
      await assert.rejects(call(program), isError(kind, text));
    });
  }
});

test('what is loaded from a file is widened, and the rest of it is left out where that is allowed', async (t) => {
  const program = await open(t), want = { f16: [0x3c00, 0xc000, 0x3800], bf16: [0x3f80, 0xc000, 0x3f00] };
  for (const [dtype, bits] of Object.entries(want)) {
    const { tensors } = decodeSafetensors(encodeSafetensors({
      w: { dtype, shape: [3], data: Uint16Array.from(bits) }, other: { dtype: 'f64', shape: [1], data: Float64Array.of(1) },
    }));
    await program.write('w', new Float32Array(3));
    await program.load(tensors, { allowExtra: true });
    assert.deepEqual([...await program.read('w')], [1, -2, 0.5]);
  }
  await program.load({ count: { dtype: 'u32', shape: [], data: Uint32Array.of(5) } }, { allowMissing: true });
  assert.deepEqual([[...await program.read('w')], ...await program.read('count')], [[1, -2, 0.5], 5]);
});

test('a refused run changes nothing: neither what is bound, nor a scalar', async (t) => {
  const program = await open(t), { x, t: targets } = batch(0), want = reference();
  await program.run('init');
  await program.bind('step', { x, t: targets, rate: 0.1 });
  for (const [inputs, options] of [
    [{ rate: 0.7 }, { read: ['nothing'] }], [{ rate: 0.7, x: new Float32Array(1) }], [{ rate: [0.7, 0.7] }, { steps: 3 }],
    [{ rate: [0.7, '0.7'] }, { steps: 2 }], [{ x }, { read: ['nothing'] }], [{ x, y: 1 }],
  ]) await assert.rejects(program.run('step', inputs, options));
  await assert.rejects(program.bind('step', { rate: 'fast' }));
  await program.run('step');
  want.step(batch(0), Math.fround(0.1));
  assert.ok(close(await program.read('w'), want.w));
});

/** A device that allows no larger buffers, and says so once a plan, which asks for the default, is opened on it. */
async function smallDevice(t, maxBufferSize) {
  const device = await newDevice(), { createBuffer, limits } = device, made = [];
  t.after(() => device.destroy());
  Object.defineProperty(device, 'limits', {
    value: new Proxy(limits, { get: (_, name) => name === 'maxBufferSize' && made.length > 0 ? maxBufferSize : limits[name] }),
  });
  device.createBuffer = (descriptor) => {
    made.push(descriptor.size);
    return createBuffer.call(device, descriptor.size > maxBufferSize ? { ...descriptor, usage: 0xffff } : descriptor);
  };
  return { device, made };
}

test('a state as large as the device allows is saved, and more than that is read in parts of one moment', async (t) => {
  const { device, made } = await smallDevice(t, stateBytes);
  const program = await openProgram(statePlan(), { device });
  t.after(() => program.close());
  const big = Float32Array.from({ length: stateBytes / 4 }, (_, i) => i), after = (n, by = 1) => big.map((v) => by * (v + n));
  await program.load({ big: { dtype: 'f32', shape: [big.length], data: big } });
  const saving = program.save();
  const { reading } = await program.run('add', {}, { read: ['twice', 'big'] });
  const both = program.readAll(['big', 'twice']);
  await program.run('add');
  assert.deepEqual((await saving).big.data, big);
  for (const { step, values } of [await reading, await both]) assert.deepEqual([step, values.big, values.twice], [1, after(1), after(1, 2)]);
  assert.deepEqual(await program.read('big'), after(2));
  assert.ok(Math.max(...made) <= stateBytes, `${made}`);
});

test('a buffer that the engine has no memory for is an error of kind memory, and the program goes on', async (t) => {
  const program = await open(t), { device } = dawn, { createBuffer } = device;
  const x = { dtype: 'f32', shape: [4], data: Float32Array.of(1, 2, 3, 4) };
  device.createBuffer = () => { throw new RangeError('Array buffer allocation failed'); };
  try {
    await assert.rejects(program.upload(x), isError('memory', /allocation failed/));
  } finally {
    device.createBuffer = createBuffer;
  }
  assert.deepEqual([...await (await program.upload(x)).data()], [1, 2, 3, 4]);
});

test('an upload over the device\'s limit is refused, and the program goes on', async (t) => {
  const { device } = await smallDevice(t, 1280);
  const program = await openProgram(linearPlan(), { device, maxSteps: 4 });
  t.after(() => program.close());
  const tensor = (n) => ({ dtype: 'f32', shape: [n], data: new Float32Array(n).fill(7) });
  await assert.rejects(program.upload(tensor(321)), isError('limit', /1284 bytes is over maxBufferSize 1280/));
  const kept = await program.upload(tensor(320)); // a buffer that is no power of two
  assert.deepEqual(await kept.data(), tensor(320).data);
});

test('a read whose mapping never ends is rejected by close', async () => {
  const device = await newDevice(), { createBuffer } = device;
  device.createBuffer = (descriptor) => {
    const buffer = createBuffer.call(device, descriptor);
    if (descriptor.usage & 1) buffer.mapAsync = () => new Promise(() => {});
    return buffer;
  };
  const program = await openProgram(linearPlan(), { device });
  await program.run('init');
  const read = program.read('w');
  program.close();
  await assert.rejects(read, isError('closed', /closed/));
  device.destroy();
});

test('programs that were closed leave nothing on a shared device', async () => {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc'), device = await newDevice(), programs = [];
  for (let i = 0; i < 8; i++) {
    const program = await openProgram(linearPlan(), { device });
    await program.run('init');
    program.close();
    programs.push(new WeakRef(program));
  }
  for (let i = 0; i < 5; i++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    gc();
  }
  const left = programs.filter((ref) => ref.deref()).length;
  assert.ok(left <= 1, `${left} of 8 programs are still held`); // the last one may be on the stack
  device.destroy();
});

for (const [name, values] of [['inFlight', [0, -1, 1.5, NaN, 1000]], ['maxSteps', [0, 1e9, 2.5]], ['staging', [0, 1e6]]]) {
  test(`${name} is checked before anything is made`, async () => {
    for (const value of values) {
      await assert.rejects(openProgram(linearPlan(), { device: dawn.device, [name]: value }), isError('limit', new RegExp(`${name} is ${value}, not a whole number from 1 to `)));
    }
  });
}

// ended makes a device report the completion of runs when the test says so, at a time that the test
// sets.
async function ended(t, options) {
  const device = await newDevice(), program = await openProgram(linearPlan(), { device, ...options });
  t.after(() => device.destroy());
  await program.run('init');
  await program.run('step', { ...batch(0), rate: 0.1 });
  await device.queue.onSubmittedWorkDone();
  const done = [];
  let now = 1e6, admitted = 0;
  t.mock.method(performance, 'now', () => now);
  device.queue.onSubmittedWorkDone = () => new Promise((resolve) => done.push(resolve));
  for (let i = 0; i < 1024; i++) program.run('step', { ...batch(i), rate: 0.1 }).then(() => admitted++, () => {});
  const settle = async () => {
    for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve));
    return admitted;
  };
  await settle();
  return async (ms) => { // this long after the last, all runs in flight end
    now += ms;
    for (const resolve of done.splice(0)) resolve();
    return settle();
  };
}

test('more runs are under way where the device does them in little time', async (t) => {
  const end = await ended(t);
  assert.equal(await end(1), 3 + 3); // no earlier run to measure a rate by
  let all = 6;
  const admitted = async (ms, times) => {
    let more = 0;
    for (let i = 0; i < times; i++) {
      const before = all;
      more = (all = await end(ms)) - before;
    }
    return more;
  };
  assert.equal(await admitted(4, 24), 64);
  assert.equal(await admitted(400, 3), 3); // once it is known that they take longer
});

test('as many runs are under way as were asked for', async (t) => {
  const end = await ended(t, { inFlight: 2 });
  assert.equal(await end(1), 2 + 2);
  assert.equal(await end(1), 4 + 2);
});

test('an index the device finds out of range is named, and no state changes', async (t) => {
  const program = await open(t), label = Int32Array.of(0, 1, 2, 3);
  await program.run('pick', { label, free: Int32Array.of(3, 2, 1, 0) });
  assert.deepEqual([...await program.read('picked')], [5, 5, 5, 5]);
  assert.deepEqual([...await program.read('count')], [1]);
  await program.run('pick', { label, free: Int32Array.of(0, 9, 0, 0) });
  // Made before the error is known: it has it too, and may be the first to.
  const late = assert.rejects(program.read('count'), isError('index', /pick/));
  await assert.rejects(program.read('picked'), (error) => {
    assert.equal(error.place.node, 'pick(free)');
    return isError('index', /pick\(free\): index outside \[0, 4\); nothing has changed/)(error);
  });
  await late;
  assert.deepEqual([...await program.read('count')], [1]); // reported once
  await program.run('pick', { label, free: label });
  assert.deepEqual([...await program.read('picked')], [2, 4, 6, 8]);
  assert.deepEqual([...await program.read('count')], [2]);
});

test('a full ring postpones reads and stops nothing', async (t) => {
  const program = await open(t, { staging: 3 });
  await program.run('init');
  const readings = [];
  for (let i = 0; i < 12; i++) readings.push((await program.run('step', { ...batch(i), rate: 0.1 }, { read: ['count'] })).reading);
  for (const { step, values } of await Promise.all(readings)) assert.equal(values.count[0], step - 1);
  assert.deepEqual([...await program.read('count')], [12]);
});

test('more reads at once than there are staging buffers all arrive', async (t) => {
  const program = await open(t, { staging: 3 });
  await program.run('init');
  const reads = await Promise.all(Array.from({ length: 10 }, () => program.read('w')));
  assert.ok(reads.every((w) => close(w, [0.5, 1, 1.5])));
});

test('a postponed read is of its entry, though another one follows that uses the same memory', async (t) => {
  const program = await openProgram(sharingPlan(), { device: dawn.device, staging: 3 });
  t.after(() => program.close());
  const [first, second] = ['first', 'second'].map((name) => program.plan.slots.find((slot) => slot.name === name));
  assert.deepEqual([first.buffer, first.offset], [second.buffer, second.offset]); // otherwise this tests nothing
  const x = Float32Array.of(1, 2, 3, 4);
  await program.run('increment', { x });
  const reads = Array.from({ length: 8 }, () => program.readAll(['first']));
  await program.run('scale', { x });
  for (const { step, values } of await Promise.all(reads)) {
    assert.deepEqual([...values.first], [2, 3, 4, 5]);
    assert.equal(step, 1);
  }
  assert.deepEqual([...await program.read('second')], [100, 200, 300, 400]);
});

test('a saved state goes into another program', async (t) => {
  const one = await open(t), other = await open(t);
  await one.run('init');
  for (let i = 0; i < 5; i++) await one.run('step', { ...batch(i), rate: 0.1 });
  const saved = await one.save();
  assert.deepEqual(Object.keys(saved).sort(), ['count', 'history', 'kept', 'w']);
  assert.deepEqual(saved.history.shape, [8]);
  await other.load(saved);
  for (const program of [one, other]) await program.run('step', { ...batch(5), rate: 0.1 });
  assert.deepEqual(await other.save(), await one.save());
});

test('a value that was written is read', async (t) => {
  const program = await open(t);
  await program.write('w', Float32Array.of(3, 1, 4));
  await program.write('count', 15);
  assert.deepEqual([...await program.read('w')], [3, 1, 4]);
  assert.deepEqual([...await program.read('count')], [15]);
});

test('a device that was given outlives its program', async (t) => {
  const first = await open(t);
  await first.run('init');
  first.close();
  await assert.rejects(first.run('init'), isError('closed', /closed/));
  await assert.rejects(first.read('w'), isError('closed', /closed/));
  const second = await open(t);
  await second.run('init');
  assert.deepEqual([...await second.read('w')], [0.5, 1, 1.5]);
});

test('a device lost in the middle rejects what is under way and reports the steps', async () => {
  const device = await newDevice();
  const program = await openProgram(linearPlan(), { device });
  await program.run('init');
  await program.save();
  for (let i = 0; i < 7; i++) await program.run('step', { ...batch(i), rate: 0.1 });
  const { reading } = await program.run('step', { ...batch(7), rate: 0.1 }, { read: ['loss'] });
  device.destroy();
  const lost = isError('lost', /8 steps/);
  lost(await program.lost);
  assert.equal((await program.lost).place.steps, 8);
  // The reading may have made it; if not, it says why.
  await reading.catch(lost);
  await assert.rejects(program.run('step', { ...batch(8), rate: 0.1 }), lost);
  await assert.rejects(program.read('w'), lost);
  await assert.rejects(program.save(), lost);
});

test('a device lost before the program is there is an error of its own kind', async () => {
  const device = await newDevice();
  device.destroy();
  await assert.rejects(openProgram(linearPlan(), { device }), isError('lost', /lost/));
});

test('an error of the device ends the program, but not one of somebody else', async (t) => {
  const device = await newDevice();
  const seen = new Promise((resolve) => device.addEventListener('uncapturederror', resolve, { once: true }));
  const { createBuffer } = device;
  let label;
  device.createBuffer = (descriptor) => createBuffer.call(device, (label ??= descriptor.label, descriptor));
  const program = await openProgram(linearPlan(), { device });
  t.after(() => device.destroy());
  device.createBuffer({ label: 'rlx of the page', size: 16, usage: 0xffff });
  await seen;
  await program.run('init');
  device.createBuffer({ label: `${label} fault`, size: 16, usage: 0xffff });
  isError('gpu', /fault/)(await program.lost);
  await assert.rejects(program.run('init'), isError('gpu', /fault/));
});

const capabilities = ({ features, limits, info }) => ({ features, limits, info });

describe('a program that cannot be opened says why', () => {
  const rows = [
    ['no WebGPU', () => openProgram(linearPlan()), 'device', /WebGPU is not here/],
    ['no adapter', () => openProgram(linearPlan(), { gpu: { requestAdapter: async () => null } }), 'device', /no adapter/],
    ['a browser that refuses one twice', () => openProgram(linearPlan(), { gpu: { requestAdapter: async () => { throw new Error('ended'); } } }), 'device', /no adapter/],
    ['no device', () => openProgram(linearPlan(), { gpu: { requestAdapter: async () => ({ ...capabilities(dawn.adapter), requestDevice: async () => { throw new Error('busy'); } }) } }), 'device', /busy/],
    ['a shader with an error', () => openProgram(linearPlanWith('var sum = 0.0;', 'var sum = zer;'), { device: dawn.device }), 'shader', /kernel step: 14:\d+: .*zer/s],
    ['a shader that does not fit its layout', () => openProgram(linearPlanWith('read_write> w: array<f32, 3>;\n@group(0) @binding(3)', 'read_write> w: array<f32, 3>;\n@group(0) @binding(9)'), { device: dawn.device }), 'shader', /kernel step/],
    ['a binding that is too small', () => openProgram(linearPlanWith('x: array<f32, 12>;\n@group(0) @binding(1) var<storage, read> w', 'x: array<f32, 99>;\n@group(0) @binding(1) var<storage, read> w'), { device: dawn.device }).then((s) => s.run('predict', { x: new Float32Array(12) })), 'gpu', /predict/],
  ];
  for (const [what, call, kind, text] of rows) test(what, () => assert.rejects(call(), isError(kind, text)));
});

test('an adapter that is refused once is asked for again: the GPU process of the browser has begun anew', async () => {
  const adapter = async () => ({ ...capabilities(dawn.adapter), requestDevice: newDevice });
  for (const refuse of [async () => null, async () => { throw new Error('A valid external Instance reference no longer exists.'); }]) {
    const calls = [refuse, adapter], program = await openProgram(linearPlan(), { gpu: { requestAdapter: () => calls.shift()() } });
    assert.strictEqual(calls.length, 0);
    program.close();
  }
});

test('memory that runs out is an error of its own kind, and what was made is given back', async () => {
  // No device here runs out of memory before the machine does: its scope says so instead.
  const device = await newDevice(), buffers = new Set(), scopes = [];
  const { createBuffer, pushErrorScope, popErrorScope } = device;
  device.createBuffer = (descriptor) => {
    const buffer = createBuffer.call(device, descriptor), { destroy } = buffer;
    buffer.destroy = () => { buffers.delete(buffer); destroy.call(buffer); };
    buffers.add(buffer);
    return buffer;
  };
  device.pushErrorScope = (filter) => { scopes.push(filter); pushErrorScope.call(device, filter); };
  device.popErrorScope = async () => {
    const full = scopes.pop() === 'out-of-memory' && buffers.size > 0, error = await popErrorScope.call(device);
    return full ? { message: 'no room for it' } : error;
  };
  await assert.rejects(openProgram(linearPlan(), { device }), isError('memory', /linear: no room for it/));
  assert.equal(buffers.size, 0);
  device.destroy();
});

test('a device of the program\'s own has default limits and goes with it', async () => {
  const gpu = openGPU();
  let device;
  const watched = { requestAdapter: async (options) => {
    const adapter = await gpu.requestAdapter(options);
    const { requestDevice } = adapter;
    adapter.requestDevice = async (descriptor) => device = await requestDevice.call(adapter, descriptor);
    return adapter;
  } };
  const program = await openProgram(linearPlan(), { gpu: watched });
  assert.equal(device.limits.maxStorageBuffersPerShaderStage, 8);
  assert.equal(program.plan.name, 'linear');
  assert.match(program.device.description, /\w/);
  program.close();
  assert.equal((await device.lost).reason, 'destroyed');
});

/** The plan with the requirement of the given number of storage buffers. */
function linearPlanFor(storageBuffers) {
  const bytes = linearPlan(), at = Buffer.from(bytes).indexOf('REQS') + 16; // after tag, flags, length, and no features
  new DataView(bytes.buffer).setUint32(at, storageBuffers, true);
  return seal(bytes);
}

test('a plan that needs more than the device has is refused by the limit\'s name', async () => {
  const text = /maxStorageBuffersPerShaderStage 999 \(here 8\)/;
  await assert.rejects(openProgram(linearPlanFor(999), { device: dawn.device }), isError('limit', text));
  await assert.rejects(openProgram(linearPlanFor(999), { gpu: dawn.gpu }), isError('limit', /999/));
});

test('the first variant that the device can run is taken', async (t) => {
  const file = (inner) => {
    const header = Buffer.alloc(12);
    header.write('VARI');
    header.writeUInt32LE(inner.length, 8);
    return seal(Uint8Array.from([...linearPlanFor(999), ...header, ...inner]));
  };
  const program = await openProgram(file(linearPlan()), { device: dawn.device });
  t.after(() => program.close());
  await program.run('init');
  assert.deepEqual([...await program.read('w')], [0.5, 1, 1.5]);
  await assert.rejects(openProgram(file(linearPlanFor(998)), { device: dawn.device }), isError('limit', /999/));
});

test('limits above the defaults are asked for where a plan needs them', async (t) => {
  const adapter = await dawn.gpu.requestAdapter();
  if (adapter.limits.maxStorageBuffersPerShaderStage <= 8) return t.diagnostic('the adapter has no more than the defaults');
  const program = await openProgram(linearPlanFor(9), { gpu: dawn.gpu });
  await program.run('init');
  assert.deepEqual([...await program.read('w')], [0.5, 1, 1.5]);
  program.close();
});
