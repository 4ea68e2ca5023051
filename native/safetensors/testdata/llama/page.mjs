// Writes page/, the adapter that a page saves after it has tuned the tiny GGUF file of native/lm/testdata/llama on a text.
//
//   make js && node native/safetensors/testdata/llama/page.mjs

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { init } from '../../../../js/dist/index.js';
import * as lm from '../../../../js/dist/lm.js';

const here = new URL('page/', import.meta.url), numbers = { encode: (text) => text.split(' ').map(Number), decode: (ids) => ids.join(' '), eos: [], bos: [] };
await init({ compileWorker: false, worker: false });
const file = await lm.openGGUF(readFileSync(new URL('../../../lm/testdata/llama/model.gguf', import.meta.url)));
const tuning = await lm.openTuning(file, { on: 'cpu', context: 32, rank: 2, alpha: 6, length: 12, optimizer: { kind: 'sgd' } });
await tuning.train('3 14 15 9 26 5 35 8 9 7', numbers, { steps: 60, rate: 0.3 });
mkdirSync(here, { recursive: true });
for (const [name, data] of Object.entries(await tuning.save('llama'))) writeFileSync(new URL(name, here), data);
tuning.close();
