// Layers: the names that they declare are those of the Go package nn, their values PyTorch's.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { before, describe, test } from 'node:test';
import { build } from 'esbuild';
import { compile, graph, init, initialParams, parseGraph, program, train } from '../dist/index.js';
import * as nn from '../dist/nn.js';

const testdata = (name) => readFileSync(new URL(`../../ir/nn/testdata/${name}`, import.meta.url), 'utf8');

before(() => init({ compileWorker: false, worker: false }));

/** The layers of ir/nn/testdata/torch.json, by their inputs. */
const layers = {
  linear: ({ x }) => nn.linear(x, 3),
  embedding: ({ ids }) => nn.embedding(ids, 5, 3),
  lora: ({ x }) => nn.lora(x.builder, { rank: 2, alpha: 16 }, () => nn.linear(x, 3)),
  conv1d: ({ x }) => nn.conv1d(x, 4, 3, { pad: 2, dilation: 2 }),
  conv2d: ({ x }) => nn.conv2d(x, 4, 3, { pad: 1, stride: 2 }),
  'conv2d groups': ({ x }) => nn.conv2d(x, 6, [2, 3], { dilation: [1, 2], groups: 2, noBias: true }),
  'conv2d same': ({ x }) => nn.conv2d(x, 3, 4, { padding: 'same' }),
  'conv2d channels first': ({ x }) => nn.conv2d(x, 3, 3, { padding: 'same', channelsFirst: true }),
  conv3d: ({ x }) => nn.conv3d(x, 3, 2),
  conv_transpose1d: ({ x }) => nn.convTranspose1d(x, 2, 3, { stride: 2 }),
  conv_transpose2d: ({ x }) => nn.convTranspose2d(x, 6, 3, { stride: 2, pad: 1, outputPad: 1, groups: 2 }),
  'conv_transpose2d channels first': ({ x }) => nn.convTranspose2d(x, 3, 2, { stride: 2, channelsFirst: true }),
  conv_transpose3d: ({ x }) => nn.convTranspose3d(x, 3, 2, { dilation: 2 }),
  max_pool: ({ x }) => nn.maxPool(x, 3, { stride: 2, pad: 1 }),
  avg_pool: ({ x }) => nn.avgPool(x, 3, { stride: 2, pad: 1 }),
  'avg_pool exclude': ({ x }) => nn.avgPool(x, 2, { pad: 1, excludePad: true }),
  max_pool1d: ({ x }) => nn.maxPool(x, 2),
  global_avg_pool: ({ x }) => nn.globalAvgPool(x),
  layer_norm: ({ x }) => nn.layerNorm(x),
  rms_norm: ({ x }) => nn.rmsNorm(x),
  group_norm: ({ x }) => nn.groupNorm(x, 2),
  'group_norm channels first': ({ x }) => nn.groupNorm(x, 2, { channelsFirst: true }),
  instance_norm: ({ x }) => nn.instanceNorm(x),
  'batch_norm training': ({ x }) => (nn.train(x.builder), nn.batchNorm(x)),
  'batch_norm inference': ({ x }) => (nn.infer(x.builder), nn.batchNorm(x)),
  attention: ({ x }) => nn.attention(x, 2),
  'attention causal': ({ x }) => nn.attention(x, 3, { causal: true }),
  'attention context': ({ x, context }) => nn.attention(x, 2, { context }),
  'attention grouped': ({ x }) => nn.attention(x, 4, { kvHeads: 2, rope: {}, causal: true, window: 3, separate: true, noBias: true }),
  transformer: ({ x }) => nn.transformerBlock(x, 2, { hidden: 6, causal: true }),
  'transformer post': ({ x }) => nn.transformerBlock(x, 2, { hidden: 6, activation: 'relu', postNorm: true }),
  'transformer context': ({ x, context }) => nn.transformerBlock(x, 2, { hidden: 6, activation: 'relu', causal: true, context }),
  lstm: ({ x }) => nn.lstm(x, 2, { layers: 2, bidirectional: true }),
  gru: ({ x }) => nn.gru(x, 2, { layers: 2 }),
  'gru time first': ({ x }) => nn.gru(x, 2, { timeFirst: true, noBias: true }),
  'rnn relu': ({ x }) => nn.rnn(x, 4, { relu: true }),
  moe: ({ x }) => nn.moe(x, 3, { hidden: 5 }),
  'conv2d reflect': ({ x }) => nn.conv2d(x, 3, 3, { pad: [1, 2], stride: [1, 2], paddingMode: 'reflect' }),
  'conv2d replicate': ({ x }) => nn.conv2d(x, 3, 3, { pad: [1, 2], stride: [1, 2], paddingMode: 'replicate' }),
  'conv2d circular': ({ x }) => nn.conv2d(x, 3, 3, { pad: [1, 2], stride: [1, 2], paddingMode: 'circular' }),
  'conv1d circular same': ({ x }) => nn.conv1d(x, 3, 4, { padding: 'same', paddingMode: 'circular' }),
  'max_pool ceil': ({ x }) => nn.maxPool(x, 3, { stride: 2, pad: 1, ceilMode: true }),
  'max_pool ceil short': ({ x }) => nn.maxPool(x, 2, { stride: 3, pad: 1, ceilMode: true }),
  'avg_pool ceil': ({ x }) => nn.avgPool(x, 3, { stride: 2, pad: 1, ceilMode: true }),
  'avg_pool ceil exclude': ({ x }) => nn.avgPool(x, 3, { stride: [2, 4], pad: 1, ceilMode: true, excludePad: true }),
  embedding_bag: ({ ids }) => nn.embeddingBag(ids, 5, 3),
  'embedding_bag sum': ({ ids, weights }) => nn.embeddingBag(ids, 5, 3, { mode: 'sum', weights }),
  'embedding_bag max': ({ ids }) => nn.embeddingBag(ids, 5, 3, { mode: 'max' }),
  'embedding_bag padding': ({ ids }) => nn.embeddingBag(ids, 5, 3, { padding: 3 }),
  'embedding_bag max padding': ({ ids }) => nn.embeddingBag(ids, 5, 3, { mode: 'max', padding: 3 }),
  'gru reset before': ({ x }) => nn.gru(x, 2, { bidirectional: true, resetBefore: true }),
  mamba: ({ x }) => nn.mamba(x, { state: 3, rank: 2 }),
  sinusoidal_encoding: ({ x }) => nn.sinusoidalEncoding(x),
  global_max_pool: ({ x }) => nn.globalMaxPool(x),
  softcap: ({ x }) => nn.softcap(x, 3),
  mlp: ({ x }) => nn.mlp(x, 5),
  'mlp swiglu': ({ x }) => nn.mlp(x, 5, { activation: 'swiglu', noBias: true }),
  'mlp geglu': ({ x }) => nn.mlp(x, 5, { activation: 'geglu', noBias: true }),
  'mlp gelu_tanh': ({ x }) => nn.mlp(x, 4, { activation: 'gelu_tanh' }),
  'mlp relu2': ({ x }) => nn.mlp(x, 4, { activation: 'relu2' }),
  'mlp silu': ({ x }) => nn.mlp(x, 4, { activation: 'silu' }),
  'mlp tanh': ({ x }) => nn.mlp(x, 4, { activation: 'tanh' }),
  grouped_linear: ({ x, groups }) => nn.groupedLinear(x, groups, 3, 2),
  linear_cross_entropy: ({ x, labels }) => nn.linearCrossEntropy(x, labels, 6, { ignored: [-100], labelSmoothing: 0.1, rows: 4 }),
  'linear_cross_entropy softcap': ({ x, labels }) => nn.linearCrossEntropy(x, labels, 4, { noBias: true, softcap: 2, reduction: 'sum', rows: 2 }),
  positional_embedding: ({ x }) => nn.positionalEmbedding(x, 6),
  'linear tied': ({ ids }) => nn.linear(nn.embedding(ids, 5, 3).tanh(), 5, { tied: 'embedding0/weight', noBias: true }),
  attend: ({ q, k, v, mask }) => nn.attend(q, k, v, { mask: mask.convert('bool'), scale: 0.3 }),
  'attention alibi': ({ x }) => nn.attention(x, 4, { alibi: true, causal: true, separate: true }),
  'attention softcap': ({ x, mask }) => nn.attention(x, 2, { softcap: 1.5, mask, separate: true }),
  'attention normalised': ({ x }) =>
    nn.attention(x, 2, { kvHeads: 1, headSize: 6, normQK: true, rope: { base: 500, size: 4, interleaved: true }, causal: true, separate: true }),
  'transformer llama': ({ x }) => nn.transformerBlock(x, 4, {
    hidden: 6, activation: 'swiglu', rmsNorm: true, epsilon: 1e-5, noBias: true, causal: true, kvHeads: 2, rope: {}, attention: { separate: true },
  }),
  'lstm begun': ({ x, hidden, cell }) => nn.lstm(x, 2, { layers: 2, hidden, cell }),
  'gru begun': ({ x, hidden }) => nn.gru(x, 2, { bidirectional: true, hidden }),
  'rnn begun': ({ x, hidden }) => nn.rnn(x, 4, { bidirectional: true, hidden }),
  'batch_norm channels first': ({ x }) => (nn.train(x.builder), nn.batchNorm(x, { channelsFirst: true, epsilon: 1e-3, momentum: 0.3 })),
  'layer_norm without bias': ({ x }) => nn.layerNorm(x, { epsilon: 1e-2, noBias: true }),
  'instance_norm channels first': ({ x }) => nn.instanceNorm(x, { channelsFirst: true, noAffine: true }),
  'max_pool channels first': ({ x }) => nn.maxPool(x, [2, 3], { stride: [2, 1], dilation: 2, channelsFirst: true }),
  dot_interaction: ({ x }) => nn.dotInteraction(x),
  stack: ({ x }) => nn.stack(x, 'h', 3, repeated),
  'stack scan': ({ x }) => nn.stack(x, 'h', 3, repeated, { scan: true }),
  active_blocks: ({ x, active }) => nn.activeBlocks(x, active.convert('bool'), (x) => nn.linear(x, 3).tanh()),
  chosen_experts: ({ x, weights, chosen }) => nn.chosenExperts(x, weights, chosen, (x, groups) => nn.groupedLinear(x, groups, 3, 2)),
};

