// The objects that a training step makes and drops. No step needs new memory, but JavaScript makes objects for
// promises, views and submissions: these bounds, a fifth above what was measured in Node 20, notice more. Steps
// run in a process of their own, as those of a test make objects for the test runner, too.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { Session } from 'node:inspector/promises';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { fit } from '../dist/fit.js';
import { graph, init, train } from '../dist/index.js';
import { openDawn } from './rig/dawn.mjs';

const most = { cpu: 1050, gpu: 2000 };

/** The bytes of objects made in a call, by a sample of them. */
async function bytesIn(call) {
  const session = new Session();
  session.connect();
  await session.post('HeapProfiler.startSampling', { samplingInterval: 512, includeObjectsCollectedByMajorGC: true, includeObjectsCollectedByMinorGC: true });
  await call();
  const { profile } = await session.post('HeapProfiler.stopSampling');
  session.disconnect();
  const sum = ({ selfSize, children }) => children.reduce((total, child) => total + sum(child), selfSize);
  return sum(profile.head);
}

/** The bytes of objects that a step makes: of `fit` on the CPU, or on a GPU that computes nothing. */
async function bytesOfAStep(on) {
  await init({ ...on === 'gpu' && { gpu: (await openDawn({ backend: 'null' })).gpu }, worker: false, compileWorker: false, cache: false });
  const model = graph('line', { inputs: { x: ['f32', [4, 2]], y: ['f32', [4, 2]] }, params: { w: ['f32', [2, 2]] } }, (_, { x, y, w }) => ({ loss: x.matmul(w).sub(y).square().mean() }));
  const trainer = await train(model, { optimizer: { kind: 'adam' }, rate: 0.05, on }), batch = { x: new Float32Array(8), y: new Float32Array(8).fill(1) }, n = 2000;
  const alone = async () => { for (let i = 0; i < n; i++) await trainer.step(batch); }; // the values that fit reads have no meaning on that GPU
  const steps = on === 'gpu' ? alone : () => fit(trainer, { data: function* () { for (;;) yield batch; }, epochSteps: 1e9, steps: trainer.steps + n, every: 1e9 });
  // Engines compile what runs often, later on a busy machine: the least of some rounds counts.
  const rounds = [];
  for (let i = 0; i < 4; i++) rounds.push(await bytesIn(steps) / n);
  return Math.min(...rounds);
}

if (process.argv[2]) {
  console.log(await bytesOfAStep(process.argv[2]));
  process.exit(); // Dawn's threads go on
}

for (const on of Object.keys(most)) {
  test(`a step on the ${on} makes few objects`, async (t) => {
    const { stdout } = await promisify(execFile)(process.execPath, [import.meta.filename, on]), bytes = Number(stdout);
    t.diagnostic(`${bytes.toFixed(0)} bytes a step`);
    assert.ok(bytes > 0 && bytes < most[on], `a step makes ${stdout} bytes of objects, more than ${most[on]}`);
  });
}
