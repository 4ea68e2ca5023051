// A real language model in a page: SmolLM2 135M, as Q4_1, continues a text by the tokens of llama.cpp. `make test-lm` names the file.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { join } from 'node:path';
import { openChromium } from '../rig/chromium.mjs';
import { isolation, scriptPage, serve } from '../rig/serve.mjs';

const { RLX_LM: file, RLX_REQUIRE = '' } = process.env;
const skip = !file && !RLX_REQUIRE.split(',').includes('lm') && '$RLX_LM names no GGUF file of SmolLM2: make test-lm does';

/** "The capital of France is", and how llama.cpp goes on (node-llama-cpp 3.22.1, greedy): those of native/lm/smollm_test.go. */
const prompt = [504, 3575, 282, 4649, 314], next = [7042, 30, 198, 198, 504, 1797, 1918, 553, 253, 2155, 282, 4723, 216, 35, 33, 33, 2215, 701, 30, 198];

/** The text of the prompt as tokens, and the best token after it and after each token of llama.cpp, with the number of tokens that were known. */
async function best(prompt, next) {
  const lm = await import('/dist/lm.js'), opened = await lm.openGGUF(await (await fetch('/model.gguf')).blob());
  const tokenizer = await lm.tokenizerOf(opened), model = await lm.openModel(opened, { context: 32, on: 'cpu' }), tokens = [];
  let reused = 0;
  for (let i = 0; i < next.length; i++) {
    const made = lm.generate(model, tokenizer, Int32Array.from([...prompt, ...next.slice(0, i)]), { maxTokens: 1, temperature: 0 });
    for await (const { token } of made) tokens.push(token);
    ({ reused } = made.stats);
  }
  return { prompt: [...tokenizer.encode('The capital of France is')], tokens, reused };
}

/** A page that can read the file of the model. */
async function pageOf(t, options) {
  assert.ok(file, 'RLX_REQUIRE asks for lm, and $RLX_LM names no file: make test-lm does');
  const server = await serve({ '/': scriptPage, '/page.mjs': { body: '', type: 'text/javascript' }, '/dist': join(import.meta.dirname, '../../dist'), '/model.gguf': file }, { headers: isolation });
  t.after(() => server.close());
  const browser = await openChromium(options);
  t.after(() => browser.close());
  return browser.open(`${server.origin}/`);
}

test('a page continues a text by the tokens of llama.cpp', { skip }, async (t) => {
  const page = await pageOf(t, { webgpu: 'no adapter' });
  const got = await page.evaluate(`(${best})(${JSON.stringify(prompt)}, ${JSON.stringify(next)})`);
  assert.deepEqual(got.prompt, prompt);
  assert.equal(got.reused, prompt.length + next.length - 2, 'the cache has all tokens before the last one');
  // llama.cpp rounds activations to 8 bits: where another token is almost as good, it may take that.
  const equal = next.filter((token, i) => token === got.tokens[i]).length;
  assert.ok(equal >= 0.9 * next.length, `${equal} of ${next.length} tokens: ${got.tokens}`);
  assert.deepEqual(page.problems, []);
});

const curve = JSON.parse(readFileSync(new URL('../../../native/lm/testdata/smollm2-tuning.json', import.meta.url), 'utf8'));

/** The losses of some steps of a new adapter. */
async function losses({ rank, alpha, length, rate, batches }) {
  const lm = await import('/dist/lm.js'), opened = await lm.openGGUF(await (await fetch('/model.gguf')).blob());
  const tuning = await lm.openTuning(opened, { on: 'gpu', context: 32, chunk: 8, rank, alpha, length, seed: 3 }), got = [], [{ tokens, next }] = batches;
  // All rows are the whole text.
  const tokenizer = { encode: () => Int32Array.from([tokens[0], ...next]), eos: [] };
  await tuning.train('', tokenizer, { steps: batches.length, rate, onLoss: (_, loss) => got.push(loss) });
  return { got, device: tuning.model.program.device.name };
}

test('a page tunes it on WebGPU with the losses of a native program', { skip }, async (t) => {
  const page = await pageOf(t, { webgpu: 'swiftshader' }), { got, device } = await page.evaluate(`(${losses})(${JSON.stringify(curve)})`);
  assert.equal(device, 'webgpu');
  assert.equal(got.length, curve.losses.length);
  // Those of native/lm/tuning_test.go.
  got.forEach((loss, i) => assert.ok(Math.abs(loss - curve.losses[i]) < 1e-3, `step ${i + 1}: ${loss}, natively it is ${curve.losses[i]}`));
  assert.deepEqual(page.problems, []);
});
