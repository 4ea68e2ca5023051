// ONNX models: opened from memory, Blobs and by ranges, run on the CPU, differentiated and trained. Damaged and hostile ones.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { closeCompiler, graph, init, program, train } from '../dist/index.js';
import { openONNX } from '../dist/onnx.js';
import { isError } from './rig/is-error.mjs';
import { arraysOf, graphOf, info, message, modelOf, node, perceptron, perceptronOf, tensor } from './rig/onnx.mjs';

const testdata = new URL('../../ir/format/onnx/testdata/', import.meta.url), on = { program: { on: 'cpu' } };
before(() => init({ cache: new Map(), compileWorker: false }));

const filled = (n) => Float32Array.from({ length: n }, (_, i) => Math.cos(i * 0.7));
const open = async (t, source, options) => {
  const model = await openONNX(source, { ...on, ...options });
  t.after(() => model.close());
  return model;
};

function near(got, want, tolerance = 1e-5) {
  assert.equal(got.length, want.length);
  got.forEach((v, i) => assert.ok(Math.abs(v - Number(want[i])) <= tolerance * Math.max(1, Math.abs(Number(want[i]))), `element ${i} is ${v} instead of ${want[i]}`));
}

test('a model of a Blob, bytes or an array of bytes runs at several sizes', async (t) => {
  const { bytes, weights } = perceptron();
  for (const source of [new Blob([bytes]), bytes, Uint8Array.from(bytes).buffer]) {
    const model = await open(t, source);
    assert.deepEqual(model.inputs, [{ name: 'x', element: 'float', dtype: 'f32', shape: ['batch', 16] }]);
    assert.deepEqual(model.outputs, [{ name: 'y', element: 'float', dtype: 'f32', shape: ['batch', 3] }]);
    for (const batch of [2, 5, 2]) {
      const x = filled(16 * batch), { y } = await model.run({ x: batch === 5 ? x : { shape: [batch, 16], data: x } });
      assert.deepEqual([y.dtype, y.shape], ['f32', [batch, 3]]);
      near(y.data, perceptronOf(weights, x));
    }
    model.close();
    await assert.rejects(model.run({ x: filled(16) }), isError('closed'));
  }
});

test('inputs that do not fit are refused by name', async (t) => {
  const model = await open(t, perceptron().bytes);
  await assert.rejects(model.run(), isError('missing', /inputs by name/));
  await assert.rejects(model.run({}), isError('missing', /x is missing: give f32\[batch,16\]/));
  await assert.rejects(model.run({ x: filled(16), z: 1 }), isError('name', /no input z: there are x/));
  await assert.rejects(model.run({ x: { shape: [1, 17], data: filled(17) } }), isError('shape', /x has the shape \[1,17\]: it must be f32\[batch,16\]/));
  await assert.rejects(model.run({ x: new Int32Array(16) }), isError('dtype', /x is Int32Array: it must be Float32Array/));
  await assert.rejects(openONNX(3), isError('attr', /a Blob, bytes or an address/));
  await assert.rejects(openONNX(perceptron().bytes, { symbol: {} }), isError('name', /no option symbol/));
  await assert.rejects(openONNX(perceptron().bytes, { symbols: 3 }).then((one) => one.graph()), isError('attr', /symbols is 3/));
});

