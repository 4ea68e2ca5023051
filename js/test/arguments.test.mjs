// Exported functions, and methods of their results, called with any arguments: they return, or
// throw an RlxError, never one of JavaScript's errors.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import * as rlx from '../dist/index.js';
import * as devices from '../dist/devices.js';
import * as fit from '../dist/fit.js';
import { Vocabulary } from '../dist/grammar.js';
import * as lm from '../dist/lm.js';
import * as nn from '../dist/nn.js';
import * as safetensors from '../dist/safetensors.js';
import { linearPlan } from './linear.mjs';
import { openDawn } from './rig/dawn.mjs';

const { graph, init, openProgram, RlxError, scope, program, train, Trainer } = rlx;

let dawn;
before(async () => {
  dawn = await openDawn();
  await init({ device: dawn.device });
});
after(() => dawn.close());

/** Arguments of each class, none of which is what a function wants. */
const wrong = [
  undefined, null, 0, -1, 1.5, NaN, 1n, '', 'nothing', true, Symbol('s'), {}, [], [null], [undefined], ['x'], [1], { misspelt: 1 }, { x: null }, { data: 1, shape: 2 },
  { w: { dtype: 'f32', shape: [3], data: null } }, { size: 1, last: null }, { shape: null }, { axis: 'x', shape: ['n', null] }, Float64Array.of(1), new Uint8Array(3), new ArrayBuffer(2),
  () => undefined, () => null, () => { throw new RlxError('internal', 'thrown by the test'); }, new Map(), new Date(0), Object.create(null),
];

/** Lists of arguments: one in all places, and each after some of the right ones. */
function* argumentsFor(right) {
  for (let n = 0; n < 4; n++) for (const one of n ? wrong : [0]) yield Array(n).fill(one);
  for (let n = 1; n <= right.length; n++) for (const one of wrong) yield [...right.slice(0, n), one];
  for (let n = 0; n < right.length - 1; n++) for (const one of wrong) yield right.map((given, i) => i === n ? one : given);
}

/** Calls a function in all ways and returns what it throws that is no RlxError. */
async function faults(call, right = []) {
  const found = [];
  for (const given of argumentsFor(right)) {
    try {
      const made = await call(...given);
      made?.next?.();
      made?.close?.();
    } catch (error) {
      if (error instanceof RlxError && error.kind !== 'internal' && error.message && !/\[object|Symbol\(\)/.test(error.message)) continue;
      if (error?.message === 'thrown by the test') continue;
      found.push(`(${given.map(text).join(', ')}): ${error?.stack ?? error}`);
    }
  }
  return found;
}

const text = (value) => typeof value === 'symbol' || typeof value === 'function' ? String(value) : JSON.stringify(value, (_, v) => typeof v === 'bigint' ? `${v}n` : v);

/** The methods of an object, those of the classes it derives from included, which a declaration tells users of. */
function methodsOf(object, ...declarations) {
  const names = new Set(), declared = declarations.map((file) => readFileSync(new URL(`../dist/${file}.d.ts`, import.meta.url), 'utf8')).join();
  for (let at = object; at && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(at))) {
      if (typeof value === 'function' && new RegExp(`^    ${name}[<(]`, 'm').test(declared)) names.add(name);
    }
  }
  names.delete('constructor');
  assert.ok(names.size > 1);
  return [...names];
}

const declared = (...given) => graph('g', ...given);
const model = () => graph('model', (b) => b.output('loss', b.param('w', 'f32', [3]).mul(b.input('x', 'f32', [3])).mean()));
const tensor = { dtype: 'f32', shape: [3], data: Float32Array.of(1, 2, 3) }, weights = { w: tensor };
const matrices = { 'l/lora_A/weight': { dtype: 'f32', shape: [2, 1], data: Float32Array.of(1, 2) }, 'l/lora_B/weight': { dtype: 'f32', shape: [1, 2], data: Float32Array.of(3, 4) } };
const optimizer = { kind: 'sgd' };

