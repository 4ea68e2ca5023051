// Graphs built, differentiated, compiled and trained in JavaScript: against the meaning of
// their ops, as the Go package wasm/internal/compiler wrote it down.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { batches, compile, decodePlan, graph, init, initialParams, moduleText, openProgram, parseGraph, parseModule, program, train } from '../dist/index.js';
import { openDawn } from './rig/dawn.mjs';
import { isError } from './rig/is-error.mjs';

process.env.LP_NATIVE_VECTOR_WIDTH = '256'; // lavapipe's subgroups have a lane for each 32 bits, and a test is for eight

const golden = JSON.parse(readFileSync(new URL('testdata/mlp_steps.json', import.meta.url), 'utf8'));

let dawn;
before(async () => {
  dawn = await openDawn();
  await init({ device: dawn.device });
});
after(() => dawn.close());

/** A perceptron with its loss. */
const perceptron = () => graph('mlp', (b) => {
  const x = b.input('x', 'f32', [4, 3]), labels = b.input('labels', 'i32', [4]);
  const hidden = x.linear(b.param('w1', 'f32', [3, 5]), b.param('b1', 'f32', [5])).tanh();
  b.output('loss', hidden.linear(b.param('w2', 'f32', [5, 3]), b.param('b2', 'f32', [3])).crossEntropyMean(labels));
});

/** The numbers the golden losses were made with: by the place of the port. */
const elements = (seed, n) => Float32Array.from({ length: n }, (_, i) => ((i * 7919 + seed * 104729) % 1024) / 1024 - 0.5);
const data = { x: elements(0, 12), labels: Int32Array.from([0, 1, 2, 0]) };
const params = { w1: elements(2, 15), b1: elements(3, 5), w2: elements(4, 15), b2: elements(5, 3) };
const schedule = { kind: 'constant', rate: 0.125 };

/** The value of an output of a graph whose inputs are all given. */
async function valueOf(made, inputs, output, on = 'gpu') {
  const s = await program({ entries: { main: made } }, { on });
  try {
    await s.load(initialParams(made));
    const { reading } = await s.run('main', inputs, { read: [output] });
    return [...(await reading).values[output]];
  } finally {
    s.close();
  }
}

test('a graph built in JavaScript is the one built in Go', () => {
  const made = perceptron();
  assert.equal(made.text(), golden.text);
  assert.equal(parseGraph(made.text()).text(), golden.text);
  assert.deepEqual(made.ports.map(({ name, kind }) => `${kind} ${name}`), ['input x', 'input labels', 'param w1', 'param b1', 'param w2', 'param b2']);
  assert.deepEqual(made.outputs, [{ name: 'loss', state: false, dtype: 'f32', shape: [] }]);
});

for (const on of ['gpu', 'cpu']) {
  test(`losses of training on the ${on} are those of its meaning`, async () => {
    const trainer = await train(perceptron(), { optimizer: { kind: 'adam' }, schedule, params, history: 8, on, worker: false });
    const losses = [];
    await trainer.run({ steps: golden.losses.length, batches: () => data, every: 4, onProgress: (p) => losses.push(...p.losses) });
    assert.equal(losses.length, golden.losses.length);
    losses.forEach((loss, i) => assert.ok(Math.abs(loss - golden.losses[i]) < 1e-4, `step ${i}: ${loss} instead of ${golden.losses[i]}`));
    trainer.program.close();
  });
}

test('a graph of declarations is the one that its builder declares', () => {
  const loose = graph('line', (b) => {
    const x = b.input('x', 'f32', [8, 3]), scale = b.input('scale', 'f32'), w = b.param('w', 'f32', [3], 2), seen = b.state('seen', 'i32');
    b.output('y', x.matmul(w).mul(scale));
    b.setState('seen', seen.add(1));
  });
  const declared = graph('line', { inputs: { x: ['f32', [8, 3]], scale: ['f32'] }, params: { w: ['f32', [3], 2] }, states: { seen: ['i32'] } }, (_, { x, scale, w, seen }) => (
    { y: x.matmul(w).mul(scale), seen: seen.add(1) }
  ));
  assert.equal(declared.text(), loose.text());
  assert.deepEqual(declared.initial, new Map([['w', 2]]));
  const one = { inputs: { x: ['f32'] } };
  for (const [declarations, build, kind, message] of [
    [{ input: {} }, () => ({}), 'name', /graph has no option input: there are inputs, params, states/],
    [{ inputs: { x: 'f32' } }, () => ({}), 'attr', /x is String: it must be declared by \[dtype, shape\]/],
    [one, undefined, 'graph', /built by Object: it must be a function/], [one, null, 'graph', /by Null: it must be/], [one, () => 5, 'graph', /returns Number: it must return outputs by name/],
    [one, () => ({ y: 5 }), 'graph', /a value is Number: it must be one of the graph/], [one, async () => ({}), 'graph', /returns a promise/],
  ]) assert.throws(() => graph('g', declarations, build), isError(kind, message));
});

test('a rate beside a schedule is refused before anything is compiled, and both are named', () =>
  assert.rejects(train(perceptron(), { optimizer: { kind: 'sgd' }, schedule, rate: 0.1 }), isError('attr', /rate is 0\.1, and the schedule is 'constant'/)));

