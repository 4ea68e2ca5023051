// Several texts at once, and tokens that are proposed and verified: the results are those of one text at a time.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { init, RlxError } from '../dist/index.js';
import { generate, memoryOf, openGGUF, openModel } from '../dist/lm.js';
import { decodeSafetensors } from '../dist/safetensors.js';
import { openDawn } from './rig/dawn.mjs';

const folder = new URL('../../native/lm/testdata/', import.meta.url);
const fileOf = (name) => openGGUF(readFileSync(new URL(`${name}/model.gguf`, folder)));
const { prompt: { data: prompt }, greedy: { data: greedy } } = decodeSafetensors(readFileSync(new URL('llama/expected.safetensors', folder))).tensors;

/** Plans by what they are made from: several tests open the same model. */
const cache = new Map();

before(() => init({ compileWorker: false, worker: false, cache }));

/** A tokenizer whose texts are numbers. */
const numbers = {
  encode: (text) => Int32Array.from(text.trim().split(' '), Number), decode: (ids) => [...ids].map((id) => ` ${id}`).join(''),
  stream: () => ({ push: (id) => ` ${id}`, end: () => '' }), size: 64, eos: [2], quote: (text) => text, id: () => undefined, token: (id) => String(id), special: () => false,
};

/** Even tokens where the result has an even number of them, and odd ones otherwise. */
const alternating = (result, allowed) => allowed.fill(result.length % 2 ? 0xaaaaaaaa : 0x55555555);

/** Requests of all kinds: prompts that are shorter than a chunk, and longer than several. */
const requests = [
  [prompt, {}], [[7], { maxTokens: 9 }], [prompt, { temperature: 1.3, seed: 5 }], [[...prompt, 9, 8, 7, 6, 5, 4, 3], { temperature: 0.8, topK: 7, seed: 9 }],
  [[5, 6, 5, 6, 5, 6, 5], { maxTokens: 20 }], [prompt, { repetition: 1.4, presence: 0.5, frequency: 0.2 }], [[3, 4], { bias: { 40: 2, 9: -Infinity }, maxTokens: 12 }],
  [[9, 9, 9], { allow: alternating, maxTokens: 10 }], [prompt, { stop: [' 4'], temperature: 2, seed: 3 }], [[11, 12], { allow: alternating, temperature: 1.5, minP: 0.05, seed: 1, maxTokens: 8 }],
];

const resultOf = async (model, [given, options], tokenizer = numbers) => {
  const made = generate(model, tokenizer, given, { maxTokens: 24, ...options }), tokens = [];
  let text = '';
  for await (const piece of made) {
    tokens.push(piece.token);
    text += piece.text;
  }
  return { tokens, text, finish: made.finish, stats: made.stats };
};
const same = ({ tokens, text, finish }) => ({ tokens, text, finish });
const refused = (kind, message, run) => assert.rejects(run, (error) => error instanceof RlxError && error.kind === kind && message.test(error.message) || assert.fail(`${error}`));

/** Ends a model after the first token of five requests, of which all end with an error of a kind. */
async function endsAll(model, end, kind) {
  const first = generate(model, numbers, prompt, { repetition: 1.1, maxTokens: 40 })[Symbol.asyncIterator](), started = first.next();
  const rest = [1, 2, 3, 4].map((seed) => resultOf(model, [prompt, { repetition: 1.1, temperature: 1, seed, maxTokens: 40 }], { ...numbers, eos: [] }));
  const failed = rest.map((one) => refused(kind, new RegExp(kind), () => one));
  await started;
  end();
  await refused(kind, new RegExp(kind), async () => { while (!(await first.next()).done); });
  await Promise.all(failed);
}