const repeated = (x) => nn.residual(x, (x) => nn.linear(x, 4).tanh());

/** Models of an x of f32[2,5,8], as in ir/nn/names_test.go. */
const models = {
  'batch_norm frozen': (x, b) => (nn.train(b), nn.frozen(b, () => nn.batchNorm(nn.linear(x, 4)))),
  'batch_norm shared'(x, b) {
    nn.train(b);
    const y = nn.batchNorm(x);
    return nn.shared(b, () => nn.batchNorm(y));
  },
  'lora attention': (x, b) => nn.lora(b, {}, () => nn.attention(x, 2, { causal: true })),
  'lora of queries': (x, b) => nn.lora(b, { targets: ['q_proj'] }, () => nn.attention(x, 2, { separate: true })),
  llama: (x) => nn.stack(x, 'layers', 2, (x) => nn.transformerBlock(x, 4, {
    name: nn.here, hidden: 6, activation: 'swiglu', rmsNorm: true, noBias: true, causal: true, kvHeads: 2, rope: {}, attention: { separate: true, normQK: true },
  })),
  'rules by fans': (x) => nn.stack(nn.moe(x, 4, { init: nn.heNormal(), hidden: 2 })[0], 's', 3,
    (x) => nn.linear(nn.linear(x, 8, { init: nn.glorotUniform() }), 8, { init: nn.orthogonal(1) }), { scan: true }),
  scanned: (x) => nn.stack(x, 'blocks', 3, (x) => nn.transformerBlock(x, 2, { name: nn.here, depth: 3 }), { scan: true }),
  grouped: (x, b) => nn.groupedLinear(x.reshape([10, 8]), b.input('groups', 'i32', [10]), 3, 4),
  cached(x, b) {
    nn.infer(b);
    nn.cache(b, 8);
    const [y] = nn.lstm(nn.attention(x, 2, { causal: true }), 3);
    return nn.mamba(y, { state: 2 });
  },
  named(x, b) {
    const y = b.scope('features', () => nn.layerNorm(nn.conv1d(x, 4, 1, { name: '0' }), { name: '1' }));
    nn.train(b);
    return nn.mlp(nn.dropout(nn.positionalEmbedding(y, 16), 0.1), 8);
  },
};