test('sizes of symbols that no graph has are refused, and a module without entries', async () => {
  const open = graph('open', (b) => b.output('loss', b.input('x', 'f32', ['rows']).mul(b.param('w', 'f32', [])).mean())), optimizer = { kind: 'sgd' };
  const noCols = { kind: 'name', message: 'symbols: the module has no symbol cols: there are rows' }, symbols = { rows: 2, cols: 3 };
  await assert.rejects(compile({ entries: { open }, symbols }), noCols);
  await assert.rejects(program({ entries: { open }, symbols }), noCols);
  await assert.rejects(train(open, { optimizer, rate: 1, symbols }), noCols);
  const { program: trained } = await train(open, { optimizer, rate: 1, symbols, entries: { eval: graph('eval', (b) => b.output('y', b.input('x', 'f32', ['cols']).neg())) } });
  trained.close();
  const noRows = { kind: 'symbol', message: /^symbols: size rows has no value: give one in symbols, or leave it open with openSizes/ };
  await assert.rejects(compile({ entries: { open } }), noRows);
  await assert.rejects(program({ entries: { open } }), noRows);
  await assert.rejects(train(open, { optimizer }), noRows);
  await assert.rejects(compile({ entries: {} }), { kind: 'missing', message: 'a module has no entries: they must be graphs by name' });
});

test('numbers are operands, and attributes have defaults', async () => {
  const made = graph('f', (b) => {
    const x = b.input('x', 'f32', [2, 3]);
    b.output('y', x.gt(0).select(x, x.mul(-10)).reduceSum([-1]));
    b.output('z', b.concatenate([x, x.max(0)], 1).softmax());
    b.output('n', b.iota({ shape: [3] }).add(1).convert('f32').mean());
  });
  const x = Float32Array.of(1, -2, 3, -4, 5, -6);
  assert.deepEqual(await valueOf(made, { x }, 'y'), [24, 105]);
  assert.deepEqual(await valueOf(made, { x }, 'n'), [2]);
});

for (const on of ['gpu', 'cpu']) {
  test(`random words are of the generator that is asked for, on the ${on}`, async () => {
    const made = graph('words', (b) => {
      const key = b.randomKey(42), shape = [4];
      b.output('each', key.randomBits(undefined, { shape }));
      b.output('both', key.randomBits(undefined, { shape, generator: 'threefry_both' }));
      b.output('both13', b.randomKey(0).randomBits(undefined, { shape: [2], generator: 'threefry_both_13' }));
    });
    // Of JAX 0.10.2, random.bits(key(42), (2,), uint64) for those of both; of Random123, threefry2x32 with 13 rounds.
    const both = [0x6d3e048f, 0x1022172d, 0x03d7b32d, 0xadd083f4];
    assert.deepEqual(await valueOf(made, {}, 'both', on), both);
    assert.notDeepEqual(await valueOf(made, {}, 'each', on), both);
    assert.deepEqual(await valueOf(made, {}, 'both13', on), [0x9d1c5ec6, 0x8bd50731]);
  });
}

test('derivatives of first and third order are right', async () => {
  const cube = graph('cube', (b) => {
    const x = b.input('x', 'f32');
    b.output('y', x.mul(x).mul(x));
  });
  assert.deepEqual(await valueOf(cube.grad('y', 'x'), { x: 2 }, 'grad/x'), [12]);
  const third = cube.nth('y', 'x', 3);
  assert.deepEqual(await valueOf(third, { x: 2 }, third.outputs.at(-1).name), [6]);
});

test('a loop and a choice are graphs of their own', async () => {
  const made = graph('loop', (b) => {
    const xs = b.input('xs', 'f32', [4]), up = b.input('up', 'bool');
    const { carries: [sum], ys: [sums] } = b.scan({ carries: [b.full('f32', [], 0)], xs: [xs] }, (_, __, [carry], [x]) => {
      const next = carry.add(x);
      return { carries: [next], ys: [next] };
    });
    b.output('sums', sums);
    b.output('y', b.cond(up, [sum], (_, [x]) => [x.add(1)], (_, [x]) => [x.neg()])[0]);
  });
  const inputs = { xs: Float32Array.of(1, 2, 3, 4), up: Uint8Array.of(1) };
  for (const on of ['gpu', 'cpu']) {
    assert.deepEqual(await valueOf(made, inputs, 'sums', on), [1, 3, 6, 10]);
    assert.deepEqual(await valueOf(made, inputs, 'y', on), [11]);
    assert.deepEqual(await valueOf(made, { ...inputs, up: false }, 'y', on), [-10]);
  }
});

test('a loop in segments has the results and gradients of the loop in one piece', async () => {
  const made = (segments) => graph('loop', (b) => {
    const xs = b.input('xs', 'f32', [6]), w = b.input('w', 'f32', []);
    const { carries: [last], ys: [all] } = b.scan({ carries: [b.full('f32', [], 1)], xs: [xs], reverse: true, ...segments && { segments } }, (_, __, [carry], [x]) => {
      const next = carry.mul(w).add(x).sin(); // w is of the graph around it
      return { carries: [next], ys: [next] };
    });
    b.output('loss', all.square().sum().add(last));
  }).valueAndGrad('loss', 'w');
  const inputs = { xs: Float32Array.of(1, 2, -3, 4, 0.5, 1), w: 0.7 };
  for (const segments of [1, 2, 3, 6]) {
    for (const name of ['loss', 'grad/w']) {
      const [want] = await valueOf(made(), inputs, name, 'cpu'), [got] = await valueOf(made(segments), inputs, name, 'cpu');
      assert.ok(Math.abs(got - want) < 1e-5, `${segments} segments: ${name} is ${got}, not ${want}`);
    }
  }
  assert.throws(() => made(4), { kind: 'attr', message: /segments is 4: it must divide the number of steps, 6/ });
  assert.throws(() => made(1.5), { kind: 'limit' });
});

