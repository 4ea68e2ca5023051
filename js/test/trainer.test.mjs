// The trainer, over Dawn.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { batches, openProgram, Trainer } from '../dist/runtime.js';
import { batch, close, linearPlan, reference } from './linear.mjs';
import { openDawn } from './rig/dawn.mjs';

let dawn;
before(async () => { dawn = await openDawn(); });
after(() => dawn.close());

async function train(t, options = {}) {
  const program = await openProgram(linearPlan(), { device: dawn.device });
  t.after(() => program.close());
  await program.run('init');
  return new Trainer(program, options);
}

const history = { ring: 'history', count: 'count' };

test('every loss is reported where the plan keeps a history', async (t) => {
  const trainer = await train(t, { history }), want = reference(), losses = [];
  const { loss, steps, aborted } = await trainer.run({ steps: 45, batches: batch, inputs: { rate: 0.2 }, every: 100, onProgress: (p) => losses.push(...p.losses) });
  const all = Array.from({ length: 45 }, (_, i) => want.step(batch(i), Math.fround(0.2)));
  assert.ok(close(losses, all, 1e-4), `${losses} instead of ${all}`);
  assert.deepEqual([steps, aborted, loss], [45, false, losses.at(-1)]);
});

test('every few steps the last loss is reported where it keeps none', async (t) => {
  const trainer = await train(t), want = reference(), seen = [];
  await trainer.run({ steps: 24, batches: batch, inputs: { rate: 0.2 }, every: 10, onProgress: ({ step, losses }) => seen.push([step, ...losses]) });
  const all = Array.from({ length: 24 }, (_, i) => want.step(batch(i), Math.fround(0.2)));
  assert.deepEqual(seen.map(([step]) => step), [10, 20, 24]);
  for (const [step, loss] of seen) assert.ok(close([loss], [all[step - 1]], 1e-4));
});

test('a rate is looked at before each step', async (t) => {
  const trainer = await train(t), want = reference();
  const rate = (i) => i < 5 ? 0.3 : 0.01;
  const { loss } = await trainer.run({ steps: 10, batches: batch, inputs: (i) => ({ rate: rate(i) }) });
  const all = Array.from({ length: 10 }, (_, i) => want.step(batch(i), Math.fround(rate(i))));
  assert.ok(close([loss], [all[9]], 1e-4));
});

test('a signal stops it between two steps, and it goes on from there', async (t) => {
  const trainer = await train(t, { history }), stop = new AbortController(), losses = [];
  const onProgress = (p) => {
    losses.push(...p.losses);
    if (p.step >= 20) stop.abort();
  };
  const first = await trainer.run({ steps: 1000, batches: batch, inputs: { rate: 0.05 }, every: 4, signal: stop.signal, onProgress });
  assert.ok(first.aborted && first.steps < 1000);
  assert.equal(losses.length, first.steps);
  assert.equal(trainer.steps, first.steps);
  const second = await trainer.run({ steps: 8, batches: batch, inputs: { rate: 0.05 }, onProgress });
  assert.equal(second.steps, 8);
  assert.equal(losses.length, first.steps + 8);
});

test('the end of the batches ends it', async (t) => {
  const trainer = await train(t);
  const { steps, loss, end } = await trainer.run({ steps: 100, batches: [0, 1, 2].map((i) => ({ inputs: batch(i), rows: 4 })), inputs: { rate: 0.1 } });
  assert.deepEqual([steps, end], [3, 'batches']);
  assert.ok(loss > 0);
  assert.equal((await trainer.run({ steps: 3, batches: batch, inputs: { rate: 0.1 } })).end, 'steps');
  await assert.rejects(trainer.run({ steps: 3, batches: [] }), { kind: 'missing', message: /no batch/ });
});

test('an iterator is closed at the end of a run, however it ends', async (t) => {
  const trainer = await train(t), closed = [];
  const source = function* (name, bad) {
    try {
      for (let i = 0; ; i++) yield { inputs: i === bad ? {} : batch(i), rows: 4 };
    } finally {
      closed.push(name);
    }
  };
  const later = async function* (name) { yield* source(name); };
  await trainer.run({ steps: 2, batches: source('steps'), inputs: { rate: 0.1 } });
  await assert.rejects(trainer.run({ steps: 9, batches: source('error', 1), inputs: { rate: 0.1 } }), { kind: 'missing' });
  await trainer.run({ steps: 2, batches: later('async'), inputs: { rate: 0.1 } });
  await assert.rejects(trainer.evaluate({ entry: 'step', batches: source('evaluate') }), { kind: 'missing' });
  assert.deepEqual(closed, ['steps', 'error', 'async', 'evaluate']);
});