const { cases } = JSON.parse(testdata('torch.json'));
const typeOf = ({ i }) => i ? 'i32' : 'f32';

/** A layer with its results y0, y1, … and the loss that PyTorch has the gradients of. */
const caseGraph = ({ name, inputs, weights }) => graph('layer', (b) => {
  const given = Object.fromEntries(Object.entries(inputs).sort(([a], [c]) => a < c ? -1 : 1).map(([port, tensor]) => [port, b.input(port, typeOf(tensor), tensor.s)]));
  const results = [layers[name](given)].flat(), terms = results.map((y, i) => y.mul(b.input(`r${i}`, 'f32', weights[i].s)).reduceSum());
  results.forEach((y, i) => b.output(`y${i}`, y));
  b.output('loss', b.sumAll(terms));
});

const modelGraph = (model) => graph('model', (b) => b.output('y', model(b.input('x', 'f32', [2, 5, 8]), b)));

/** The parameters and states of a graph, as ir/nn/testdata/names.txt lists them. */
function listed(made) {
  return made.ports.filter(({ kind }) => kind !== 'input').map(({ kind, name, dtype, shape, initial, frozen }) => {
    const rule = initial ? initial.rule + (initial.args.length ? `(${initial.args})` : '') : '';
    return `  ${kind} ${name} ${dtype}[${shape}] ${rule}${frozen ? ' frozen' : ''}`;
  });
}

describe('names and initial rules are those of Go', () => {
  const golden = new Map(testdata('names.txt').split(/\n(?=\S)/).map((part) => {
    const [name, ...lines] = part.trimEnd().split('\n');
    return [name, lines.map((line) => line.replace(/ $/, ''))];
  }));
  const made = { ...Object.fromEntries(cases.map((one) => [one.name, () => caseGraph(one)])), ...Object.fromEntries(Object.entries(models).map(([name, model]) => [name, () => modelGraph(model)])) };
  test('all are listed', () => assert.deepEqual([...golden.keys()].sort(), Object.keys(made).sort()));
  for (const [name, lines] of golden) {
    test(name, () => {
      const g = made[name]();
      assert.deepEqual(listed(g).map((line) => line.trimEnd()).sort(), [...lines].sort());
      assert.deepEqual(listed(parseGraph(g.text())).sort(), listed(g).sort(), 'the text form');
    });
  }
});

const array = ({ i, d }) => i ? Int32Array.from(i) : Float32Array.from(d);

/** Compares values up to 1e-5 of the largest one. */
function near(got, { d: want }, what) {
  assert.equal(got.length, want.length, what);
  const largest = want.reduce((most, x) => Math.max(most, Math.abs(x)), 1);
  got.forEach((x, i) => assert.ok(Math.abs(x - want[i]) <= 1e-5 * largest, `${what} is ${x} at ${i}, not ${want[i]}`));
}