test('the text of a module has its entries', () => {
  const double = graph('double', (b) => { b.output('y', b.input('x', 'f32', [2]).mul(2)); });
  const loop = graph('loop', (b) => { b.output('y', b.scan({ carries: [b.input('x', 'f32', [])], length: 3 }, (_, __, [x]) => ({ carries: [x.add(1)] })).carries[0]); });
  const text = moduleText({ first: double, 'the "second"': loop }), read = parseModule(text);
  assert.deepEqual(Object.keys(read), ['first', 'the "second"']);
  assert.equal(moduleText(read), text);
  assert.equal(read.first.text(), double.text().replace('double', 'first'));
  assert.throws(() => parseModule(text + text), { kind: 'name', message: /two graphs are called first/ });
  assert.throws(() => parseModule(''), { kind: 'syntax' });
  assert.deepEqual(Object.keys(parseModule(`// Two graphs.\n${'//  \n'.repeat(100)}\n${text}`)), Object.keys(read), 'comments stand before the first');
  const lines = text.split('\n').length;
  assert.throws(() => parseModule(`// Two.\n${text}graph "third" {\n  nonsense\n}\n`), { kind: 'syntax', message: new RegExp(`^${lines + 2}:3: `) }, 'an error has its line of the whole text');
});

test('a loop runs as long as its condition holds, on the GPU and on the CPU', async () => {
  const made = graph('while', (b) => {
    const x = b.param('x', 'f32', [2], Float32Array.of(1, 2)), most = b.input('most', 'f32');
    const [grown, steps] = b.whileLoop({ carries: [x, b.full('i32', [], 0)], maxSteps: 5 },
      (_, __, [c]) => c.reduceSum().lt(most),
      (_, __, [c, n]) => [c.mul(x).add(c), n.add(1)]);
    b.output('grown', grown);
    b.output('steps', steps);
    b.output('loss', grown.reduceSum());
  });
  for (const on of ['gpu', 'cpu']) {
    for (const [most, grown, steps] of [[0, [1, 2], 0], [10, [4, 18], 2], [1e9, [32, 486], 5]]) {
      assert.deepEqual(await valueOf(made, { most }, 'grown', on), grown);
      assert.deepEqual(await valueOf(made, { most }, 'steps', on), [steps]);
      // d(x·(1+x)^n)/dx = (1+x)^n + n·x·(1+x)^(n-1)
      const slope = [1, 2].map((x) => (1 + x) ** steps + steps * x * (1 + x) ** (steps - 1));
      assert.deepEqual(await valueOf(made.grad('loss', 'x'), { most }, 'grad/x', on), slope);
    }
  }
});

/** Counts up to a number by ones, however long it takes. */
const countedTo = (b, x, least) => b.whileLoop({ carries: [x] }, (_, __, [c]) => c.lt(least), (_, __, [c]) => [c.add(1)])[0];

for (const on of ['gpu', 'cpu']) {
  test(`a loop without a bound runs as often as it takes, alone, in a scan and in a branch, on the ${on}`, async (t) => {
    const made = await program({ entries: { main: graph('unbounded', (b) => {
      const x = b.input('x', 'f32', [3]), least = b.input('least', 'f32'), total = b.state('total', 'f32'), most = x.reduceMax();
      const alone = countedTo(b, most, least);
      b.output('alone', alone);
      b.output('each', b.scan({ xs: [x] }, (s, _, __, [one]) => ({ carries: [], ys: [countedTo(s, one, least)] })).ys[0]);
      b.output('branch', b.cond(most.gt(3), [most], (c, [v]) => [countedTo(c, v, 40)], (_, [v]) => [v.neg()])[0]);
      b.setState('total', total.add(alone));
    }) } }, { on });
    t.after(() => made.close());
    const upTo = (x, least) => x + Math.max(0, Math.ceil(least - x));
    let total = 0;
    for (const [x, leasts] of [[[1, 4.5, 2], [8, 9, 300]], [[200, -30, 9.5], [150, 5, 250]], [[2, 1, 0.5], [2, 1, 3]]]) {
      const most = Math.max(...x);
      // Runs that are not awaited, one of them of several steps, come one after the other.
      const runs = [{ least: leasts[0] }, { least: leasts.slice(1), steps: 2 }].map(({ least, steps = 1 }) =>
        made.run('main', { x: Float32Array.from(x), least }, { steps, read: ['alone', 'each', 'branch', 'total'] }));
      const [{ values: first }, { values: last }] = await Promise.all(runs.map(async (run) => (await run).reading));
      for (const [values, least] of [[first, leasts[0]], [last, leasts[2]]]) {
        assert.deepEqual([...values.alone], [upTo(most, least)]);
        assert.deepEqual([...values.each], x.map((one) => upTo(one, least)));
        assert.deepEqual([...values.branch], [most > 3 ? upTo(most, 40) : -most]);
      }
      for (const least of leasts) total += upTo(most, least);
      assert.deepEqual([...last.total], [total]);
    }
    assert.equal(made.steps, 9);
  });
}

test('a loop without an end ends with its program; one without a bound has no reverse derivative', async () => {
  const endless = graph('endless', (b) => b.output('y', countedTo(b, b.param('x', 'f32', [], 1), Infinity)));
  const made = await program({ entries: { main: endless } }, { on: 'gpu' });
  const run = made.run('main');
  await new Promise((resolve) => setTimeout(resolve, 300));
  assert.equal(made.steps, 0);
  made.close();
  await assert.rejects(run, isError('closed'));
  assert.throws(() => endless.grad('y', 'x'), isError('rule', /max_steps/));
});

