// The code that the page shows, run on the CPU: it is the network that the page trains.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { openProgram, program } from '../../js/dist/index.js';
import { Digits, testCount, trainCount } from '../web/digit-data.js';
import { Text } from '../web/text.js';

const read = (path) => readFileSync(new URL(path, import.meta.url));
const digits = new Digits(new Uint8Array(read('../web/assets/digits.bin')));
const folder = mkdtempSync(join(tmpdir(), 'rlx-code-'));

after(() => rmSync(folder, { recursive: true }));

/** Imports the unchanged code, with the package that was built. */
function load(model) {
  const file = join(folder, `${model}.mjs`), code = read(`../web/code/${model}.js`).toString();
  writeFileSync(file, code.replace("'@rlx-go/rlx'", `'${new URL('../../js/dist/index.js', import.meta.url)}'`));
  return import(file);
}

/** A program's parameters, without its states. */
const paramsOf = async (one) => Object.fromEntries(Object.entries(await one.save()).filter(([name]) => one.plan.slots.some((slot) => slot.name === name && slot.role === 'param')));

/** The loss of an entry eval. */
const evaluated = async (one, inputs) => (await (await one.run('eval', inputs, { read: ['loss'] })).reading).values.loss[0];

/** Holds a graph to the page's network: the same parameters give the same loss. */
async function compare(plan, graph, symbols, inputs) {
  const page = await openProgram(read(`../web/assets/${plan}.rlxp`), { on: 'cpu' });
  await page.run('init', { seed: 1 });
  const params = await paramsOf(page), want = await evaluated(page, inputs);
  const own = await program({ entries: { eval: graph }, symbols }, { on: 'cpu' });
  await own.load(params);
  const got = await evaluated(own, inputs);
  assert.ok(Math.abs(got - want) < 1e-5 * want, `${got}, not ${want}`);
  assert.deepEqual(Object.keys(await own.save()).sort(), Object.keys(params).sort());
  page.close();
  own.close();
}

/** Whether the losses of a trainer fell. */
async function learned({ program: one }, steps) {
  const losses = await one.read('history/loss');
  assert.ok(losses[steps - 1] < 0.8 * losses[0], `the loss goes from ${losses[0]} to ${losses[steps - 1]}`);
  one.close();
}

for (const [model, steps] of [['mlp', 30], ['cnn', 10]]) {
  test(`the code of the ${model} is the page's network, and it learns`, async () => {
    const code = await load(model);
    await compare(`digits-${model}`, code[model], { n: testCount }, digits.test);
    const images = { dtype: 'f32', shape: [trainCount, 64], data: digits.images.slice(0, trainCount * 64) };
    await learned(await code.learn({ images, labels: { dtype: 'i32', shape: [trainCount], data: digits.labels.slice(0, trainCount) } }, steps), steps);
  });
}

test("the code of the gpt is the page's small model, and it learns", async () => {
  const code = await load('gpt'), text = Text.ofBytes(gunzipSync(read('../web/assets/shakespeare.txt.gz'))), [inputs] = text.held(16, 64, 1);
  await compare('gpt-small', code.gpt, undefined, inputs);
  await learned(await code.learn(text.batches(16, 64), 60), 60);
});
