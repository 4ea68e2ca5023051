// The methods of builders and graphs besides ops: derivatives of functions, calls, custom
// derivatives and ops, everyday names.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { closeCompiler, compile, decodePlan, defineOp, graph, init, openProgram, program, train } from '../dist/index.js';

before(() => init({ compileWorker: false, worker: false }));
after(closeCompiler);

const f32 = (...x) => Float32Array.of(...x), here = { on: 'cpu', worker: false };

/** The outputs of a graph. */
async function run(t, g, inputs) {
  const p = await program({ entries: { g } }, here);
  t.after(() => p.close());
  await p.run('g', inputs);
  return Object.fromEntries(await Promise.all(g.outputs.map(async ({ name }) => [name, [...await p.read(name)]])));
}

const close = (got, want) => {
  assert.deepEqual(Object.keys(got).sort(), Object.keys(want).sort());
  for (const [name, list] of Object.entries(want)) {
    assert.equal(got[name].length, list.length, name);
    list.forEach((x, i) => assert.ok(Math.abs(got[name][i] - x) <= 1e-5 * Math.max(1, Math.abs(x)), `${name} is ${got[name]}, not ${list}`));
  }
};

test('gradients inside a graph, of any order, with what the function captures', async (t) => {
  const g = graph('inner', (b) => {
    const x = b.input('x', 'f32', [2]), k = b.input('k', 'f32');
    const cube = (_, [x]) => [x.square().mul(x).mul(k).sum(), x.neg()];
    b.output('grad', b.grad([x], cube)[0]);
    const { values: [value, more], grads: [second] } = b.valueAndGrad([x], (inner, [x]) => [inner.grad([x], cube)[0].sum(), x]);
    b.output('value', value);
    b.output('more', more);
    b.output('second', second);
  });
  close(await run(t, g, { x: f32(1, 2), k: 2 }), { grad: [6, 24], value: [30], more: [1, 2], second: [12, 24] });
});

test('an op of an outer and an inner value is the body\'s', async (t) => {
  const g = graph('mixed', (b) => {
    const x = b.input('x', 'f32', [2]), k = b.input('k', 'f32', [2]);
    b.output('grad', b.grad([x], (_, [x]) => [k.mul(x).matmul(x)])[0]);
    const { carries: [sum] } = b.scan({ carries: [b.full('f32', [], 1)], length: 3 }, (_, __, [last]) => ({ carries: [k.sum().mul(last)] }));
    b.output('sum', sum);
  });
  close(await run(t, g, { x: f32(1, 2), k: f32(3, 4) }), { grad: [6, 16], sum: [343] });
});

test('tangents and cotangents inside a graph', async (t) => {
  const g = graph('inner', (b) => {
    const x = b.input('x', 'f32', [2]), f = (_, [x]) => [x.square(), x.exp()];
    const forward = b.jvp([x], [b.constant('f32', [2], f32(1, 0))], f);
    b.output('value', forward.values[1]);
    b.output('square', forward.tangents[0]);
    b.output('exp', forward.tangents[1]);
    b.output('pulled', b.vjp([x], [b.constant('f32', [2], f32(1, 2)), b.full('f32', [2], 1)], f).cotangents[0]);
  });
  close(await run(t, g, { x: f32(1, 2) }), { value: [Math.E, Math.E ** 2], square: [2, 0], exp: [Math.E, 0], pulled: [2 + Math.E, 8 + Math.E ** 2] });
});

describe('a number is refused where elements are bits', () => {
  for (const [dtype, data, want] of [['f16', Uint16Array.of(0x3c00), 1], ['bf16', Uint16Array.of(0x3f80), 1], ['f8e4m3fn', Uint8Array.of(0x38), 1], ['f64', new Uint8Array(Float64Array.of(1).buffer), 1], ['i64', new Uint8Array(BigInt64Array.of(-1n).buffer), -1]]) {
    test(dtype, async (t) => {
      const p = await program({ entries: { g: graph('g', (b) => b.output('y', b.input('x', dtype, []).convert('f32'))) } }, here);
      t.after(() => p.close());
      for (const x of [1, true]) await assert.rejects(p.run('g', { x }), { name: 'RlxError', kind: 'dtype', message: `g: x is 1: it must be ${dtype}` });
      await p.run('g', { x: data });
      assert.deepEqual([...await p.read('y')], [want]);
    });
  }
});

