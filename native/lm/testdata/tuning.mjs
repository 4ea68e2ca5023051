// Writes the checkpoints of a page that tunes the tiny GGUF file of llama/ with Adam, before the first and in the middle of
// its steps, and tuning.json: the tokens and losses of all steps. tuning.py adds what PyTorch makes of them.
//
//	make js && node native/lm/testdata/tuning.mjs && python native/lm/testdata/tuning.py

import { readFileSync, writeFileSync } from 'node:fs';
import { init } from '../../../js/dist/index.js';
import * as lm from '../../../js/dist/lm.js';

const here = (name) => new URL(name, import.meta.url), steps = 12, middle = 6, rate = 0.01;
const numbers = { encode: (text) => text.split(' ').map(Number), decode: (ids) => ids.join(' '), eos: [2], bos: [] };
await init({ compileWorker: false, worker: false });
const file = await lm.openGGUF(readFileSync(here('llama/model.gguf')));
const tuning = await lm.openTuning(file, { on: 'cpu', unpack: false, context: 32, rank: 2, alpha: 6, rows: 2, length: 8, seed: 3, recover: false });
const { program } = tuning.model, { run } = program, batches = [], losses = [];
program.run = (entry, inputs, options) => {
  batches.push({ tokens: [...inputs.tokens], next: [...inputs.next] });
  return run.call(program, entry, inputs, options);
};
const train = (n) => tuning.train('3 14 15 9 26 5 35 8 9 7', numbers, { steps: n, rate, onLoss: (_, loss) => losses.push(loss) });
writeFileSync(here('tuning-begin.safetensors'), await tuning.saveCheckpoint());
await train(middle);
writeFileSync(here('tuning.safetensors'), await tuning.saveCheckpoint());
await train(steps - middle);
writeFileSync(here('tuning.json'), `${JSON.stringify({ rank: 2, alpha: 6, rows: 2, length: 8, rate, middle, batches, losses })}\n`);
tuning.close();
