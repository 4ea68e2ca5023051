// Programs whose sizes are open, over Dawn and on the CPU.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { compile, graph, init, initialParams, parseGraph, program, train } from '../dist/index.js';
import { liveTensors } from '../dist/runtime.js';
import { openSizes } from '../dist/sizes.js';
import * as nn from '../dist/nn.js';
import { openDawn } from './rig/dawn.mjs';
import { isError } from './rig/is-error.mjs';

let dawn, model, step;
before(async () => {
  dawn = await openDawn();
  await init({ device: dawn.device, cache: new Map() });
  // A softmax over an open axis reads all of it, and the number of calls is a state.
  model = graph('rows', { inputs: { x: ['f32', ['batch', 'seq', 4]] }, params: { w: ['f32', [4]] }, states: { calls: ['i32'] } }, (_, { x, w, calls }) => {
    return { y: x.matmul(w).softmax(1), calls: calls.add(1) };
  });
});
after(() => dawn.close());

const rows = (batch, seq) => ({ shape: [batch, seq, 4], data: Float32Array.from({ length: batch * seq * 4 }, (_, i) => Math.sin(i * 1.7)) });
const w = Float32Array.of(0.5, -1, 2, 0.25);

/** The model's result, by its formula. */
function expected({ shape: [batch, seq], data }, weights) {
  const y = [];
  for (let i = 0; i < batch; i++) {
    const scores = Array.from({ length: seq }, (_, j) => weights.reduce((sum, v, k) => sum + v * data[(i * seq + j) * 4 + k], 0));
    const all = scores.map(Math.exp), total = all.reduce((a, b) => a + b, 0);
    y.push(...all.map((e) => e / total));
  }
  return y;
}

function near(got, want) {
  assert.equal(got.length, want.length);
  got.forEach((v, i) => assert.ok(Math.abs(v - want[i]) < 1e-5, `element ${i} is ${v} instead of ${want[i]}`));
}

