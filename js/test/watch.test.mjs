// The first value of a step that is not finite, by `watch`.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { fit } from '../dist/fit.js';
import { graph, init, train, watch } from '../dist/index.js';
import * as nn from '../dist/nn.js';

before(() => init({ compileWorker: false, worker: false }));

/** A loss whose layer "head" takes logarithms, of numbers that are positive unless x is below −5; a loop, a sort and a node of two results are before it. */
const loss = () => graph('m', (b) => {
  nn.train(b);
  const x = b.input('x', 'f32', [4, 3]);
  const h = nn.stack(x, 'h', 2, (x) => x.add(nn.linear(x, 3, { init: nn.constant(0), biasInit: nn.constant(0) })), { scan: true });
  const [top] = h.topK({ k: 2 });
  b.output('loss', b.scope('head', () => top.add(b.param('shift', 'f32', [], nn.constant(5))).log()).mean());
});

const rows = (x) => ({ x: new Float32Array(12).fill(x) });

async function trainer(t, of) {
  const model = await train(of, { on: 'cpu', optimizer: { kind: 'sgd' } });
  t.after(() => model.program.close());
  await model.program.bind('step', { lr: 0.01 });
  return model;
}

test('the error names the layer, in the step that went wrong', async (t) => {
  const watched = watch(loss()), model = await trainer(t, watched.loss);
  assert.equal(await watched.first(model.program), undefined);
  const batches = [1, 2, -9, 1, 1, 1].map(rows);
  await assert.rejects(fit(model, { data: () => batches, epochs: 1, stopOnNaN: watched }), {
    kind: 'nan', message: /^fit: step \d: loss is NaN at step 3; the first value that is not finite is that of layer "head" \(log\)$/,
  });
  assert.equal(await watched.first(model.program), 'layer "head" (log)', 'later steps do not change it');
});

test('an input and a parameter are values, too', async (t) => {
  const watched = watch(loss()), model = await trainer(t, watched.loss);
  await model.step(rows(NaN));
  assert.equal(await watched.first(model.program), 'input "x"');
  const other = await trainer(t, watched.loss);
  await other.program.write('head/shift', Float32Array.of(Infinity));
  await other.step(rows(1));
  assert.equal(await watched.first(other.program), 'param "head/shift"');
});

test('a watched training has the same bits', async (t) => {
  const bits = [];
  for (const of of [loss(), watch(loss()).loss]) {
    const model = await trainer(t, of);
    for (const x of [1, 2, 3]) await model.step(rows(x));
    bits.push(await model.program.read('h/linear0/weight'));
  }
  assert.deepEqual(bits[0], bits[1]);
});

test('what is no graph, and a stopOnNaN of another kind, are refused', async (t) => {
  assert.throws(() => watch(undefined), { kind: 'graph', message: /watch: the loss is Undefined: it must be a graph/ });
  const model = await trainer(t, loss());
  await assert.rejects(fit(model, { data: () => [rows(1)], epochs: 1, stopOnNaN: {} }), { kind: 'attr', message: /stopOnNaN/ });
});