for (const on of ['gpu', 'cpu']) {
  test(`a body uses values and declares parameters of the graph around it, on the ${on}`, async () => {
    const made = graph('capture', (b) => {
      const xs = b.input('xs', 'f32', [3, 2]), scale = b.input('scale', 'f32'), up = b.input('up', 'bool');
      const { carries: [h], ys: [hs] } = b.scan({ carries: [b.full('f32', [2], 0)], xs: [xs] }, (s, _, [carry], [x]) => {
        const w = s.param('w', 'f32', [2], Float32Array.of(1, 10));
        const next = s.cond(up, [carry], (_c, [c]) => [c.add(x.mul(scale))], (c, [v]) => [v.sub(c.param('v', 'f32', [2], 0.5)).mul(w)])[0];
        return { carries: [next], ys: [next.mul(w)] };
      });
      b.output('h', h);
      b.output('hs', hs);
      b.output('loss', h.mul(h).mean());
    });
    assert.deepEqual(made.ports.map(({ name, kind }) => `${kind} ${name}`), ['input xs', 'input scale', 'input up', 'param w', 'param v']);
    const inputs = { xs: Float32Array.of(1, 2, 3, 4, 5, 6), scale: 2, up: true };
    assert.deepEqual(await valueOf(made, inputs, 'h', on), [18, 24]);
    assert.deepEqual(await valueOf(made, inputs, 'hs', on), [2, 40, 8, 120, 18, 240]);
    // h = ((0 − v)·w − v)·w − v)·w with w = (1, 10), v = 0.5
    assert.deepEqual(await valueOf(made, { ...inputs, up: false }, 'h', on), [-1.5, -555]);
    // d(mean(h²))/dw = h·dh/dw, dh/dw = −v·(3w² + 2w + 1)
    assert.deepEqual(await valueOf(made.grad('loss', 'w'), { ...inputs, up: false }, 'grad/w', on), [4.5, 555 * 0.5 * 321]);
  });
}

test('a body has no outputs and sets no states, and its values stay in it', () => {
  const loop = (body) => () => graph('loop', (b) => {
    b.state('n', 'f32');
    b.scan({ carries: [b.full('f32', [], 0)], length: 2 }, body(b));
  });
  assert.throws(loop(() => (s, _, [c]) => { s.output('y', c); return { carries: [c] }; }), isError('graph', /y cannot be set in a body: return/));
  assert.throws(loop(() => (s, _, [c]) => { s.setState('n', c); return { carries: [c] }; }), isError('graph', /n cannot be set in a body/));
  assert.throws(loop(() => async (s, _, [c]) => ({ carries: [c] })), isError('graph', /body returns Promise: it must return \{ carries, ys \}/));
  assert.throws(loop((b) => {
    let stranger;
    b.scan({ carries: [b.full('f32', [], 0)], length: 2 }, (s, _, [c]) => ({ carries: [stranger = c.add(1)] }));
    return (s, _, [c]) => ({ carries: [c.add(stranger)] });
  }), isError('graph', /one of a body is to be returned from it/));
});

test('an op that is refused leaves the graph as it was', () => {
  const made = graph('again', (b) => {
    const x = b.input('x', 'f32', [2]), y = b.input('y', 'f32', [3]);
    for (const kind of ['shape', 'shape']) assert.throws(() => x.add(y), isError(kind, /add/));
    assert.throws(() => b.input('x', 'f32'), isError('name'));
    b.output('z', x.add(1));
  });
  assert.deepEqual(made.outputs.map(({ name }) => name), ['z']);
});

test('negative axes and sizes count from the end', async () => {
  const made = graph('axes', (b) => {
    const x = b.input('x', 'f32', [2, 3]);
    b.output('t', x.transpose([-1, 0]).reshape([-1]));
    b.output('s', x.slice({ start: [-1, 1], size: [-1, -1], stride: [1, 1] }).reshape([-1]));
  });
  const x = Float32Array.of(1, 2, 3, 4, 5, 6);
  assert.deepEqual(await valueOf(made, { x }, 't'), [1, 4, 2, 5, 3, 6]);
  assert.deepEqual(await valueOf(made, { x }, 's'), [5, 6]);
});

test('parameters begin as their declarations say, in a program too', async () => {
  const made = graph('begin', (b) => {
    const two = b.param('two', 'f32', [2], 2).mul(b.param('list', 'f32', [2], Float32Array.of(3, 4)));
    b.output('y', two.add(b.param('rest', 'f32', [2, 2]).mean([0])));
  });
  for (const on of ['gpu', 'cpu']) {
    const s = await program({ entries: { main: made } }, { on });
    await assert.rejects(s.run('main'), { kind: 'missing', message: 'main: rest is missing: give f32[2,2], or load it' });
    await s.load({ rest: { dtype: 'f32', shape: [2, 2], data: new Float32Array(4) } }, { allowMissing: true });
    const { reading } = await s.run('main', {}, { read: ['y'] });
    assert.deepEqual([...(await reading).values.y], [6, 8]);
    s.close();
  }
  // Of a convolution's filter [3, 3, 8, 16] the fans are 72 and 144.
  const { filter: { data: drawn } } = initialParams(graph('conv', (b) => b.output('y', b.param('filter', 'f32', [3, 3, 8, 16]).mean())));
  const largest = drawn.reduce((most, v) => Math.max(most, Math.abs(v)), 0), bound = Math.sqrt(6 / (72 + 144));
  assert.ok(largest <= bound && largest > 0.98 * bound, `${largest} of ${bound}`);
});