for (const on of ['gpu', 'cpu']) {
  describe(`on the ${on}`, () => {
    const open = async (t, module = {}, options = {}) => {
      const made = await openSizes({ entries: { run: model }, ...module }, { on, ...options });
      t.after(() => made.close());
      return made;
    };

    test('each call has the sizes of its inputs; weights and states are common', async (t) => {
      const made = await open(t), y = async (x) => (await (await made.run('run', { x }, { read: ['y', 'calls'] })).reading).values;
      await assert.rejects(made.run('run', { x: rows(2, 3) }), isError('missing', /w is missing: give f32\[4\], or load it/));
      await made.load({ w: { dtype: 'f32', shape: [4], data: w } });
      for (const [i, [batch, seq]] of [[2, 3], [1, 5], [2, 3], [3, 1]].entries()) {
        const x = rows(batch, seq), values = await y(x);
        near(values.y, expected(x, w));
        assert.deepEqual([...values.calls], [i + 1]);
      }
      assert.equal(made.compiled, 3);
      const other = w.map((v) => -v);
      await made.write('w', other);
      near((await y(rows(2, 3))).y, expected(rows(2, 3), other));
      assert.deepEqual([...await made.read('calls')], [5]);
      near(await made.read('y'), expected(rows(2, 3), other));
      const { w: saved, calls } = await made.save();
      assert.deepEqual([...saved.data, ...calls.data], [...other, 5]);
      assert.equal(made.steps, 5);
      assert.equal(made.device.name, on === 'gpu' ? 'webgpu' : 'cpu');
    });

    test('a bound keeps the sizes that were used last, and states survive', async (t) => {
      const made = await open(t, { buckets: 2 });
      await made.load({ w: { dtype: 'f32', shape: [4], data: w } });
      for (let seq = 1; seq <= 6; seq++) {
        const x = rows(1, seq);
        near((await (await made.run('run', { x }, { read: ['y'] })).reading).values.y, expected(x, w));
        assert.ok(made.compiled <= 3, `${made.compiled} programs`);
      }
      assert.deepEqual([...await made.read('calls')], [6]);
      assert.equal(made.compiled, 2);
    });

    test('sizes are compiled ahead, and runs that are not awaited happen in order', async (t) => {
      const made = await open(t);
      await made.load({ w: { dtype: 'f32', shape: [4], data: w } });
      await made.prepare('run', { batch: 1, seq: 2 });
      assert.equal(made.compiled, 1);
      const runs = [3, 2, 4, 2].map((seq) => made.run('run', { x: rows(1, seq) }, { read: ['calls'] }));
      const readings = await Promise.all(runs.map(async (run) => (await run).reading));
      assert.deepEqual(readings.map(({ values }) => values.calls[0]), [1, 2, 3, 4]);
      assert.deepEqual(readings.map(({ step: at }) => at), [1, 2, 3, 4]);
    });

    test('entries are added to a live program, with the parameters and states that it has', async (t) => {
      const made = await open(t);
      await made.load({ w: { dtype: 'f32', shape: [4], data: w } });
      await made.run('run', { x: rows(1, 2) });
      const more = await made.add({
        total: graph('total', { params: { w: ['f32', [4]] }, states: { calls: ['i32'] } }, (_, { w, calls }) => ({ total: w.sum(), calls: calls.add(10) })),
        twice: graph('twice', { inputs: { a: ['f32', ['n']] }, params: { w: ['f32', [4]] } }, (_, { a, w }) => ({ doubled: a.mul(w.sum()) })),
      });
      near((await (await more.run('total', {}, { read: ['total'] })).reading).values.total, [1.75]);
      near((await (await more.run('twice', { a: Float32Array.of(1, 2, 3) }, { read: ['doubled'] })).reading).values.doubled, [1.75, 3.5, 5.25]);
      await more.run('run', { x: rows(1, 2) });
      assert.deepEqual([...await more.read('calls')], [12]);
      await assert.rejects(made.add({ run: model }), isError('name', /has an entry run already/));
      await assert.rejects(made.add({ v: graph('v', { params: { v: ['f32', [4]] } }, (_, { v }) => ({ s: v.sum() })) }), isError('name', /v: there are w, calls/));
      await assert.rejects(made.add({ v: graph('v', { params: { w: ['f32', [5]] } }, (_, { w }) => ({ s: w.sum() })) }), isError('shape', /w of entry v has the shape \[5\]: it must be f32\[4\]/));
    });

    test('bound inputs and tensors on the device serve all sizes', async (t) => {
      const made = await open(t), before = liveTensors();
      await made.load({ w: { dtype: 'f32', shape: [4], data: w } });
      const x = rows(2, 2), kept = await made.upload({ dtype: 'f32', ...x });
      near((await (await made.run('run', { x: kept }, { read: ['y'] })).reading).values.y, expected(x, w));
      const y = await made.keep('y');
      near(await y.data(), expected(x, w));
      y.dispose();
      kept.dispose();
      const { data } = x;
      await made.bind('run', { x });
      data[0] = 100; // the bound input is a copy
      near((await (await made.run('run', {}, { read: ['y'] })).reading).values.y, expected(rows(2, 2), w));
      assert.equal(liveTensors(), before);
    });

    test('training steps of any batch equal those of programs for it', async (t) => {
      const line = graph('line', { inputs: { x: ['f32', ['batch', 3]], t: ['f32', ['batch']] }, params: { w: ['f32', [3], 0.5] } }, (_, { x, t: target, w }) => {
        const error = x.matmul(w).sub(target);
        return { loss: error.mul(error).mean() };
      });
      const made = await open(t, { entries: { step: line.step({ optimizer: { kind: 'sgd' } }) } }), want = [0.5, 0.5, 0.5];
      for (const batch of [4, 2, 4, 1]) {
        const x = Float32Array.from({ length: 3 * batch }, (_, i) => Math.cos(i)), target = Float32Array.from({ length: batch }, (_, i) => i);
        await made.run('step', { x, t: target, lr: 0.1 });
        const grad = [0, 0, 0];
        for (let i = 0; i < batch; i++) {
          const error = want.reduce((sum, v, k) => sum + v * x[3 * i + k], 0) - target[i];
          for (let k = 0; k < 3; k++) grad[k] += 2 * error * x[3 * i + k] / batch;
        }
        grad.forEach((g, k) => { want[k] -= 0.1 * g; });
        near(await made.read('w'), want);
      }
    });

    test('wrong calls are refused, and leave the program as it was', async (t) => {
      const made = await open(t, { sizes: { seq: { max: 4 } } });
      await made.load({ w: { dtype: 'f32', shape: [4], data: w } });
      const refused = (inputs, kind, text) => assert.rejects(made.run('run', inputs), isError(kind, text));
      await refused({}, 'missing', /run: x is missing: give f32\[batch,seq,4\], or bind it/);
      await refused({ x: new Float32Array(8) }, 'shape', /x is Float32Array, whose shape is not known/);
      await refused({ x: { shape: [2, 4], data: new Float32Array(8) } }, 'shape', /x has the shape \[2,4\]: it must be f32\[batch,seq,4\]/);
      await refused({ x: { shape: [1, 2, 3], data: new Float32Array(6) } }, 'shape', /x has the shape \[1,2,3\]/);
      await refused({ x: rows(1, 5) }, 'limit', /size seq is 5, not a whole number from 1 to 4/);
      await refused({ x: rows(1, 0) }, 'limit', /size seq is 0/);
      await refused({ x: { shape: [1, 1, 4], data: new Int32Array(4) } }, 'dtype', /x/);
      await refused({ x: rows(1, 1), z: 1 }, 'name', /run has no input z/);
      await assert.rejects(made.run('walk'), isError('name', /the program has no entry walk: there are run/));
      await assert.rejects(made.prepare('run', { batch: 1 }), isError('symbol', /symbol seq has no size/));
      await assert.rejects(made.prepare('run', { batch: 1, seq: 1, n: 2 }), isError('name', /no symbol n: there are batch, seq/));
      await assert.rejects(made.read('z'), isError('name', /z/));
      await made.run('run', { x: rows(1, 1) });
      assert.deepEqual([...await made.read('calls')], [1]);
      made.close();
      await assert.rejects(made.run('run', { x: rows(1, 1) }), isError('closed', /closed/));
      await assert.rejects(made.prepare('run', { batch: 1, seq: 1 }), isError('closed', /closed/));
    });
  });
}

