// The jobs of lm.mjs, for Node and for a page: a language model of the shape of SmolLM2-135M with random weights, by WebGPU.

export const shape = { width: 576, hidden: 1536, layers: 30, heads: 9, kvHeads: 3, headSize: 64, vocabulary: 49152 };
const past = 1000, decoded = 256, repeats = 4;

/** Random blocks of q4_1 or q8_0 with small scales and no mean. */
function packed(type, rows, columns) {
  const bytes = type === 'q8_0' ? 34 : 20, count = rows * columns / 32, out = new Uint8Array(count * bytes), view = new DataView(out.buffer);
  for (let i = 0, x = 1; i < out.length; i++) {
    x = Math.imul(x, 1664525) + 1013904223 | 0;
    out[i] = x >>> 24;
  }
  for (let i = 0; i < count; i++) {
    view.setUint16(i * bytes, type === 'q8_0' ? 0x0c00 : 0x1c00, true); // 2⁻¹² and 2⁻⁸, as f16
    if (type === 'q4_1') view.setUint16(i * bytes + 2, 0xa780, true); // −7.5 · 2⁻⁸
  }
  return out;
}

/** A file of such a model in memory, as openGGUF gives one: q4_1, and q8_0 for the table of embeddings, as SmolLM2's. */
export function modelFile({ width, hidden, layers, heads, kvHeads, headSize, vocabulary }) {
  const tensors = new Map(), add = (name, type, ...sizes) => tensors.set(`${name}.weight`, { name: `${name}.weight`, type, shape: sizes, offset: 0, bytes: 0 });
  add('token_embd', 'q8_0', vocabulary, width);
  add('output_norm', 'f32', width);
  for (let i = 0; i < layers; i++) {
    for (const name of ['attn_norm', 'ffn_norm']) add(`blk.${i}.${name}`, 'f32', width);
    const matrices = { attn_q: [heads * headSize, width], attn_k: [kvHeads * headSize, width], attn_v: [kvHeads * headSize, width], attn_output: [width, heads * headSize] };
    for (const [name, sizes] of Object.entries({ ...matrices, ffn_gate: [hidden, width], ffn_up: [hidden, width], ffn_down: [width, hidden] })) add(`blk.${i}.${name}`, 'q4_1', ...sizes);
  }
  const sizes = { block_count: layers, context_length: 8192, embedding_length: width, feed_forward_length: hidden, 'attention.head_count': heads, 'attention.head_count_kv': kvHeads };
  const more = { 'rope.freq_base': 1e5, 'attention.layer_norm_rms_epsilon': 1e-5, vocab_size: vocabulary, 'rope.dimension_count': headSize };
  const metadata = new Map([['general.architecture', 'llama'], ...Object.entries({ ...sizes, ...more }).map(([name, value]) => [`llama.${name}`, value])]);
  const read = async (name) => {
    const { type, shape: [rows, columns] } = tensors.get(name);
    return type === 'f32' ? new Uint8Array(new Float32Array(rows).fill(1).buffer) : packed(type, rows, columns);
  };
  return { metadata, tensors, read, close() {} };
}

/** A tokenizer whose texts do not end. */
export const tokenizer = {
  encode: (text) => Int32Array.from({ length: text.length }, (_, i) => (i * 7919) % 40000 + 20), decode: () => '', stream: () => ({ push: () => '', end: () => '' }),
  size: shape.vocabulary, eos: [], quote: (text) => text, id: () => undefined, token: String, special: () => false,
};

/** The dispatches of an entry's steps, those of loops as often as they run. */
export const dispatchesOf = (steps) => steps.reduce((sum, step) => sum + (step.kind === 'dispatch' ? 1 : step.steps ? step.count * dispatchesOf(step.steps) : 0), 0);

/** The rates of requests with a prompt of `past` tokens: the best of each. */
async function generation({ lm, print }, label, options) {
  const begun = performance.now(), model = await lm.openModel(modelFile(shape), { context: 2048, chunk: 512, on: 'gpu', worker: false, ...options });
  const counts = model.program.plan.entries.map(({ name, steps }) => `${name} ${dispatchesOf(steps)}`).join(', '), opened = performance.now() - begun;
  const best = { prompt: 0, decode: 0, draw: 0 }, first = [];
  for (let i = 0; i < repeats; i++) {
    for (const [name, temperature] of [['decode', 0], ['draw', 0.7]]) {
      const prompt = Int32Array.from({ length: past }, (_, k) => (k * 7919 + i) % 40000 + 20), made = lm.generate(model, tokenizer, prompt, { maxTokens: 1 + decoded, temperature, seed: 1 });
      for await (const { token } of made) if (i === 0 && first.length < 12) first.push(token);
      best.prompt = Math.max(best.prompt, made.stats.prefillRate);
      best[name] = Math.max(best[name], made.stats.decodeRate);
    }
  }
  let ms = Infinity;
  for (let i = 0; i < repeats; i++) {
    const from = performance.now(), by = lm.samplingRow({}, 0), count = 200;
    for (let k = 0; k < count; k++) await model.program.run('decode', { past: Int32Array.of(past + k), by });
    await model.program.run('decode', { past: Int32Array.of(past), by }, { read: ['token'] }).then(({ reading }) => reading);
    ms = Math.min(ms, (performance.now() - from) / (count + 1));
  }
  model.close();
  print(`${label}: ${ms.toFixed(3)} ms a token that is not read; first tokens ${first.join(' ')}`);
  print(`${label}: ${Object.entries(best).map(([name, rate]) => `${name} ${rate.toFixed(0)}`).join(', ')} tokens/s; dispatches: ${counts}; opened in ${(opened / 1000).toFixed(1)} s`);
}

/** The rate of QLoRA with rows of a length. */
async function tuning({ lm, print }, rows, length, options) {
  const tuned = await lm.openTuning(modelFile(shape), { rank: 8, rows, length, context: 512, on: 'gpu', worker: false, ...options });
  const { steps } = tuned.model.program.plan.entries.find(({ name }) => name === 'step'), text = 'x'.repeat(4 * length), losses = [];
  let best = 0;
  for (let i = 0; i < repeats; i++) {
    const begun = performance.now(), count = 4;
    await tuned.train(text, tokenizer, { steps: count, onLoss: (_, loss) => losses.push(loss) });
    best = Math.max(best, 1000 * count * rows * length / (performance.now() - begun));
  }
  print(`QLoRA ${rows} × ${length}: ${best.toFixed(0)} tokens/s, ${dispatchesOf(steps)} dispatches, loss ${losses[0].toFixed(3)} to ${losses.at(-1).toFixed(3)}`);
  tuned.close();
}

/** Runs jobs by name: all of them by default. */
export async function run({ rlx, lm, gpu, print }, jobs = ['packed', 'f32', 'qlora']) {
  await rlx.init({ ...gpu && { gpu }, compileWorker: false, worker: false, cache: false });
  const all = {
    packed: () => generation({ lm, print }, 'q4_1', { unpack: false }), f32: () => generation({ lm, print }, 'f32', { unpack: true }),
    qlora: () => tuning({ lm, print }, 8, 512),
  };
  for (const job of jobs) await all[job]().catch((reason) => print(`${job}: ${reason.stack}`));
}