test('what a norm scales by begins as ones, and what is saved for inference is all that training changes but its own states', async () => {
  const made = graph('norms', (b) => {
    const vector = (name) => b.param(name, 'f32', [4]);
    const x = b.input('x', 'f32', [2, 4]).layerNorm(vector('layer'), vector('bias')).rmsNorm(vector('rms')).layerNorm(b.param('given', 'f32', [4], 3));
    const [y, mean, variance] = x.batchNormTraining(vector('batch'), vector('shift'), b.state('mean', 'f32', [4]), b.state('variance', 'f32', [4]));
    b.setState('mean', mean);
    b.setState('variance', variance);
    const steps = b.state('rng', 'i32', []); // as that of dropout
    b.setState('rng', steps.add(1));
    b.output('loss', y.square().mean());
  });
  const trainer = await train(made, { optimizer: { kind: 'adam' }, rate: 1e-3, on: 'cpu', worker: false });
  const saved = await trainer.saveParams();
  const begin = { batch: 1, bias: 0, given: 3, layer: 1, mean: 0, rms: 1, shift: 0, variance: 1 };
  assert.deepEqual(Object.fromEntries(Object.entries(saved).map(([name, { data }]) => [name, data])), Object.fromEntries(Object.entries(begin).map(([name, n]) => [name, new Float32Array(4).fill(n)])));
  const all = await trainer.save();
  assert.ok('optim/m/layer' in all && 'rng' in all);
  const only = await program({ entries: { scaled: graph('scaled', (b) => b.output('y', b.input('x', 'f32', [2, 4]).layerNorm(b.param('layer', 'f32', [4])))) } }, { on: 'cpu', worker: false });
  await only.load({ layer: saved.layer });
  trainer.program.close();
  only.close();
});

for (const on of ['gpu', 'cpu']) {
  for (const precision of ['bf16', 'f16']) {
    test(`products in ${precision} train as well on the ${on}, whether it has such arithmetic or not`, async () => {
      const trainer = await train(perceptron(), { optimizer: { kind: 'adam' }, schedule, params, history: 40, on, worker: false, precision });
      const losses = [], onProgress = (p) => losses.push(...p.losses);
      await trainer.run({ steps: 40, batches: () => data, onProgress });
      assert.equal(losses.length, 40);
      assert.ok(Math.abs(losses[0] - golden.losses[0]) < 0.02, `the first loss is ${losses[0]}, of f32 ${golden.losses[0]}`);
      assert.notEqual(losses[0], golden.losses[0]);
      assert.ok(losses.at(-1) < losses[0] / 4, `${losses}`);
      const kept = await trainer.program.read('w1');
      assert.ok(kept instanceof Float32Array, 'parameters stay f32');
      if (precision === 'f16') {
        const before = await trainer.program.read('w1'), [doubled] = await trainer.program.read('optim/scale');
        await trainer.run({ steps: 1, batches: () => ({ ...data, x: data.x.map((x, i) => i === 5 ? 1e30 : x) }) });
        assert.deepEqual(await trainer.program.read('w1'), before, 'a step with infinite gradients changes nothing');
        assert.deepEqual([...await trainer.program.read('optim/scale')], [doubled - 1]);
      }
      trainer.program.close();
    });
  }
}

test('a page that knows the size of subgroups gets kernels by subgroups, on devices with them', async () => {
  const model = graph('rows', (b) => b.output('y', b.input('x', 'f32', [4, 64]).softmax(1)));
  const plan = await compile({ entries: { main: model }, limits: { subgroup: 8 } });
  assert.deepEqual(decodePlan(plan).requires.features, ['subgroups', 'subgroup-size-control']);
  const { device, close } = await openDawn({ features: ['subgroups', 'subgroup-size-control'] });
  const s = await openProgram(plan, { device });
  const { reading } = await s.run('main', { x: Float32Array.from({ length: 256 }, (_, i) => i % 64) }, { read: ['y'] });
  const { y } = (await reading).values, sum = (1 - Math.exp(-64)) / (1 - Math.exp(-1));
  y.forEach((v, i) => assert.ok(Math.abs(v - Math.exp(i % 64 - 63) / sum) < 1e-6, `${i}: ${v}`));
  s.close();
  await assert.rejects(openProgram(plan, { device: dawn.device }), isError('limit', /subgroups/));
  close();
});

test('weight decay leaves vectors alone on request, and parameters frozen by a pattern stay', async () => {
  const model = graph('decay', (b) => {
    const parts = [b.param('w', 'f32', [1, 1]), b.param('b', 'f32', [1]), b.param('head/w', 'f32', [1, 1]), b.param('head/b', 'f32', [1])];
    b.output('loss', parts.map((p) => p.reduceSum()).reduce((a, c) => a.add(c)).mul(b.input('zero', 'f32')));
  });
  const params = Object.fromEntries(['w', 'b', 'head/w', 'head/b'].map((name) => [name, Float32Array.of(2)]));
  const after = async (optimizer, frozen) => {
    const step = { optimizer, frozen, schedule: { kind: 'constant', rate: 0.5 } };
    const trainer = await train(model, { ...step, params, on: 'cpu', worker: false });
    await trainer.run({ steps: 1, batches: () => ({ zero: 0 }) });
    const values = await Promise.all(Object.keys(params).map((name) => trainer.program.read(name)));
    trainer.program.close();
    return values.map(([v]) => v);
  };
  assert.deepEqual(await after({ kind: 'adamw', weightDecay: 0.5 }, []), [1.5, 1.5, 1.5, 1.5]);
  assert.deepEqual(await after({ kind: 'adamw', weightDecay: 0.5, decayMatrices: true }, ['head/*']), [1.5, 2, 2, 2]);
  assert.deepEqual(await after({ kind: 'adamw', weightDecay: 0 }, []), [2, 2, 2, 2]);
});