/** Graphs whose values and gradients would see padding, by name, and inputs of some sizes. */
const encoder = () => graph('encoder', { inputs: { tokens: ['i32', ['batch', 'seq']] } }, (_, { tokens }) => {
  const states = nn.transformerBlock(nn.embedding(tokens, 50, 16), 2);
  return { states, mean: states.mean([1]), best: states.reduceMax([2]).argmax({ axis: 1 }) };
});
const network = () => graph('network', { inputs: { x: ['f32', ['batch', 3]], y: ['f32', ['batch', 1]] } }, (_, { x, y }) => {
  const error = nn.linear(nn.layerNorm(nn.linear(x, 8).gelu()), 1).sub(y);
  return { loss: error.square().mean() };
}).valueAndGrad('loss', 'linear0/weight', 'linear1/weight', 'x');
const ends = () => graph('ends', { inputs: { x: ['f32', ['n', 2]] } }, (_, { x }) => ({ last: x.reverse([0]), all: x.reshape(['2*n']).cumsum(), sorted: x.sort([], { axis: 0 })[0] }));

const cases = {
  'an encoder': { make: encoder, open: ['batch', 'seq'], sizes: [[1, 1], [3, 5], [4, 8], [2, 7]], inputs: ([batch, seq]) => ({ tokens: { shape: [batch, seq], data: Int32Array.from({ length: batch * seq }, (_, i) => i * 7 % 49 + 1) } }) },
  'a loss and its gradients': { make: network, open: ['batch'], sizes: [[8], [3], [5], [3]], inputs: ([batch]) => ({ x: Float32Array.from({ length: 3 * batch }, (_, i) => Math.sin(i * 3)), y: Float32Array.from({ length: batch }, (_, i) => Math.cos(i)) }) },
  'ops that read from the end': { make: ends, open: ['n'], sizes: [[3], [6], [1], [4], [5]], inputs: ([n]) => ({ x: Float32Array.from({ length: 2 * n }, (_, i) => i - 2) }) },
};

for (const [name, { make, open, sizes, inputs }] of Object.entries(cases)) {
  test(`padded results equal those of programs for each size: ${name}`, async (t) => {
    const g = make(), symbols = Object.fromEntries(open.map((symbol) => [symbol, { exact: true }]));
    const padded = await openSizes({ entries: { run: g } }, { on: 'cpu' }), exact = await openSizes({ entries: { run: g }, sizes: symbols }, { on: 'cpu' });
    t.after(() => [padded, exact].map((made) => made.close()));
    const weights = initialParams(g, {}, 1), names = g.outputs.map(({ name: output }) => output);
    for (const made of [padded, exact]) await made.load(weights);
    for (const size of sizes) {
      const values = async (made) => (await (await made.run('run', inputs(size), { read: names })).reading).values;
      const [got, want] = [await values(padded), await values(exact)];
      for (const output of names) {
        assert.equal(got[output].length, want[output].length, `${output} for ${size}`);
        want[output].forEach((v, i) => assert.ok(Math.abs(got[output][i] - v) <= 1e-5 * (1 + Math.abs(v)), `${output}[${i}] for ${size} is ${got[output][i]} instead of ${v}`));
      }
    }
    assert.ok(padded.compiled < exact.compiled, `${padded.compiled} programs are compiled, ${exact.compiled} without padding`);
  });
}