test('a signal ends the wait for a batch, and the trainer can run again', async (t) => {
  const trainer = await train(t), stop = new AbortController();
  const stuck = async function* () {
    yield { inputs: batch(0), rows: 4 };
    await new Promise(() => {});
  };
  const waiting = trainer.run({ steps: 9, batches: stuck(), inputs: { rate: 0.1 }, signal: stop.signal });
  setTimeout(() => stop.abort(), 20);
  const { steps, end, loss } = await waiting;
  assert.deepEqual([steps, end], [1, 'signal']);
  assert.ok(loss > 0);
  assert.equal((await trainer.run({ steps: 1, batches: batch, inputs: { rate: 0.1 } })).steps, 1);
});

test('a trainer goes on from a state that was saved: its losses only, its steps from there', async (t) => {
  const first = await train(t, { history }), second = await train(t, { history }), losses = [], steps = [];
  const options = { batches: batch, inputs: { rate: 0.05 }, every: 8 };
  await first.run({ ...options, steps: 30 });
  await second.load(await first.save());
  assert.equal(second.steps, 30);
  const onProgress = (p) => {
    losses.push(...p.losses);
    steps.push(p.step);
  };
  await second.run({ ...options, steps: 10, onProgress });
  assert.equal(losses.length, 10);
  assert.equal(steps.at(-1), 40);
  assert.deepEqual([second.steps, ...await second.program.read('count')], [40, 40]);
});

test('trainers that share a history take turns, and do not count each other\'s steps', async (t) => {
  const one = await train(t, { history }), two = new Trainer(one.program, { history }), seen = { one: [], two: [] };
  const run = (trainer, name) => trainer.run({ steps: 6, batches: batch, inputs: { rate: 0.05 }, every: 4, onProgress: (p) => seen[name].push(...p.losses) });
  const first = run(one, 'one');
  await assert.rejects(run(two, 'two'), { kind: 'busy', message: /running/ });
  await assert.rejects(run(one, 'one'), { kind: 'busy' });
  await first;
  await run(two, 'two');
  assert.deepEqual([seen.one.length, seen.two.length, one.steps, two.steps], [6, 6, 6, 6]);
});

test('a loss that is no number stops it where that is wanted, and reports the step', async (t) => {
  const trainer = await train(t, { history }), run = (stopOnNaN) => trainer.run({
    steps: 40, batches: batch, inputs: (i) => ({ rate: i === 5 ? NaN : 0.1 }), every: 4, stopOnNaN,
  });
  await assert.rejects(run(true), { name: 'RlxError', kind: 'nan', message: 'loss is NaN at step 7' });
  assert.ok(trainer.steps < 40);
  assert.ok(Number.isNaN((await run(false)).loss));
});

