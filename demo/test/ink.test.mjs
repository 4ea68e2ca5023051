// From strokes to the counts that a network gets, and what the trained CNN makes of drawings.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { openProgram } from '../../js/dist/runtime.js';
import { decodeSafetensors } from '../../js/dist/safetensors.js';
import { openGPU } from '../../js/test/rig/dawn.mjs';
import { Digits } from '../web/digit-data.js';
import { bitmap, bitmapSide, counts } from '../web/ink.js';

const read = (path) => new Uint8Array(readFileSync(new URL(path, import.meta.url)));
const { drawings } = JSON.parse(readFileSync(new URL('../testdata/drawings.json', import.meta.url)));
const strokesOf = ({ strokes }) => strokes.map((stroke) => stroke.map(([x, y]) => ({ x, y })));
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

test('nothing drawn is nothing', () => {
  assert.deepEqual(counts([]), new Uint8Array(64));
  assert.deepEqual(counts([[]]), new Uint8Array(64));
});

test('a dot is in the middle', () => {
  const bits = bitmap([[{ x: 5, y: -3 }]]);
  assert.ok(sum(bits) > 30);
  for (let i = 0; i < bits.length; i++) assert.equal(bits[i], bits[bits.length - 1 - i], 'it is symmetric');
});

test('where and how large it was drawn does not matter', () => {
  for (const drawing of drawings) {
    const strokes = strokesOf(drawing), moved = strokes.map((stroke) => stroke.map(({ x, y }) => ({ x: x / 8 + 40, y: y / 8 - 7 })));
    assert.deepEqual(counts(moved), counts(strokes));
  }
});

test('a drawing reaches the border on its longer side and is centred on the other', () => {
  const bits = bitmap([[{ x: 0, y: 0 }, { x: 0, y: 10 }, { x: 4, y: 10 }]]);
  const rows = [], columns = [];
  bits.forEach((bit, i) => bit && (rows.push(Math.floor(i / bitmapSide)), columns.push(i % bitmapSide)));
  assert.deepEqual([Math.min(...rows), Math.max(...rows)], [0, bitmapSide - 1]);
  assert.equal(Math.min(...columns) + Math.max(...columns), bitmapSide - 1);
});

test('counts are the sums of 4×4 blocks', () => {
  for (const drawing of drawings) {
    const strokes = strokesOf(drawing), bits = bitmap(strokes);
    counts(strokes).forEach((count, i) => {
      let want = 0;
      for (let y = 0; y < 4; y++) for (let x = 0; x < 4; x++) want += bits[(Math.floor(i / 8) * 4 + y) * bitmapSide + i % 8 * 4 + x];
      assert.equal(count, want);
    });
  }
});

test('drawings have about as much ink as the data', () => {
  const { images } = new Digits(read('../web/assets/digits.bin'));
  const usual = sum(images) / images.length, got = drawings.map((drawing) => sum(counts(strokesOf(drawing))) / 64);
  assert.ok(Math.abs(sum(got) / got.length - usual) < 0.5, `${sum(got) / got.length} and ${usual}`);
});

test('the trained CNN reads at least 27 of the 30 drawings', async () => {
  const program = await openProgram(read('../web/assets/digits-cnn.rlxp'), { gpu: openGPU() });
  await program.run('init', { seed: 1 });
  for (const [name, tensor] of Object.entries(decodeSafetensors(read('../testdata/cnn.safetensors')).tensors)) await program.write(name, tensor);
  const misread = [];
  for (const drawing of drawings) {
    const { reading } = await program.run('predict', { images: Float32Array.from(counts(strokesOf(drawing))) }, { read: ['probabilities'] });
    const { probabilities } = (await reading).values, best = probabilities.indexOf(Math.max(...probabilities));
    if (best !== drawing.digit) misread.push(`${drawing.digit} as ${best}`);
  }
  program.close();
  assert.equal(drawings.length, 30);
  assert.ok(misread.length <= 3, misread.join(', '));
});
