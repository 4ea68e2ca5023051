// Grammars: the tokens that they allow are those of the Go package native/lm/generate.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { before, describe, test } from 'node:test';
import { callBegin, callEnd, Vocabulary } from '../dist/grammar.js';
import { init, RlxError } from '../dist/index.js';
import { generate, openGGUF, openModel, readTokenizer } from '../dist/lm.js';

before(() => init({ compileWorker: false, worker: false }));

const table = JSON.parse(readFileSync(new URL('../../native/lm/generate/testdata/grammar.json', import.meta.url), 'utf8'));
const schemaOf = (text) => text === '' ? undefined : text;

/** A tokenizer of given texts; the last token ends a text. */
function tokenizerOf(texts) {
  return {
    size: texts.length, eos: [texts.length - 1], encode: () => Int32Array.of(0), decode: (ids) => ids.map((id) => texts[id]).join(''),
    token: (id) => texts[id], id: (text) => texts.indexOf(text), special: (id) => texts[id] === '', stream: () => ({ push: (id) => texts[id], end: () => '' }),
  };
}

/** A token for each character, some longer ones, and the end: those of Go's test. */
const texts = [
  'é', '{"', '":', '", "', ']}', 'true', 'tru', 'alse', '\\u00', ' [', '\n    ', '}}', '"name": "', 'x"}',
  ...Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)), '\n', '',
];
const end = texts.length - 1, words = Math.ceil(texts.length / 32), vocabulary = new Vocabulary(tokenizerOf(texts));

/** The tokens of bits. */
const idsOf = (bits) => [...texts.keys()].filter((id) => bits[id >> 5] >>> id & 1);

/** A hash of what a grammar allows within a text, character by character; undefined if it lacks it. FNV-1a, by bytes. */
function masksOf(grammar, text) {
  const allow = grammar.allow(), result = [];
  let hash = 0x811c9dc5;
  for (const id of [...Array.from(text, (c) => texts.indexOf(c)), end]) {
    const bits = new Uint32Array(words);
    allow(result, bits);
    for (const byte of new Uint8Array(bits.buffer)) hash = Math.imul(hash ^ byte, 0x01000193);
    if (!(bits[id >> 5] >>> id & 1)) return undefined;
    result.push(id);
  }
  return hash >>> 0;
}

function check(grammar, { yes, no }) {
  for (const [text, masks] of Object.entries(yes)) assert.equal(masksOf(grammar, text), masks, `what is allowed within ${text}`);
  for (const text of no) assert.equal(masksOf(grammar, text), undefined, `it has ${text}`);
}

describe('the texts of a grammar, and what it allows within them, are those of Go', () => {
  for (const { schema, ...of } of table.schemas) {
    test(schema || 'any object', () => {
      check(vocabulary.json(schemaOf(schema)), of);
      if (schema) check(vocabulary.json(JSON.parse(schema)), of);
    });
  }
  for (const { required, once, ...of } of table.calls) test(`calls: required ${required}, once ${once}`, () => check(vocabulary.calls(table.functions, { required, once }), of));
  test('the marks of calls', () => assert.deepEqual([callBegin, callEnd], ['<tool_call>', '</tool_call>']));
});

const refused = (kind, message, run) => assert.throws(run, (error) => error instanceof RlxError && error.kind === kind && message.test(error.message) || assert.fail(`${error}`));

test('schemas that are refused say why', () => {
  const quoted = (text) => new RegExp(text.replace(/^the type (\[\]|3)$/, 'the type').replace(/[$.*+?[\]()|/]/g, '\\$&'));
  for (const { schema, want } of table.bad) refused('attr', quoted(want), () => vocabulary.json(schema));
  refused('attr', /more than 32768 symbols/, () => vocabulary.json({ enum: ['a'.repeat(1 << 16)] }));
  refused('attr', /malformed/, () => vocabulary.json('{'));
  refused('attr', /which is no JSON/, () => vocabulary.json({ const: 3n }));
  refused('attr', /which is no JSON/, () => vocabulary.json({ const: undefined }));
  refused('attr', /required is/, () => vocabulary.json({ type: 'object', required: 3 }));
  refused('attr', /enum is a list/, () => vocabulary.json({ enum: 3 }));
  for (const none of [3, null]) refused('attr', /are lists/, () => vocabulary.json({ anyOf: none }));
  refused('attr', /whole numbers, not null/, () => vocabulary.json({ type: 'array', maxItems: null }));
  refused('attr', /deeper than 200/, () => vocabulary.json('{"items":'.repeat(300) + 'true' + '}'.repeat(300)));
  const circle = {};
  circle.items = circle;
  refused('attr', /deeper than 200/, () => vocabulary.json(circle));
  for (const none of [undefined, null, []]) refused('missing', /no functions/, () => vocabulary.calls(none));
  refused('attr', /"pattern"/, () => vocabulary.calls([{ name: 'f', parameters: { pattern: 'a' } }]));
  refused('attr', /a Tokenizer/, () => new Vocabulary());
  refused('attr', /an object/, () => vocabulary.json(3));
});