describe('results and gradients are those of PyTorch', () => {
  for (const one of cases) {
    test(one.name, async (t) => {
      const { inputs, params, weights, outputs, grads, states = {} } = one;
      const s = await program({ entries: { f: caseGraph(one).valueAndGrad('loss', ...Object.keys(grads)) } }, { on: 'cpu' });
      t.after(() => s.close());
      await s.load(Object.fromEntries(Object.entries(params).map(([name, tensor]) => [name, { dtype: 'f32', shape: tensor.s, data: array(tensor) }])));
      const given = { ...Object.fromEntries(Object.entries(inputs).map(([name, tensor]) => [name, array(tensor)])), ...Object.fromEntries(weights.map((tensor, i) => [`r${i}`, tensor.s.length ? array(tensor) : array(tensor)[0]])) };
      const names = [...outputs.map((_, i) => `y${i}`), ...Object.keys(grads).map((name) => `grad/${name}`), ...Object.keys(states)];
      const { values } = await (await s.run('f', given, { read: names })).reading;
      outputs.forEach((want, i) => near(values[`y${i}`], want, `y${i}`));
      for (const [name, want] of Object.entries(grads)) near(values[`grad/${name}`], want, `the gradient by ${name}`);
      for (const [name, want] of Object.entries(states)) near(values[name], want, name);
    });
  }
});

const draws = (initial, { seed = 0, shape = [40, 50], dtype = 'f32' } = {}) =>
  initialParams(graph('draws', (b) => b.output('y', b.param('w', dtype, shape, initial))), {}, seed).w.data;

describe('initial values', () => {
  // The op of the same distribution, on the key of parameter w, is what Go draws with.
  const byOp = async (t, op, seed) => {
    const { w: { data } } = initialParams(graph('key', (b) => b.output('y', b.param('w', 'u32', [2], { rule: 'key', args: [] }))), {}, seed);
    const s = await program({ entries: { f: graph('draw', (b) => b.output('y', op(b.constant('u32', [2], data)))) } }, { on: 'cpu' });
    t.after(() => s.close());
    await s.run('f');
    return s.read('y');
  };

  test('are those of the random ops: uniform ones to the bit', async (t) => {
    const shape = [40, 50], u = await byOp(t, (key) => key.randomUniform({ shape }).mul(2).sub(1).mul(0.25), 7);
    assert.deepEqual(draws(nn.uniform(-0.25, 0.25), { seed: 7 }), u);
    const v = await byOp(t, (key) => key.randomUniform({ shape }).mul(2).sub(1).mul(Math.sqrt(6 / 90)), 7);
    for (const initial of ['glorot', nn.glorotUniform()]) assert.deepEqual(draws(initial, { seed: 7 }), v);
  });

  test('normal ones to six digits', async (t) => {
    const z = await byOp(t, (key) => key.randomNormal({ shape: [40, 50] }), 3), got = draws(nn.normal(0.5, 2), { seed: 3 });
    z.forEach((x, i) => assert.ok(Math.abs(got[i] - (0.5 + 2 * x)) < 2e-6 * Math.max(1, Math.abs(x)), `${got[i]} is not 0.5 + 2 · ${x}`));
    const cut = await byOp(t, (key) => key.randomTruncatedNormal({ shape: [40, 50], low: -1.5, high: 2 }), 3), truncated = draws(nn.truncatedNormal(1, 2, -2, 5), { seed: 3 });
    cut.forEach((x, i) => assert.ok(Math.abs(truncated[i] - (1 + 2 * x)) < 1e-5, `${truncated[i]} is not 1 + 2 · ${x}`));
  });

  test('have the variance of their fans', () => {
    const variances = { glorotNormal: 2 / (9 * 70), heNormal: 2 / (9 * 40), heUniform: 2 / (9 * 40), lecunNormal: 1 / (9 * 40), lecunUniform: 1 / (9 * 40) };
    for (const [name, variance] of Object.entries(variances)) {
      const data = draws(nn[name](), { shape: [3, 3, 40, 30] }), got = data.reduce((sum, x) => sum + x * x, 0) / data.length;
      assert.ok(Math.abs(got / variance - 1) < 0.05, `${name}: ${got} instead of ${variance}`);
    }
  });

  test('orthogonal ones have orthonormal rows or columns', () => {
    for (const [rows, cols] of [[9, 4], [4, 9]]) {
      const w = draws(nn.orthogonal(3), { shape: [rows, cols] }), n = Math.min(rows, cols);
      for (let i = 0; i < n; i++) {
        for (let j = 0; j < n; j++) {
          const at = (k, i) => w[rows < cols ? i * cols + k : k * cols + i], sum = Array.from({ length: Math.max(rows, cols) }, (_, k) => at(k, i) * at(k, j)).reduce((a, x) => a + x);
          assert.ok(Math.abs(sum - (i === j ? 9 : 0)) < 1e-5);
        }
      }
    }
  });

  test('of narrow types are rounded, and rules that are not known are refused', () => {
    assert.ok(draws(nn.normal(0, 1), { dtype: 'bf16' }) instanceof Uint16Array);
    assert.throws(() => draws({ rule: 'nonsense', args: [] }), { kind: 'attr', message: /nonsense/ });
    assert.throws(() => draws(nn.normal(0, -1)), { kind: 'attr' });
    assert.throws(() => draws(nn.normal(0, NaN)), { kind: 'attr' });
  });
});

