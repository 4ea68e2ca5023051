// Files of tensors: whole, odd and hostile ones.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { decodeSafetensors, encodeSafetensors } from '../dist/safetensors.js';

const f32 = (shape, values) => ({ dtype: 'f32', shape, data: Float32Array.from(values) });

describe('safetensors', () => {
  const tensors = {
    b: f32([2, 2], [1, 2, 3, 4]), a: { dtype: 'u8', shape: [3], data: Uint8Array.of(1, 2, 3) }, empty: f32([0, 4], []), one: { dtype: 'i32', shape: [], data: Int32Array.of(-7) },
  };

  test('a file gives back what was put in, and equal tensors equal bytes', () => {
    const file = encodeSafetensors(tensors, { made: 'here' });
    const { tensors: back, metadata } = decodeSafetensors(file);
    assert.deepEqual(Object.fromEntries(Object.entries(back)), tensors);
    assert.deepEqual(metadata, { made: 'here' });
    assert.deepEqual(encodeSafetensors(Object.fromEntries(Object.entries(tensors).reverse()), { made: 'here' }), file);
  });

  test('a file in a part of a larger buffer is read as well', () => {
    const whole = encodeSafetensors(tensors), larger = Buffer.alloc(whole.length + 8, 7);
    larger.set(whole, 3);
    assert.deepEqual(decodeSafetensors(larger.subarray(3, 3 + whole.length)).tensors, tensors);
  });

  test('names and metadata that need care come back', () => {
    const odd = { '': f32([1], [1]), 'a "quoted": \\ name': f32([1], [2]), ['__proto__']: f32([1], [3]), 'é: {': f32([1], [4]) };
    const notes = { ':': '"', 'a:b': '\\' };
    const { tensors: back, metadata } = decodeSafetensors(encodeSafetensors(odd, notes));
    assert.deepEqual(Object.keys(back).sort(), Object.keys(odd).sort());
    assert.deepEqual([...back['é: {'].data], [4]);
    assert.deepEqual(metadata, notes);
  });

  test('the header is as the format says', () => {
    const file = encodeSafetensors({ w: f32([2], [1, -1]) }), length = Number(new DataView(file.buffer).getBigUint64(0, true));
    assert.equal(length % 8, 0);
    assert.deepEqual(JSON.parse(Buffer.from(file.subarray(8, 8 + length)).toString()), { w: { dtype: 'F32', shape: [2], data_offsets: [0, 8] } });
    assert.deepEqual(new Float32Array(file.slice(8 + length).buffer), Float32Array.of(1, -1));
  });

  const file = (header, bytes = 0) => {
    const json = Buffer.from(typeof header === 'string' ? header : JSON.stringify(header)), out = Buffer.alloc(8 + json.length + bytes);
    out.writeBigUInt64LE(BigInt(json.length));
    json.copy(out, 8);
    return new Uint8Array(out);
  };
  const one = { dtype: 'F32', shape: [1], data_offsets: [0, 4] };
  const withLast = (byte, bytes) => bytes.fill(byte, bytes.length - 1);
  for (const [what, bytes, kind] of [
    ['nothing', new Uint8Array(0), 'syntax'],
    ['half a length', new Uint8Array(5), 'syntax'],
    ['a length beyond the file', new Uint8Array(8).fill(255), 'syntax'],
    ['no JSON', file('{"w'), 'syntax'],
    ['no object', file('null'), 'syntax'],
    ['a tensor without a place', file({ w: { dtype: 'F32', shape: [1] } }, 4), 'syntax'],
    ['a place beyond the file', file({ w: { dtype: 'F32', shape: [1], data_offsets: [0, 4] } }), 'syntax'],
    ['a place of another size', file({ w: { dtype: 'F32', shape: [1], data_offsets: [0, 8] } }, 8), 'syntax'],
    ['a negative dimension', file({ w: { dtype: 'F32', shape: [-1], data_offsets: [4, 0] } }, 4), 'syntax'],
    ['an unknown type', file({ w: { dtype: 'F6_E2M3', shape: [1], data_offsets: [0, 1] } }, 1), 'dtype'],
    ['a type that every object has', file({ w: { ...one, dtype: 'toString' } }, 4), 'dtype'],
    ['nothing for a tensor', file({ w: null }), 'syntax'],
    ['no type', file({ w: { shape: [1], data_offsets: [0, 4] } }, 4), 'syntax'],
    ['a byte order mark', file('\ufeff{}'), 'syntax'],
    ['a list', file([one], 4), 'syntax'],
    ['a header over 100 MiB', file(' '.repeat(100 << 20) + '{}'), 'syntax'],
    ['a tensor without a shape', file({ w: { dtype: 'F32', data_offsets: [0, 4] } }, 4), 'syntax'],
    ['one offset', file({ w: { ...one, data_offsets: [4] } }, 4), 'syntax'],
    ['three offsets', file({ w: { ...one, data_offsets: [0, 4, 4] } }, 4), 'syntax'],
    ['an offset that is no number', file({ w: { ...one, data_offsets: ['0', 4] } }, 4), 'syntax'],
    ['a key of another case', file({ w: { ...one, Shape: [1] } }, 4), 'syntax'],
    ['a name twice', file(`{"w":${JSON.stringify(one)},"\u0077":${JSON.stringify(one)}}`, 4), 'syntax'],
    ['a shape twice', file('{"w":{"dtype":"F32","shape":[2],"shape":[1],"data_offsets":[0,4]}}', 4), 'syntax'],
    ['metadata twice', file('{"__metadata__":{"a":":"},"__metadata__":{"a":"\":"}}'), 'syntax'],
    ['a number as metadata', file({ __metadata__: { step: 7 } }), 'syntax'],
    ['a text as metadata', file({ __metadata__: 'step' }), 'syntax'],
    ['a gap', file({ w: { ...one, data_offsets: [4, 8] } }, 8), 'syntax'],
    ['elements of no tensor', file({ w: one }, 8), 'syntax'],
    ['two tensors in one place', file({ v: one, w: one }, 4), 'syntax'],
    ['tensors that overlap', file({ v: { ...one, shape: [2], data_offsets: [0, 8] }, w: { ...one, shape: [2], data_offsets: [4, 12] } }, 12), 'syntax'],
    ['a bool of 2', withLast(2, file({ w: { dtype: 'BOOL', shape: [1], data_offsets: [0, 1] } }, 1)), 'syntax'],
    ['a bool of 255', withLast(255, file({ w: { dtype: 'BOOL', shape: [2], data_offsets: [0, 2] } }, 2)), 'syntax'],
  ]) test(`refuses ${what}`, () => assert.throws(() => decodeSafetensors(bytes), { name: 'RlxError', kind }));

  test('refuses to write what does not fit its shape', () => assert.throws(() => encodeSafetensors({ w: f32([3], [1]) }), { kind: 'shape' }));
  test('refuses to write what it would not read', () => {
    assert.throws(() => encodeSafetensors({ mask: { dtype: 'bool', shape: [2], data: Uint8Array.of(1, 2) } }), { kind: 'dtype' });
    assert.throws(() => encodeSafetensors({ __metadata__: f32([1], [1]) }), { kind: 'name' });
    assert.throws(() => encodeSafetensors({}, { step: 7 }), { kind: 'syntax' });
    assert.throws(() => encodeSafetensors({ w: { dtype: 'toString', shape: [0], data: new Uint8Array(0) } }), { kind: 'dtype' });
  });

  test('a hostile header of many names for the same bytes is refused before any is copied', () => {
    const size = 1 << 20, all = { dtype: 'U8', shape: [size], data_offsets: [0, size] };
    const bytes = file(Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`w${i}`, all])), size);
    const begun = performance.now();
    assert.throws(() => decodeSafetensors(bytes), { kind: 'syntax', message: /begins at byte 0/ });
    assert.ok(performance.now() - begun < 1000);
  });
});
