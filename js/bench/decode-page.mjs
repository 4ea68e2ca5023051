// The page of decode.mjs: requests to a language model by one of two libraries.

import { Wllama } from '@wllama/wllama';

const decoded = 64;
const text = 'A compiler reads a program and writes another one, which computes the same and takes less time. It joins loops that read the same memory, keeps small values in registers, '
  + 'and moves what does not change out of loops. What it may not do is to change the result: a sum of numbers in another order is another sum. ';

/** The prompt of a round, which begins with its number. */
const promptOf = (round) => `Round ${round + 1}. ${text.repeat(2)}\nIn short,`;

const libraries = {
  async rlx(threads) {
    const lm = await import(`${location.origin}/dist/lm.js`); // a path that no bundler resolves
    const file = await lm.openGGUF(await (await fetch('/model.gguf')).blob()), tokenizer = await lm.tokenizerOf(file);
    const model = await lm.openModel(file, threads === 'gpu' ? { context: 1024 } : { context: 1024, chunk: 128, on: 'cpu' }); // the latter with a thread for each processor, if the page is isolated
    return async (prompt) => {
      const tokens = tokenizer.encode(prompt), made = lm.generate(model, tokenizer, tokens, { maxTokens: decoded, temperature: 0 });
      for await (const piece of made) void piece;
      return { tokens: tokens.length, prompt: made.stats.prefillRate, decode: made.stats.decodeRate };
    };
  },
  async wllama(threads) {
    const say = (...texts) => texts.some((text) => /buffer size|webgpu/i.test(text)) && console.log(...texts); // where the weights are
    const wllama = new Wllama({ default: '/wllama.wasm' }, { logger: { debug: say, log: say, warn: say, error: console.error } });
    await wllama.loadModel([await (await fetch('/model.gguf')).blob()], { n_ctx: 1024, ...(threads === 'gpu' ? { n_gpu_layers: 999 } : { n_threads: threads, n_gpu_layers: 0 }) });
    return async (prompt) => {
      const { timings } = await wllama.createCompletion({ prompt, max_tokens: decoded, temperature: 0 });
      return { tokens: timings.prompt_n, prompt: timings.prompt_per_second, decode: timings.predicted_per_second };
    };
  },
};

let ask;
/** threads is how many, or 'gpu'. */
globalThis.openLibrary = async (name, threads) => void (ask = await libraries[name](threads));
globalThis.request = (round) => ask(promptOf(round));