test('the graph is used in another one, its weights are loaded, and training goes on from them', async (t) => {
  const { bytes, weights } = perceptron(), model = await open(t, bytes), called = await model.graph();
  assert.deepEqual(called.ports.map(({ name, kind, shape }) => [name, kind, shape]), [['x', 'input', ['batch', 16]], ['w0', 'param', [16, 32]], ['b0', 'param', [32]], ['w1', 'param', [32, 3]], ['b1', 'param', [3]]]);
  assert.deepEqual(await model.weights(), Object.entries(weights).map(([name, [shape]]) => ({ name, dtype: 'f32', shape })));
  for (const [name, [shape, data]] of Object.entries(weights)) assert.deepEqual(await model.read(name), { dtype: 'f32', shape, data });
  await assert.rejects(model.read('w2'), isError('name', /no weight w2: there are w0, b0, w1, b1/));

  const loss = graph('loss', { inputs: { x: ['f32', [8, 16]], target: ['f32', [8, 3]] } }, (b, { x, target }) => {
    const { y } = b.scope('model', () => b.call(called, { x })), error = y.sub(target);
    return { loss: error.mul(error).mean() };
  });
  const x = filled(128), target = filled(24), differ = (w) => perceptronOf(w, x).reduce((sum, v, i) => sum + (v - target[i]) ** 2 / 24, 0);
  const slopes = await program({ entries: { grad: loss.grad('loss', 'model/w0') } }, { on: 'cpu' });
  t.after(() => slopes.close());
  await model.load(slopes, 'model');
  const slope = (await (await slopes.run('grad', { x, target }, { read: ['grad/model/w0'] })).reading).values['grad/model/w0'];
  for (const at of [0, 37, 300, 511]) { // central differences
    const moved = (by) => ({ ...weights, w0: [[16, 32], Float64Array.from(weights.w0[1], (v, i) => i === at ? v + by : v)] });
    near([slope[at]], [(differ(moved(1e-4)) - differ(moved(-1e-4))) / 2e-4], 1e-4);
  }
  const trainer = await train(loss, { optimizer: { kind: 'adam' }, rate: 0.01, on: 'cpu' });
  t.after(() => trainer.program.close());
  await model.load(trainer.program, 'model');
  const losses = [];
  for (let i = 0; i < 60; i++) losses.push((await (await trainer.program.run('step', { x, target }, { read: ['loss'] })).reading).values.loss[0]);
  near(losses.slice(0, 1), [differ(weights)]);
  assert.ok(losses.at(-1) < losses[0] / 2, `${losses}`);
});

test('a program of the graph has open sizes, padded or not', async (t) => {
  const { bytes, weights } = perceptron(), model = await open(t, bytes);
  for (const sizes of [undefined, { batch: { max: 8 } }]) {
    const made = await model.program({ on: 'cpu', sizes });
    t.after(() => made.close());
    for (const batch of [3, 4]) {
      const x = filled(16 * batch);
      near((await (await made.run('run', { x }, { read: ['y'] })).reading).values.y, perceptronOf(weights, x));
    }
    assert.equal(made.compiled, sizes ? 1 : 2);
  }
  const bound = await open(t, bytes, { symbols: { batch: 2 }, frozen: true });
  assert.deepEqual([bound.inputs[0].shape, (await bound.graph()).symbols, (await bound.graph()).ports.map(({ frozen }) => frozen)], [[2, 16], [], [false, true, true, true, true]]);
});

/** Serves files with ranges, and counts the bytes sent. */
async function serve(t, files) {
  const sent = {}, server = createServer((request, response) => {
    const name = decodeURIComponent(request.url.slice(1)), file = files[name], found = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '');
    if (!file || !found) return void response.writeHead(file ? 200 : 404).end();
    const part = file.subarray(Number(found[1]), Number(found[2]) + 1);
    sent[name] = (sent[name] ?? 0) + part.length;
    response.writeHead(206, { 'content-range': `bytes ${found[1]}-${Number(found[1]) + part.length - 1}/${file.length}` }).end(part);
  });
  await new Promise((resolve) => server.listen(0, resolve));
  t.after(() => server.close());
  return { url: (name) => `http://localhost:${server.address().port}/${name}`, sent };
}