test('buckets are powers of two, a list, or each size, up to a bound', async (t) => {
  const open = async (size) => {
    const made = await openSizes({ entries: { run: model }, sizes: { seq: size, batch: { exact: true } } }, { on: 'cpu' });
    t.after(() => made.close());
    await made.load({ w: { dtype: 'f32', shape: [4], data: w } });
    for (const seq of [1, 3, 4, 5, 6]) near((await (await made.run('run', { x: rows(1, seq) }, { read: ['y'] })).reading).values.y, expected(rows(1, seq), w));
    return made;
  };
  assert.equal((await open({})).compiled, 3); // 1, 4, 8
  assert.equal((await open({ max: 6 })).compiled, 3); // 1, 4, 6
  assert.equal((await open({ exact: true })).compiled, 5);
  const listed = await open({ buckets: [3, 10] });
  assert.equal(listed.compiled, 2);
  await assert.rejects(listed.run('run', { x: rows(1, 11) }), isError('limit', /size seq is 11, not a whole number from 1 to 10/));
  await assert.rejects(open({ buckets: [4, 2] }), isError('attr', /the buckets of seq are \[4,2\]: they must be whole numbers that ascend from 1/));
  await assert.rejects(open({ exact: true, buckets: [2, 4] }), isError('attr', /seq is exact and has buckets/));
  await assert.rejects(open({ buckets: [0, 2] }), isError('attr', /ascend from 1/));
  await assert.rejects(open({ max: -1 }), isError('limit', /the max of seq is -1/));
});

test('a graph that padding would change is refused, and compiled for each size on request', async (t) => {
  const shuffle = graph('shuffle', { inputs: { x: ['f32', ['n', 2]] } }, (_, { x }) => ({ y: x.reshape([2, 'n']).transpose([1, 0]).reshape(['2*n']) }));
  await assert.rejects(openSizes({ entries: { run: shuffle } }), isError('unsupported', /entry run cannot be padded, .* exact: true .*reshape/));
  const made = await openSizes({ entries: { run: shuffle }, sizes: { n: { exact: true } } }, { on: 'cpu', padding: 'missing.wasm' });
  t.after(() => made.close());
  await made.run('run', { x: Float32Array.of(1, 2, 3, 4, 5, 6) });
  assert.deepEqual([...await made.read('y')], [1, 4, 2, 5, 3, 6]);
  await assert.rejects(openSizes({ entries: { run: model } }, { padding: 'file:///missing.wasm' }), isError('wasm', /missing\.wasm/));
});

test('sizes that a bucket cannot have are compiled exactly', async (t) => {
  const pairs = graph('pairs', { inputs: { x: ['f32', ['n']] } }, (_, { x }) => ({ y: x.reshape(['n/2', 2]).sum([1]) }));
  const made = await openSizes({ entries: { run: pairs }, sizes: { n: { buckets: [5, 8] } } }, { on: 'cpu' });
  t.after(() => made.close());
  for (const n of [4, 6, 4]) {
    await made.run('run', { x: Float32Array.from({ length: n }, (_, i) => i) });
    assert.deepEqual([...await made.read('y')], Array.from({ length: n / 2 }, (_, i) => 4 * i + 1));
  }
  assert.equal(made.compiled, 2);
});

test('what cannot be open is refused', async () => {
  const shaped = (declarations, build = (_, ports) => ({ y: Object.values(ports)[0] })) => ({ entries: { run: graph('g', declarations, build) } });
  await assert.rejects(openSizes(shaped({ params: { w: ['f32', ['n']] } })), isError('symbol', /param w has the shape \[n\]: only inputs may have open sizes/));
  await assert.rejects(openSizes(shaped({ inputs: { x: ['f32', ['2*n']] } })), isError('symbol', /symbol n is not the size of an axis of an input, only part of one/));
  await assert.rejects(openSizes({ entries: { run: model }, sizes: { rows: {} } }), isError('name', /the module has no symbol rows: there are batch, seq/));
  await assert.rejects(openSizes({ entries: { run: model }, sizes: { seq: { most: 3 } } }), isError('name', /sizes: seq has no option most/));
  await assert.rejects(openSizes({ entries: { run: model }, buckets: 0 }), isError('limit', /buckets is 0/));
  await assert.rejects(openSizes({ entries: { run: 3 } }), isError('missing', /entry run is Number/));
});

test('a size that does not fit is refused at the first call, and others go on', async (t) => {
  const halves = graph('halves', { inputs: { x: ['f32', ['n']], z: ['f32', ['n+1']] } }, (_, { x, z }) => ({ y: x.sum().add(z.sum()) }));
  const made = await openSizes({ entries: { run: halves } });
  t.after(() => made.close());
  const call = (x, z) => made.run('run', { x: Float32Array.from({ length: x }, () => 1), z: { shape: [z], data: Float32Array.from({ length: z }, () => 1) } }, { read: ['y'] });
  await assert.rejects(call(3, 5), isError('shape', /z has the shape \[5\]: it must be f32\[4\]/));
  assert.deepEqual([...(await (await call(3, 4)).reading).values.y], [7]);
});