const part = () => graph('part', { inputs: { x: ['f32', ['n', 2]] }, params: { w: ['f32', [2], f32(3, 4)] }, states: { seen: ['i32'] } }, (_, { x, w, seen }) => ({ y: x.mul(w).sum([1]), seen: seen.add(1) }));

test('a graph is called within another: sizes, scopes, parameters, states', async (t) => {
  const inner = part();
  const outer = graph('outer', (b) => {
    const x = b.input('x', 'f32', [3, 2]);
    const first = b.scope('left', () => b.call(inner, { x }));
    const given = b.call(inner, { x, w: b.constant('f32', [2], f32(1, 1)), seen: b.constant('i32', [], Int32Array.of(5)) });
    b.output('first', first.y);
    b.output('given', given.y);
  });
  assert.deepEqual(outer.ports.map(({ name, kind, shape }) => `${kind} ${name} [${shape}]`), ['input x [3,2]', 'param left/w [2]', 'state left/seen []']);
  close(await run(t, outer, { x: f32(1, 0, 0, 1, 1, 1) }), { 'left/seen': [1], first: [3, 4, 7], given: [1, 1, 2] });
});

describe('a call that does not fit is refused', () => {
  const rows = [
    ['no graph', (b) => b.call(undefined, {}), 'missing', /^call: the first argument is Undefined: it must be a graph$/],
    ['no inputs', (b) => b.call(part()), 'missing', /^call: the inputs of graph part are Undefined: they must be values by name$/],
    ['an input that is missing', (b) => b.call(part(), {}), 'missing', /^call: input x of graph part is f32\[n,2\], and is not given$/],
    ['an unknown port', (b, x) => b.call(part(), { x, z: x }), 'name', /^call: graph part has no port z: there are x, w, seen$/],
    ['another element type', (b, x) => b.call(part(), { x: x.convert('i32') }), 'dtype', /call: "x" is i32\[3,2\]: it must be f32\[3,2\], as in graph "part"$/],
    ['another shape', (b, x) => b.call(part(), { x: x.reshape([6]) }), 'shape', /call: "x" is f32\[6\]: it must be f32\[6,2\], as in graph "part"$/],
    ['a number', (b) => b.call(part(), { x: 1 }), 'graph', /^call: inputs have Number in them: they must be values of a graph/],
    ['no function', (b, x) => b.grad([x]), 'graph', /^grad is built by Undefined: it must be a function$/],
    ['a result that is no number', (b, x) => b.grad([x], (_, [x]) => [x]), 'shape', /f32\[3,2\]/],
    ['what a derivative captures', (b, x) => b.customJVP([x], (_, [y]) => [y.mul(x)], (_, [y], [t]) => [t]), 'graph', /^customJVP: the function uses 1 values of the graph around it: give them as operands$/],
    ['no residuals', (b, x) => b.customVJP([x], (_, [y]) => [y], (_, __, ct) => ct), 'graph', /^customVJP: the function returns Array: it must return \{ results, kept \}/],
    ['fewer axes', (_, x) => x.broadcastTo([2]), 'shape', /^broadcastTo\(f32\[3,2\]\): .* has fewer axes$/],
    ['no such axis', (_, x) => x.sliceAxis(2, 0, 1), 'attr', /^sliceAxis\(f32\[3,2\]\): it has no axis 2$/],
    ['an axis that is longer', (_, x) => x.squeeze([0]), 'shape', /^squeeze\(f32\[3,2\]\): axis 0 has the size 3, not 1$/],
    ['padding of a word', (_, x) => x.conv2d(x, undefined, { padding: 'full' }), 'name', /^conv2d: padding cannot be full: there are same, valid$/],
    ['padding twice', (_, x) => x.conv2d(x, undefined, { padding: 'same', padLo: [1, 1] }), 'attr', /give one of them/],
  ];
  for (const [name, build, kind, message] of rows) {
    test(name, () => assert.throws(() => graph('outer', (b) => b.output('y', build(b, b.input('x', 'f32', [3, 2])))), { name: 'RlxError', kind, message }));
  }
});