test('of a large file only the graph is read, and its weights one by one', async (t) => {
  const n = 1 << 21, w = new Float32Array(n).fill(0.5), unused = new Float32Array(3 * n);
  const nodes = [node('Mul', ['x', 'w'], ['m']), node('ReduceSum', ['m'], ['y'], { keepdims: 0 })];
  const bytes = modelOf(nodes, [tensor('unused', [3, n], unused), tensor('w', [n], w)], [info('x', 1, [n])], [info('y', 1, [])]);
  const { url, sent } = await serve(t, { 'large.onnx': bytes }), model = await open(t, url('large.onnx'));
  assert.ok(sent['large.onnx'] < 1 << 19, `${sent['large.onnx']} bytes of ${bytes.length} were read`);
  const { y } = await model.run({ x: new Float32Array(n).fill(2) });
  assert.equal(y.data[0], n);
  assert.ok(sent['large.onnx'] < 4.5 * n, `${sent['large.onnx']} bytes of ${bytes.length} were read`);
});

test('weights of an address are fetched once for several sizes, those of a small file with it', async (t) => {
  const small = perceptron(), n = 5 << 20, w = new Float32Array(n).fill(0.5);
  const large = modelOf([node('Mul', ['x', 'w'], ['y'])], [tensor('w', [1, n], w)], [info('x', 1, ['rows', 1])], [info('y', 1, ['rows', n])]);
  const { url, sent } = await serve(t, { 'small.onnx': small.bytes, 'large.onnx': large });
  const model = await open(t, url('small.onnx'));
  for (const rows of [1, 2, 3]) near((await model.run({ x: filled(16 * rows) })).y.data, perceptronOf(small.weights, filled(16 * rows)));
  assert.equal(sent['small.onnx'], small.bytes.length + 1);
  const other = await open(t, url('large.onnx'));
  for (const rows of [1, 2]) assert.equal((await other.run({ x: { shape: [rows, 1], data: new Float32Array(rows).fill(4) } })).y.data.at(-1), 2);
  assert.ok(sent['large.onnx'] < 4.1 * n, `${sent['large.onnx']} bytes of ${large.length} were sent`);
});

test('the graph is there again after the compiler was started anew', async (t) => {
  const { bytes, weights } = perceptron(), model = await open(t, bytes), x = filled(32), first = await model.graph();
  closeCompiler();
  await init({ cache: new Map(), compileWorker: false });
  assert.throws(() => first.text(), isError('closed'));
  assert.equal((await model.graph()).ports.length, 5);
  near((await model.run({ x })).y.data, perceptronOf(weights, x));
  (await model.graph()).free();
  near((await model.run({ x: filled(48) })).y.data, perceptronOf(weights, filled(48)));
});