describe('training', () => {
  const classifier = (x) => nn.linear(nn.dropout(nn.batchNorm(nn.linear(x, 8)).relu(), 0.5), 2);
  const entries = () => ({
    loss: graph('loss', (b) => {
      nn.train(b);
      b.output('loss', classifier(b.input('x', 'f32', [16, 4])).crossEntropyMean(b.input('labels', 'i32', [16])));
    }),
    eval: graph('eval', (b) => {
      nn.infer(b);
      b.output('scores', classifier(b.input('x', 'f32', [16, 4])));
    }),
  });
  const x = Float32Array.from({ length: 64 }, (_, i) => Math.sin(i)), labels = Int32Array.from({ length: 16 }, (_, i) => Number(x[4 * i] > 0));

  test('inference uses the running statistics and drops nothing; a checkpoint goes on with the same numbers', async (t) => {
    const { loss, eval: evaluate } = entries();
    const trainers = await Promise.all([0, 1].map(() => train(loss, { optimizer: { kind: 'adam' }, rate: 0.01, seed: 1, entries: { eval: evaluate }, on: 'cpu' })));
    for (const { program: s } of trainers) t.after(() => s.close());
    const [first, second] = trainers, losses = [];
    const steps = (trainer, n) => trainer.run({ steps: n, every: 1, batches: () => ({ x, labels }), onProgress: (p) => losses.push(...p.losses) });
    await steps(first, 5);
    assert.equal(new Set(losses).size, 5);
    const { 'batch_norm0/running_mean': { data: mean } } = await first.save();
    assert.ok(mean.every((m) => m !== 0));
    await first.program.run('eval', { x });
    const scores = await first.program.read('scores');
    await first.program.run('eval', { x });
    assert.deepEqual(await first.program.read('scores'), scores);
    await second.load(await first.save());
    await steps(first, 3);
    await steps(second, 3);
    assert.deepEqual(losses.slice(8), losses.slice(5, 8));
  });

  test('a shared batch norm moves its statistics at each call, as in PyTorch', async (t) => {
    const twice = graph('twice', (b) => {
      nn.train(b);
      b.output('first', nn.batchNorm(b.input('x', 'f32', [3, 2])));
      nn.shared(b, () => b.output('second', nn.batchNorm(b.input('z', 'f32', [3, 2]))));
    });
    const p = await program({ entries: { twice } }, { on: 'cpu' });
    t.after(() => p.close());
    await p.load(initialParams(twice));
    await p.run('twice', { x: Float32Array.of(1, 2, 3, -1, 2, 5), z: Float32Array.of(0, 1, 4, 4, -7, 2) });
    const { 'batch_norm0/running_mean': mean, 'batch_norm0/running_var': variance } = await p.save();
    near([...mean.data, ...variance.data], { d: [0.08, 0.413333327, 4, 1.85333323] }, 'the statistics');
  });

  test('leaves frozen parameters as they are', async (t) => {
    const model = graph('tuned', (b) => {
      const h = nn.lora(b, { rank: 2 }, () => nn.linear(b.input('x', 'f32', [16, 4]), 2));
      b.output('loss', h.crossEntropyMean(b.input('labels', 'i32', [16])));
    });
    const trainer = await train(model, { optimizer: { kind: 'sgd' }, rate: 0.5, on: 'cpu' }), before = initialParams(model);
    t.after(() => trainer.program.close());
    await trainer.run({ steps: 3, batches: () => ({ x, labels }) });
    const after = await trainer.saveParams();
    for (const name of ['linear0/weight', 'linear0/bias']) assert.deepEqual(after[name].data, before[name].data);
    assert.notDeepEqual(after['linear0/lora_B/weight'].data, before['linear0/lora_B/weight'].data);
  });

  test('a loss of some rows at a time has the value and the steps of that of whole logits', async (t) => {
    const made = (loss) => graph('rows', (b) => {
      nn.train(b);
      const h = b.input('x', 'f32', [16, 4]), y = b.input('labels', 'i32', [16]);
      b.output('loss', nn.lora(b, { rank: 2 }, () => loss(h, y)));
    });
    const options = { ignored: [0], labelSmoothing: 0.1 }, losses = [];
    const capped = [(y) => y.mul(1 / 2).tanh().mul(2), (y) => nn.softcap(nn.softcap(y, 0), 2)].map((cap) => made((h, y) => cap(nn.linear(h, 3)).crossEntropyLoss(y, undefined, options)));
    for (const model of [...capped, ...[0, 5].map((rows) => made((h, y) => nn.linearCrossEntropy(h, y, 3, { ...options, softcap: 2, ...rows && { rows } })))]) {
      const trainer = await train(model, { optimizer: { kind: 'sgd' }, rate: 0.5, on: 'cpu' });
      t.after(() => trainer.program.close());
      await trainer.run({ steps: 4, every: 4, batches: () => ({ x, labels }), onProgress: (p) => losses.push(p.losses) });
    }
    assert.ok(losses[0][3] < losses[0][0]);
    for (const other of losses.slice(1)) losses[0].forEach((y, i) => assert.ok(Math.abs(y - other[i]) < 1e-5, `${losses}`));
  });

  test('the mean loss of many rows in f16 is not that of an infinite sum', async (t) => {
    const rows = 70_000, g = graph('g', (b) => {
      const loss = nn.linearCrossEntropy(b.full('f16', [rows, 2], 0), b.full('i32', [rows], 1), 3, { noBias: true });
      b.output('y', loss.convert('f32'));
    });
    const s = await program({ entries: { f: g } }, { on: 'cpu' });
    t.after(() => s.close());
    await s.run('f');
    const y = (await s.read('y'))[0];
    assert.ok(Math.abs(y - Math.log(3)) < 1e-3, `${y} is not ${Math.log(3)}`);
  });

  test('blocks that are not active are 0', async (t) => {
    for (const n of [1, 4]) {
      const block = (x) => nn.linear(x, 4).tanh(), active = Int32Array.from({ length: n }, (_, i) => (i + 1) % 2);
      const made = (f) => graph('g', (b) => b.output('y', f(b.input('x', 'f32', [n, 2, 4]), b.input('active', 'i32', [n]).ne(0))));
      const results = [];
      for (const g of [made((x, on) => nn.activeBlocks(x, on, block)), made((x, on) => block(x).mul(on.convert('f32').reshape([n, 1, 1])))]) {
        const s = await program({ entries: { f: g } }, { on: 'cpu' });
        t.after(() => s.close());
        await s.load(initialParams(g, {}, 7));
        await s.run('f', { x: x.slice(0, n * 8), active });
        results.push(await s.read('y'));
      }
      assert.ok(results[1].some((y) => y !== 0));
      results[0].forEach((y, i) => assert.ok(Math.abs(y - results[1][i]) < 1e-6));
    }
  });

  test('blocks as a loop and with checkpoints give what unrolled blocks give', async (t) => {
    const made = (options) => graph('blocks', (b) => {
      const x = nn.linear(b.input('x', 'f32', [4, 4]), 4, { name: 'in', noBias: true }), context = x.sliceAxis(0, 0, 3).sin(), mask = x.matmul(x.transpose([1, 0])).gt(-1);
      const block = (z) => nn.transformerBlock(z, 2, { name: nn.here, hidden: 8, context, attention: { mask } }).add(z.matmul(nn.tie(z.builder, 'in/weight'))); // values and a parameter around it
      b.output('y', nn.stack(x, 'h', 3, block, options));
    });
    const looped = made({ scan: true }), unrolled = made(), values = initialParams(unrolled, {}, 5), stacked = {};
    for (const { name, shape } of looped.ports.filter(({ kind }) => kind === 'param')) {
      const parts = name === 'in/weight' ? [values[name].data] : [0, 1, 2].map((i) => values[name.replace('h/', `h/${i}/`)].data);
      stacked[name] = { dtype: 'f32', shape, data: Float32Array.from(parts.flatMap((part) => [...part])) };
    }
    const results = [];
    for (const [g, params] of [[unrolled, values], [looped, stacked], [made({ checkpoint: true }), values], [made({ scan: true, checkpoint: true }), stacked]]) {
      const s = await program({ entries: { f: g } }, { on: 'cpu' });
      t.after(() => s.close());
      await s.load(params);
      await s.run('f', { x: x.slice(0, 16) });
      results.push(await s.read('y'));
    }
    for (const other of results.slice(1)) results[0].forEach((y, i) => assert.ok(Math.abs(y - other[i]) < 1e-5));
  });

  for (const options of [{ scan: true }, { checkpoint: true }, { scan: true, checkpoint: true }]) test(`random numbers differ from block to block: ${Object.keys(options)}`, async (t) => {
    const g = graph('dropped', (b) => {
      nn.train(b);
      b.output('y', nn.stack(b.full('f32', [64], 1), 'h', 2, (x) => nn.dropout(x, 0.5), options));
    });
    const s = await program({ entries: { f: g } }, { on: 'cpu' });
    t.after(() => s.close());
    await s.run('f');
    const y = await s.read('y'), kept = y.filter((v) => v !== 0).length;
    assert.ok(y.every((v) => v === 0 || v === 4) && kept > 4 && kept < 28, `${kept} of 64 are kept`);
  });

  for (const options of [{ scan: true }, { checkpoint: true }, { scan: true, checkpoint: true }]) test(`keys in blocks have the numbers of the Go package: ${Object.keys(options)}`, () => {
    const g = graph('drops', (b) => {
      nn.train(b);
      b.output('y', nn.stack(b.input('x', 'f32', [4]), 's', 2, (x) => x.builder.scope('inner', () => nn.dropout(x, 0.5)), options));
    });
    assert.match(g.text(), /constant 2522033049 : u32\[\]/);
  });
});

