// Tokenizers: the ids and texts of the tokenizers library of Hugging Face and of SentencePiece, which the Go package stores.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { readTokenizer, tokenizerOf } from '../dist/lm.js';
import { randomIds, randomString } from './rig/strings.mjs';

const testdata = (name) => readFileSync(new URL(`../../ir/format/tokenizer/testdata/${name}`, import.meta.url), 'utf8');
const kinds = ['gpt2', 'llama3', 'qwen2', 'gpt4o', 'deepseek', 'llama2', 'metaspace', 'clip', 'unigram', 'unigrambytes', 'bert', 'wordpiece'];
const open = (kind) => readTokenizer(testdata(`${kind}.json`));

/** By kind, a row for each block of 100 strings with hashes of their ids, of the texts of these, and of the texts of random ids. */
const rows = {};
for (const line of testdata('hashes.txt').trim().split('\n')) {
  const [kind, ...hashes] = line.split(' ');
  (rows[kind] ??= []).push(hashes);
}
const blockSize = 100;

/** FNV-1a of 32 bits. */
const hash = (bytes, from = 0x811c9dc5) => bytes.reduce((h, b) => Math.imul(h ^ b, 16777619) >>> 0, from);
const hex = (h) => h.toString(16).padStart(8, '0');

/** The hashes of a block. */
function hashesOf(t, block, options = { special: true, template: true }) {
  let ids = hash([]), texts = ids, others = ids;
  for (let i = block * blockSize; i < (block + 1) * blockSize; i++) {
    const encoded = t.encode(randomString(i), options);
    ids = hash(new Uint8Array(Int32Array.of(...encoded, -1).buffer), ids);
    texts = hash([...Buffer.from(t.decode(encoded)), 0xff], texts);
    others = hash([...Buffer.from(t.decode(randomIds(i, t.size), { special: true })), 0xff], others);
  }
  return [ids, texts, others].map(hex);
}

// All of 10,000 strings: 8 s for 19 kinds.
const blocks = Array.from({ length: 100 }, (_, i) => i);

describe('tokenizer.json: ids and texts of tokenizers 0.23.3', () => {
  for (const kind of kinds) {
    test(kind, () => {
      const t = open(kind);
      assert.equal(rows[kind].length, 100);
      for (const block of blocks) assert.deepEqual(hashesOf(t, block), rows[kind][block], `block ${block}`);
    });
  }
});

describe('small tokenizers of tokenizers 0.23.3', () => {
  for (const { what, tokenizer, rows: all } of JSON.parse(testdata('rules.json'))) {
    test(what, () => {
      const t = readTokenizer(tokenizer);
      for (const { text, ids, decoded, plain } of all) {
        assert.deepEqual([...t.encode(text, { special: true })], ids, text);
        assert.deepEqual([t.decode(ids, { special: true }), t.decode(ids)], [decoded, plain], text);
      }
    });
  }
});

/** The metadata by which GGUF has the tokenizer of a file. */
function metadataOf(kind, pre) {
  const { added_tokens: added, model: { vocab, merges } } = JSON.parse(testdata(`${kind}.json`)), tokens = [];
  for (const [token, id] of Object.entries(vocab)) tokens[id] = token;
  const types = Int32Array.from(tokens, () => 1), inWords = merges ? tokens : tokens.map((token, id) => token.startsWith('##') ? token.slice(2) : added.some((a) => a.id === id) ? token : `▁${token}`);
  for (const { id } of added) types[id] = 3;
  types[0] = 2;
  return metadata({
    model: merges ? 'gpt2' : 'bert', tokens: inWords, token_type: types, bos_token_id: 1, cls_token_id: 1, seperator_token_id: 2, unknown_token_id: 0,
    ...merges && { merges: merges.map((both) => both.join(' ')), pre },
  });
}
const metadata = (values) => ({ metadata: new Map(Object.entries(values).map(([key, value]) => [`tokenizer.ggml.${key}`, value])) });

describe('the metadata of GGUF: the same ids and texts', () => {
  for (const [kind, pre] of Object.entries({ llama3: 'llama-bpe', qwen2: 'qwen2', gpt4o: 'gpt-4o', deepseek: 'deepseek-v3', bert: '' })) {
    test(kind, () => {
      const t = tokenizerOf(metadataOf(kind, pre));
      for (const block of blocks) assert.deepEqual(hashesOf(t, block), rows[kind][block], `block ${block}`);
    });
  }
});