test('a hostile count of steps is refused before anything is loaded, and where it turns up', async () => {
  const trainer = await train(perceptron(), { optimizer: { kind: 'sgd' }, schedule, worker: false });
  const count = (n) => ({ 'history/count': { dtype: 'i32', shape: [], data: Int32Array.of(n) } });
  const refused = isError('index', /history\/count is -?\d+, outside \[0, 1073741824\]/);
  const run = () => trainer.run({ steps: 2, batches: () => data }), partly = { allowMissing: true };
  await assert.rejects(trainer.load(count(-7), partly), refused);
  assert.deepEqual([trainer.steps, ...await trainer.program.read('history/count')], [0, 0]);
  await trainer.program.load(count(-7), partly);
  await assert.rejects(run(), refused);
  await assert.rejects(trainer.load(count(2 ** 31 - 1), partly), refused); // it would wrap
  await assert.rejects(trainer.load({ 'optim/step': count(-1)['history/count'] }, partly), isError('index', /optim\/step is -1/));
  await trainer.load(count(1e9), partly);
  assert.equal((await run()).steps, 2);
  trainer.program.close();
});

test('a GPU made of software is not the best', async () => {
  const made = graph('one', (b) => b.output('y', b.input('x', 'f32').add(1))), { gpu } = dawn;
  await init({ gpu });
  try {
    const best = await program({ entries: { main: made } });
    assert.deepEqual([best.device.description, best.fallbackReason], ['CPU', 'the GPU here is software on the CPU']);
    best.close();
    const asked = await program({ entries: { main: made } }, { on: 'gpu' });
    assert.notEqual(asked.device.description, 'CPU');
    asked.close();
  } finally {
    await init({ device: dawn.device });
  }
});

