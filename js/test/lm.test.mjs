// Language models: logits and greedy texts of tiny checkpoints are those of transformers.

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { graph, init, program, RlxError } from '../dist/index.js';
import * as lm from '../dist/lm.js';
import * as nn from '../dist/nn.js';
import { decodeSafetensors, encodeSafetensors } from '../dist/safetensors.js';
import { openDawn, openGPU } from './rig/dawn.mjs';
import { serve } from './rig/ranges.mjs';

const folder = new URL('../../native/lm/testdata/', import.meta.url);
const bytesOf = (path) => readFileSync(new URL(path, folder));
const names = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory()).map(({ name }) => name);
const chunk = 5;

/** Plans by what they are made from: several tests open the same model. */
const cache = new Map();

before(() => init({ compileWorker: false, worker: false, cache }));

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

/** A program of a model for a prompt in chunks and for single tokens; for a file alone, for the whole prompt. */
async function programOf(t, file, prompt, room, { on = 'cpu', ...how } = {}) {
  const config = await lm.configOf(file), weights = new lm.Weights(file, config, how), { vocabulary } = config;
  const entry = (n) => graph('model', (b) => {
    nn.infer(b);
    if (room) nn.cache(b, prompt.length + room);
    nn.stored(b, (name) => weights.storage(name), () => b.output('logits', lm.decoder(b.input('tokens', 'i32', [1, n]), config)));
  });
  const entries = room ? { chunk: entry(chunk), one: entry(1) } : { whole: entry(prompt.length) };
  weights.check(Object.values(entries)[0].ports);
  const made = await program({ entries: Object.fromEntries(Object.entries(entries).map(([name, one]) => [name, one.text()])) }, { on });
  t.after(() => made.close());
  for (const slot of made.plan.slots.filter(({ role }) => role === 'param')) await made.write(slot.name, await weights.read(slot));
  const run = async (name, tokens) => (await (await made.run(name, { tokens: Int32Array.from(tokens) }, { read: ['logits'] })).reading).values.logits;
  return { run, vocabulary, weights, entries, made };
}

const best = (logits) => logits.indexOf(Math.max(...logits));
const dataOf = (tensors) => Object.fromEntries(Object.entries(tensors).map(([name, { data }]) => [name, data]));
const expectedOf = (name) => dataOf(tensorsOf(`${name}/expected.safetensors`));

describe('a prompt in chunks, and its greedy continuation token by token', () => {
  for (const name of names) {
    test(name, async (t) => {
      const { prompt, greedy, logits: want } = expectedOf(name), { run, vocabulary } = await programOf(t, folderOf(name), prompt, greedy.length);
      let last;
      for (let at = 0; at < prompt.length; at += chunk) {
        last = await run('chunk', prompt.slice(at, at + chunk));
        near(`chunk at ${at}`, last, want.slice(at * vocabulary, (at + chunk) * vocabulary));
      }
      const found = [];
      for (let logits = last.slice(-vocabulary); found.length < greedy.length; logits = await run('one', found.slice(-1))) found.push(best(logits));
      assert.deepEqual(found, [...greedy]);
    });
  }
});

describe('a GGUF file, the whole prompt at once', () => {
  for (const name of names.filter((one) => existsSync(new URL(`${one}/model.gguf`, folder)))) {
    test(name, async (t) => {
      const { prompt, logits, of_gguf: want = logits } = expectedOf(name), { run } = await programOf(t, await lm.openGGUF(bytesOf(`${name}/model.gguf`)), prompt, 0);
      near('whole', await run('whole', prompt), want);
    });
  }
});

