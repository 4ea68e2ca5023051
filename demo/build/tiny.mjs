// Trains the small language model that the page of chat offers, and writes it as a GGUF file:
//
//   node demo/build/tiny.mjs [STEPS] [SECONDS]
//
// It is of the architecture of Llama, has a token for each character, and learns from assets/shakespeare.txt.gz. It takes a
// quarter of an hour; it ends with the last step, or the step before the seconds are over.

import { readFileSync, writeFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { graph, init, train } from '../../js/dist/index.js';
import { checkConfig, decoder } from '../../js/dist/lm.js';
import * as nn from '../../js/dist/nn.js';
import { f32, packQ8, u32, writeGGUF } from '../../js/test/gguf.mjs';

const [steps = 3000, seconds = 900] = process.argv.slice(2).map(Number);
const web = new URL('../web/', import.meta.url), rows = 24, length = 96;

const text = gunzipSync(readFileSync(new URL('assets/shakespeare.txt.gz', web)));
const codes = [...new Set(text)].sort((a, b) => a - b), end = codes.length, ids = Int32Array.from(text, (code) => codes.indexOf(code));
const held = Math.floor(ids.length * 0.95);

const config = checkConfig({
  architecture: 'llama', width: 64, hidden: 192, layers: 2, heads: 4, kvHeads: 2, headSize: 16, vocabulary: end + 1, context: 256,
  epsilon: 1e-5, activation: 'silu', gated: true, tied: true, rope: { base: 10000, size: 16, interleaved: true },
});

/** Rows of characters and the ones that follow, from random places of the text in front of `held`, or from behind. */
function batch(random, behind = false) {
  const tokens = new Int32Array(rows * length), next = new Int32Array(rows * length);
  for (let row = 0; row < rows; row++) {
    const from = behind ? held + row * length : Math.floor(random() * (held - length - 1));
    tokens.set(ids.subarray(from, from + length), row * length);
    next.set(ids.subarray(from + 1, from + length + 1), row * length);
  }
  return { tokens, next };
}

const loss = () => graph('tiny', (b) => {
  nn.train(b);
  nn.stored(b, () => ({ outIn: true }), () => {
    const logits = decoder(b.input('tokens', 'i32', [rows, length]), config);
    b.output('loss', logits.crossEntropyMean(b.input('next', 'i32', [rows, length])));
  });
});

await init({ compileWorker: false, worker: false });
const schedule = { kind: 'cosine', rate: 4e-3, finalRate: 2e-4, steps, warmUp: 100 };
const trainer = await train(loss, { optimizer: { kind: 'adamw', weightDecay: 0.02, clipNorm: 1 }, schedule, entries: () => ({ eval: loss() }), on: 'cpu', worker: false });
let state = 1;
const random = () => (state = Math.imul(state, 1103515245) + 12345 >>> 0) / 2 ** 32;
const stop = AbortSignal.timeout(seconds * 1000);
await trainer.run({
  steps, every: 100, signal: stop, batches: () => batch(random),
  onProgress: ({ step, losses }) => console.log(step, losses.at(-1).toFixed(3)),
});
const run = await trainer.program.run('eval', batch(random, true), { read: ['loss'] });
console.log('held out', (await run.reading).values.loss[0]);

/** The names of GGUF. */
const named = (name) => name
  .replace('model/embed_tokens', 'token_embd').replace('model/norm', 'output_norm').replace(/^model\/layers\/(\d+)\//, 'blk.$1.')
  .replace('input_layernorm', 'attn_norm').replace('post_attention_layernorm', 'ffn_norm').replace('self_attn/o_proj', 'attn_output')
  .replace(/self_attn\/(.)_proj/, 'attn_$1').replace(/mlp\/(\w+)_proj/, 'ffn_$1').replaceAll('/', '.');

const tensors = {};
for (const [name, { shape, data }] of Object.entries(await trainer.saveParams())) {
  const packed = shape.length === 2;
  tensors[named(name)] = { shape, type: packed ? 'q8_0' : 'f32', data: packed ? packQ8(data) : new Uint8Array(data.buffer) };
}
/** Characters as byte-level tokenizers write them: a space and a line break are letters. */
const characters = codes.map((code) => code <= 32 ? String.fromCharCode(256 + code) : String.fromCharCode(code));
writeFileSync(new URL('tiny.gguf', web), writeGGUF({
  'general.architecture': 'llama', 'general.name': 'Tiny Shakespeare',
  'llama.block_count': u32(config.layers), 'llama.context_length': u32(config.context), 'llama.embedding_length': u32(config.width), 'llama.feed_forward_length': u32(config.hidden),
  'llama.attention.head_count': u32(config.heads), 'llama.attention.head_count_kv': u32(config.kvHeads), 'llama.attention.layer_norm_rms_epsilon': f32(config.epsilon),
  'llama.rope.freq_base': f32(config.rope.base), 'llama.rope.dimension_count': u32(config.rope.size),
  'tokenizer.ggml.model': 'gpt2', 'tokenizer.ggml.pre': 'gpt-2', 'tokenizer.ggml.tokens': [...characters, '<|end|>'],
  'tokenizer.ggml.token_type': [...codes.map(() => 1), 3], 'tokenizer.ggml.eos_token_id': u32(end), 'tokenizer.ggml.add_bos_token': false,
}, tensors));
trainer.program.close();
