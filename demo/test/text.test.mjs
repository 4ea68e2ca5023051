// The text that the language model learns from, and the page's description of its models.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { decodePlan } from '../../js/dist/runtime.js';
import { readOwn } from '../web/own-text.js';
import { Text } from '../web/text.js';

const read = (path) => readFileSync(new URL(path, import.meta.url));
const bytes = gunzipSync(read('../web/assets/shakespeare.txt.gz')), plain = bytes.toString(), text = Text.ofBytes(bytes);

test('characters are numbered, and what has no number is named', () => {
  assert.equal(text.characters.length, 65);
  const { tokens, unknown } = text.encode('O Romeo');
  assert.deepEqual(unknown, []);
  assert.equal(text.decode(tokens), 'O Romeo');
  assert.deepEqual(text.encode('7é7O').unknown, ['7', 'é']);
  assert.ok(plain.startsWith(text.beginning));
});

test('the rows of a step are places of the first nine tenths, and what follows them, the same for the same step', () => {
  const rows = 16, context = 32, cut = Math.floor(plain.length * 0.9), batch = text.batches(rows, context), places = new Set();
  for (let step = 0; step < 200; step++) {
    const { tokens, next } = batch(step);
    for (let row = 0; row < rows; row++) {
      const here = text.decode(tokens.subarray(row * context, (row + 1) * context)), there = text.decode(next.subarray(row * context, (row + 1) * context));
      const at = plain.indexOf(here + there.at(-1));
      assert.ok(at >= 0 && at < cut - context, `step ${step}, row ${row}: ${at}`);
      assert.equal(here.slice(1), there.slice(0, -1));
      places.add(at);
    }
  }
  assert.ok(places.size > 3100, `${places.size} places of 3200`);
  const spread = [...places].map((at) => at / cut), mean = spread.reduce((sum, x) => sum + x) / spread.length;
  assert.ok(Math.abs(mean - 0.5) < 0.03 && Math.min(...spread) < 0.01 && Math.max(...spread) > 0.99, `they are spread about ${mean}`);
  const first = batch(7).tokens.slice();
  batch(8);
  assert.deepEqual(text.batches(rows, context)(7).tokens, first);
});

test('what is measured is the last tenth, from its beginning to its end', () => {
  const held = plain.slice(Math.floor(plain.length * 0.9)), places = [];
  for (const { tokens, next } of text.held(16, 32, 4)) {
    for (let row = 0; row < 16; row++) {
      const here = text.decode(tokens.subarray(row * 32, (row + 1) * 32));
      places.push(held.indexOf(here));
      assert.equal(text.decode(next.subarray(row * 32, (row + 1) * 32)).slice(0, -1), here.slice(1));
    }
  }
  assert.equal(places.length, 64);
  assert.ok(places.every((at, i) => at >= 0 && (i === 0 || at > places[i - 1])), places.join());
  assert.ok(places.at(-1) > held.length * 0.97, `the last one is at ${places.at(-1)} of ${held.length}`);
});

test("a visitor's text keeps its most frequent characters, and says what is wrong", async () => {
  const plain = `${'Où ? Là-bas.\r\nÉte\u0301 \n'.repeat(4000)}😀😀`, { text: own, about } = await readOwn(plain, 15, 100);
  assert.equal(own.characters.length, 15);
  assert.match(about, /^[\d,]+ characters, 15 different ones; one tenth is held out\. 2 rare ones were left out: 😀$/);
  assert.equal(own.beginning.slice(0, 18), 'Où ? Là-bas.\nÉté \n', 'composed, with lines that end alike, without what is rare');
  assert.equal(own.start, '\n');
  assert.deepEqual(own.encode('Là😀').unknown, ['😀']);
  assert.equal(own.decode([own.characters.length]), '·', 'a number that the model has, and the text has not');
  assert.ok(own.length < plain.length);
  for (const [given, message] of [
    ['abc', /^The text has 3 characters, and this model needs 100 or more/],
    [Array.from({ length: 2000 }, (_, i) => String.fromCodePoint(0x4e00 + i)).join(''), /^The text has 2,000 different characters, and these models tell 16 apart: 99 % of it would be lost/],
    ['a\0b'.repeat(99), /not plain text/],
  ]) await assert.rejects(readOwn(given, 16, 100), { message });
  assert.match((await readOwn('ab '.repeat(100), 16, 100)).about, /It is short/);
});

test('the numbers of weights that the page shows are those of the plans', () => {
  const source = read('../web/gpt-engine.js').toString(), vocab = Number(/vocab = (\d+)/.exec(source)[1]);
  const stated = [...source.matchAll(/(\w+): \{ title: '.*?context: (\d+), .*?([\d,]+) weights/g)];
  assert.equal(stated.length, 4);
  for (const [, name, context, weights] of stated) {
    const { slots } = decodePlan(new Uint8Array(read(`../web/assets/gpt-${name}.rlxp`)));
    const sum = slots.filter(({ role }) => role === 'param').reduce((total, { shape }) => total + shape.reduce((n, d) => n * d, 1), 0);
    assert.equal(Number(weights.replaceAll(',', '')), sum, name);
    assert.equal(slots.find((slot) => slot.name === 'table').shape[0], vocab);
    assert.equal(slots.find((slot) => slot.name === 'positions').shape[0], Number(context));
  }
});