test("BERT's marks around a text, by their own names or, as newer files have them, by those of other models", () => {
  const file = metadataOf('bert', ''), marks = ['cls', 'seperator'].map((name) => file.metadata.get(`tokenizer.ggml.${name}_token_id`));
  const around = (t) => [...t.encode('the', { template: true })], want = around(tokenizerOf(file));
  assert.deepEqual([want[0], want.at(-1), want.length > 2], [...marks, true]);
  file.metadata.delete('tokenizer.ggml.cls_token_id');
  file.metadata.delete('tokenizer.ggml.seperator_token_id');
  ['bos', 'eos'].forEach((name, i) => file.metadata.set(`tokenizer.ggml.${name}_token_id`, marks[i]));
  assert.deepEqual(around(tokenizerOf(file)), want);
});

describe('models of SentencePiece 0.2.3', () => {
  for (const [kind, model] of [['spbpe', 'llama'], ['spunigram', 't5']]) {
    test(kind, () => {
      const { tokens, scores, types } = JSON.parse(testdata(`${kind}.json`));
      const t = tokenizerOf(metadata({ model, tokens, scores: Float32Array.from(scores), token_type: Int32Array.from(types), bos_token_id: 1, eos_token_id: 2 }));
      for (const block of blocks) {
        const [ids, texts] = hashesOf(t, block, {}), [wantIds, wantTexts] = rows[kind][block];
        assert.equal(ids, wantIds, `block ${block}`);
        if (model === 'llama') assert.equal(texts, wantTexts, `block ${block}`); // SentencePiece decodes an unknown token as a special mark
      }
      const around = t.encode('a', { template: true });
      assert.deepEqual([around[0] === 1, around.at(-1) === 2], [model === 'llama', model === 't5']);
      assert.deepEqual([t.encode('a', { bos: true })[0] === 1, t.bos, t.eos], [model === 'llama', 1, [2]]);
    });
  }
});

test('a stream yields what decoding at once does, and divides no character', () => {
  for (const kind of kinds) {
    const t = open(kind);
    for (let i = 0; i < 40; i++) {
      const ids = t.encode(randomString(i), { special: true, template: true }), options = { special: i % 2 === 1 };
      const written = (list) => {
        const s = t.stream(options);
        const parts = [...Array.from(list, (id) => s.push(id)), s.end()];
        for (const part of parts) assert.ok(part.isWellFormed?.() ?? !/\p{Cs}/u.test(part));
        return parts.join('');
      };
      assert.equal(written(ids), t.decode(ids, options), `${kind}: ${JSON.stringify(randomString(i))}`);
      written(randomIds(i, t.size)); // bytes that are no UTF-8, too
    }
  }
});

test('a character comes with its last byte, and not later', () => {
  for (const kind of ['llama3', 'llama2']) {
    const t = open(kind), ids = t.encode('a🙂𐍈z'), s = t.stream();
    let written = '';
    ids.forEach((id, i) => {
      written += s.push(id);
      const whole = t.decode(ids.slice(0, i + 1)).replace(/\ufffd+$/, '');
      assert.ok(written.length >= whole.length, `${kind}: after ${i + 1} tokens ${written}, not ${whole}`);
    });
  }
});

test('text of a user forges no special tokens', () => {
  for (const kind of kinds) {
    const t = open(kind), unk = t.id('<unk>');
    for (const text of ['<|end|>', 'a </s> b', 'x[MASK]y <s>', '<</s></s>', 'half </', '<|', '[mask] [MASK']) {
      const plain = t.encode(text), isForged = (id) => t.special(id) && id !== unk && !t.token(id).startsWith('<0x');
      assert.ok(![...plain].some(isForged), `${kind}: ${text}`);
      // A part of a larger text, in which special tokens are tokens.
      const around = t.encode(`<|end|>${t.quote(text)}<|end|>`, { special: true, quoted: true });
      assert.equal([...around].filter((id) => id === t.id('<|end|>')).length, 2, `${kind}: ${text}: ${around}`);
      assert.ok(![...around].some((id) => isForged(id) && id !== t.id('<|end|>')), `${kind}: ${text}: ${around}`);
    }
    for (const plain of ['a < b', 'Hello, world', '日本']) assert.equal(t.quote(plain), plain);
    assert.deepEqual(t.encode(t.quote('1 <'), { quoted: true }), t.encode('1 <'));
    assert.deepEqual(t.encode(t.quote('a\ufdd0b'), { quoted: true }), t.encode('a\ufffdb'));
  }
  const t = open('llama3'); // two texts of a user whose concatenation is a special token
  assert.ok(![...t.encode(t.quote('<|en') + t.quote('d|>'), { special: true, quoted: true })].includes(t.id('<|end|>')));
});

const small = (model, parts = {}) => ({ model, ...parts });
const bpe = (model, parts) => small({ type: 'BPE', ...model }, parts);
const ab = { vocab: { a: 0, b: 1, ab: 2 }, merges: ['a b'] };