test('errors name the scope, and begin at the line of the caller', () => {
  const refused = (layer, kind, message) => {
    try {
      graph('g', (b) => b.output('y', b.scope('block', () => layer(b, b.input('x', 'f32', [2, 'n', 4])))));
    } catch (error) {
      assert.deepEqual([error.name, error.kind], ['RlxError', kind], error.message);
      assert.match(error.message, message);
      assert.match(error.stack.split('\n    at ')[1], /nn\.test\.mjs/);
      return;
    }
    assert.fail(`it was not refused: ${message}`);
  };
  refused((_, x) => nn.linear(x, 0), 'attr', /^nn\.linear\(f32\[2,n,4\]\) in block\/linear0: out is 0, not an integer of at least 1$/);
  refused((_, x) => nn.linear(x.transpose([0, 2, 1]), 3), 'symbol', /axis -1 of x, n, is symbolic/);
  refused((_, x) => nn.attention(x, 3), 'attr', /3 heads do not divide the width, 4/);
  refused((_, x) => nn.dropout(x, 0.5), 'graph', /call nn\.train or nn\.infer first/);
  refused((_, x) => nn.mlp(x, 8, { activation: 'step' }), 'name', /no activation step: there are gelu/);
  refused((_, x) => nn.linear(x, 3, { bias: false }), 'name', /nn\.linear has no option bias/);
  const adapt = (b, targets, build) => nn.lora(b, { targets }, build);
  refused((b, x) => adapt(b, ['q_prj'], () => nn.linear(x, 3, { name: 'q_proj' })), 'name', /no layer has the name of targets q_prj \(the nearest is q_proj\)$/);
  refused((b, x) => adapt(b, ['q'], () => nn.linear(x, 3, { name: 'k' })), 'name', /targets q: there are k$/);
  refused((b, x) => adapt(b, ['q'], () => x), 'name', /targets q: there are none$/);
  refused((b) => nn.tie(b, 'embedding0/weight'), 'name', /no parameter embedding0\/weight/);
  refused((_, x) => nn.residual(x, (x) => nn.linear(x, 3)), 'shape', /f\(x\) is f32\[2,n,3\]/);
  refused((_, x) => nn.linear(x.convert('i32'), 3), 'dtype', /of no float type/);
  refused((_, x) => nn.stack(x, 'h', 2, (x) => nn.linear(x, 3)), 'shape', /a block returns/);
  refused((_, x) => nn.batchNorm(x, { epsilon: -1 }), 'attr', /epsilon is -1/);
  refused((b) => nn.maxPool(b.input('image', 'f32', [1, 3, 1]), 2, { pad: 2, ceilMode: true }), 'attr', /or pad, does not fit the window/);
});

