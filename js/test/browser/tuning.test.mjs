// A language model is tuned in Chromium on WebGPU, which SwiftShader computes: its losses are those of PyTorch and of native
// programs (TestTuningGoesOnFromAPage of native/lm), and it goes on from its checkpoint.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { openChromium } from '../rig/chromium.mjs';
import { isolation, scriptPage, serve } from '../rig/serve.mjs';

const testdata = new URL('../../../native/lm/testdata/', import.meta.url), pathOf = (name) => new URL(name, testdata).pathname;
const curve = JSON.parse(readFileSync(pathOf('tuning.json'), 'utf8'));

/** Trains from a checkpoint to a step, and from the page's own one to the last. */
async function losses({ middle, rate, rank, alpha, rows, length, losses: { length: steps } }) {
  const lm = await import('/dist/lm.js'), bytes = async (path) => (await fetch(path)).arrayBuffer(), file = await lm.openGGUF(new Uint8Array(await bytes('/model.gguf')));
  const numbers = { encode: (text) => Int32Array.from(text.split(' '), Number), eos: [2] }, got = [], begins = [];
  let checkpoint = await bytes('/begin.safetensors'), device;
  for (const until of [middle, steps]) {
    const tuning = await lm.openTuning(file, { on: 'gpu', context: 32, rank, alpha, rows, length });
    device = [tuning.model.program.device.name, tuning.model.program.plan.slots.some(({ role, dtype }) => role === 'param' && dtype === 'u8')];
    await tuning.loadCheckpoint(checkpoint);
    begins.push(tuning.steps);
    await tuning.train('3 14 15 9 26 5 35 8 9 7', numbers, { steps: until - tuning.steps, rate, onLoss: (_, loss) => got.push(loss) });
    checkpoint = await tuning.saveCheckpoint();
    tuning.close();
  }
  return { got, begins, device };
}

test('a page tunes a model with packed weights on WebGPU, with the losses of PyTorch, and goes on from its checkpoint', async (t) => {
  const server = await serve({
    '/': scriptPage, '/page.mjs': { body: '', type: 'text/javascript' }, '/dist': new URL('../../dist', import.meta.url).pathname,
    '/model.gguf': pathOf('llama/model.gguf'), '/begin.safetensors': pathOf('tuning-begin.safetensors'),
  }, { headers: isolation });
  t.after(() => server.close());
  const browser = await openChromium({ webgpu: 'swiftshader' });
  t.after(() => browser.close());
  const page = await browser.open(`${server.origin}/`);
  const { got, begins, device } = await page.evaluate(`(${losses})(${JSON.stringify(curve)})`);
  assert.deepEqual(device, ['webgpu', true]);
  assert.deepEqual(begins, [0, curve.middle]);
  assert.equal(got.length, curve.torch.length);
  got.forEach((loss, i) => assert.ok(Math.abs(loss - curve.torch[i]) < 1e-5, `step ${i + 1}: ${loss}, PyTorch has ${curve.torch[i]}`));
  assert.deepEqual(page.problems, []);
});