test('long words take steps in proportion to their length, but for a logarithm', () => {
  const looks = (n) => {
    const t = readTokenizer(bpe({ vocab: { a: 0, aa: 1, aaaa: 2 }, merges: ['a a', 'aa aa'] })), { model } = t.parts;
    t.encode('a'.repeat(n));
    return model.looks;
  };
  const few = looks(1 << 10), many = looks(1 << 16);
  assert.ok(few > 1 << 10 && many < 100 * few, `${few} and ${many} looks`);
  // What splits, and what finds added tokens, too: a square of these lengths would take minutes.
  for (const kind of kinds) {
    const t = open(kind);
    for (const unit of [' ', '\n', '中', '!', '▁', '\u0301', '<|e']) t.encode(unit.repeat(1 << 13));
  }
});

test('the cache of words is bounded', () => {
  const t = readTokenizer(bpe(ab, { pre_tokenizer: { type: 'Whitespace' }, model: { type: 'WordLevel', vocab: { a: 0 }, unk_token: 'a' } }));
  t.encode(Array.from({ length: 40000 }, (_, i) => `w${i}`).join(' ') + ' ' + 'x'.repeat(1000));
  assert.ok(t.words.size <= 1 << 14 && ![...t.words.keys()].some((word) => word.length > 64));
});

describe('damaged files are refused', () => {
  const nested = (depth) => Array.from({ length: depth }).reduce((inner) => ({ type: 'Sequence', normalizers: inner ? [inner] : [] }), undefined);
  const split = (regex) => ({ pre_tokenizer: { type: 'Split', pattern: { Regex: regex }, behavior: 'Isolated' } });
  const rows = [
    ['', 'syntax', /JSON/], ['[]', 'syntax', /Array/], ['{}', 'syntax', /no model/],
    [bpe({}), 'syntax', /model\.vocab/], [small({ type: 'Neural', vocab: {} }), 'unsupported', /Neural/],
    [bpe({ vocab: { a: -1 }, merges: [] }), 'syntax', /-1/], [bpe({ vocab: { a: 2e9 }, merges: [] }), 'syntax', /2000000000/],
    [bpe({ vocab: { a: 0, b: 0 }, merges: [] }), 'syntax', /same id/], [bpe({ vocab: { a: 'x' }, merges: [] }), 'syntax', /id x/],
    [bpe({ vocab: { a: 0 }, merges: ['a a'] }), 'syntax', /lacks "aa"/], [bpe({ vocab: { a: 0 }, merges: ['a'] }), 'syntax', /merge/], [bpe({ vocab: { a: 0 }, merges: [['a', 'a', 'a']] }), 'syntax', /merge/],
    [bpe({ vocab: { a: 0 }, merges: [], unk_token: '?' }), 'syntax', /"\?"/],
    [bpe(ab, { normalizer: nested(60) }), 'syntax', /nested/], [bpe(ab, { normalizer: { type: 'Upper' } }), 'unsupported', /Upper/],
    [bpe(ab, { normalizer: { type: 'Precompiled', precompiled_charsmap: 'AAAA' } }), 'syntax', /precompiled_charsmap/],
    [bpe(ab, { pre_tokenizer: { type: 'Mecab' } }), 'unsupported', /Mecab/], [bpe(ab, split('(')), 'unsupported', /missing/],
    [bpe(ab, split('((a{1000}){1000}){1000}')), 'unsupported', /instructions/], [bpe(ab, split('('.repeat(5000))), 'unsupported', /deep/],
    [bpe(ab, split('((a+)+)+b')), 'unsupported', /without an upper bound/], [bpe(ab, split('(a|a)'.repeat(30))), 'unsupported', /too many ways/], [bpe(ab, split('a*a*a*a*a*b')), 'unsupported', /too many ways/],
    [bpe(ab, { pre_tokenizer: { type: 'Split', pattern: {}, behavior: 'Isolated' } }), 'syntax', /pattern/],
    [bpe(ab, { decoder: { type: 'Spell' } }), 'unsupported', /Spell/], [bpe(ab, { decoder: { type: 'Strip', content: 'a', start: -1 } }), 'syntax', /-1/],
    [bpe(ab, { post_processor: { type: 'BertProcessing', sep: ['a', 7], cls: ['a', 0] } }), 'syntax', /7/],
    [bpe(ab, { post_processor: { type: 'TemplateProcessing', single: [{ SpecialToken: { id: 'x' } }] } }), 'syntax', /"x"/],
    [small({ type: 'Unigram', vocab: [['a']] }), 'syntax', /token/], [small({ type: 'Unigram', vocab: [['a', 1]], unk_id: 1 }), 'syntax', /unk_id/],
  ];
  for (const [json, kind, message] of rows) test(String(message), () => assert.throws(() => readTokenizer(json), { name: 'RlxError', kind, message }));
  for (const [values, kind, message] of [
    [{}, 'syntax', /tokenizer\.ggml\.model/], [{ model: 'llama' }, 'syntax', /tokens/], [{ model: 'llama', tokens: ['a'] }, 'syntax', /scores/],
    [{ model: 'llama', tokens: ['a', 'b'], scores: Float32Array.of(1) }, 'syntax', /1 scores/], [{ model: 'rwkv', tokens: ['a'] }, 'unsupported', /rwkv/],
    [{ model: 'gpt2', tokens: ['a'], pre: 'new' }, 'unsupported', /new/], [{ model: 'gpt2', tokens: ['a', 'b'], merges: ['ab'] }, 'syntax', /merge 0/],
    [{ model: 'gpt2', tokens: ['a', 'b'], merges: ['b a'] }, 'syntax', /lacks "ba"/],
    [{ model: 't5', tokens: ['a'], scores: Float32Array.of(1), precompiled_charsmap: Uint8Array.of(255, 255, 255, 255, 0) }, 'syntax', /precompiled_charsmap/],
  ]) test(String(message), () => assert.throws(() => tokenizerOf(metadata(values)), { name: 'RlxError', kind, message }));
});