test('padding of layers is a word of conv2d of values, or a number', () => {
  const built = (layer) => graph('g', (b) => b.output('y', layer(b.input('x', 'f32', [2, 8, 8, 3])))).outputs[0].shape;
  assert.deepEqual(built((x) => nn.conv2d(x, 4, 3, { padding: 'same' })), [2, 8, 8, 4]);
  assert.deepEqual(built((x) => nn.conv2d(x, 4, 3, { padding: 'valid' })), [2, 6, 6, 4]);
  assert.deepEqual(built((x) => nn.maxPool(x, 3, { stride: 1, padding: 'same' })), [2, 8, 8, 3]);
  for (const layer of [nn.conv2d, (x, _, size, options) => nn.avgPool(x, size, options)]) {
    assert.throws(() => built((x) => layer(x, 4, 3, { padding: 'full' })), { kind: 'name', message: /padding cannot be full: there are same, valid/ });
    assert.throws(() => built((x) => layer(x, 4, 3, { padding: 'same', pad: 1 })), { kind: 'attr', message: /both padding and pad are given/ });
    assert.throws(() => built((x) => layer(x, 4, 3, { same: true })), { kind: 'name', message: /no option same/ });
  }
  for (const options of [{}, { channelsFirst: true }]) {
    assert.throws(() => built((x) => nn.conv2d(x, 4, 11, { pad: 1, ...options })), { kind: 'shape', message: /11 .*is longer than .*8 elements padded by 1 and 1/ });
  }
  assert.throws(() => built((x) => nn.convTranspose2d(x, 4, 3, { pad: 9 })), { kind: 'attr', message: /pad cuts off all elements of axis 1 of the result/ });
  assert.throws(() => built((x) => nn.convTranspose2d(x, 4, 3, { padding: 'same' })), { kind: 'attr', message: /^nn\.convTranspose\(.*\) in conv_transpose0: .*set pad/ });
});

test('a bundle has the layers that it imports alone, and each adds little', async () => {
  const size = async (imports) => {
    const { outputFiles: [{ contents, text }] } = await build({
      stdin: { contents: `export { ${imports} } from './nn.js';`, resolveDir: new URL('../dist', import.meta.url).pathname },
      external: ['./core-*'], write: false, bundle: true, minify: true, format: 'esm', logLevel: 'error',
    });
    return { bytes: contents.length, text };
  };
  const base = await size('linear');
  assert.ok(base.bytes < 5060, `linear takes ${base.bytes} bytes`);
  assert.doesNotMatch(base.text, /A_log|weight_hh|running_mean/);
  for (const [name, most] of Object.entries({ embedding: 600, dropout: 200, residual: 500, positionalEmbedding: 1300, layerNorm: 1000, batchNorm: 1500, maxPool: 2100, conv2d: 2500, mlp: 1000, lstm: 3500 })) {
    const { bytes } = await size(`linear, ${name}`);
    assert.ok(bytes - base.bytes < most, `${name} adds ${bytes - base.bytes} bytes`);
  }
});

