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
  'conv2d same': ({ x }) => nn.conv2d(x, 3, 4, { same: true }),
  'conv2d channels first': ({ x }) => nn.conv2d(x, 3, 3, { same: true, channelsFirst: true }),
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
  mamba: ({ x }) => nn.mamba(x, { state: 3, rank: 2 }),
  sinusoidal_encoding: ({ x }) => nn.sinusoidalEncoding(x),
};

/** Models of an x of f32[2,5,8], as in ir/nn/names_test.go. */
const models = {
  'batch_norm frozen': (x, b) => (nn.train(b), nn.frozen(b, () => nn.batchNorm(nn.linear(x, 4)))),
  'lora attention': (x, b) => nn.lora(b, {}, () => nn.attention(x, 2, { causal: true })),
  llama: (x) => nn.stack(x, 'layers', 2, (x) => nn.transformerBlock(x, 4, {
    name: nn.here, hidden: 6, activation: 'swiglu', rmsNorm: true, noBias: true, causal: true, kvHeads: 2, rope: {}, attention: { separate: true, normQK: true },
  })),
  scanned: (x) => nn.stack(x, 'blocks', 3, (x) => nn.transformerBlock(x, 2, { name: nn.here, depth: 3 }), { scan: true }),
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