test('text that no token covers, and ids without one, are errors', () => {
  for (const model of [{ type: 'Unigram', vocab: [['a', 1]] }, { type: 'WordPiece', vocab: { a: 0 } }, { type: 'WordLevel', vocab: { a: 0 } }]) {
    assert.throws(() => readTokenizer({ model }).encode('b'), { name: 'RlxError', kind: 'missing', message: /"b"/ });
  }
  const t = open('llama3');
  for (const id of [-1, t.size, 0.5]) {
    assert.throws(() => t.decode([id]), { kind: 'index' });
    assert.throws(() => t.stream().push(id), { kind: 'index' });
    assert.deepEqual([t.token(id), t.special(id)], [undefined, false]);
  }
  assert.throws(() => t.encode('a', { bas: true }), { kind: 'name' });
  assert.throws(() => t.encode(3), { kind: 'attr' });
});

test('the tokens that begin and end texts', () => {
  assert.deepEqual([open('llama3').bos, open('llama3').eos], [1, [2, 3]]);
  const given = readTokenizer(testdata('llama3.json'), { bos: '<|end|>', eos: ['[MASK]', 0] });
  assert.deepEqual([given.bos, given.eos], [given.id('<|end|>'), [given.id('[MASK]'), 0, 2, 3]]);
  assert.throws(() => readTokenizer(testdata('llama3.json'), { bos: 'none' }), { kind: 'name' });
});

test('patterns of Oniguruma are those of the engine', () => {
  const words = (regex, text) => {
    const t = readTokenizer({ model: { type: 'WordLevel', vocab: { '?': 0 }, unk_token: '?' }, pre_tokenizer: { type: 'Split', pattern: { Regex: regex }, behavior: 'Removed', invert: true } });
    const out = [];
    t.split(text, true, out);
    return out;
  };
  for (const [regex, text, want] of [
    ['(?i:ſ)', 's S ſ', ['s', 'S', 'ſ']], ['(?i)k(?-i)k', 'kk Kk KK', ['kk', 'Kk']], [String.raw`[\p{L}&&[^a-c]]+`, 'abcdé', ['dé']],
    [String.raw`(?<=a)b|b(?!c)`, 'ab bc bd', ['b', 'b']], [String.raw`a++a|b`, 'aaab', ['b']], [String.raw`(?>a|ab)c`, 'abc ac', ['ac']], [String.raw`\x41\u0042\x{43}`, 'ABC', ['ABC']],
    ['[[:alpha:]_]+', 'a_é1', ['a_é']], [String.raw`^.$`, 'a\nbc\nd', ['a', 'd']], [String.raw`\Aa|\bb\b|\Bc|d\z`, 'ab b bc ad', ['a', 'b', 'c', 'd']], [String.raw`\h{2,}|\H{3}`, 'ff xyz', ['ff', ' xy']],
    [String.raw`\p{Han}{,2}`, '中文字', ['中文', '字']], ['x{1', 'x{1', ['x{1']], [String.raw`[\]\-^]`, ']-^', [']', '-', '^']], ['(?m).+', 'a\nb', ['a\nb']], [String.raw`\s`, '\u0085\ufeff', ['\u0085']],
  ]) assert.deepEqual(words(regex, text), want, regex);
});