/** An open GGUF file of a mixture of five experts, two for each token, with random matrices in blocks of q8_0. */
function mixture() {
  const width = 64, hidden = 32, layers = 2, vocabulary = 96, experts = 5, tensors = new Map(), data = new Map();
  let seed = 1;
  const next = () => (seed = Math.imul(seed, 1664525) + 1013904223 >>> 0) >>> 24;
  const add = (name, type, shape, bytes) => {
    data.set(name, bytes);
    tensors.set(name, { name, shape, type, offset: 0, bytes: bytes.length });
  };
  const packed = (name, ...shape) => { // a scale of 2^-10, and numbers of 8 bits
    const bytes = Uint8Array.from({ length: shape.reduce((n, size) => n * size, 1) / 32 * 34 }, (_, i) => i % 34 === 0 ? 0 : i % 34 === 1 ? 0x14 : next());
    add(name, 'q8_0', shape, bytes);
  };
  const floats = (name, shape, of) => add(name, 'f32', shape, new Uint8Array(Float32Array.from({ length: shape.reduce((n, size) => n * size, 1) }, of).buffer));
  packed('token_embd.weight', vocabulary, width);
  packed('output.weight', vocabulary, width);
  floats('output_norm.weight', [width], () => 1);
  for (let i = 0; i < layers; i++) {
    for (const name of ['attn_norm', 'ffn_norm']) floats(`blk.${i}.${name}.weight`, [width], () => 1);
    for (const name of ['attn_q', 'attn_k', 'attn_v', 'attn_output']) packed(`blk.${i}.${name}.weight`, width, width);
    floats(`blk.${i}.ffn_gate_inp.weight`, [experts, width], () => next() / 256 - 0.5);
    for (const name of ['ffn_gate_exps', 'ffn_up_exps']) packed(`blk.${i}.${name}.weight`, experts, hidden, width);
    packed(`blk.${i}.ffn_down_exps.weight`, experts, width, hidden);
  }
  const metadata = new Map(Object.entries({
    'general.architecture': 'llama', 'llama.block_count': layers, 'llama.context_length': 128, 'llama.embedding_length': width, 'llama.feed_forward_length': hidden,
    'llama.attention.head_count': 4, 'llama.attention.head_count_kv': 4, 'llama.attention.layer_norm_rms_epsilon': 1e-5, 'llama.rope.dimension_count': 16,
    'llama.rope.freq_base': 10000, 'llama.expert_count': experts, 'llama.expert_used_count': 2,
  }));
  return { metadata, tensors, read: async (name, begin, end) => data.get(name).slice(begin, end), close() {} };
}

const mixturePrompt = Array.from({ length: 2 * chunk + 30 }, (_, i) => 1 + i * i % 90);

/** Holds the logits of packed experts to those of the same file with its weights unpacked. */
async function holdMixture(t, on) {
  const unpacked = await programOf(t, mixture(), mixturePrompt, 0, { unpack: true }), want = await unpacked.run('whole', mixturePrompt);
  const whole = await programOf(t, mixture(), mixturePrompt, 0, { on });
  near('whole', await whole.run('whole', mixturePrompt), want);
  const { run, vocabulary, entries } = await programOf(t, mixture(), mixturePrompt, 1, { on });
  assert.deepEqual(entries.one.ports.filter(({ name }) => name.startsWith('model/layers/1/block_sparse_moe/experts')).map(({ name, dtype, shape }) => [name.slice(40), dtype, ...shape]), [
    ['w1/weight', 'u8', 5, 32, 68], ['w3/weight', 'u8', 5, 32, 68], ['w2/weight', 'u8', 5, 64, 34],
  ]);
  near('chunk', await run('chunk', mixturePrompt.slice(0, chunk)), want.slice(0, chunk * vocabulary));
  for (let i = chunk; i < 2 * chunk; i++) near(`token ${i}`, await run('one', mixturePrompt.slice(i, i + 1)), want.slice(i * vocabulary, (i + 1) * vocabulary));
}