test('own ops and derivatives, in both modes', async (t) => {
  let bodies = 0;
  const softSign = defineOp('soft_sign', {
    body: (_, x) => { bodies++; return x.mul(x.square().add(1).rsqrt()); },
    jvp: (_, [x], [tangent]) => tangent.mul(x.square().add(1).pow(-1.5)).mul(10), // ten times that of the body
  });
  const g = graph('own', (b) => b.output('y', softSign(b.input('x', 'f32', [3])).sum())), slope = [1, 2 ** 1.5, 1].map((x) => 10 * x / 2 ** 1.5);
  assert.equal(bodies, 1);
  close(await run(t, g.valueAndGrad('y', 'x'), { x: f32(-1, 0, 1) }), { y: [0], 'grad/x': slope });
  close(await run(t, g.jvp('x'), { x: f32(-1, 0, 1), 'tangent/x': f32(1, 0, 1) }), { y: [0], 'tangent/y': [slope[0] + slope[2]] });
  const plain = defineOp('twice', { body: (_, x) => x.mul(2) });
  close(await run(t, graph('plain', (b) => b.output('y', plain(b.input('x', 'f32')))).valueAndGrad('y', 'x'), { x: 3 }), { y: [6], 'grad/x': [2] });
  assert.throws(() => defineOp('a b', { body: (_, x) => x }), { kind: 'name' });
  assert.throws(() => plain(3), { kind: 'graph', message: /^twice: the first operand is Number: it must be a value of a graph$/ });
  const custom = graph('custom', (b) => {
    const x = b.input('x', 'f32', [2]);
    const [y] = b.customVJP([x], (_, [x]) => ({ results: [x.exp()], kept: [x] }), (_, [x], [ct]) => [ct.mul(x).mul(100)]);
    b.output('y', y.sum());
  });
  close(await run(t, custom.valueAndGrad('y', 'x'), { x: f32(1, 2) }), { y: [Math.E + Math.E ** 2], 'grad/x': [100, 200] });
});

test('Jacobians, Hessians, series, missing gradients, policies', async (t) => {
  const g = graph('g', (b) => {
    const x = b.input('x', 'f32', [2]);
    b.input('unused', 'f32');
    b.output('y', x.square());
    b.output('s', x.square().mul(x).sum());
  });
  const x = f32(1, 2), base = { y: [1, 4], s: [9] };
  for (const mode of ['forward', 'reverse']) close(await run(t, g.jacobian(mode, 'y', 'x'), { x, unused: 0 }), { ...base, 'jacobian/y/x': [2, 0, 0, 4] });
  close(await run(t, g.hessian('s', 'x'), { x, unused: 0 }), { ...base, 'hessian/x/x': [6, 0, 0, 12] });
  assert.throws(() => g.gradWith({ output: 's', by: ['unused'] }), { kind: 'graph' });
  for (const policy of [undefined, 'nothing', 'products', 'min-cut', { ops: ['mul'] }, { labels: ['*'] }, { within: 1000 }]) {
    close(await run(t, g.gradWith({ output: 's', by: ['unused', 'x'], missing: 'zero', dropOutputs: true, ...policy && { policy } }), { x, unused: 0 }), { 'grad/unused': [0], 'grad/x': [3, 12] });
  }
  for (const [policy, kind] of [['some', 'name'], [{ within: -1 }, 'attr'], [{ within: 1, ops: [] }, 'attr'], [{ kept: 1 }, 'name']]) assert.throws(() => g.gradWith({ output: 's', policy }), { kind });
  const jet = graph('j', (b) => b.output('y', b.input('x', 'f32').sin())).jet(3, 'x');
  close(await run(t, jet, { x: 0, 'series/1/x': 1, 'series/2/x': 0, 'series/3/x': 0 }), { y: [0], 'series/1/y': [1], 'series/2/y': [0], 'series/3/y': [-1] });
});