test('few tokens of an inference, and packed experts, read those that are chosen alone', async (t) => {
  const experts = 6, width = 32, hidden = 32, random = ((state) => () => (state = (state * 1103515245 + 12345) % 2 ** 31) / 2 ** 31)(1);
  const numbers = { 'moe0/gate/weight': Float32Array.from({ length: width * experts }, () => random() - 0.5) }, packed = { ...numbers };
  for (const [name, out] of [['w1', 2 * hidden], ['w2', width]]) {
    const rows = experts * out, bytes = new Uint8Array(rows * 18), values = new Float32Array(rows * 32);
    for (let row = 0; row < rows; row++) {
      bytes[row * 18 + 1] = 0x38; // a scale of 0.5 as f16
      for (let i = 0; i < 32; i++) {
        const q = Math.floor(16 * random());
        bytes[row * 18 + 2 + i % 16] |= q << (i >> 4) * 4;
        values[(Math.floor(row / out) * 32 + i) * out + row % out] = (q - 8) / 2;
      }
    }
    numbers[`moe0/experts/${name}`] = values;
    packed[`moe0/experts/${name}`] = bytes;
  }
  const layer = (mode, format) => graph('experts', (b) => {
    mode(b);
    const [y, loss] = nn.stored(b, (name) => name.includes('experts') ? format : undefined, () => nn.moe(b.input('x', 'f32', [2, 3, width]), experts, { hidden }));
    b.output('y', y);
    b.output('loss', loss);
  });
  const all = layer(nn.train), results = [], x = Float32Array.from({ length: 6 * width }, (_, i) => Math.sin(i));
  for (const [g, values] of [[all, numbers], [layer(nn.infer), numbers], [layer(nn.train, { format: 'q4_0' }), packed]]) {
    const s = await program({ entries: { f: g } }, { on: 'cpu' });
    t.after(() => s.close());
    await s.load(Object.fromEntries(g.ports.filter(({ name }) => name !== 'x').map(({ name, dtype, shape }) => [name, { dtype, shape, data: values[name] }])));
    await s.run('f', { x });
    results.push(Float32Array.of(...await s.read('y'), ...await s.read('loss')));
  }
  const [want, ...others] = results, largest = want.reduce((most, v) => Math.max(most, Math.abs(v)));
  assert.ok(largest > 1);
  for (const got of others) got.forEach((v, i) => assert.ok(Math.abs(v - want[i]) < 1e-5 * largest, `${v} is not ${want[i]}`));
  assert.match(layer(nn.infer).text(), / grouped_matmul/);
  for (const format of ['', 'q9']) {
    const refused = { kind: 'attr', message: new RegExp(`the format is ${format}: it must be one of q4_0, `) };
    assert.throws(() => layer(nn.infer, { format }), refused);
    assert.throws(() => graph('g', (b) => b.output('y', nn.stored(b, () => ({ format }), () => nn.linear(b.input('x', 'f32', [2, 32]), 4)))), refused);
  }
});

test('a run past the end of a cache fails, and the error is about the cache', async (t) => {
  const next = (length) => graph('next', (b) => {
    nn.cache(b, length);
    b.output('y', nn.attention(nn.positionalEmbedding(b.input('x', 'f32', [1, 3, 4]), 4), 2, { causal: true }));
  });
  const p = await program({ entries: { next: next(4) } }, { on: 'cpu' }), x = new Float32Array(12);
  t.after(() => p.close());
  await p.run('next', { x });
  await assert.rejects(p.run('next', { x }), { kind: 'index', message: 'check_index: position in the cache is not in [0, 4); nothing has changed' });
  assert.throws(() => next(2), { kind: 'shape', message: /3 positions are added to the cache: its length is 2/ });
});

test('the backward pass of a checkpoint has the gradients of the blocks, and stores less', async (t) => {
  const made = (options) => graph('blocks', (b) => {
    const block = (x) => nn.linear(nn.linear(x, 64).gelu(), 16).tanh();
    b.output('loss', nn.stack(b.input('x', 'f32', [64, 16]), 'h', 4, block, options).square().mean());
  }).grad('loss');
  const x = Float32Array.from({ length: 1024 }, (_, i) => Math.sin(i)), results = [], sizes = [];
  for (const options of [{}, { checkpoint: true }]) {
    const s = await program({ entries: { f: made(options) } }, { on: 'cpu' });
    t.after(() => s.close());
    await s.run('f', { x });
    results.push(await s.read('grad/h/0/linear0/weight'));
    sizes.push(s.plan.buffers.filter(({ kind }) => kind === 'temp').reduce((sum, { bytes }) => sum + bytes, 0));
  }
  results[0].forEach((g, i) => assert.ok(Math.abs(g - results[1][i]) < 1e-6));
  assert.ok(sizes[1] < 0.7 * sizes[0], `${sizes}`);
});