describe('what a run or an evaluation is given is checked', async () => {
  const rows = [
    ['no batches', (t) => t.run({ steps: 1 }), 'missing', /^batches is Undefined: it must be an iterable/],
    ['batches that are none', (t) => t.run({ steps: 1, batches: 5 }), 'missing', /^batches is Number: it must be an iterable/],
    ['no batches to evaluate', (t) => t.evaluate({ entry: 'step' }), 'missing', /^batches is Undefined: it must be/],
    ['an empty evaluation', (t) => t.evaluate({ entry: 'step', batches: [] }), 'missing', /no batch/],
    ['batches to evaluate without a number of rows', (t) => t.evaluate({ entry: 'step', batches: [{ inputs: batch(0) }] }), 'limit', /rows is undefined, not a whole number from 1/],
    ['a function to evaluate with, which has no end', (t) => t.evaluate({ entry: 'step', batches: batch }), 'limit', /rows is 0, not a whole number from 1/],
    ['every 0', (t) => t.run({ steps: 1, batches: batch, every: 0 }), 'limit', /every is 0, not a whole number from 1/],
    ['no number of steps', (t) => t.run({ batches: batch }), 'limit', /steps is undefined/],
    ['a misspelt option', (t) => t.run({ step: 5, steps: 1, batches: batch }), 'name', /no option step/],
    ['a misspelt option of a trainer', async (t) => new Trainer(t.program, { los: 'loss' }), 'name', /no option los/],
    ['a misspelt option of batches', async () => [...batches({}, { sise: 1 })], 'name', /no option sise/],
    ['a last batch that is neither', async () => [...batches({ y: { dtype: 'i32', shape: [3], data: new Int32Array(3) } }, { size: 2, last: 'pad' })], 'attr', /last: options is String: it must be an object/],
    ['a column of another class', async () => [...batches({ y: { dtype: 'f32', shape: [3], data: new Float64Array(3) } }, { size: 1 })], 'dtype', /batches: y is Float64Array: it must be Float32Array, of f32/],
    ['nothing to load', (t) => t.load({}), 'missing', /load: no tensors/],
    ['a column that lacks an element', async () => [...batches({ y: { dtype: 'f32', shape: [3, 2], data: new Float32Array(5) } }, { size: 1 })], 'shape', /y has 5 elements, not \[3,2\]/],
    ['a column without its shape', async () => [...batches({ y: new Int32Array(3) }, { size: 1 })], 'dtype', /y is Int32Array: it must be a tensor/],
  ];
  for (const [what, call, kind, message] of rows) {
    test(what, async (t) => {
      const trainer = await train(t);
      await assert.rejects(call(trainer), { name: 'RlxError', kind, message });
      assert.equal(trainer.steps, 0);
    });
  }
});

test('asynchronous batches are waited for', async (t) => {
  const trainer = await train(t), want = reference();
  const slow = async function* () { for (let i = 0; i < 4; i++) yield new Promise((done) => setTimeout(() => done({ inputs: batch(i), rows: 4 }), 2)); };
  const { loss } = await trainer.run({ steps: 4, batches: slow(), inputs: { rate: 0.1 } });
  const all = Array.from({ length: 4 }, (_, i) => want.step(batch(i), Math.fround(0.1)));
  assert.ok(close([loss], [all[3]]));
});

test('a failed check on the device ends it with the check\'s error', async (t) => {
  const trainer = await train(t, { entry: 'pick', loss: 'picked' });
  const given = (i) => ({ label: new Int32Array(4), free: Int32Array.of(0, 0, 0, i === 7 ? 99 : 0) });
  await assert.rejects(trainer.run({ steps: 100_000, batches: given, every: 1 }), { kind: 'index', message: /pick\(free\)/ });
});

test('other tasks get their turn', async (t) => {
  const trainer = await train(t);
  let turns = 0, longest = 0, last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    turns++;
  }, 1);
  await trainer.run({ steps: 3000, batches: batch, inputs: { rate: 0.01 } });
  clearInterval(timer);
  assert.ok(turns > 10, `${turns} turns, the longest wait ${longest} ms`);
});

test('a run ends when every reading has come, in whatever order', async () => {
  let step = 0;
  const arrived = [], program = {
    plan: { slots: [], entries: [] },
    run: async () => {
      const reading = { step: ++step, values: { loss: Float32Array.of(step) } };
      return { step, reading: new Promise((resolve) => setTimeout(resolve, 60 - 20 * step, reading)) };
    },
  };
  await new Trainer(program).run({ steps: 3, every: 1, batches: () => ({}), onProgress: ({ losses }) => arrived.push(...losses) });
  assert.deepEqual(arrived, [3, 2, 1]);
});

test('evaluate averages scalars over rows and joins the rest', async (t) => {
  const trainer = await train(t), rows = 10;
  const x = Float32Array.from({ length: 3 * rows }, (_, i) => Math.cos(i));
  const all = Array.from({ length: rows }, (_, r) => 0.5 * x[3 * r] + x[3 * r + 1] + 1.5 * x[3 * r + 2]);
  const data = { x: { dtype: 'f32', shape: [rows, 3], data: x } };
  const { prediction } = await trainer.evaluate({ entry: 'predict', batches: withoutMask(batches(data, { size: 4, last: { mask: 'mask' }, epochs: 1 })) });
  assert.ok(close(prediction, all));
  const { loss } = await trainer.evaluate({ entry: 'step', batches: [0, 1].map((i) => ({ inputs: { ...batch(i), rate: 0 }, rows: 4 })) });
  assert.ok(close([loss], [(reference().step(batch(0), 0) + reference().step(batch(1), 0)) / 2]));
});