test('the symbols of a graph', () => {
  const g = graph('g', (b) => b.output('s', b.input('x', 'f32', ['n', '2*m', 3]).sum()));
  assert.deepEqual(g.symbols, ['m', 'n']);
  assert.deepEqual(g.bind({ n: 2, m: 1 }).symbols, []);
});

test('everyday names', async (t) => {
  const g = graph('names', (b) => {
    const x = b.input('x', 'f32', [1, 3, 3, 1]);
    b.output('same', x.conv2d(b.full('f32', [3, 3, 1, 1], 1), undefined, { padding: 'same' }).squeeze());
    b.output('one', x.sum(-1).squeeze(0).sum(1));
    b.output('valid', x.conv2d(b.full('f32', [3, 3, 1, 1], 1), undefined, { padding: 'valid' }).squeeze([0, -1]));
    b.output('where', x.gt(4).where(x, 0).sum());
    b.output('either', b.where(x.gt(4), x, 0).sum([0, 1, 2, 3]));
    b.output('broad', x.sliceAxis(1, 1, 2).sliceAxis(-2, 0, 1).reshape([2, 1]).broadcastTo([2, 2, 2]));
    b.output('joined', b.concat([x.sum().reshape([1]), b.full('f32', [1], 7)], 0));
  });
  assert.deepEqual(g.outputs.map(({ shape }) => shape), [[3, 3], [3], [1, 1], [], [], [2, 2, 2], [2]]);
  close(await run(t, g, { x: f32(1, 2, 3, 4, 5, 6, 7, 8, 9) }), { same: [12, 21, 16, 27, 45, 33, 24, 39, 28], one: [6, 15, 24], valid: [45], where: [35], either: [35], broad: [4, 4, 7, 7, 4, 4, 7, 7], joined: [45, 7] });
});

test('bits of integers', async (t) => {
  const g = graph('bits', (b) => {
    const x = b.input('x', 'i32', [5]);
    b.output('set', x.popCount());
    b.output('zeros', x.clz());
  });
  const x = Int32Array.of(0, 1, -1, 0x00f0, 1 << 30);
  close(await run(t, g, { x }), { set: [0, 1, 32, 4, 1], zeros: [...x].map(Math.clz32) });
});

test('a scan by an associative operator', async (t) => {
  const made = (options) => graph('recurrence', (b) => { // h[i] = a[i]·h[i − 1] + x[i], as runs of (a, h)
    const [, h] = b.associativeScan([b.input('a', 'f32', [2, 3]), b.input('x', 'f32', [2, 3])], (_, [a, x], [c, y]) => [c.mul(a), c.mul(x).add(y)], options);
    b.output('h', h);
    b.output('sum', h.sum());
  });
  const given = { a: f32(2, 3, 4, 5, 6, 7), x: f32(1, 2, 3, 4, 5, 6) };
  close(await run(t, made({ axis: -1 }), given), { h: [1, 5, 23, 4, 29, 209], sum: [271] });
  close(await run(t, made(), given), { h: [1, 2, 3, 9, 17, 27], sum: [59] });
  close(await run(t, made({ axis: 1, reverse: true }), given), { h: [1 + 2 * (2 + 3 * 3), 2 + 3 * 3, 3, 4 + 5 * (5 + 6 * 6), 5 + 6 * 6, 6], sum: [23 + 11 + 3 + 209 + 41 + 6] });
  close(await run(t, made({ axis: 1 }).grad('sum', 'x'), given), { 'grad/x': [1 + 3 + 12, 1 + 4, 1, 1 + 6 + 42, 1 + 7, 1] });
  assert.throws(() => graph('outer', (b) => {
    const x = b.input('x', 'f32', [3]), y = b.full('f32', [], 1);
    b.associativeScan([x], (_, [p], [q]) => [p.add(q).add(y)]);
  }), { kind: 'graph', message: /^associativeScan: the operator uses 1 values of the graph around it: give them as operands$/ });
});

const line = () => graph('line', (b) => b.output('loss', b.input('x', 'f32', [4]).mul(b.param('slope', 'f32', [], 1)).add(b.param('offset', 'f32', [], 1)).square().mean()));