describe('exported functions', () => {
  const right = () => ({
    ahead: [{ entries: { main: model() } }, {}], batches: [weights, { size: 1 }], clearCache: [], closeCompiler: [], compile: [{ entries: { main: model() } }], decodePlan: [linearPlan()], defineOp: ['own', { body: (_, x) => x }], graph: ['g', () => {}], init: [], initialParams: [model(), {}, 0],
    openProgram: [linearPlan(), {}], moduleText: [{ main: model() }], parseGraph: [model().text()], parseModule: [model().text()], planCode: [linearPlan()], program: [{ entries: { main: model() } }, {}], train: [model(), { optimizer }], watch: [model()],
    mergeAdapter: [{ tensors: matrices }, { 'l/weight': { dtype: 'f32', shape: [2, 2], data: Float32Array.of(1, 2, 3, 4) } }],
    decodeAdapter: [safetensors.encodeAdapter({ tensors: matrices }), {}], encodeAdapter: [{ tensors: matrices }, {}],
    fromTorch: [weights, model(), {}], matchTensors: [weights, model(), {}], toTorch: [weights, model(), {}],
    decodeSafetensors: [safetensors.encodeSafetensors(weights), {}], encodeSafetensors: [weights, {}], openSafetensors: [safetensors.encodeSafetensors(weights)], writeSafetensors: [new WritableStream(), [], {}], liveTensors: [], scope: [], startWorker: [],
  });
  for (const [name, exported] of Object.entries({ ...rlx, ...safetensors })) {
    if (/^class/.test(String(exported))) continue;
    test(name, async () => {
      assert.ok(Object.hasOwn(right(), name), `say what ${name} is called with`);
      const found = await faults(exported, right()[name]);
      assert.deepEqual(found, []);
      await init({ device: dawn.device });
    });
  }
});

describe('functions of devices', () => {
  const right = { calibrate: ['cpu', {}], chooseFor: [model, {}], devices: [{}], devicesFor: [model, {}], openFor: [() => ({ entries: { main: model() } }), {}], parsePolicy: ['cpu'], ratesOf: [{ name: 'cpu' }], reportOn: [model, 'cpu', {}], reportTarget: [model, 'wasm'], fastest: [{}] };
  // A call with a further argument is left out, as each that is right takes seconds.
  const calibrate = (...given) => given.length > right.calibrate.length || devices.calibrate(...given);
  for (const [name, exported] of Object.entries({ ...devices, calibrate })) {
    test(name, async () => assert.deepEqual(await faults(exported, right[name].map((one) => typeof one === 'function' ? one() : one)), []));
  }
});

test('a vocabulary and its grammars', async () => {
  const tokenizer = lm.readTokenizer({ model: { type: 'WordLevel', vocab: { '{': 0, '}': 1 }, unk_token: '{' } }), v = new Vocabulary(tokenizer);
  for (const call of [(...given) => new Vocabulary(...given), (...given) => v.json(...given), (...given) => v.calls(...given), (...given) => v.text(...given)]) assert.deepEqual(await faults(call, []), []);
});

describe('functions of lm and fit', () => {
  for (const [name, exported] of Object.entries({ ...lm, ...fit })) {
    if (typeof exported !== 'function' || /^class/.test(String(exported)) || name === 'files') continue; // files makes the folder that it is given
    test(name, async () => assert.deepEqual(await faults(exported), []));
  }
});

test('a graph of declarations', async () => {
  assert.deepEqual(await faults(declared, [{ inputs: { x: ['f32', [2]] } }, (_, { x }) => ({ y: x })]), []);
});

describe('layers', () => {
  const one = (x) => x, right = {
    attention: [2, {}], avgPool: [2, {}], batchNorm: [{}], conv1d: [2, 1, {}], conv2d: [2, 1, {}], conv3d: [2, 1, {}], convTranspose1d: [2, 1, {}], convTranspose2d: [2, 1, {}], convTranspose3d: [2, 1, {}],
    dropout: [0.5], embedding: [2, 2, {}], gru: [2, {}], groupNorm: [2, {}], instanceNorm: [{}], layerNorm: [{}], linear: [2, {}], lstm: [2, {}], mamba: [{}], maxPool: [2, {}], mlp: [2, {}], moe: [2, {}],
    positionalEmbedding: [4, {}], residual: [one], rmsNorm: [{}], rnn: [2, {}], stack: ['h', 2, one, {}], transformerBlock: [2, {}],
    cache: [4], frozen: [one], key: ['k'], lora: [{}, one], positions: [3], shared: [one], storageOf: ['w'], stored: [() => undefined, one], tie: ['w'],
  };
  for (const [name, layer] of Object.entries(nn)) {
    if (typeof layer !== 'function' || /^(constant|normal|uniform|truncatedNormal|orthogonal|\w+(Uniform|Normal))$/.test(name)) continue;
    test(name, async () => {
      const ofBuilder = /^(cache|frozen|infer|isTraining|key|lora|positions|shared|storageOf|stored|tie|train)$/.test(name);
      const call = (...given) => graph('g', (b) => {
        const x = b.input('x', 'f32', [2, 4, 4]);
        nn.train(b);
        const made = given[0] === 'right' ? layer(ofBuilder ? b : x, ...given.slice(1)) : layer(...given);
        b.output('y', x);
        return made instanceof Promise ? made : undefined;
      });
      assert.deepEqual(await faults(call, ['right', ...right[name] ?? []]), []);
    });
  }
});