describe('on the CPU', () => {
  let file, want;
  before(async () => {
    file = await fileOf('llama');
    const one = await openModel(file, { chunk: 8, on: 'cpu' });
    want = [];
    for (const request of requests) want.push(same(await resultOf(one, request)));
    one.close();
    assert.deepEqual(want[0].tokens.slice(0, greedy.length), [...greedy].slice(0, 24));
  });

  for (const options of [{ slots: 1 }, { slots: 3 }, { slots: 10, chunk: 3 }, { draft: 4 }, { slots: 2, draft: 3, chunk: 64 }]) {
    test(`results with ${JSON.stringify(options)} are those of one text at a time`, async (t) => {
      const model = await openModel(file, { chunk: 8, on: 'cpu', ...options });
      t.after(() => model.close());
      for (let round = 0; round < 2; round++) {
        const found = await Promise.all(requests.map((request) => resultOf(model, request)));
        assert.deepEqual(found.map(same), want);
        const drafted = found.map(({ stats }) => stats.drafted), mayDraft = requests.map(([, { repetition, allow }]) => !repetition && !allow);
        drafted.forEach((n, i) => assert.ok(n === 0 || options.draft && mayDraft[i], `${n} of request ${i}`));
        assert.equal(drafted.some((n) => n > 0), !!options.draft);
        if (round === 1) assert.ok(found.some(({ stats }) => stats.reused > 0), 'keys and values of earlier requests');
      }
    });
  }

  for (const [what, name, chunk] of [['the same model', 'llama', 8], ['the same, in chunks of one', 'llama', 1], ['another model', 'qwen2', 8]]) {
    test(`tokens that ${what} proposes`, async (t) => {
      const draftModel = await fileOf(name), model = await openModel(file, { chunk, on: 'cpu', slots: 2, draftModel });
      t.after(() => model.close());
      const found = await Promise.all(requests.map((request) => resultOf(model, request)));
      assert.deepEqual(found.map(same), want);
      const { drafted, accepted } = found[0].stats;
      assert.ok(drafted > 0 && accepted <= drafted && (name !== 'llama' || accepted === drafted), `${accepted} of ${drafted}`);
      if (name === 'llama') assert.ok(accepted >= 0.7 * found[0].tokens.length, `${accepted} of ${found[0].tokens.length} tokens`);
    });
  }

  for (const name of ['gpt2', 'mistral', 'mixtral', 'gemma']) {
    test(`the texts of ${name}, with places that are learned, windows, experts or a scale`, async (t) => {
      const other = decodeSafetensors(readFileSync(new URL(`${name}/expected.safetensors`, folder))).tensors, model = await openModel(await fileOf(name), { chunk: 5, on: 'cpu', slots: 3, draft: 2 });
      t.after(() => model.close());
      const tokenizer = { ...numbers, eos: [] }, wanted = [...other.greedy.data].slice(0, 12);
      const found = await Promise.all([1, 2, 3, 4].map((i) => resultOf(model, [[...other.prompt.data], { maxTokens: i === 3 ? 4 : 12, ...i === 2 && { presence: 0, frequency: 1e-9 } }], tokenizer)));
      found.forEach(({ tokens }, i) => assert.deepEqual(tokens, wanted.slice(0, i === 2 ? 4 : 12)));
    });
  }

  test('the memory of slots and of a draft is known', async () => {
    const of = (options) => memoryOf(file, { on: 'cpu', context: 32, ...options }), one = await of({}), four = await of({ slots: 4 }), draftModel = await fileOf('qwen2'), more = await memoryOf(draftModel, { on: 'cpu', context: 32, slots: 4 });
    assert.deepEqual(four, { weights: one.weights, cache: 4 * one.cache });
    assert.deepEqual(await of({ slots: 4, draftModel }), { weights: one.weights + more.weights, cache: four.cache + more.cache });
    const model = await openModel(file, { on: 'cpu', context: 32, slots: 4 });
    assert.equal(model.program.plan.slots.filter(({ name }) => /_cache$/.test(name)).reduce((sum, { bytes }) => sum + bytes, 0), four.cache);
    model.close();
  });

  test('a request that ends early makes room, and one that nobody reads does not hold up others', async (t) => {
    const model = await openModel(file, { chunk: 8, on: 'cpu', slots: 2 });
    t.after(() => model.close());
    const idle = generate(model, numbers, prompt)[Symbol.asyncIterator]();
    assert.equal((await idle.next()).value.token, greedy[0]);
    for (let i = 0; i < 3; i++) assert.deepEqual(same(await resultOf(model, requests[i])), want[i]);
    for await (const { token } of generate(model, numbers, prompt)) {
      assert.equal(token, greedy[0]);
      break;
    }
    const stop = new AbortController(), waiting = [0, 1, 2].map(() => generate(model, numbers, prompt, { signal: stop.signal }).text());
    stop.abort();
    for (const one of waiting) await refused('abort', /aborted/, () => one);
    await refused('abort', /aborted/, () => generate(model, numbers, prompt, { signal: stop.signal }).text());
    assert.equal((await idle.next()).value.token, greedy[1]);
    await idle.return();
    assert.deepEqual((await Promise.all(requests.slice(0, 4).map((request) => resultOf(model, request)))).map(same), want.slice(0, 4));
  });

  test('an error of a function of one request is that of this one', async (t) => {
    const model = await openModel(file, { chunk: 8, on: 'cpu', slots: 2 });
    t.after(() => model.close());
    const failing = (at) => generate(model, numbers, prompt, { allow: (result, allowed) => { if (result.length === at) throw new RangeError('mine'); allowed.fill(-1); } }).text();
    const [first, second, third, fourth, fifth] = await Promise.allSettled([failing(0), resultOf(model, requests[0]), failing(3), resultOf(model, requests[7]), generate(model, numbers, prompt, { allow() {} }).text()]);
    assert.deepEqual([first.reason.message, third.reason.message, fifth.reason.kind], ['mine', 'mine', 'attr']);
    assert.deepEqual([same(second.value), same(fourth.value)], [want[0], want[7]]);
  });

  test('an error of a tokenizer of one request is that of this one, and options are those of the call', async (t) => {
    const model = await openModel(file, { chunk: 8, on: 'cpu', slots: 2 }), fails = () => { throw new RangeError('mine'); }, options = { temperature: 1.3, seed: 5 };
    t.after(() => model.close());
    const all = [resultOf(model, requests[0], { ...numbers, stream: fails }), resultOf(model, requests[0]), resultOf(model, requests[0], { ...numbers, stream: () => ({ push: fails, end: fails }) }), resultOf(model, [prompt, options])];
    const third = generate(model, numbers, prompt, options), settled = Promise.allSettled(all);
    options.temperature = -1;
    const [first, second, ...rest] = await settled;
    assert.deepEqual([first.reason.message, rest[0].reason.message], ['mine', 'mine']);
    assert.deepEqual([same(second.value), same(rest[1].value)], [want[0], want[2]]);
    await third.text();
  });

  for (const options of [{}, { slots: 2 }]) {
    test(`a result with ${JSON.stringify(options)} ends where it is aborted, though more is computed, and is read once`, async (t) => {
      const model = await openModel(file, { chunk: 8, on: 'cpu', ...options }), stop = new AbortController();
      t.after(() => model.close());
      const made = generate(model, numbers, prompt, { maxTokens: 6, signal: stop.signal }), pieces = made[Symbol.asyncIterator]();
      await pieces.next();
      if (model.engine) while (made.stats.tokens < 6) await new Promise((later) => { setTimeout(later, 1); });
      assert.equal(made.finish, undefined, 'five pieces are not read');
      stop.abort();
      await refused('abort', /aborted/, () => pieces.next());
      assert.equal(made.finish, undefined);
      const once = generate(model, numbers, prompt, { maxTokens: 2 });
      assert.equal(await once.text(), want[0].text.split(' ').slice(0, 3).join(' '));
      assert.equal(once.finish, 'length');
      await refused('closed', /was read before/, () => once.text());
      const ended = new AbortController(), whole = generate(model, numbers, prompt, { maxTokens: 1, signal: ended.signal })[Symbol.asyncIterator]();
      assert.equal((await whole.next()).value.token, greedy[0]);
      ended.abort();
      assert.equal((await whole.next()).done, true, 'one that has ended is not aborted');
    });
  }

  test('a model that is closed ends all texts, and refuses further ones', async (t) => {
    const model = await openModel(file, { on: 'cpu', slots: 2, draftModel: file });
    t.after(() => model.close());
    await endsAll(model, () => model.close(), 'closed');
    await refused('closed', /closed/, () => resultOf(model, requests[0]));
  });

  test('options out of range are refused', async () => {
    const of = (options) => openModel(file, { on: 'cpu', ...options });
    await refused('limit', /slots/, () => of({ slots: 0 }));
    await refused('limit', /slots/, () => of({ slots: 1.5 }));
    await refused('limit', /draft/, () => of({ draft: -1 }));
    await refused('limit', /draft/, () => of({ draft: 0, draftModel: file }));
    await refused('limit', /draft/, () => of({ draft: 40, context: 40 }));
    await refused('attr', /a file of a model/, () => of({ draftModel: {} }));
    const model = await of({ slots: 2 });
    await refused('limit', /64 tokens.*context, 64/, async () => resultOf(model, [Array(64).fill(1), {}]));
    model.close();
  });
});

test('on WebGPU', async (t) => {
  const { gpu, close } = await openDawn(), devices = [], file = await fileOf('llama');
  t.after(close);
  const requestAdapter = async (options) => {
    const adapter = await gpu.requestAdapter(options), request = adapter.requestDevice.bind(adapter);
    return Object.defineProperty(adapter, 'requestDevice', { value: async (descriptor) => devices[devices.push(await request(descriptor)) - 1] });
  };
  await init({ gpu: { requestAdapter }, compileWorker: false, worker: false, cache });
  const one = await openModel(file, { on: 'gpu', chunk: 8 }), want = [];
  for (const request of requests) want.push(same(await resultOf(one, request)));
  one.close();
  const model = await openModel(file, { on: 'gpu', chunk: 8, slots: 3, draft: 2 });
  t.after(() => model.close());
  assert.deepEqual((await Promise.all(requests.map((request) => resultOf(model, request)))).map(same), want);
  await t.test('a device that is lost ends all texts', async () => {
    await endsAll(model, () => devices.at(-1).destroy(), 'lost');
    await refused('lost', /lost/, () => resultOf(model, requests[0]));
  });
});
