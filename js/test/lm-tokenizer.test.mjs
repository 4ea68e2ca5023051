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

// Every fifth block: Go compares all.
const blocks = Array.from({ length: 20 }, (_, i) => 5 * i + 3);

describe('tokenizer.json: ids and texts of tokenizers 0.23.3', () => {
  for (const kind of kinds) {
    test(kind, () => {
      const t = open(kind);
      assert.equal(rows[kind].length, 100);
      for (const block of blocks) assert.deepEqual(hashesOf(t, block), rows[kind][block], `block ${block}`);
    });
  }
});