test('the texts of tokens are those within a text, and parts of characters are known', () => {
  const bytes = [...Array(256).keys()].map((b) => `<0x${b.toString(16).toUpperCase().padStart(2, '0')}>`), vocab = ['▁', 'a', '▁a', ...bytes, '</s>'];
  const tokenizer = readTokenizer({
    added_tokens: [{ id: vocab.length - 1, content: '</s>', special: true }],
    decoder: { type: 'Sequence', decoders: [{ type: 'Replace', pattern: { String: '▁' }, content: ' ' }, { type: 'ByteFallback' }, { type: 'Fuse' }, { type: 'Strip', content: ' ', start: 1, stop: 0 }] },
    model: { type: 'BPE', byte_fallback: true, vocab: Object.fromEntries(vocab.map((text, id) => [text, id])), merges: [['▁', 'a']] },
  });
  const made = new Vocabulary(tokenizer);
  assert.deepEqual([0, 1, 2, 3 + 0x41, 3 + 0xc3, vocab.length - 1].map((id) => made.text(id)), [' ', 'a', ' a', 'A', '\ufffd', '']);
});

test('a token that ends in a part of a character is text of strings alone, and a mark of byte order is text', () => {
  const vocab = ['Ġ', 'ĠâĢ', 'Ķ', '"', 'ï»¿', ...Array.from({ length: 40 }, (_, i) => String.fromCharCode(97 + i % 26).repeat(1 + i / 26)), '</s>'];
  const made = new Vocabulary(readTokenizer({
    added_tokens: [{ id: vocab.length - 1, content: '</s>', special: true }], decoder: { type: 'ByteLevel' },
    model: { type: 'BPE', vocab: Object.fromEntries(vocab.map((text, id) => [text, id])), merges: [] },
  }, { eos: ['</s>'] }));
  assert.deepEqual([0, 1, 2, 3, 4, 5].map((id) => made.text(id)), [' ', ' \ufffd', '\ufffd', '"', '\ufeff', 'a']);
  const grammar = made.json({ type: 'string' });
  for (const words of [2, 1, 3]) { // of models whose logits differ in number, too
    const after = (...result) => {
      const bits = new Uint32Array(words);
      grammar.allow()(result, bits);
      return [...vocab.keys()].filter((id) => bits[id >> 5] >>> id & 1);
    };
    assert.deepEqual(after(), [0, 3]);
    assert.deepEqual(after(3), [...vocab.keys()].filter((id) => id < Math.min(32 * words, vocab.length - 1)));
    assert.deepEqual(after(3, 1, 2, 3), words > 1 ? [vocab.length - 1] : []);
  }
});

describe('a model that is held to a grammar', () => {
  const folder = new URL('../../native/lm/testdata/llama/', import.meta.url);
  // 64 tokens of a text that the model was not trained for.
  const few = [...'{}[]":,.0123456789abcdefghijklmnopqrstuvwxyz-', '{"', '":', 'true', 'false', 'null', '"a"', '"b"', '"]', '"}', '1,', 'x"', 'e', 'E+', ''];
  while (few.length < 64) few.splice(-1, 0, '~'.repeat(few.length));
  const tokenizer = tokenizerOf(few);
  const schema = { type: 'object', properties: { a: { type: 'array', items: { type: 'boolean' }, maxItems: 3 }, b: { enum: ['x', 'yes'] } }, required: ['a', 'b'] };

  for (const options of [{}, { slots: 2 }]) {
    test(`ends after a whole value where no token ends a text, with ${JSON.stringify(options)}`, async (t) => {
      const model = await openModel(await openGGUF(readFileSync(new URL('model.gguf', folder))), { chunk: 8, on: 'cpu', ...options }), endless = { ...tokenizer, eos: [] };
      t.after(() => model.close());
      // The last character may begin a text that ends the result, and is not held back for good.
      const made = generate(model, endless, [1, 2, 3], { maxTokens: 60, stop: ['}~'], allow: new Vocabulary(endless).json(schema).allow() }), text = await made.text();
      assert.deepEqual(Object.keys(JSON.parse(text)), ['a', 'b']);
      assert.equal(made.finish, 'stop');
    });
  }

  test('writes what the schema describes, greedy and drawn, and is free afterwards', async (t) => {
    const model = await openModel(await openGGUF(readFileSync(new URL('model.gguf', folder))), { chunk: 8, on: 'cpu' });
    t.after(() => model.close());
    const grammar = new Vocabulary(tokenizer).json(schema);
    const plain = await generate(model, tokenizer, [1, 2, 3], { maxTokens: 8 }).text();
    for (const options of [{}, ...[1, 2, 3].map((seed) => ({ temperature: 2, seed }))]) {
      const text = await generate(model, tokenizer, [1, 2, 3], { ...options, maxTokens: 60, allow: grammar.allow() }).text(), { a, b, ...rest } = JSON.parse(text);
      assert.ok(a.length <= 3 && a.every((one) => typeof one === 'boolean') && ['x', 'yes'].includes(b) && Object.keys(rest).length === 0, text);
    }
    assert.equal(await generate(model, tokenizer, [1, 2, 3], { maxTokens: 8 }).text(), plain, 'the next request has no grammar');
    const of = (allow) => generate(model, tokenizer, [1, 2, 3], { maxTokens: 3, allow }).text();
    await assert.rejects(of(() => {}), { kind: 'attr', message: /a token is left/ });
    await assert.rejects(async () => of(3), { kind: 'attr', message: /allow is .*a function/ });
    await assert.rejects(of(() => { throw new RangeError('mine'); }), { message: 'mine' });
    assert.equal(await generate(model, tokenizer, [1, 2, 3], { maxTokens: 8 }).text(), plain, 'an error leaves the model usable');
  });
});