test('scopes name parameters, states and labels, in the bodies of loops too', () => {
  const g = graph('scopes', (b) => {
    let x = b.input('x', 'f32');
    b.label('outside');
    x = b.scope('a', () => {
      const w = b.param('w', 'f32', [], 2);
      return b.scope('b', () => {
        const { carries: [last] } = b.scan({ carries: [x.mul(w)], length: 3 }, (s, _, [c]) => s.scope('loop', () => ({ carries: [c.mul(s.param('w', 'f32', [], 3))] })));
        const n = b.state('n', 'f32').add(last);
        b.setState('n', n);
        b.label('inner');
        return n.neg();
      });
    });
    b.output('y', x.mul(b.param('w', 'f32', [], 4)).exp());
  });
  assert.deepEqual(g.ports.map(({ name }) => name), ['x', 'a/w', 'a/b/loop/w', 'a/b/n', 'w']);
  assert.deepEqual(g.outputs.map(({ name }) => name), ['a/b/n', 'y']);
  assert.deepEqual([...g.initial], [['a/w', 2], ['a/b/loop/w', 3], ['w', 4]]);
  for (const line of [/= scan\(.*#"a\/b"/, /= neg\(.*#"a\/b\/inner"/, /= exp\(.*#"outside"/]) assert.match(g.text(), line);
});

test('gradients of rows are added in any order on request, and in one otherwise', async () => {
  const inputs = { at: Int32Array.from({ length: 200 }, (_, i) => (i * i) % 300), table: elements(1, 300 * 4) };
  const rows = {
    take: (table, at, unordered) => table.take(at, 0, 'clip', unordered),
    embedding: (table, at, unordered) => table.embedding(at, unordered),
    gather: (table, at, unordered) => table.gather(at.expandDims(-1), { axes: [0], outside: 'clip', unordered }),
  };
  for (const [name, read] of Object.entries(rows)) {
    const gradient = (unordered) => graph(name, (b) => {
      const x = read(b.input('table', 'f32', [300, 4]), b.input('at', 'i32', [200]), unordered);
      b.output('loss', x.mul(x).reduceSum());
    }).grad('loss', 'table');
    const [one, any] = [undefined, true].map(gradient);
    assert.match(one.text(), /scatter_add\(.*unordered=false/, name);
    assert.match(any.text(), /scatter_add\(.*unordered=true/, name);
    const wanted = await valueOf(one, inputs, 'grad/table'), got = await valueOf(any, inputs, 'grad/table');
    assert.ok(wanted.some((x) => x !== 0) && wanted.every((x, i) => Math.abs(x - got[i]) <= 1e-5), name);
  }
});

test('a plan compiled here runs in the runtime alone', async () => {
  const made = graph('twice', (b) => b.output('y', b.input('x', 'f32', ['n']).mul(2)));
  const file = await compile({ name: 'twice', entries: { main: made }, symbols: { n: 3 } });
  assert.deepEqual(decodePlan(file).entries.map(({ name }) => name), ['main']);
  const s = await openProgram(file, { device: dawn.device });
  const { reading } = await s.run('main', { x: Float32Array.of(1, 2, 3) }, { read: ['y'] });
  assert.deepEqual([...(await reading).values.y], [2, 4, 6]);
  s.close();
});

describe('what does not fit is a typed error', () => {
  const build = (f) => () => graph('bad', f);
  const xy = (b) => [b.input('x', 'f32', [2, 3]), b.input('y', 'f32', [4, 3])];
  const rows = [
    ['shape', 'shape', build((b) => { const [x, y] = xy(b); x.add(y); })],
    ['rank', 'shape', build((b) => b.input('x', 'f32').matmul(b.input('y', 'f32')))],
    ['dtype', 'dtype', build((b) => b.input('x', 'f32', [2]).add(b.input('n', 'i32', [2])))],
    ['dtype of an op', 'dtype', build((b) => b.input('x', 'bool').exp())],
    ['axis', 'attr', build((b) => b.input('x', 'f32', [2]).softmax(1))],
    ['name used twice', 'name', build((b) => { b.input('x', 'f32'); b.input('x', 'f32'); })],
    ['element type', 'dtype', build((b) => b.input('x', 'f33'))],
    ['size', 'shape', build((b) => b.input('x', 'f32', [-1]))],
    ['value of another graph', 'graph', () => {
      let stranger;
      graph('a', (b) => b.output('y', stranger = b.input('x', 'f32')));
      graph('b', (b) => b.output('y', b.input('x', 'f32').add(stranger)));
    }],
    ['use after the end', 'closed', () => {
      let x;
      graph('a', (b) => b.output('y', x = b.input('x', 'f32')));
      x.add(1);
    }],
    ['text', 'syntax', () => parseGraph('graph')],
    ['loss that is none', 'name', () => perceptron().grad('lost')],
    ['gradient by labels', 'dtype', () => perceptron().grad('loss', 'labels')],
    ['optimizer', 'name', () => perceptron().step({ optimizer: { kind: 'magic' } })],
    ['a scope without a name', 'name', build((b) => b.scope('', () => {}))],
    ['a scope without a function', 'graph', build((b) => b.scope('a'))],
    ['a state that is outside the scope', 'name', build((b) => { const n = b.state('n', 'f32'); b.scope('a', () => b.setState('n', n)); })],
    ['nothing that builds it', 'graph', () => graph('empty')],
    ['a graph without a result', 'graph', build((b) => { b.input('x', 'f32'); })],
    ['a loop without a body', 'graph', build((b) => b.scan({ length: 2 }))],
    ['a loop without a condition', 'graph', build((b) => b.whileLoop({ carries: [] }))],
    ['a condition without its other side', 'graph', build((b) => b.cond(b.full('bool', [], 1), [], () => []))],
    ['an asynchronous function', 'graph', build(async (b) => b.output('y', b.input('x', 'f32')))],
    ['an initial value there is not', 'attr', build((b) => b.param('w', 'f32', [2, 2], 'normal'))],
    ['attributes in an object where there is one', 'attr', build((b) => b.input('x', 'f32', [2, 3]).softmax({ axis: 1 }))],
    ['an operand that is none', 'dtype', build((b) => b.input('x', 'f32', [2]).add([1, 2]))],
    ['a number that is none', 'attr', build((b) => b.input('x', 'f32', [2]).take(b.input('i', 'i32'), { axis: 0 }))],
    ['a misspelt attribute', 'attr', build((b) => b.input('x', 'f32', [2]).argmax({ axes: 0 }))],
    ['a step without an optimizer', 'missing', () => perceptron().step({})],
    ['a misspelt option of a step', 'name', () => perceptron().step({ optimizer: { kind: 'sgd' }, hist: 2 })],
    ['an option of another optimizer', 'name', () => perceptron().step({ optimizer: { kind: 'adam', momentum: 0.9 } })],
    ['a misspelt option of an optimizer', 'name', () => perceptron().step({ optimizer: { kind: 'sgd', momentun: 0.9 } })],
    ['a misspelt option of a schedule', 'name', () => perceptron().step({ optimizer: { kind: 'sgd' }, schedule: { ...schedule, warmup: 3 } })],
    ['an unknown optimizer', 'name', () => perceptron().step({ optimizer: { kind: 'magic' } }), /cannot be magic: there are sgd, adam, /],
    ['an unknown optimizer of a group', 'name', () => perceptron().step({ optimizer: { kind: 'sgd' }, groups: [{ params: ['*'], optimizer: { kind: 'magic' } }] }), /there are sgd, adam, /],
    ['an unknown schedule', 'name', () => perceptron().step({ optimizer: { kind: 'sgd' }, schedule: { kind: 'waves', rate: 1 } }), /cannot be waves: there are constant, linear, /],
    ['a schedule without its kind', 'name', () => perceptron().step({ optimizer: { kind: 'sgd' }, schedule: { rate: 1 } }), /there are constant, linear, /],
    ['a clipping group', 'name', () => perceptron().step({ optimizer: { kind: 'sgd' }, groups: [{ params: ['*'], optimizer: { kind: 'sgd', clipNorm: 1 } }] }), /the optimizer of a group has no option clipNorm/],
    ['a schedule with the number of another', 'name', () => perceptron().step({ optimizer: { kind: 'sgd' }, schedule: { kind: 'linear', rate: 1, steps: 2, factor: 2 } }), /of kind linear has no option factor/],
    ['a schedule without a rate', 'attr', () => perceptron().step({ optimizer: { kind: 'sgd' }, schedule: { kind: 'cosine', steps: 2 } }), /has no rate/],
    ['a schedule of part of a step', 'attr', () => perceptron().step({ optimizer: { kind: 'sgd' }, schedule: { kind: 'cosine', rate: 1, steps: 2.5 } }), /whole/],
    ['an unknown op of a policy', 'name', () => perceptron().step({ optimizer: { kind: 'sgd' }, policy: { ops: ['nonsense'] } }), /nonsense/],
    ['an unknown policy', 'name', () => perceptron().step({ optimizer: { kind: 'sgd' }, policy: 'everything' }), /there are nothing, products, min-cut/],
    ['freed graph', 'closed', () => { const g = perceptron(); g.free(); g.text(); }],
  ];
  for (const [name, kind, f, says] of rows) test(name, () => assert.throws(f, isError(kind, says)));

  const symbolic = () => graph('s', (b) => b.output('y', b.input('x', 'f32', ['n']).mul(b.input('z', 'f32', ['n']))));
  const waiting = [
    ['unbound symbol', 'symbol', () => compile({ entries: { main: symbolic() } })],
    ['graph without a path to its parameter', 'graph', () => train(graph('p', (b) => { b.param('w', 'f32', [1]); b.output('loss', b.input('x', 'f32')); }), { optimizer: { kind: 'sgd' }, worker: false })],
    ['a misspelt option of training', 'name', () => train(perceptron(), { optimizer: { kind: 'sgd' }, learningRate: 1 })],
    ['a misspelt option of a program', 'name', () => program({ entries: { main: perceptron() } }, { in: 'gpu' })],
    ['a place there is not', 'name', () => program({ entries: { main: perceptron() } }, { on: 'tpu' })],
    ['a misspelt part of a module', 'name', () => compile({ entry: {}, entries: {} })],
    ['a misspelt option of init', 'name', () => init({ wasmURL: '' })],
    ['a rate that is none', 'attr', () => train(perceptron(), { optimizer: { kind: 'sgd' }, rate: NaN, worker: false })],
    ['a rate that is a text', 'attr', () => train(perceptron(), { optimizer: { kind: 'sgd' }, rate: '0.1', worker: false }), /rate is String: a learning rate/],
    ['a module without entries', 'missing', () => program({})],
    ['a graph for the entries', 'missing', () => program({ entries: perceptron() })],
    ['an initial parameter there is not', 'attr', () => train(perceptron(), { optimizer: { kind: 'sgd' }, params: { w1: 'normal' }, worker: false })],
    ['unknown parameter', 'name', () => train(perceptron(), { optimizer: { kind: 'sgd' }, params: { w9: 0 }, worker: false })],
    ['tensor over the limits', 'unsupported', () => compile({ entries: { main: graph('big', (b) => b.output('y', b.input('x', 'f32', [1 << 16, 1 << 16]).exp())) } })],
  ];
  for (const [name, kind, f, says] of waiting) test(name, () => assert.rejects(f, isError(kind, says)));

  for (const on of ['gpu', 'cpu']) {
    test(`inputs, on the ${on}`, async () => {
      const s = await program({ entries: { step: perceptron() } }, { on, worker: false });
      await s.load(initialParams(perceptron()));
      const run = (inputs) => s.run('step', inputs, { read: ['loss'] }).then(({ reading }) => reading);
      await assert.rejects(run({ x: data.x }), isError('missing', /labels is missing: give i32\[4\]/));
      await assert.rejects(run({ ...data, y: 1 }), isError('name', /no input y/));
      await assert.rejects(run({ ...data, x: data.x.subarray(3) }), isError('shape'));
      await assert.rejects(run({ ...data, x: data.labels }), isError('dtype'));
      await assert.rejects(run({ ...data, labels: Int32Array.of(0, 1, 3, 0) }), isError('index'));
      await assert.rejects(s.run('eval', data), isError('name'));
      assert.ok(Number.isFinite((await run(data)).values.loss[0]));
      s.close();
      await assert.rejects(run(data), isError('closed'));
    });
  }
});

test('each optimizer and schedule that an error lists makes a step', () => {
  const listed = (options) => {
    try {
      perceptron().step(options);
    } catch ({ message }) {
      return message.split('there are ')[1].split(', ');
    }
  };
  const optimizers = listed({ optimizer: { kind: 'magic' } }), schedules = listed({ optimizer: { kind: 'sgd' }, schedule: { kind: 'waves', rate: 1 } });
  assert.deepEqual([optimizers.length, schedules.length], [27, 8]);
  for (const kind of optimizers) perceptron().step({ optimizer: { kind } }).free();
  const numbers = { rate: 1, warmUp: 2, finalRate: 0.5, steps: 10, factor: 0.5, exponent: 1, growth: 2 };
  for (const kind of schedules) {
    const own = listed({ optimizer: { kind: 'sgd' }, schedule: { kind, rate: 1, amplitude: 1 } });
    perceptron().step({ optimizer: { kind: 'sgd' }, schedule: Object.fromEntries(own.map((name) => [name, name === 'kind' ? kind : numbers[name]])) }).free();
  }
});

test('an error of an op names op and operands', () => {
  assert.throws(() => graph('bad', (b) => b.input('x', 'f32', [2]).add(b.input('y', 'f32', [3]))), (error) => {
    assert.deepEqual([error.place.op, error.place.operands], ['add', ['f32[2]', 'f32[3]']]);
    return true;
  });
});

test('without WebGPU a program is on the CPU, and says why', async () => {
  const made = graph('one', (b) => b.output('y', b.input('x', 'f32').add(1)));
  const none = { requestAdapter: async () => null };
  await init({ gpu: none });
  try {
    const s = await program({ entries: { main: made } }, { worker: false });
    assert.match(s.fallbackReason, /no adapter/);
    assert.equal(s.device.description, 'CPU');
    s.close();
    await assert.rejects(program({ entries: { main: made } }, { on: 'gpu', worker: false }), isError('device'));
  } finally {
    await init({ device: dawn.device });
  }
});

test('a program on a GPU that a call gives is not in a worker, where there are any', async (t) => {
  await init({ compileWorker: false });
  t.after(() => init({ device: dawn.device }));
  globalThis.Worker = class { constructor() { assert.fail('a worker has no such GPU'); } };
  t.after(() => { delete globalThis.Worker; });
  const made = graph('one', (b) => b.output('y', b.input('x', 'f32').add(1)));
  const s = await program({ entries: { main: made } }, { gpu: dawn.gpu, on: 'gpu' });
  s.close();
});

test('batches feed a trainer', async () => {
  const trainer = await train(perceptron(), { optimizer: { kind: 'sgd', momentum: 0.9 }, rate: 0.5, seed: 3 });
  const columns = { x: { dtype: 'f32', shape: [8, 3], data: elements(7, 24) }, labels: { dtype: 'i32', shape: [8], data: Int32Array.from([0, 1, 2, 0, 1, 2, 0, 1]) } };
  const { steps, loss } = await trainer.run({ steps: 6, batches: batches(columns, { size: 4, shuffle: 1 }) });
  assert.equal(steps, 6);
  assert.ok(Number.isFinite(loss));
  trainer.program.close();
});
