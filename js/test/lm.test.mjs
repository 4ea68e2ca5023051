// Language models: logits and greedy texts of tiny checkpoints are those of transformers.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { before, describe, test } from 'node:test';
import { graph, init, program } from '../dist/index.js';
import * as lm from '../dist/lm.js';
import * as nn from '../dist/nn.js';
import { decodeSafetensors } from '../dist/safetensors.js';

const folder = new URL('../../native/lm/testdata/', import.meta.url);
const bytesOf = (path) => readFileSync(new URL(path, folder));
const names = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory()).map(({ name }) => name);
const chunk = 5;

before(() => init({ compileWorker: false, worker: false }));

const tensorsOf = (path) => decodeSafetensors(bytesOf(path)).tensors;

/** A folder of Hugging Face as an open file. */
function folderOf(name) {
  const tensors = tensorsOf(`${name}/model.safetensors`);
  return {
    metadata: new Map(Object.entries(JSON.parse(bytesOf(`${name}/config.json`).toString()))),
    tensors: new Map(Object.entries(tensors).map(([key, { dtype, shape, data }]) => [key, { name: key, shape, type: dtype, offset: 0, bytes: data.byteLength }])),
    read: async (key) => new Uint8Array(tensors[key].data.buffer),
    close() {},
  };
}

/** Holds logits to others, and fails where they differ by more than 1e-4. */
function near(what, got, want) {
  assert.equal(got.length, want.length, what);
  const worst = got.reduce((most, x, i) => Math.max(most, Math.abs(x - want[i])), 0);
  assert.ok(worst <= 1e-4, `${what}: logits differ by ${worst}`);
}

/** A program of a model for a whole prompt, for chunks of it and for single tokens. */
async function programOf(t, file, prompt, greedy) {
  const config = await lm.configOf(file), weights = new lm.Weights(file, config), { vocabulary } = config;
  const entry = (n, cached) => graph('model', (b) => {
    nn.infer(b);
    if (cached) nn.cache(b, prompt.length + greedy.length);
    nn.stored(b, (name) => weights.storage(name), () => b.output('logits', lm.decoder(b.input('tokens', 'i32', [1, n]), config)));
  });
  const entries = { whole: entry(prompt.length, false), chunk: entry(chunk, true), one: entry(1, true) };
  weights.check(entries.whole.ports);
  const made = await program({ entries: Object.fromEntries(Object.entries(entries).map(([name, one]) => [name, one.text()])) }, { on: 'cpu' });
  t.after(() => made.close());
  for (const slot of made.plan.slots.filter(({ role }) => role === 'param')) await made.write(slot.name, await weights.read(slot));
  const run = async (entry, tokens) => (await (await made.run(entry, { tokens: Int32Array.from(tokens) }, { read: ['logits'] })).reading).values.logits;
  return { made, run, vocabulary };
}

const best = (logits) => logits.indexOf(Math.max(...logits));

describe('a prompt, whole, in chunks and token by token, and its greedy continuation', () => {
  for (const name of names) {
    test(name, async (t) => {
      const { prompt: { data: prompt }, greedy: { data: greedy }, logits: { data: want } } = tensorsOf(`${name}/expected.safetensors`);
      const { made, run, vocabulary } = await programOf(t, folderOf(name), prompt, greedy);
      near('whole', await run('whole', prompt), want);
      let last;
      for (let at = 0; at < prompt.length; at += chunk) {
        last = await run('chunk', prompt.slice(at, at + chunk));
        near(`chunk at ${at}`, last, want.slice(at * vocabulary, (at + chunk) * vocabulary));
      }
      const found = [];
      for (let logits = last.slice(-vocabulary); found.length < greedy.length; logits = await run('one', found.slice(-1))) found.push(best(logits));
      assert.deepEqual(found, [...greedy]);
      assert.equal(made.device.name, 'cpu');
    });
  }
});