test('evaluate adds up what counts', async () => {
  const outputs = [['correct', 'i32'], ['loss', 'f32']].map(([name, dtype]) => ({ name, dtype, shape: [], role: 'output' }));
  const program = {
    plan: { slots: outputs, entries: [{ name: 'eval', outputs: [0, 1] }] },
    run: async (entry, { x }) => ({ reading: Promise.resolve({ values: { correct: Int32Array.of(x), loss: Float32Array.of(x / 4) } }) }),
  };
  const list = [{ inputs: { x: 3 }, rows: 6 }, { inputs: { x: 1 }, rows: 2 }];
  assert.deepEqual(await new Trainer(program).evaluate({ batches: list }), { correct: 4, loss: (0.75 * 6 + 0.25 * 2) / 8 });
});

/** The linear plan has no mask input. */
function* withoutMask(source) {
  for (const { inputs: { mask, ...inputs }, rows } of source) {
    assert.equal(mask.reduce((a, b) => a + b), rows);
    yield { inputs, rows };
  }
}

describe('batches', () => {
  const data = { x: { dtype: 'f32', shape: [5, 2], data: Float32Array.from({ length: 10 }, (_, i) => i) }, y: { dtype: 'i32', shape: [5], data: Int32Array.of(0, 1, 2, 3, 4) } };
  const list = (options) => [...batches(data, { epochs: 1, ...options })].length;
  const rows = (options) => Array.from(batches(data, { epochs: 1, ...options }), ({ inputs, entry, rows }) => {
    for (let i = 0; i < rows; i++) assert.deepEqual([...inputs.x.data.subarray(2 * i, 2 * i + 2)], [2 * inputs.y.data[i], 2 * inputs.y.data[i] + 1]);
    return [entry, rows, inputs.y.shape[0], [...inputs.y.data]];
  });

  test('come in order', () => assert.deepEqual(rows({ size: 5 }), [[undefined, 5, 5, [0, 1, 2, 3, 4]]]));
  test('drop what is left over', () => assert.deepEqual(rows({ size: 2, last: 'drop' }), [[undefined, 2, 2, [0, 1]], [undefined, 2, 2, [2, 3]]]));
  test('mask what is left over', () => assert.deepEqual(rows({ size: 3, last: { mask: 'm' } }), [[undefined, 3, 3, [0, 1, 2]], [undefined, 2, 3, [3, 4, 0]]]));
  test('have ones in the mask for real rows', () => {
    assert.deepEqual(Array.from(batches(data, { size: 3, epochs: 1, last: { mask: 'm' } }), ({ inputs }) => [...inputs.m]), [[1, 1, 1], [1, 1, 0]]);
  });
  test('give what is left over to another entry', () => assert.deepEqual(rows({ size: 3, last: { entry: 'short' } }), [[undefined, 3, 3, [0, 1, 2]], ['short', 2, 2, [3, 4]]]));
  test('shuffle by seed, differently in each epoch', () => {
    const order = (seed) => rows({ size: 5, shuffle: seed, epochs: 3 }).map(([, , , y]) => y.join(''));
    assert.deepEqual(order(1), order(1));
    assert.notDeepEqual(order(1), order(2));
    assert.equal(new Set(order(3)).size, 3);
    assert.ok(order(3).every((y) => [...y].sort().join('') === '01234'));
  });
  test('are of the class of their column, whatever its type', () => {
    class Float16Array extends Uint16Array {} // replaces the global, which Node 20 lacks
    const [{ inputs }] = batches({ x: { dtype: 'f16', shape: [2], data: Float16Array.of(1, 2) } }, { size: 2 });
    assert.equal(inputs.x.data.constructor, Float16Array);
  });
  test('refuse to decide about a smaller last batch', () => assert.throws(() => list({ size: 2 }), { kind: 'shape', message: /1 of 5 rows are left over/ }));
  test('refuse no rows', () => assert.throws(() => list({ size: 0 }), { kind: 'shape', message: /no batch/ }));
  test('refuse to drop all rows, again and again', () => assert.throws(() => list({ size: 6, last: 'drop' }), { kind: 'shape', message: 'batches: no batch: 5 rows by 6' }));
  test('refuse columns of different lengths', () => assert.throws(() => [...batches({ ...data, z: { dtype: 'f32', shape: [4], data: new Float32Array(4) } }, { size: 1 })], { kind: 'shape', message: /z has 4 rows/ }));
});