test('experts that stay packed are one parameter a matrix, and give the logits of unpacked ones', async (t) => {
  await holdMixture(t, 'cpu');
  const size = [...mixture().tensors.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  assert.equal((await lm.memoryOf(mixture(), { unpack: false })).weights, size, 'the memory that memoryOf predicts');
});

/** A tokenizer of numbers. */
const numbers = {
  encode: (text) => Int32Array.from(text.trim().split(' '), Number), decode: (ids) => [...ids].map((id) => ` ${id}`).join(''),
  stream: () => ({ push: (id) => ` ${id}`, end: () => '' }), size: 64, eos: [2], quote: (text) => text, id: () => undefined, token: (id) => String(id), special: () => false,
};

/** Waits for what must be refused with an error of a kind. */
const refused = (kind, message, run) => assert.rejects(run, (error) => error instanceof RlxError && error.kind === kind && message.test(error.message));

test('the weights of a file at an address come by few requests, those of neighbours at once', async (t) => {
  const { url, seen } = await serve(t, { 'm.gguf': bytesOf('llama/model.gguf') }), file = await lm.openGGUF(`${url}m.gguf`);
  const { requests } = seen, progress = [], model = await lm.openModel(file, { context: 32, on: 'cpu', worker: false, onProgress: (...one) => progress.push(one) });
  t.after(() => model.close());
  assert.ok(file.tensors.size > 15 && seen.requests - requests <= 2, `${seen.requests - requests} requests for ${file.tensors.size} tensors`);
  const [[none, total]] = progress;
  assert.deepEqual([none, progress.at(-1)[0], progress.at(-1)[1]], [0, total, total]);
});

test('weights may be parts of larger memory, as those of Buffers are, which stays as it is', async () => {
  const all = bytesOf('llama/model.gguf'), file = await lm.openGGUF(new Uint8Array(all)), { metadata, tensors } = file;
  const view = (name, begin = 0, end = tensors.get(name).bytes) => all.subarray(tensors.get(name).offset + begin, tensors.get(name).offset + end);
  const parts = { metadata, tensors, read: async (name, ...range) => name.startsWith('rope') ? new Uint8Array(view(name, ...range)) : view(name, ...range), close() {} };
  for (const options of [{ worker: false }, { worker: true }, { worker: false, unpack: false }, { worker: true, unpack: false }]) {
    const [want, got] = await Promise.all([file, parts].map(async (one) => {
      const model = await lm.openModel(one, { context: 32, on: 'cpu', ...options }), saved = await model.program.save();
      model.close();
      return saved;
    }));
    assert.deepEqual(got, want);
  }
  assert.deepEqual(all, bytesOf('llama/model.gguf'));
});

test('the weights that are read ahead are bounded, wherever a file says that they lie', async () => {
  const float = { type: 'f32', shape: [1 << 20], bytes: 4 << 20, offset: 0 }, tensors = new Map(Array.from({ length: 12 }, (_, i) => [`w${i}`, { ...float, name: `w${i}` }]));
  let held = 0, most = 0;
  const read = async (_, begin, end) => {
    most = Math.max(most, held += end - begin);
    return new Uint8Array(end - begin);
  };
  const weights = new lm.Weights({ metadata: new Map(), tensors, read, close() {} }, { architecture: 'llama' });
  for await (const [, { data }] of weights.each([...tensors.values()].map(({ name, shape }) => ({ name, shape, dtype: 'f32' })))) held -= data.byteLength;
  assert.deepEqual([held, most], [0, 16 << 20]);
});

describe('generation', () => {
  const { prompt, greedy } = expectedOf('llama');
  let model, file;
  before(async () => {
    file = await lm.openGGUF(bytesOf('llama/model.gguf'));
    model = await lm.openModel(file, { chunk: 8, on: 'cpu' });
  });
  after(() => model.close());
  const ids = async (options, given = prompt) => {
    const found = [], generation = lm.generate(model, numbers, given, options);
    for await (const { token } of generation) found.push(token);
    return Object.assign(found, { stats: generation.stats, finish: generation.finish });
  };

  test('takes the tokens of transformers without a temperature, from weights packed and unpacked', async (t) => {
    const found = await ids({ maxTokens: greedy.length });
    assert.deepEqual([...found], [...greedy]);
    assert.equal(found.finish, 'length');
    const packed = await lm.openModel(file, { chunk: 32, context: 40, unpack: false, on: 'cpu' });
    t.after(() => packed.close());
    assert.ok(packed.program.plan.slots.some(({ role, dtype }) => role === 'param' && dtype === 'u8'));
    assert.equal(await lm.generate(packed, numbers, prompt, { maxTokens: greedy.length }).text(), numbers.decode(greedy));
    const took = packed.program.plan.slots.filter(({ role }) => role === 'param').reduce((sum, { bytes }) => sum + bytes, 0);
    assert.equal((await lm.memoryOf(file, { unpack: false })).weights, took, 'the memory that memoryOf predicts');
  });

  test('a conversation that goes on computes what is new alone, to the same result', async () => {
    const first = await ids({ maxTokens: 6 }), longer = [...prompt, ...first.slice(0, 6), 9, 8, 7];
    const again = await ids({ maxTokens: 5 }, longer);
    assert.ok(again.stats.reused >= prompt.length + 5, `${again.stats.reused} reused`);
    await ids({ maxTokens: 1 }, [5]);
    const anew = await ids({ maxTokens: 5 }, longer);
    assert.equal(anew.stats.reused, 0);
    assert.deepEqual([...again], [...anew]);
  });

  test('a seed decides what is drawn; another draws otherwise', async () => {
    const drawn = async (seed, more) => String(await ids({ maxTokens: 12, temperature: 1.5, seed, ...more }));
    assert.equal(await drawn(1), await drawn(1));
    assert.notEqual(await drawn(1), await drawn(2));
    assert.equal(await drawn(3, { topK: 1 }), String([...greedy].slice(0, 12)));
  });

  test('penalties, biases and a choice of tokens change logits by their formulas', async (t) => {
    const { run, vocabulary, made } = await programOf(t, file, prompt, 24, { unpack: true });
    /** The greedy tokens by logits that have no part in choosing, and the formulas in f64. */
    const byHand = async ({ repetition = 1, presence = 0, frequency = 0, bias = {}, allowed }) => {
      let logits;
      for (let at = 0; at < prompt.length; at += chunk) logits = (await run('chunk', prompt.slice(at, at + chunk))).slice(-vocabulary);
      const counts = new Map(), seen = new Set(prompt), out = [];
      for (;;) {
        const x = Array.from(logits, (raw, id) => {
          const count = counts.get(id) ?? 0, weaker = !seen.has(id) ? raw : raw > 0 ? raw / repetition : raw * repetition;
          return !allowed || allowed.includes(id) ? weaker - presence * Math.sign(count) - frequency * count + (bias[id] ?? 0) : -Infinity;
        });
        const token = best(x);
        out.push(token);
        if (out.length === 12) break;
        counts.set(token, (counts.get(token) ?? 0) + 1);
        seen.add(token);
        logits = await run('one', [token]);
      }
      await made.write('cache/length', { data: Int32Array.of(0), shape: [] });
      return out;
    };
    const plain = await byHand({});
    assert.deepEqual(plain, [...greedy].slice(0, 12));
    const [first] = greedy;
    for (const options of [
      { presence: 1.5 }, { frequency: 0.7 }, { presence: -0.5, frequency: 0.4, repetition: 1.2 }, { bias: { [first]: -Infinity } }, { bias: { 40: 1, [first]: -2.5 }, frequency: 1 },
      { allowed: [5, 9, 11, 40] }, { allowed: [5, 9, 11, 40], bias: { 9: -Infinity, 5: 0.5 }, presence: 1 },
    ]) {
      const tokens = [...await ids({ maxTokens: 12, ...options })];
      assert.deepEqual(tokens, await byHand(options), JSON.stringify(options));
      assert.notDeepEqual(tokens, plain, JSON.stringify(options));
    }
    assert.deepEqual([...await ids({ maxTokens: 12 })], plain, 'the next request has none of that');
    await refused('index', /token 64: there are 64/, async () => ids({ bias: { 64: 1 } }));
    await refused('index', /token -1/, async () => ids({ allowed: [-1] }));
    await refused('attr', /token 3 is .*below Infinity/, async () => ids({ bias: { 3: NaN } }));
    await refused('attr', /a token is left/, async () => ids({ allowed: [3], bias: { 3: -Infinity } }));
    await refused('attr', /presence is NaN/, async () => ids({ presence: NaN }));
  });

  test('ends at a token that ends, at a text that stops, before a bound, and where the caller breaks off', async () => {
    const [first, second, third] = greedy, stops = { maxTokens: 8, stop: [`${second} ${third}`.slice(1)] };
    assert.equal(await lm.generate(model, numbers, prompt, stops).text(), ` ${first} ${second}`.slice(0, ` ${first} ${second}`.length - String(second).length + 1));
    const ended = lm.generate(model, { ...numbers, eos: [third] }, prompt), text = await ended.text();
    assert.deepEqual([text, ended.finish, ended.stats.tokens], [numbers.decode([first, second]), 'stop', 3]);
    for await (const { token } of lm.generate(model, numbers, prompt)) {
      assert.equal(token, first);
      break;
    }
    assert.equal((await ids({ maxTokens: 2 })).finish, 'length', 'the model is free again');
  });

  test('refuses what cannot be done', async () => {
    await refused('limit', /64 tokens.*context, 64/, async () => ids({}, Array(64).fill(1)));
    await refused('index', /token 64: there are 64/, async () => ids({}, [64]));
    await refused('missing', /no tokens/, async () => ids({}, new Int32Array()));
    await refused('missing', /no chat template/, async () => ids({}, [{ role: 'user', content: 'x' }]));
    await refused('attr', /temperature is -1/, async () => ids({ temperature: -1 }));
    await refused('name', /no option temprature/, async () => ids({ temprature: 1 }));
    const stop = new AbortController();
    await refused('abort', /aborted/, async () => { for await (const _ of lm.generate(model, numbers, prompt, { signal: stop.signal })) stop.abort(); });
    await refused('busy', /another request/, async () => { for await (const _ of lm.generate(model, numbers, prompt)) await ids({}); });
    await refused('unsupported', /parrot.*llama/, () => lm.openModel({ metadata: new Map([['model_type', 'parrot']]), tensors: new Map() }));
  });

  test('a model that is closed in between ends the text with an error', async (t) => {
    const other = await lm.openModel(file, { chunk: 32, on: 'cpu' });
    t.after(() => other.close());
    await refused('closed', /closed/, async () => { for await (const _ of lm.generate(other, numbers, prompt)) other.close(); });
  });
});

test('a configuration that contradicts itself, or is not supported, is refused by names', async () => {
  const changed = (name, change) => {
    const file = folderOf(name);
    for (const [key, value] of Object.entries(change)) file.metadata.set(key, value);
    return lm.configOf(file);
  };
  await refused('unsupported', /^the architecture is mamba: there are .*, granite, .*, olmo2, .*, starcoder2$/, () => changed('llama', { model_type: 'mamba' }));
  await refused('unsupported', /^qwen3_moe with decoder_sparse_step 2 and 0 mlp_only_layers/, () => changed('qwen3_moe', { decoder_sparse_step: 2 }));
  await refused('unsupported', /^qwen2_moe with decoder_sparse_step 1 and 1 mlp_only_layers/, () => changed('qwen2_moe', { mlp_only_layers: [0] }));
  await refused('unsupported', /^olmoe with clip_qkv/, () => changed('olmoe', { clip_qkv: 8 }));
  await refused('attr', /logitScale is Infinity/, () => changed('granite', { logits_scaling: 0 }));
  await refused('attr', /unrotated has 1 layers, not /, () => changed('smollm3', { no_rope_layers: [1] }));
  const olmo = await changed('olmo2', {}), qwen = await changed('qwen2_moe', {});
  await refused('attr', /noPreNorms is true without postNorms/, async () => lm.checkConfig({ ...olmo, postNorms: false }));
  await refused('attr', /normQK and normQKWhole are true/, async () => lm.checkConfig({ ...olmo, normQK: true }));
  await refused('attr', /sharedHidden is \d+, without experts/, async () => lm.checkConfig({ ...qwen, experts: 0, expertsPerToken: 0 }));
});

test('fields that a config.json lacks are those of transformers', async () => {
  const of = (...fields) => lm.configOf({ metadata: new Map(Object.entries(Object.assign({}, ...fields))), tensors: new Map() });
  const sizes = { hidden_size: 2560, intermediate_size: 10240, num_hidden_layers: 4 }, all = { ...sizes, num_attention_heads: 8, vocab_size: 64, max_position_embeddings: 256 };
  const begun = { ...sizes, sliding_window: 1024, rope_scaling: { factor: 8, rope_type: 'linear' } };
  assert.deepEqual(await of({ model_type: 'gemma3', text_config: begun }), await of({ model_type: 'gemma3_text' }, begun, {
    num_attention_heads: 8, num_key_value_heads: 4, head_dim: 256, vocab_size: 262208, max_position_embeddings: 131072, rope_theta: 1e6, hidden_activation: 'gelu_pytorch_tanh',
  }));
  for (const [model_type, missing, given = {}] of [
    ['mistral', { sliding_window: 4096 }], ['mistral', { sliding_window: 0 }, { sliding_window: null }], ['mixtral', { rms_norm_eps: 1e-5, rope_theta: 1e6 }, { num_local_experts: 4 }],
    ['gemma2', { num_key_value_heads: 4, head_dim: 256, attn_logit_softcapping: 50, final_logit_softcapping: 30 }], ['gpt_neox', { hidden_act: 'gelu', partial_rotary_factor: 0.25 }],
    ['olmo3', { rms_norm_eps: 1e-5, rope_parameters: { rope_theta: 5e5, rope_type: 'default' } }], ['starcoder2', { hidden_act: 'gelu_pytorch_tanh', tie_word_embeddings: true }],
    ['ernie4_5', { rope_theta: 5e5, head_dim: 128, rms_norm_eps: 1e-5 }], ['glm4', { head_dim: 128, partial_rotary_factor: 0.5 }], ['nemotron', { hidden_act: 'relu2', partial_rotary_factor: 0.5 }],
  ]) assert.deepEqual(await of(all, { model_type }, given), await of(all, { model_type }, given, missing), model_type);
});

test('a file that lacks a parameter, or has another, is refused by names', async () => {
  const without = folderOf('qwen3');
  without.tensors.set('model.layers.0.self_attn.q_prj.weight', without.tensors.get('model.layers.0.self_attn.q_proj.weight'));
  without.tensors.delete('model.layers.0.self_attn.q_proj.weight');
  await refused('missing', /lacks model\/layers\/0\/self_attn\/q_proj\/weight \(the nearest is model\.layers\.0\.self_attn\.q_prj\.weight\)/, () => lm.openModel(without, { on: 'cpu' }));
  const wrong = folderOf('qwen3');
  wrong.tensors.get('lm_head.weight').shape = [32, 64];
  await refused('shape', /lm_head\.weight is f32\[32,64\]/, () => lm.openModel(wrong, { on: 'cpu' }));
});

test('tokens that are drawn are those of NumPy', async (t) => {
  const { cases, want } = JSON.parse(readFileSync(new URL('../../ir/lm/testdata/sampling.json', import.meta.url), 'utf8')), vocabulary = 320;
  const at = cases.map((_, r) => r), rows = at.length, size = [rows, vocabulary];
  const made = await program({ entries: { f: graph('sample', (b) => b.output('token', lm.sample(b.input('logits', 'f32', size), b.input('by', 'f32', [rows, lm.samplingFields]), b.input('seen', 'i32', size), b.input('counts', 'i32', size)))) } }, { on: 'cpu' });
  t.after(() => made.close());
  const logits = new Float32Array(rows * vocabulary), seen = new Int32Array(rows * vocabulary), counts = new Int32Array(rows * vocabulary);
  at.forEach((r, row) => {
    for (let i = 0; i < vocabulary; i++) {
      logits[row * vocabulary + i] = Math.fround((i * 73 + 11 * r) % 331) / 331 * 12 - 6;
      seen[row * vocabulary + i] = Number(i % 7 === r % 7);
      counts[row * vocabulary + i] = i % 5 ? 0 : i % 3;
    }
  });
  const by = Float32Array.from(at.flatMap((r) => {
    const [temperature, topK, topP, minP, repetition, presence, frequency, random] = cases[r];
    return [...lm.samplingRow({ temperature, topK, topP, minP, repetition, presence, frequency }, random)];
  }));
  const { values: { token } } = await (await made.run('f', { logits, by, seen, counts }, { read: ['token'] })).reading;
  assert.deepEqual([...token], at.map((r) => want[r][0]));
});

test('an adapter learns a text with packed weights, has no effect where it is to have none, and fits the model of Hugging Face', async (t) => {
  const file = await lm.openGGUF(bytesOf('llama/model.gguf')), { prompt } = expectedOf('llama');
  const tuning = await lm.openTuning(file, { on: 'cpu', unpack: false, context: 32, rank: 2, alpha: 6, length: 12, optimizer: { kind: 'sgd' } });
  t.after(() => tuning.close());
  const text = () => lm.generate(tuning.model, numbers, prompt, { maxTokens: 8 }).text(), before = await text(), losses = [];
  const run = await tuning.train('3 14 15 9 26 5 35 8 9 7', numbers, { steps: 60, rate: 0.3, onLoss: (step, loss) => losses.push([step, loss]) });
  assert.deepEqual([run.steps, losses.length, losses.at(-1)[0]], [60, 60, 60]);
  assert.ok(losses.at(-1)[1] < losses[0][1] * 0.7, `from ${losses[0][1]} to ${losses.at(-1)[1]}`);
  const after = await text();
  assert.notEqual(after, before);
  assert.equal(await tuning.without(text), before);
  const saved = await tuning.save('llama'), config = JSON.parse(saved['adapter_config.json']), adapter = decodeSafetensors(saved['adapter_model.safetensors']).tensors;
  // Its files are laid out as those that PEFT has loaded (TestAdapters of native/lm holds what that computed).
  const loaded = new URL('../../native/safetensors/testdata/llama/page/', import.meta.url);
  assert.deepEqual(config, JSON.parse(readFileSync(new URL('adapter_config.json', loaded), 'utf8')));
  const layout = (tensors) => Object.entries(tensors).map(([name, { dtype, shape }]) => [name, dtype, ...shape]);
  assert.deepEqual(layout(adapter), layout(decodeSafetensors(readFileSync(new URL('adapter_model.safetensors', loaded))).tensors));
  // Added to the weights of Hugging Face's file, whose heads are in halves where those of GGUF are
  // in pairs, it has the same results.
  const merged = folderOf('llama'), read = merged.read;
  merged.read = async (name) => {
    const data = new Float32Array((await read(name)).slice().buffer), stem = `base_model.model.${name.replace('.weight', '')}`, down = adapter[`${stem}.lora_A.weight`], up = adapter[`${stem}.lora_B.weight`];
    if (down) data.forEach((_, i) => { for (let r = 0; r < 2; r++) data[i] += 3 * up.data[Math.floor(i / down.shape[1]) * 2 + r] * down.data[r * down.shape[1] + i % down.shape[1]]; });
    return new Uint8Array(data.buffer);
  };
  const other = await lm.openModel(merged, { on: 'cpu', context: 32, chunk: 32 });
  t.after(() => other.close());
  const logits = await lm.generate(other, numbers, prompt, { maxTokens: 8 }).text();
  assert.equal(logits, after);
  await tuning.reset();
  assert.equal(await text(), before);
});

const tuningText = '3 14 15 9 26 5 35 8 9 7', tuned = { on: 'cpu', unpack: false, context: 32, rank: 2, alpha: 6, rows: 2, length: 8 };
const curve = JSON.parse(readFileSync(new URL('tuning.json', folder), 'utf8'));

test('a tuning goes on from a checkpoint as if it was not interrupted, with the losses of PyTorch', async (t) => {
  const file = await lm.openGGUF(bytesOf('llama/model.gguf')), losses = [];
  const open = async (options) => {
    const tuning = await lm.openTuning(file, { ...tuned, ...options });
    t.after(() => tuning.close());
    return { tuning, train: (steps) => tuning.train(tuningText, numbers, { steps, rate: curve.rate, onLoss: (step, loss) => { losses[step - 1] = loss; } }) };
  };
  const whole = await open({ seed: 5 });
  await whole.tuning.loadCheckpoint(bytesOf('tuning-begin.safetensors'));
  assert.equal(whole.tuning.steps, 0);
  await whole.train(curve.middle);
  const middle = await whole.tuning.saveCheckpoint();
  await whole.train(curve.losses.length - curve.middle);
  losses.forEach((loss, i) => assert.ok(Math.abs(loss - curve.torch[i]) < 1e-5, `step ${i + 1}: ${loss}, PyTorch has ${curve.torch[i]}`));
  const other = await open({ seed: 9 });
  await other.tuning.loadCheckpoint(middle);
  assert.equal(other.tuning.steps, curve.middle);
  const unbroken = losses.splice(curve.middle);
  await other.train(unbroken.length);
  assert.deepEqual(losses.slice(curve.middle), unbroken);
  assert.deepEqual(await other.tuning.saveCheckpoint(), await whole.tuning.saveCheckpoint());
  // The committed one is of this form, and of another build of the page: its numbers may be rounded otherwise.
  const { tensors, metadata } = decodeSafetensors(middle), stored = decodeSafetensors(bytesOf('tuning.safetensors'));
  assert.deepEqual(metadata, stored.metadata);
  assert.deepEqual(Object.keys(tensors), Object.keys(stored.tensors));
  for (const [name, { data }] of Object.entries(tensors)) data.forEach((x, i) => assert.ok(Math.abs(x - stored.tensors[name].data[i]) < 1e-4, name));
  // A native trainer writes the weights, too, and no metadata.
  await other.tuning.loadCheckpoint(encodeSafetensors({ ...tensors, 'model/norm/weight': { dtype: 'f32', shape: [2], data: new Float32Array(2) } }));
  const { tensors: again } = decodeSafetensors(await other.tuning.saveCheckpoint());
  assert.deepEqual(dataOf(again), dataOf(tensors));
  assert.equal(other.tuning.steps, curve.middle);
  // A file that does not fit changes nothing.
  const before = await other.tuning.saveCheckpoint(), { 'optim/step': _, ...without } = tensors;
  await refused('missing', /lacks optim\/step/, () => other.tuning.loadCheckpoint(encodeSafetensors(without, metadata)));
  await refused('attr', /alpha 7: it must be 6/, () => other.tuning.loadCheckpoint(encodeSafetensors(tensors, { ...metadata, alpha: '7' })));
  await refused('syntax', /cut short/, () => other.tuning.loadCheckpoint(middle.subarray(0, 99)));
  const wide = await open({ rank: 3 });
  await refused('shape', /lora_A/, () => wide.tuning.loadCheckpoint(middle));
  assert.deepEqual(await other.tuning.saveCheckpoint(), before);
});

test('the memory of a tuning is known before weights are read', async (t) => {
  const file = await lm.openGGUF(bytesOf('llama/model.gguf')), read = file.read.bind(file);
  for (const options of [tuned, { ...tuned, unpack: true, rows: 4, length: 32, rank: 8 }]) {
    file.read = (name) => name === 'rope_freqs.weight' ? read(name) : assert.fail(`${name} is read`); // which is of the configuration
    const said = await lm.tuningMemoryOf(file, options);
    file.read = read;
    const tuning = await lm.openTuning(file, options), { program } = tuning.model;
    t.after(() => tuning.close());
    assert.equal(said, program.plan.buffers.reduce((sum, { bytes }) => sum + bytes, 0));
    // The weights, and the adapter with the two moments of Adam, are of that.
    const adapter = program.plan.slots.filter(({ name, role }) => role === 'param' && /lora_/.test(name)).reduce((sum, { bytes }) => sum + bytes, 0);
    const { weights, cache } = await lm.memoryOf(file, { on: 'cpu', context: 32, unpack: options.unpack });
    assert.ok(adapter > 0 && said > weights + cache + 3 * adapter, `${said}, with ${weights} of weights, ${cache} of caches and ${adapter} of the adapter`);
  }
  await refused('limit', /rank/, () => lm.tuningMemoryOf(file, { rank: 0 }));
});

test('on WebGPU, with packed weights, the tokens are the same', async (t) => {
  const { gpu, close } = await openDawn(), { prompt, greedy } = expectedOf('llama');
  t.after(close);
  await init({ gpu, compileWorker: false, worker: false, cache });
  const model = await lm.openModel(await lm.openGGUF(bytesOf('llama/model.gguf')), { on: 'gpu', context: 40 });
  t.after(() => model.close());
  assert.equal(model.program.device.name, 'webgpu');
  assert.ok(model.program.plan.slots.some(({ role, dtype }) => role === 'param' && dtype === 'u8'));
  assert.equal(await lm.generate(model, numbers, prompt, { maxTokens: greedy.length }).text(), numbers.decode(greedy));
});

test('a GPU that is lost in the middle of a text ends it with an error', async (t) => {
  const { gpu, close } = await openDawn(), devices = [], { prompt } = expectedOf('llama');
  t.after(close);
  const requestAdapter = async (options) => {
    const adapter = await gpu.requestAdapter(options), request = adapter.requestDevice.bind(adapter);
    return Object.defineProperty(adapter, 'requestDevice', { value: async (descriptor) => devices[devices.push(await request(descriptor)) - 1] });
  };
  await init({ gpu: { requestAdapter }, compileWorker: false, worker: false, cache });
  for (const temperature of [0, 1]) {
    const model = await lm.openModel(await lm.openGGUF(bytesOf('llama/model.gguf')), { on: 'gpu', context: 60 });
    t.after(() => model.close());
    const made = lm.generate(model, numbers, prompt, { temperature, maxTokens: 30 }), tokens = [];
    await refused('lost', /lost/, async () => {
      for await (const { token } of made) if (tokens.push(token) === 3) devices.at(-1).destroy();
    });
    assert.ok(tokens.length >= 3 && tokens.length < 30 && made.finish === undefined, `${tokens.length} tokens, ${made.finish}`);
    // The model is not taken for busy, nor what was under way for cached.
    await refused('lost', /lost/, () => lm.generate(model, numbers, prompt, { maxTokens: 2 }).text());
    assert.deepEqual([...model.cached], []);
  }
});

test('experts that stay packed on a GPU', async (t) => {
  const { gpu, close } = await openDawn();
  t.after(close);
  await init({ gpu, compileWorker: false, worker: false, cache });
  await holdMixture(t, 'gpu');
});

test('kernels use subgroups where all have 32 threads', async (t) => {
  const real = openGPU({ backend: 'null' }), file = await lm.openGGUF(bytesOf('llama/model.gguf'));
  for (const [subgroupMinSize, features] of [[32, ['subgroups', 'subgroup-size-control']], [16, []]]) {
    const requestAdapter = async () => Object.defineProperty(await real.requestAdapter(), 'info', { value: { vendor: 'test', subgroupMinSize, subgroupMaxSize: 32 } });
    await init({ gpu: { requestAdapter }, compileWorker: false, worker: false, cache });
    const model = await lm.openModel(file, { on: 'gpu', context: 40 });
    t.after(() => model.close());
    assert.deepEqual(model.program.plan.requires.features, features);
  }
});