describe('exported classes', () => {
  for (const [name, right] of Object.entries({ Trainer: [{ plan: { slots: [] } }, {}]})) {
    test(name, async () => assert.deepEqual(await faults((...given) => new rlx[name](...given), right), []));
  }
});

/** Methods by the name of what has them; each call gets an object of its own, or one that stays usable. */
const objects = {
  Graph: { file: 'graph/graph', make: model, right: { grad: ['loss', 'w'], valueAndGrad: ['loss', 'w'], vjp: ['w'], jvp: ['w'], hvp: ['loss', 'w'], nth: ['loss', 'w', 1], vmap: [2, { x: 0 }, { loss: 0 }], mixed: ['f16'], bind: [{}], step: [{ optimizer }] } },
  Program: { file: 'program/program', make: () => openProgram(linearPlan(), { device: dawn.device }), right: { run: ['step', {}, {}], bind: ['step', {}], read: ['w'], readAll: [['w']], write: ['w', tensor.data], upload: [tensor], keep: ['w'], load: [weights, {}] } },
  'Program on the CPU': { file: 'program/program', make: () => program({ entries: { main: model() } }, { on: 'cpu', worker: false }), right: { run: ['main', {}, {}], bind: ['main', {}], read: ['w'], readAll: [['w']], write: ['w', tensor.data], upload: [tensor], keep: ['w'], load: [weights, {}] } },
  Trainer: { file: 'runtime/trainer', make: async () => new Trainer(await openProgram(linearPlan(), { device: dawn.device })), right: { step: [{}, {}], run: [{ steps: 1, batches: [] }], evaluate: [{ entry: 'step', batches: [] }], load: [weights, {}] } },
  Tensor: { file: 'values/tensor', make: async () => (await openProgram(linearPlan(), { device: dawn.device })).upload(tensor), right: {} },
  TensorScope: { file: 'values/tensor', make: scope, right: {} },
};

for (const [name, { file, make, right }] of Object.entries(objects)) {
  describe(`methods of a ${name}`, async () => {
    test('all', async () => {
      const object = await make(), found = [];
      for (const method of methodsOf(object, file)) {
        const ends = /close|free|dispose/.test(method), one = ends ? await make() : object;
        for (const fault of await faults((...given) => one[method](...given), right[method])) found.push(`${method}${fault}`);
      }
      object.program?.close();
      object.close?.();
      assert.deepEqual(found, []);
    });
  });
}

describe('methods of a builder and its values', () => {
  /** Calls a method of a builder, or of a value, of a graph of its own. */
  const building = (pick, method) => (...given) => {
    graph('g', (b) => {
      const x = b.input('x', 'f32', [3]);
      pick(b, x)[method](...given);
      b.output('y', x);
    });
  };
  for (const [what, file, pick, right] of [
    ['GraphBuilder', 'graph/builder', (b) => b, { input: ['y', 'f32', [2]], param: ['w', 'f32', [2], 0], state: ['s', 'f32', []], scope: ['s', () => {}], constant: ['f32', [2], Float32Array.of(1, 2)], full: ['f32', [2], 1], randomKey: [1], scan: [{ length: 1 }, () => ({ carries: [] })], checkpoint: [[], () => []], whileLoop: [{ carries: [] }, () => 1, () => []], setState: ['s', 1], updateState: ['s', () => 1], output: ['o', 1] }],
    ['Value', 'graph/builder', (_, x) => x, {}],
  ]) {
    test(what, async () => {
      let methods;
      graph('g', (b) => {
        const x = b.input('x', 'f32', [3]);
        methods = methodsOf(pick(b, x), file, 'graph/ops.gen');
        b.output('y', x);
      });
      assert.ok(methods.length > 10);
      const found = [];
      for (const method of methods) for (const fault of await faults(building(pick, method), right[method])) found.push(`${method}${fault}`);
      assert.deepEqual(found.slice(0, 20), []);
    });
  }
});

