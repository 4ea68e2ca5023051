// The module keeps only those maps of live pointers that the collector reads. Go's runtime checks
// that here: after each collection it marks a second time, panics if live memory was missed, and
// overwrites freed memory.

import assert from 'node:assert/strict';
import { test } from 'node:test';

const collections = [];
const log = console.log;
console.log = (line, ...rest) => {
  if (/^gc \d+ @/.test(line)) collections.push(line);
  else log(line, ...rest);
};

// The module starts with this environment: a collection whenever the heap has grown by a hundredth.
let Go;
Object.defineProperty(globalThis, 'Go', {
  set: (value) => { Go = value; },
  get: () => class extends Go {
    env = { GOGC: '1', GODEBUG: 'gccheckmark=1,clobberfree=1,gctrace=1' };
  },
});
const { compile, graph, init } = await import('../dist/index.js');

test('nothing that is in use is collected while a training step is compiled', async () => {
  await init();
  const model = graph('mlp', (b) => {
    let x = b.input('x', 'f32', [4, 32]);
    for (let layer = 0; layer < 8; layer++) x = x.linear(b.param(`w${layer}`, 'f32', [32, 32]), b.param(`b${layer}`, 'f32', [32])).tanh();
    b.output('loss', x.crossEntropyMean(b.input('labels', 'i32', [4])));
  });
  const before = collections.length;
  await compile({ entries: { step: model.step({ optimizer: { kind: 'adam' } }) } });
  assert.ok(collections.length - before >= 5, `${collections.length - before} collections: too few to find anything`);
});
