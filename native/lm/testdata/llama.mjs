// llama.cpp as a peer of BenchmarkSmolLM: for each line of the input, the tokens per second of a prompt and the best
// of single tokens after it. The folder has node-llama-cpp installed.
//
//   node llama.mjs FOLDER MODEL.gguf THREADS PROMPT DECODED

import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const [folder, modelPath, ...counts] = process.argv.slice(2), [threads, prompt, decoded] = counts.map(Number);
const entry = createRequire(join(resolve(folder), 'package.json')).resolve('node-llama-cpp');
const { getLlama } = await import(pathToFileURL(entry));
const llama = await getLlama({ gpu: false, build: 'never', maxThreads: threads, logLevel: 'error' });
const model = await llama.loadModel({ modelPath });
const context = await model.createContext({ contextSize: 512, batchSize: prompt, threads });
const sequence = context.getSequence();
const tokens = Array.from({ length: prompt }, (_, i) => ((i * 7919) % 40000) + 20);

async function rates() {
  await sequence.clearHistory();
  const start = performance.now();
  await sequence.evaluateWithoutGeneratingNewTokens(tokens);
  const perPrompt = performance.now() - start;
  let least = Infinity, made = 0, before = performance.now();
  for await (const token of sequence.evaluate([504], { temperature: 0, yieldEogToken: true })) {
    void token;
    const now = performance.now();
    [least, before] = [Math.min(least, now - before), now];
    if (++made === decoded) break;
  }
  return [(prompt / perPrompt) * 1e3, 1e3 / least];
}

console.log('ready');
for await (const line of createInterface({ input: process.stdin })) {
  void line;
  console.log((await rates()).map((rate) => rate.toFixed(1)).join(' '));
}
process.exit(0);