describe('an option that is not known is refused, with those that are', () => {
  const spelt = { misspelt: 1 };
  const calls = {
    init: () => init(spelt), openProgram: () => openProgram(linearPlan(), { device: dawn.device, ...spelt }), compile: () => rlx.compile({ entries: { main: model() }, ...spelt }),
    limits: () => rlx.compile({ entries: { main: model() }, limits: spelt }), tune: () => rlx.compile({ entries: { main: model() }, tune: spelt }),
    program: () => program({ entries: { main: model() } }, spelt), train: () => train(model(), { optimizer, ...spelt }), optimizer: () => train(model(), { optimizer: { ...optimizer, ...spelt } }),
    schedule: () => train(model(), { optimizer, schedule: { kind: 'constant', rate: 1, ...spelt } }), step: async () => model().step({ optimizer, ...spelt }),
    batches: async () => rlx.batches(weights, { size: 1, ...spelt }), last: async () => rlx.batches(weights, { size: 2, last: spelt }), trainer: async () => new Trainer({ plan: { slots: [] } }, spelt),
    history: async () => new Trainer({ plan: { slots: [] } }, { history: spelt }),
    decode: async () => safetensors.decodeSafetensors(safetensors.encodeSafetensors(weights), spelt),
    as: async () => safetensors.decodeSafetensors(safetensors.encodeSafetensors(weights)).tensors.w.as('f32', spelt),
    scan: async () => graph('g', (b) => b.scan({ length: 1, ...spelt }, () => ({ carries: [] }))), whileLoop: async () => graph('g', (b) => b.whileLoop({ carries: [], ...spelt }, () => {}, () => [])),
    op: async () => graph('g', (b) => b.output('y', b.input('x', 'f32', [3]).layerNorm(undefined, undefined, spelt))),
  };
  for (const [name, call] of Object.entries(calls)) test(name, () => assert.rejects(call, { name: 'RlxError', kind: /name|attr/, message: /misspelt.*(there are|has|have) \w+/ }));
  for (const method of ['run', 'load', 'trainer.run', 'evaluate', 'trainer.load']) {
    test(method, async (t) => {
      const opened = await openProgram(linearPlan(), { device: dawn.device }), trainer = new Trainer(opened);
      t.after(() => opened.close());
      const call = { run: () => opened.run('init', {}, spelt), load: () => opened.load(weights, spelt), 'trainer.run': () => trainer.run(spelt), evaluate: () => trainer.evaluate(spelt), 'trainer.load': () => trainer.load(weights, spelt) }[method];
      await assert.rejects(call, { name: 'RlxError', kind: 'name', message: /has no option misspelt: there are \w+/ });
    });
  }
});

test('a device that is none is refused, as the name of one is', async () => {
  const doubled = graph('doubled', (b) => b.output('y', b.input('x', 'f32', [2]).mul(2)));
  for (const device of ['cpu', 1, {}, []]) await assert.rejects(openProgram(linearPlan(), { device }), { name: 'RlxError', kind: 'attr', message: /^device is \w+: it must be a GPUDevice$/ });
  for (const device of ['cpu', 1, {}, []]) await assert.rejects(program({ entries: { doubled } }, { device }), { kind: 'attr', message: /^device is \w+: it must be a GPUDevice; "on" says/ });
});

test('a size that is not finite is no symbol', () => {
  for (const size of [NaN, Infinity, -Infinity]) {
    assert.throws(() => graph('g', (b) => b.output('y', b.input('x', 'f32', [size]))), { kind: 'attr', message: new RegExp(`the shape of x is ${size}: it must be a text or a finite number`) });
    assert.throws(() => graph('g', (b) => b.output('y', b.input('x', 'f32', [4]).broadcastTo([size, 4]))), { kind: 'attr' });
  }
});
