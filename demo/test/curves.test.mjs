// The plans of the demo over Dawn: their losses are those of the graphs' meaning.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { openProgram, Trainer } from '../../js/dist/runtime.js';
import { openGPU } from '../../js/test/rig/dawn.mjs';
import { Digits } from '../web/digit-data.js';

const read = (path) => readFileSync(new URL(path, import.meta.url));
const { seed, rate, losses: curves } = JSON.parse(read('../testdata/curves.json'));
const digits = new Digits(new Uint8Array(read('../web/assets/digits.bin')));

for (const [model, steps] of [['mlp', 20], ['cnn', 8]]) { // a step of the cnn takes a software GPU seconds
  test(`the losses of the ${model} are those of its meaning`, async () => {
    const program = await openProgram(new Uint8Array(read(`../web/assets/digits-${model}.rlxp`)), { gpu: openGPU() }), losses = [];
    await program.run('init', { seed });
    await new Trainer(program).run({ steps, batches: digits.batches(), inputs: { lr: rate }, onProgress: (progress) => losses.push(...progress.losses) });
    program.close();
    assert.equal(losses.length, steps);
    losses.forEach((loss, i) => assert.ok(Math.abs(loss - curves[model][i]) < 1e-4, `step ${i}: ${loss}, not ${curves[model][i]}`));
  });
}
