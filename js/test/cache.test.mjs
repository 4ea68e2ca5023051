// Caches between visits: plans, and the compiler's answers to functions that build graphs. In pages
// a visit is a separate process; here it is a closed compiler.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { afterEach, before, test } from 'node:test';
import { clearCache, closeCompiler, compile, graph, init, program, RlxError, train } from '../dist/index.js';

const here = { on: 'cpu', worker: false };
const wasm = await WebAssembly.compile(readFileSync(new URL('../dist/rlx.wasm', import.meta.url)));

/** How often the compiler was started. */
let starts = 0;
before(() => {
  const { instantiate } = WebAssembly;
  WebAssembly.instantiate = (module, ...rest) => {
    if (module === wasm) starts++;
    return instantiate(module, ...rest);
  };
});
afterEach(closeCompiler);

/** Begins a visit: nothing is in memory but what the store has. */
async function visit(cache) {
  closeCompiler();
  await init({ wasm, compileWorker: false, worker: false, lazy: true, ...cache !== undefined && { cache } });
  starts = 0;
}

const line = (slope = 3) => () => graph('line', { inputs: { x: ['f32', [2]], y: ['f32', [2]] }, params: { w: ['f32', [], slope] } }, (_, { x, y, w }) => ({
  loss: x.mul(w).sub(y).square().mean(),
}));
const data = { x: Float32Array.of(1, 2), y: Float32Array.of(2, 4) };

/** The losses of two steps, by hand w is 3, then 3 - 0.1 * 5 = 2.5: 2.5, and 0.625. */
async function losses(build = line(), options = {}) {
  const { program: p } = await train(build, { optimizer: { kind: 'sgd' }, rate: 0.1, ...here, ...options });
  const found = [];
  for (let i = 0; i < 2; i++) found.push((await (await p.run('step', data, { read: ['loss'] })).reading).values.loss[0]);
  p.close();
  return found;
}

test('the second visit trains without the compiler, from the same values to the same losses', async () => {
  const store = new Map();
  await visit(store);
  assert.deepEqual(await losses(), [2.5, 0.625]);
  assert.ok(starts > 0);
  assert.deepEqual([...store.keys()].map((key) => key.split('-')[0]).sort(), ['graphs', 'plan']);
  await visit(store);
  assert.deepEqual(await losses(), [2.5, 0.625]);
  assert.equal(starts, 0);
});

test('a function that builds another graph than before gets that one', async () => {
  const store = new Map();
  await visit(store);
  const scaled = (k) => () => ({ entries: { main: graph('scaled', (b) => b.output('y', b.input('x', 'f32', [2]).mul(k))) } });
  const y = async (k) => {
    const p = await program(scaled(k), here), { reading } = await p.run('main', { x: data.x }, { read: ['y'] });
    p.close();
    return [...(await reading).values.y];
  };
  for (const k of [2, 3]) assert.deepEqual(await y(k), [k, 2 * k]);
  await visit(store);
  for (const k of [3, 2]) assert.deepEqual(await y(k), [k, 2 * k]); // both are kept
  assert.equal(starts, 0);
  assert.deepEqual(await y(5), [5, 10]);
  assert.ok(starts > 0);
});

test('a function may catch the error of a call that is not known', async () => {
  const store = new Map();
  const careful = (n) => () => ({ entries: { main: graph('careful', (b) => {
    let y = b.input('x', 'f32', [2]);
    try {
      for (let i = 0; i < n; i++) y = y.neg();
    } catch {}
    b.output('y', y);
  }) } });
  for (const n of [1, 2]) {
    await visit(store);
    const plan = await compile(careful(n));
    closeCompiler();
    await init({ wasm, compileWorker: false, cache: false });
    assert.deepEqual(plan, await compile(careful(n)()), `${n} negations`);
  }
});

test('graphs as text need no compiler either', async () => {
  const store = new Map();
  await visit(store);
  await init();
  const module = { entries: { main: line()().text() }, target: 'wasm' };
  const plan = await compile(module);
  await visit(store);
  assert.deepEqual(await compile(module), plan);
  assert.equal(starts, 0);
  assert.notDeepEqual(await compile({ ...module, name: 'other' }), plan);
  assert.ok(starts > 0);
});

test('damaged and foreign values are made again', async () => {
  const store = new Map();
  await visit(store);
  await losses();
  for (const damage of [(bytes) => { bytes[40] ^= 1; return bytes; }, (bytes) => bytes.slice(0, -1), () => new Uint8Array(3), () => 'text', () => undefined]) {
    const whole = new Map(store);
    for (const [key, bytes] of store) store.set(key, damage(bytes.slice()));
    await visit(store);
    assert.deepEqual(await losses(), [2.5, 0.625]);
    assert.ok(starts > 0);
    assert.deepEqual(store, whole);
  }
});

test('without a cache all is compiled; a store that fails is none', async () => {
  const fails = () => { throw new Error('no room'); };
  for (const cache of [false, true, undefined, { get: fails, set: fails, clear: fails }]) { // Node has no IndexedDB
    for (let i = 0; i < 2; i++) {
      await visit(cache);
      assert.deepEqual(await losses(), [2.5, 0.625]);
      assert.ok(starts > 0);
    }
  }
  await assert.rejects(clearCache(), (error) => error instanceof RlxError && error.kind === 'store' && /no room/.test(error.message));
  for (const cache of [3, 'disk', {}, null]) await assert.rejects(init({ cache }), { kind: 'attr', message: /cache is \w+: it must be a boolean or have the methods get, set and clear/ });
});

test('a module that is of another build keeps nothing', async () => {
  const bytes = readFileSync(new URL('../dist/rlx.wasm', import.meta.url)), at = bytes.indexOf('rlx build');
  bytes[at + 9] ^= 1;
  const store = new Map();
  await init({ wasm: await WebAssembly.compile(bytes), compileWorker: false, worker: false, cache: store });
  assert.deepEqual(await losses(), [2.5, 0.625]);
  assert.equal(store.size, 0);
});

test('clearCache empties the store', async () => {
  const store = new Map();
  await visit(store);
  await losses();
  assert.ok(store.size > 0);
  await clearCache();
  assert.equal(store.size, 0);
});

test('a function is refused that returns a promise, or no graph', async () => {
  await visit(new Map());
  await assert.rejects(train(async () => line()(), { optimizer: { kind: 'sgd' } }), { kind: 'graph', message: /^train gets a function that returns a promise/ });
  await assert.rejects(train(() => 5, { optimizer: { kind: 'sgd' } }), { kind: 'missing', message: /the function returns Number: it must return a graph/ });
});

test('entries beside the step are built by a function, too', async () => {
  const store = new Map();
  for (let i = 0; i < 2; i++) {
    await visit(store);
    const { program: p } = await train(line(), { optimizer: { kind: 'sgd' }, rate: 0.1, entries: () => ({ twice: graph('twice', (b) => b.output('y', b.param('w', 'f32', []).mul(2))) }), ...here });
    assert.equal((await (await p.run('twice', {}, { read: ['y'] })).reading).values.y[0], 6);
    p.close();
    assert.equal(starts === 0, i === 1);
  }
});