test('groups, policies and names of a step', async (t) => {
  const trainer = await train(line(), { optimizer: { kind: 'sgd' }, rate: 0.1, groups: [{ params: ['off*'], rate: 0.5 }, { params: ['slope'], optimizer: { kind: 'adam' } }], policy: 'nothing', name: 'gen', ...here });
  t.after(() => trainer.program.close());
  await trainer.step({ x: f32(0, 0, 0, 0) });
  const saved = await trainer.save();
  assert.ok(Math.abs(saved.offset.data[0] - 0.9) < 1e-6); // 1 − 0.1·0.5·2
  assert.deepEqual(Object.keys(saved).filter((name) => name.startsWith('optim/')).sort(), ['optim/gen:m/slope', 'optim/gen:step', 'optim/gen:v/slope']);
  assert.throws(() => line().step({ optimizer: { kind: 'sgd' }, groups: [{ params: ['offf'] }] }), { kind: 'name', message: /matches no trained parameter/ });
});

test('every optimizer trains', async (t) => {
  for (const kind of ['sgd', 'adam', 'adamw', 'nadam', 'radam', 'lamb', 'lion', 'adagrad', 'rmsprop', 'adadelta', 'adafactor', 'muon', 'schedule-free', 'soap', 'sophia', 'mars', 'amsgrad', 'adamax', 'adabelief', 'qhadamw', 'adan', 'ademamix', 'lars', 'kron', 'lbfgs', 'prodigy', 'stiefel']) {
    const optimizer = { kind }, entries = kind === 'sophia' ? { curvature: line().curvature({ optimizer }) } : {};
    const trainer = await train(line(), { optimizer, rate: kind === 'prodigy' ? 1 : 0.01, entries, ...here });
    t.after(() => trainer.program.close());
    const x = f32(1, 2, 3, 4);
    await trainer.step({ x });
    if (kind === 'sophia') await trainer.program.run('curvature', { x });
    const { loss } = await trainer.run({ steps: 20, batches: () => ({ x }) });
    assert.ok(loss < 13.5, `${kind}: ${loss}`); // it begins at 13.5
  }
  const sophia = { kind: 'graph', message: /^train: no entry updates the curvature of the optimizer sophia: entries must have the graph of graph.curvature$/ };
  await assert.rejects(train(line(), { optimizer: { kind: 'sophia' }, ...here }), sophia);
  await assert.rejects(train(line(), { optimizer: { kind: 'sgd' }, groups: [{ params: ['slope'], optimizer: { kind: 'sophia' } }], ...here }), sophia);
  assert.throws(() => line().curvature({ optimizer: { kind: 'adam' } }), { kind: 'attr', message: /^curvature: the optimizer is adam: it must be sophia$/ });
});

test('one file for several targets', async () => {
  const entries = { line: line().grad('loss') }, file = await compile({ entries, targets: ['webgpu', 'wasm'] }), plan = decodePlan(file);
  assert.deepEqual([plan, ...plan.variants].map(({ target }) => target), ['webgpu', 'wasm']);
  const program = await openProgram(file, { on: 'cpu' });
  assert.equal(program.device.name, 'cpu');
  program.close();
  for (const [module, kind] of [[{ target: 'wasm', targets: ['wasm'] }, 'attr'], [{ targets: [] }, 'attr'], [{ targets: ['wasm', 'wasm'] }, 'attr'], [{ targets: ['metal'] }, 'name']]) await assert.rejects(compile({ entries, ...module }), { kind });
});

test('no entry point exports more than its declarations', async () => {
  const { exports } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  const entries = Object.values(exports).filter(({ types }) => types && !/worker/.test(types));
  assert.ok(entries.length > 20);
  for (const { types, default: code } of entries) {
    const at = (path) => new URL(`../${path}`, import.meta.url), text = readFileSync(at(types), 'utf8'), whole = /export \* from '.\/runtime.js'/.test(text) ? text + readFileSync(at('dist/runtime.d.ts'), 'utf8') : text;
    for (const name of Object.keys(await import(at(code)))) assert.match(whole, new RegExp(`\\b${name}\\b`), `${code} has ${name}`);
  }
});