describe('weights in other files', () => {
  const at = {}, all = new Uint8Array(4096);
  const { weights, bytes } = perceptron((name, data) => {
    const offset = Object.values(at).reduce((sum, { length }) => sum + length, 0);
    at[name] = { offset, length: data.byteLength };
    all.set(new Uint8Array(data.buffer), offset);
    return { location: 'data/w%2e.bin', ...at[name] };
  });
  const x = filled(32), works = async (t, source, options) => near((await (await open(t, source, options)).run({ x })).y.data, perceptronOf(weights, x));

  test('are given by a list or a function, or lie beside an address', async (t) => {
    await works(t, bytes, { external: { 'data/w%2e.bin': new Blob([all]) } });
    await works(t, bytes, { external: async (path) => path === 'data/w%2e.bin' && all });
    const { url } = await serve(t, { 'models/m.onnx': bytes, 'models/data/w%2e.bin': all });
    await works(t, url('models/m.onnx'));
    await works(t, new URL(url('models/m.onnx?v=1').replace('?v=1', '')));
  });

  test('that are missing, too short or elsewhere are refused', async (t) => {
    const graphOfIt = async (source, options) => (await open(t, source, options)).graph();
    await assert.rejects(graphOfIt(bytes), isError('missing', /file data\/w%2e.bin: give it in external/));
    await assert.rejects(graphOfIt(bytes, { external: {} }), isError('missing', /give it in external/));
    await assert.rejects(graphOfIt(bytes, { external: { 'data/w%2e.bin': all.subarray(0, 99) } }), isError('syntax', /tensor "w0" has bytes 0 to 2048 of "data\/w%2e.bin", which is no file of that size/));
    const { url } = await serve(t, { 'models/m.onnx': bytes });
    await assert.rejects(graphOfIt(url('models/m.onnx')), isError('missing', /404/));
    for (const location of ['../w.bin', '/etc/passwd', 'a/../../w.bin', 'a//b', 'https://example.com/w.bin', '..', 'a/./b']) {
      const never = () => assert.fail('a file was opened'), odd = perceptron((_, data) => ({ location, offset: 0, length: data.byteLength })).bytes;
      await assert.rejects(graphOfIt(odd, { external: never }), isError('syntax', /leaves the model's folder/), location);
    }
    const long = perceptron(() => ({ location: 'w', offset: 0, length: 4 })).bytes;
    await assert.rejects(graphOfIt(long, { external: { w: all } }), isError('syntax', /tensor "w0".* has 4 bytes in "w"; it needs 2048/));
  });
});

test('the value of an input that decides about shapes is compiled', async (t) => {
  const i64 = (...list) => BigInt64Array.from(list, BigInt);
  const bytes = modelOf([node('Reshape', ['x', 's'], ['r']), node('Add', ['r', 'r'], ['y'])], [], [info('x', 1, ['n']), info('s', 7, [2])], [info('y', 1, ['p', 'q'])]);
  const model = await open(t, bytes);
  assert.deepEqual(model.inputs[1], { name: 's', element: 'int64', dtype: 'i32', shape: [2] });
  await assert.rejects(model.graph(), isError('unsupported', /"s", i64\[2\], must be known at import; it depends on the inputs \["s"\]: give the value of s in values$/));
  const odd = modelOf([node('Unique', ['x'], ['y'])], [], [info('x', 1)], [info('y', 1)]);
  await assert.rejects(open(t, odd).then((one) => one.graph()), isError('unsupported', /input "x" has no shape in the model: give it in shapes/));
  await assert.rejects(open(t, odd).then((one) => one.run({ x: filled(3) })), isError('shape', /declares no shape of input x: give it in shapes/));
  for (const shape of [[2, 3], [3, 2], [1, 6]]) {
    const { y } = await model.run({ x: filled(6), s: Int32Array.from(shape) });
    assert.deepEqual(y.shape, shape);
    near(y.data, filled(6).map((v) => 2 * v));
  }
  const fixed = await open(t, bytes, { values: { s: { dtype: 'i64', shape: [2], data: i64(3, 2) } } });
  assert.deepEqual([fixed.inputs.map(({ name }) => name), (await fixed.run({ x: filled(6) })).y.shape], [['x'], [3, 2]]);
  await assert.rejects(openONNX(bytes, { values: { z: { dtype: 'i64', shape: [2], data: i64(3, 2) } } }).then((one) => one.graph()), isError('name', /values: the model has no input z: there are x, s/));
  const scalar = await open(t, modelOf([node('Mul', ['x', 'k'], ['y'])], [], [info('x', 1, [2]), info('k', 1, [])], [info('y', 1, [2])]));
  for (const k of [3, Float32Array.of(3), { shape: [], data: Float32Array.of(3) }]) near((await scalar.run({ x: Float32Array.of(1, 2), k })).y.data, [3, 6]);
  await assert.rejects(scalar.run({ x: Float32Array.of(1, 2), k: {} }), isError('dtype', /k is Object: it must be one f32/));
});

test('large tensors that the importer computes with are read, in nodes and nested graphs too', async (t) => {
  const c = filled(600), body = graphOf([node('Constant', [], ['d'], { value: { tensor: tensor('', [600], c) } }), node('Mul', ['x', 'd'], ['z'])], [], [], [info('z', 1, [600])]);
  const nodes = [node('Constant', [], ['c'], { value: { tensor: tensor('', [600], c) } }), node('If', ['k'], ['t'], { then_branch: { graph: body }, else_branch: { graph: body } }), node('Add', ['t', 'c'], ['y'])];
  const model = await open(t, modelOf(nodes, [], [info('x', 1, [600]), info('k', 9, [])], [info('y', 1, [600])])), x = filled(600);
  near((await model.run({ x, k: true })).y.data, x.map((v, i) => v * c[i] + c[i]));
  assert.deepEqual(await model.weights().then((list) => list.map(({ name, shape }) => [name, shape])), [['c', [600]]]);
});

test('lists of floats are read as raw elements are, and so are those of types that graphs have not', async (t) => {
  const list = filled(600), half = Uint8Array.from({ length: 1200 }, (_, i) => i * 37), doubles = Float64Array.from(list, (v) => v / 3);
  const initializers = [
    [[1, 600], [2, 1], [8, 'floats'], [4, list]], [[1, 600], [2, 11], [8, 'doubles'], [10, doubles]],
    [[1, 1200], [2, 18], [8, 'small'], [9, half]], // float8e4m3fnuz, which a graph has as f32
  ];
  const nodes = ['floats', 'doubles', 'small'].flatMap((name) => [node('Mul', [name, name], [`${name}2`])]);
  const model = await open(t, modelOf(nodes, initializers, [], [info('floats2', 1, [600]), info('doubles2', 11, [600]), info('small2', 1, [1200])]));
  assert.deepEqual((await model.weights()).map(({ name, dtype }) => [name, dtype]), [['floats', 'f32'], ['doubles', 'f64'], ['small', 'f32']]);
  assert.deepEqual([(await model.read('floats')).data, (await model.read('doubles')).data], [list, doubles]);
  const { data } = await model.read('small'), fnuz = (bits) => bits === 128 ? NaN : (bits & 128 ? -1 : 1) * (bits >> 3 & 15 ? (1 + (bits & 7) / 8) * 2 ** ((bits >> 3 & 15) - 8) : (bits & 7) / 8 * 2 ** -7);
  assert.deepEqual([...data], [...half].map(fnuz));
});

describe('ops of language models agree with ONNX Runtime', () => {
  const arrays = arraysOf(readFileSync(new URL('microsoft.npz', testdata)));
  for (const name of [...arrays.keys()].filter((one) => one.endsWith('/model')).map((one) => one.slice(0, -6))) {
    test(name, async (t) => {
      const model = await open(t, arrays.get(`${name}/model`).data);
      let runs = 0;
      for (const turn of ['', '2']) {
        const stored = (prefix) => [...arrays].filter(([key]) => key.startsWith(`${name}/${prefix}${turn}/`)).map(([key, array]) => [key.split('/').slice(2).join('/'), array]);
        const given = stored('in'), want = stored('out');
        if (turn && !want.length) continue;
        const inputs = Object.fromEntries(given.map(([key, { dims, data }]) => [key, { shape: dims, data: data instanceof BigInt64Array ? Int32Array.from(data, Number) : data }]));
        const got = await model.run(inputs);
        for (const [key, { dims, data }] of want) {
          assert.deepEqual(got[key].shape, dims, key);
          near(got[key].data, data, 1e-4);
          runs++;
        }
      }
      assert.ok(runs > 0);
    });
  }
});

test('a decoder with its cache, which is empty at first, agrees with ONNX Runtime', async (t) => {
  const arrays = arraysOf(readFileSync(new URL('decoder.npz', testdata))), model = await open(t, arrays.get('decoder/model').data);
  const of = (name) => name.replace('present.', 'past_key_values.'), caches = model.outputs.filter(({ name }) => name.startsWith('present.'));
  let cache = Object.fromEntries(caches.map(({ name }) => [of(name), { shape: [1, 2, 0, 16], data: new Float32Array(0) }])), length = 0;
  for (let step = 0; step < 5; step++) {
    const { dims, data } = arrays.get(`decoder/in/${step}/input_ids`);
    length += data.length;
    const out = await model.run({ ...cache, input_ids: { shape: dims, data: Int32Array.from(data, Number) }, attention_mask: { shape: [1, length], data: new Int32Array(length).fill(1) } });
    for (const name of step === 4 ? ['logits', ...caches.map((one) => one.name)] : ['logits']) {
      const want = arrays.get(`decoder/out/${step}/${name}`);
      assert.deepEqual(out[name].shape, want.dims);
      near(out[name].data, want.data, 1e-4);
    }
    cache = Object.fromEntries(caches.map(({ name }) => [of(name), out[name]]));
  }
});

describe('models that cannot be imported', () => {
  const failure = async (bytes, options) => {
    let model;
    try {
      model = await openONNX(bytes, { ...on, ...options });
      await model.graph();
    } catch (reason) {
      return reason;
    } finally {
      model?.close();
    }
  };

  test('are refused with the node and the op', async () => {
    const unknown = await failure(modelOf([node('Nope', ['x'], ['y'])], [], [info('x', 1, [1])], [info('y', 1, [1])]));
    isError('unsupported', /^node "y": Nope \(opset 17\): unsupported: the op is not known/)(unknown);
    assert.equal(unknown.place.op, 'Nope');
    isError('syntax', /operand "z" is computed by no node/)(await failure(modelOf([node('Relu', ['z'], ['y'])], [], [], [info('y', 1, [1])])));
    isError('syntax', /there is no graph/)(await failure(new Uint8Array(0)));
    isError('syntax', /byte 0: field 1 needs 8/)(await failure(Uint8Array.of(10, 9, 1)));
    isError('syntax', /wire type 3/)(await failure(Uint8Array.of(11, 9, 1)));
    isError('syntax', /a number does not end/)(await failure(new Uint8Array(30).fill(255)));
  });

  test('lie about sizes', async () => {
    const w = (dims, data) => modelOf([node('Mul', ['x', 'w'], ['y'])], [tensor('w', dims, data)], [info('x', 1, [1])], [info('y', 1, ['n'])]);
    isError('syntax', /tensor "w".* has 4096 bytes.*needs 4194304/)(await failure(w([1 << 20], new Float32Array(1024))));
    isError('syntax', /more than 2\^48 elements/)(await failure(w([2 ** 40, 2 ** 40], new Float32Array(1024))));
    let nested = graphOf([node('Relu', ['x'], ['z'])], [], [], [info('z', 1, [1])]);
    for (let i = 0; i < 200; i++) nested = graphOf([node('If', ['k'], ['z'], { then_branch: { graph: nested }, else_branch: { tensor: tensor('', [400], new Float32Array(400)) } })], [], [], [info('z', 1, [1])]);
    isError('syntax', /nested more than/)(await failure(message([1, 8], [8, [[2, 17]]], [7, nested])));
  });

  test('of changed bytes are opened, or refused with a kind', async (t) => {
    const kinds = new Set(['syntax', 'unsupported', 'shape', 'dtype', 'attr', 'name', 'index', 'graph', 'symbol', 'rule', 'missing', 'limit']), arrays = arraysOf(readFileSync(new URL('microsoft.npz', testdata)));
    const files = [perceptron().bytes, ...['nbits_4', 'grouped', 'gather_int4'].map((name) => arrays.get(`${name}/model`).data)], seen = new Map();
    let state = 7;
    const random = (n) => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) % n;
    const turns = 400, begin = performance.now();
    for (let turn = 0; turn < turns; turn++) {
      const bytes = Uint8Array.from(files[turn % files.length]), head = Math.min(bytes.length, 400);
      for (let i = 0; i <= turn % 5; i++) bytes[turn % 3 ? random(bytes.length) : random(head)] = random(256);
      const reason = await failure(turn % 7 ? bytes : bytes.subarray(0, random(bytes.length)));
      if (reason) assert.ok(kinds.has(reason.kind), `${turn}: ${reason.stack}`);
      seen.set(reason?.kind, (seen.get(reason?.kind) ?? 0) + 1);
    }
    t.diagnostic(`${turns} files in ${Math.round(performance.now() - begin)} ms: ${JSON.stringify([...seen])}`);
    assert.ok(seen.size > 3);
  });
});
