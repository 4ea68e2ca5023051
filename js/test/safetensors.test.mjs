// Files of tensors: whole, odd and hostile ones.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { before, describe, test } from 'node:test';
import { graph, init, program, RlxError } from '../dist/index.js';
import * as nn from '../dist/nn.js';
import { decodeAdapter, decodeSafetensors, encodeAdapter, encodeSafetensors, fromTorch, matchTensors, mergeAdapter, toTorch } from '../dist/safetensors.js';

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
    ['six bits in too many bytes', file({ w: { dtype: 'F6_E2M3', shape: [4], data_offsets: [0, 4] } }, 4), 'syntax'],
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

  test('a type that is not known is refused for its tensor, when that is asked for', () => {
    const { tensors: read } = decodeSafetensors(file({
      w: one, six: { dtype: 'F6_E2M3', shape: [4], data_offsets: [4, 7] }, odd: { dtype: 'toString', shape: [9], data_offsets: [7, 8] },
    }, 8));
    assert.deepEqual([...read.w.data], [0]);
    assert.deepEqual([read.six.dtype, read.six.shape], ['F6_E2M3', [4]]);
    for (const name of ['six', 'odd']) {
      for (const ask of [() => read[name].data, () => read[name].as('f32'), () => encodeSafetensors({ [name]: read[name] })]) {
        assert.throws(ask, { name: 'RlxError', kind: 'dtype', message: new RegExp(`${name}.*type`) });
      }
    }
  });

  test('types wider than a program has come back as they were written', () => {
    const wide = {
      count: { dtype: 'i64', shape: [], data: BigInt64Array.of(-(2n ** 63n)) }, seed: { dtype: 'u64', shape: [1], data: BigUint64Array.of(2n ** 64n - 1n) },
      mean: { dtype: 'f64', shape: [2], data: Float64Array.of(0.1, -1e300) }, wave: { dtype: 'c64', shape: [2], data: Float32Array.of(1, 2, 3, 4) },
      tiny: { dtype: 'f8e4m3fn', shape: [1], data: Uint8Array.of(0x38) },
    };
    assert.deepEqual({ ...decodeSafetensors(encodeSafetensors(wide)).tensors }, wide);
    assert.throws(() => encodeSafetensors({ wave: { ...wide.wave, shape: [4] } }), { kind: 'shape' });
  });

  test('bytes, as programs have wide types, are written, and `as` makes them', () => {
    const bytes = (x) => new Uint8Array(x.buffer), pair = Float64Array.of(0.1, -1e300);
    const { mean, wave } = decodeSafetensors(encodeSafetensors({
      mean: { dtype: 'f64', shape: [2], data: bytes(pair) }, wave: { dtype: 'c64', shape: [1], data: bytes(Float32Array.of(1, 2)) },
    })).tensors;
    assert.deepEqual([mean.data, wave.data], [pair, Float32Array.of(1, 2)]);
    assert.deepEqual([mean.as('f64').data, mean.as('f64', { bytes: true }).data], [pair, bytes(pair)]);
    assert.deepEqual(mean.as('f32', { narrow: true, bytes: true }).data, Float32Array.of(0.1, -Infinity));
    for (const data of [bytes(pair).subarray(1), new Float64Array(3)]) {
      assert.throws(() => encodeSafetensors({ mean: { dtype: 'f64', shape: [2], data } }), { kind: 'shape' });
    }
  });

  test('some of the tensors are read, the others are not copied', () => {
    const bytes = encodeSafetensors(tensors);
    assert.deepEqual(Object.keys(decodeSafetensors(bytes, { only: ['one', 'a'] }).tensors), ['one', 'a']);
    assert.throws(() => decodeSafetensors(bytes, { only: ['two'] }), { name: 'RlxError', kind: 'missing', message: /no tensor two/ });
    assert.throws(() => decodeSafetensors(bytes, { olny: ['one'] }), { kind: 'name', message: /no option olny: there are only/ });
  });

  test('what is no tensor is refused by its name', () => {
    for (const wrong of [null, undefined, 5, {}, { dtype: 'f32', data: Float32Array.of(1) }, { dtype: 'f32', shape: 1, data: Float32Array.of(1) }, { dtype: 'f32', shape: [1] }]) {
      assert.throws(() => encodeSafetensors({ a: wrong }), { name: 'RlxError', kind: 'dtype', message: /\ba is/ });
    }
    for (const wrong of [undefined, null, 5, [1]]) assert.throws(() => encodeSafetensors(wrong), { name: 'RlxError', kind: 'missing' });
  });

  /** A tensor of a file. */
  const read = (dtype, data) => decodeSafetensors(encodeSafetensors({ w: { dtype, shape: [data.length], data } })).tensors.w;

  // Of IEEE 754-2019 (binary16), Intel's bfloat16 white paper, and the OCP 8-bit floating point specification.
  for (const [dtype, made, rows] of [
    ['f16', Uint16Array, [[0x3c00, 1], [0xc000, -2], [0x7bff, 65504], [0x0400, 2 ** -14], [0x0001, 2 ** -24], [0x3555, 0.333251953125], [0x7c00, Infinity], [0xfc00, -Infinity], [0x7e00, NaN], [0x8000, -0]]],
    ['bf16', Uint16Array, [[0x3f80, 1], [0xc000, -2], [0x7f7f, 3.3895313892515355e38], [0x0080, 2 ** -126], [0x0001, 2 ** -133], [0x4049, 3.140625], [0xff80, -Infinity], [0x7fc0, NaN]]],
    ['f8e4m3fn', Uint8Array, [[0x38, 1], [0x7e, 448], [0x08, 2 ** -6], [0x01, 2 ** -9], [0xfe, -448], [0x7f, NaN], [0xff, NaN]]],
    ['f8e5m2', Uint8Array, [[0x3c, 1], [0x7b, 57344], [0x04, 2 ** -14], [0x01, 2 ** -16], [0x7c, Infinity], [0xfc, -Infinity], [0x7d, NaN]]],
  ]) {
    test(`${dtype} is widened to f32`, () => {
      const wide = read(dtype, made.from(rows, ([bits]) => bits)).as('f32');
      assert.deepEqual([wide.dtype, wide.shape, wide.data], ['f32', [rows.length], Float32Array.from(rows, ([, value]) => value)]);
    });
  }

  for (const [dtype, infinity] of [['f16', 0x7c00], ['bf16', 0x7f80]]) {
    const all = Uint16Array.from({ length: infinity }, (_, i) => i), values = read(dtype, all).as('f64').data;
    const narrowed = (x) => [...read('f64', Float64Array.from(x)).as(dtype, { narrow: true }).data];
    test(`every ${dtype} comes back from f64, and what lies between two becomes the nearest, of the middle the even one`, () => {
      assert.deepEqual(narrowed(values), [...all]);
      assert.deepEqual(narrowed(values.map((x) => -x)), [...all].map((bits) => bits | 0x8000));
      const middles = values.slice(1).map((x, i) => (x + values[i]) / 2), near = (x, sign) => x * (1 + sign * 2 ** -40);
      assert.deepEqual(narrowed(middles), [...middles].map((_, i) => i + i % 2));
      assert.deepEqual(narrowed(middles.map((x) => near(x, -1))), [...middles].map((_, i) => i));
      assert.deepEqual(narrowed(middles.map((x) => near(x, 1))), [...middles].map((_, i) => i + 1));
      const top = values.at(-1), step = top - values.at(-2);
      assert.deepEqual(narrowed([top + step / 2, near(top + step / 2, -1), Infinity, -1e300, 1e-300]), [infinity, infinity - 1, infinity, infinity | 0x8000, 0]);
      assert.ok(Number.isNaN(read(dtype, Uint16Array.from(narrowed([NaN]))).as('f32').data[0]));
    });
  }

  test('only what changes no value is converted, unless rounding is asked for', () => {
    const long = read('i64', BigInt64Array.of(7n, -3n));
    assert.deepEqual(long.as('i32', { narrow: true }).data, Int32Array.of(7, -3));
    assert.throws(() => long.as('u8', { narrow: true }), { kind: 'index', message: 'w has -3 as element 1, which is no u8' });
    assert.deepEqual(read('u8', Uint8Array.of(200)).as('i16').data, Int16Array.of(200));
    assert.deepEqual(read('i16', Int16Array.of(-5)).as('f32').data, Float32Array.of(-5));
    assert.deepEqual(read('u32', Uint32Array.of(2 ** 32 - 1)).as('i64').data, BigInt64Array.of(2n ** 32n - 1n));
    assert.deepEqual(read('f64', Float64Array.of(0.1)).as('f32', { narrow: true }).data, Float32Array.of(0.1));
    for (const [tensor, to] of [[long, 'i32'], [read('f64', Float64Array.of(1)), 'f32'], [read('f32', Float32Array.of(1)), 'f16'], [read('i32', Int32Array.of(1)), 'f32'], [read('i8', Int8Array.of(1)), 'u8'], [read('f16', Uint16Array.of(1)), 'bf16']]) {
      assert.throws(() => tensor.as(to), { name: 'RlxError', kind: 'dtype', message: /narrow: true/ });
    }
    for (const [tensor, to] of [[read('f32', Float32Array.of(1)), 'i32'], [long, 'bool'], [long, 'f33'], [long, undefined]]) {
      assert.throws(() => tensor.as(to, { narrow: true }), { name: 'RlxError', kind: 'dtype', message: /no conversion/ });
    }
  });

  test('a hostile header of many names for the same bytes is refused before any is copied', () => {
    const size = 1 << 20, all = { dtype: 'U8', shape: [size], data_offsets: [0, size] };
    const bytes = file(Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`w${i}`, all])), size);
    const begun = performance.now();
    assert.throws(() => decodeSafetensors(bytes), { kind: 'syntax', message: /begins at byte 0/ });
    assert.ok(performance.now() - begun < 1000);
  });

  test('a file of torch.save is refused with what to write in its place', () => {
    for (const begin of [[0x50, 0x4b, 3, 4, 0, 0, 8, 8], [0x80, 2, 0x8a, 10, 0x6c, 0xfc, 0x9c, 0x46]]) {
      assert.throws(() => decodeSafetensors(Uint8Array.from(begin)), { kind: 'syntax', message: /save_file\(model\.state_dict\(\)/ });
    }
  });
});

/** Numbers in [0, n), the same in every run: a 32-bit xorshift. */
function drawing(seed) {
  return (n) => {
    seed ^= seed << 13;
    seed ^= seed >>> 17;
    seed ^= seed << 5;
    return (seed >>> 0) % n;
  };
}

test('20,000 changed files are read or refused, soon', () => {
  const draw = drawing(20261125), begun = process.cpuUsage();
  const files = [
    encodeSafetensors({ b: f32([2, 2], [1, 2, 3, 4]), a: { dtype: 'u8', shape: [3], data: Uint8Array.of(1, 2, 3) }, half: { dtype: 'f16', shape: [1, 2], data: Uint16Array.of(1, 2) } }, { made: 'here' }),
    encodeSafetensors({ '': f32([0, 4], []), 'a.b': { dtype: 'i64', shape: [], data: BigInt64Array.of(-7n) } }),
  ];
  const texts = ['"', '{', '}', '[', ']', ',', ':', '-1', '1e99', '9007199254740993', '18446744073709551615', 'null', '"dtype"', '"F4"', '"data_offsets"', '__proto__', '\\u0000', '\xff'];
  let read = 0;
  for (let i = 0; i < 20_000; i++) {
    let bytes = Buffer.from(files[draw(files.length)]);
    for (let n = 1 + draw(4); n > 0; n--) {
      const at = draw(bytes.length), text = Buffer.from(texts[draw(texts.length)], 'latin1');
      if (draw(3) === 0) bytes[at] = draw(256);
      else if (draw(8) === 0) bytes = bytes.subarray(0, at + 1);
      else bytes = Buffer.concat([bytes.subarray(0, at), text, bytes.subarray(at + draw(text.length + 1))]);
    }
    if (draw(2) && bytes.length > 8) bytes.writeBigUInt64LE(BigInt(draw(bytes.length)), 0);
    try {
      const { tensors } = decodeSafetensors(bytes);
      for (const name in tensors) read += tensors[name].data.length;
    } catch (error) {
      assert.equal(error.name, 'RlxError', `${i}: ${error.stack}`);
      assert.ok(['syntax', 'dtype'].includes(error.kind), `${i}: ${error.kind}: ${error.message}`);
    }
  }
  const { user } = process.cpuUsage(begun);
  assert.ok(read > 0);
  assert.ok(user < 10e6, `${user / 1000} ms`);
});

describe('adapters of PEFT', () => {
  const stored = (name) => readFileSync(new URL(`../../native/safetensors/testdata/adapter/${name}`, import.meta.url));
  const files = (config = {}) => ({
    'adapter_model.safetensors': stored('adapter_model.safetensors'),
    'adapter_config.json': JSON.stringify({ ...JSON.parse(stored('adapter_config.json')), ...config }),
  });
  const rename = { 'body/up': 'linear0', 'body/down': 'linear1' };

  test('the model with a stored adapter computes what PyTorch computes', async () => {
    await init({ compileWorker: false, worker: false });
    const { tensors, rank, alpha, dropout } = decodeAdapter(files(), { rename }), expected = decodeSafetensors(stored('expected.safetensors')).tensors;
    const model = graph('adapted', (b) => {
      const x = b.input('x', 'f32', [2, 3]);
      nn.lora(b, { rank, alpha, dropout }, () => b.output('y', nn.linear(nn.linear(x, 5).relu(), 4)));
    });
    const turned = ({ shape: [rows, columns], data }) => f32([columns, rows], Array.from(data, (_, i) => data[i % rows * columns + Math.floor(i / rows)]));
    const weights = Object.fromEntries(Object.entries(rename).flatMap(([from, to]) => {
      const at = from.replace('/', '.');
      return [[`${to}/weight`, turned(expected[`${at}.weight`])], [`${to}/bias`, expected[`${at}.bias`]]];
    }));
    const p = await program({ entries: { run: model } }, { on: 'cpu' });
    await p.load({ ...weights, ...tensors });
    const { reading } = await p.run('run', { x: expected.x.data }, { read: ['y'] }), { y } = (await reading).values;
    p.close();
    const check = (y) => y.forEach((value, i) => assert.ok(Math.abs(value - expected.after.data[i]) <= 1e-5, `y[${i}] is ${value}, not ${expected.after.data[i]}`));
    check(y);

    const merged = mergeAdapter({ tensors, rank, alpha }, { ...weights, ...tensors }); // the model without the adapter computes the same
    assert.deepEqual(Object.keys(merged).sort(), Object.keys(weights).sort());
    const name = 'linear1/weight', other = mergeAdapter({ tensors, rank, alpha }, { ...weights, [name]: turned(weights[name]) }, { outIn: (one) => one === name });
    assert.deepEqual({ ...other, [name]: turned(other[name]) }, merged);
    const plain = await program({ entries: { run: graph('plain', (b) => b.output('y', nn.linear(nn.linear(b.input('x', 'f32', [2, 3]), 5).relu(), 4))) } }, { on: 'cpu' });
    await plain.load(merged);
    await plain.run('run', { x: expected.x.data });
    check(await plain.read('y'));
    plain.close();
  });

  test('weights in half precision are rounded once', () => {
    const pair = { 'l/lora_A/weight': f32([1, 1], [1]), 'l/lora_B/weight': f32([1, 1], [2 ** -9 + 2 ** -12]) };
    const { 'l/weight': sum } = mergeAdapter({ tensors: pair, alpha: 4 }, { 'l/weight': { dtype: 'bf16', shape: [1, 1], data: Uint16Array.of(0x3f80) } });
    assert.deepEqual(sum, { dtype: 'bf16', shape: [1, 1], data: Uint16Array.of(0x3f81) }); // 1.0088 is nearest to 1.0078
  });

  test('written again it has the same tensors and settings', () => {
    const read = decodeAdapter(files(), { rename }), back = Object.fromEntries(Object.entries(rename).map(([from, to]) => [to, from]));
    const { rank, ...rest } = read, out = encodeAdapter({ ...rest, tensors: { ...rest.tensors, 'linear0/bias': f32([1], [1]) } }, { rename: back });
    assert.deepEqual(decodeSafetensors(out['adapter_model.safetensors']).tensors, decodeSafetensors(files()['adapter_model.safetensors']).tensors);
    const config = JSON.parse(out['adapter_config.json']), old = JSON.parse(files()['adapter_config.json']);
    for (const name of ['r', 'lora_alpha', 'lora_dropout', 'bias', 'peft_type', 'fan_in_fan_out']) assert.equal(config[name], old[name], name);
    assert.deepEqual(config.target_modules, [...old.target_modules].sort());
    assert.equal(rank, config.r);
  });

  test('the scale of rsLoRA is alpha by the root of the rank', () => assert.equal(decodeAdapter(files({ use_rslora: true })).alpha, 6 * Math.SQRT2));

  const of = (adapter, options) => () => encodeAdapter(adapter, options), from = (config, options) => () => decodeAdapter(files(config), options);
  const a = f32([3, 2], [1, 2, 3, 4, 5, 6]), b = f32([2, 4], Array(8).fill(0));
  const merge = (weights) => () => mergeAdapter({ tensors: { 'l/lora_A/weight': a, 'l/lora_B/weight': b } }, weights);
  for (const [name, kind, f] of [
    ['DoRA', 'unsupported', from({ use_dora: true })], ['several ranks', 'unsupported', from({ rank_pattern: { up: 4 } })], ['another kind', 'unsupported', from({ peft_type: 'IA3' })],
    ['no rank', 'syntax', from({ r: 0 })], ['another rank', 'shape', from({ r: 3 })], ['two layers of one name', 'name', from({}, { rename: { 'body/up': 'x', 'body/down': 'x' } })],
    ['no JSON', 'syntax', () => decodeAdapter({ ...files(), 'adapter_config.json': '{' })], ['a misspelt option', 'name', from({}, { renames: {} })],
    ['merging with no weight', 'name', merge({})], ['merging with another shape', 'shape', merge({ 'l/weight': f32([4, 3], Array(12).fill(0)) })],
    ['merging with integers', 'dtype', merge({ 'l/weight': { dtype: 'i32', shape: [3, 4], data: new Int32Array(12) } })],
    ['no matrices', 'name', of({ tensors: {} })], ['no tensors', 'missing', of({})], ['no partner', 'name', of({ tensors: { 'l/lora_A/weight': a } })],
    ['matrices that do not fit', 'shape', of({ tensors: { 'l/lora_A/weight': a, 'l/lora_B/weight': f32([3, 4], Array(12).fill(0)) } })],
    ['elements that are not f32', 'dtype', of({ tensors: { 'l/lora_A/weight': a, 'l/lora_B/weight': { ...b, dtype: 'i32', data: new Int32Array(8) } } })],
  ]) test(`${name} is refused`, () => assert.throws(f, (error) => error instanceof RlxError && error.kind === kind));
});

describe('models of PyTorch', () => {
  const file = () => decodeSafetensors(readFileSync(new URL('testdata/torch_model.safetensors', import.meta.url)));
  const rename = { 'conv.0': 'conv0', 'conv.1': 'batch_norm0', 'conv.3': 'conv1', block: 'transformer_block0', up: 'conv_transpose0' };

  /** The graph of torch_model.py. */
  const model = () => graph('model', (b) => {
    nn.infer(b);
    const x = nn.embedding(b.input('ids', 'i32', [2, 6]), 4, 4, { name: 'table' });
    const h = nn.conv2d(nn.batchNorm(nn.conv2d(x.expandDims(3), 3, 3, { padding: 'same' })).relu(), 3, 3, { padding: 'same' });
    const up = nn.convTranspose2d(h, 3, 2, { stride: 2 }).mean([2, 3]).sliceAxis(1, 0, 6);
    const block = nn.transformerBlock(x.add(up.expandDims(2)), 2, { hidden: 4 });
    const [gru] = nn.gru(nn.lstm(block, 4, { name: 'lstm' })[0], 4, { name: 'gru' });
    b.output('y', nn.linear(nn.linear(gru, 4, { name: 'square' }), 2, { name: 'head' }));
  });

  before(() => init({ worker: false, compileWorker: false, cache: false }));

  test('the weights of a state dictionary give its results', async () => {
    const { tensors, metadata } = file(), graph = model(), opened = await program({ entries: { graph } }, { on: 'cpu' });
    await opened.load(fromTorch(tensors, graph, { rename }));
    await opened.run('graph', { ids: Int32Array.from(JSON.parse(metadata.x)) });
    const y = await opened.read('y');
    JSON.parse(metadata.y).forEach((want, i) => assert.ok(Math.abs(y[i] - want) < 1e-5, `${y} is not ${metadata.y}`));
    opened.close();
  });

  test('it goes there and back', () => {
    const { tensors } = file(), graph = model(), names = Object.keys(tensors).filter((name) => !name.endsWith('num_batches_tracked'));
    const here = fromTorch(tensors, graph, { rename }), back = Object.fromEntries(Object.entries(rename).map(([there, here]) => [here, there]));
    const there = toTorch({ ...here, 'optim/step': f32([], [1]) }, graph, { rename: back });
    assert.deepEqual(Object.keys(there).sort(), names.sort());
    for (const name of names) assert.deepEqual(there[name], tensors[name], name);
    assert.deepEqual([here['head/weight'].dtype, here['head/weight'].as('f32').data.length], ['f16', 8]);
    assert.deepEqual(there['conv.0.weight'].shape, [3, 1, 3, 3]);
    assert.throws(() => toTorch(here, graph, { rename: { head: 'square' } }), { kind: 'name', message: 'toTorch: two tensors are square.weight: the second is head/weight' });
  });

  test('square weights are transposed in the graphs of checkpoints, loops and branches, too', () => {
    const of = graph('nested', (b) => {
      nn.infer(b);
      const x = b.input('x', 'f32', [4, 2]), labels = b.constant('i32', [4], Int32Array.of(0, 1, 1, 0));
      const h = nn.stack(x, 'h', 2, (y) => nn.stack(nn.linear(y, 2, { name: 'fc' }), 'in', 1, (z) => nn.linear(z, 2, { name: 'fc' }), { checkpoint: true }), { checkpoint: true });
      const plain = b.param('plain', 'f32', [2, 2]), w = b.param('branch', 'f32', [2, 2]);
      const [y] = b.cond(x.sum().gt(0), [h, w, plain], (_, [y, w]) => [y.linear(w)], (_, [y, , plain]) => [y.add(plain.sum())]);
      b.output('y', nn.linearCrossEntropy(y, labels, 2, { name: 'vocabulary', rows: 2 }));
    });
    const square = f32([2, 2], [1, 2, 3, 4]), turned = ['h/0/fc', 'h/0/in/0/fc', 'h/1/fc', 'h/1/in/0/fc', 'vocabulary'].map((name) => `${name}/weight`).concat('branch');
    const biases = Object.fromEntries(turned.slice(0, 5).map((name) => [name.replace('weight', 'bias').replaceAll('/', '.'), f32([2], [0, 0])]));
    const tensors = Object.fromEntries([...turned, 'plain'].map((name) => [name.replaceAll('/', '.'), square]));
    const here = fromTorch({ ...tensors, ...biases }, of), there = toTorch(here, of);
    for (const name of turned) assert.deepEqual([...here[name].data], [1, 3, 2, 4], name);
    assert.deepEqual([...here.plain.data], [1, 2, 3, 4]);
    for (const [name, { data }] of Object.entries(tensors)) assert.deepEqual([...there[name].data], [...data], name);
  });

  test('what is left on either side is listed with the nearest names', () => {
    const { tensors } = file(), graph = model();
    const refused = (options, kind, message, given = tensors) => assert.throws(() => fromTorch(given, graph, options), { kind, message });
    refused({ rename: { ...rename, square: 'sqare' } }, 'missing', 'fromTorch: the file lacks square/weight (the nearest is square.weight), square/bias (the nearest is square.bias), and the graph lacks square.weight (the nearest is square/weight), square.bias (the nearest is square/bias): rename, or keep or ignore');
    refused({ rename }, 'name', 'fromTorch: the graph lacks extra.weight: rename, or ignore', { ...tensors, 'extra.weight': f32([1], [1]) });
    refused({ rename }, 'shape', 'fromTorch: square.weight is f32[4,3], which does not fit parameter square/weight, f32[4,4]', { ...tensors, 'square.weight': f32([4, 3], new Array(12)) });
    refused({ rename: { 'block.norm1': 'transformer_block0/norm2', ...rename } }, 'name', 'fromTorch: two tensors are transformer_block0/norm2/weight: the second is block.norm2.weight');
    refused({ renames: {} }, 'name', 'fromTorch has no option renames: there are rename, ignore, keep');
    refused({}, 'missing', 'fromTorch: the first argument is Null: it must be tensors by name', null);
    assert.throws(() => fromTorch(tensors), { kind: 'missing', message: 'fromTorch: the second argument is Undefined: it must be a graph' });
  });

  test('a part of a model, and one that a wrapper gave a prefix', () => {
    const { tensors } = file(), graph = model(), { 'square.weight': weight, 'square.bias': bias, ...rest } = tensors;
    for (const kept of [{}, { 'square.weight': bias, 'square.bias': bias }]) { // a head for other classes, too
      const part = fromTorch({ ...rest, 'old.weight': weight, 'old.bias': bias, ...kept }, graph, { rename, keep: ['square'], ignore: ['old'] });
      assert.ok(!('square/weight' in part) && 'head/weight' in part);
    }
    const wrapped = Object.fromEntries(Object.entries(tensors).map(([name, x]) => [`module.${name}`, x]));
    const longer = Object.fromEntries(Object.entries(rename).map(([from, to]) => [`module.${from}`, to]));
    assert.deepEqual(fromTorch(wrapped, graph, { rename: { ...longer, module: '' } }), fromTorch(tensors, graph, { rename }));
  });
});

describe('tensors for a program', () => {
  const f32 = (shape, data = Float32Array.from({ length: shape.reduce((n, size) => n * size, 1) }, (_, i) => i)) => ({ dtype: 'f32', shape, data });
  const model = () => graph('model', (b) => {
    const x = b.input('x', 'f32', [4, 2]);
    const shift = b.state('shift', 'f32', [3]);
    b.setState('shift', shift);
    b.output('y', x.linear(b.param('h/0/weight', 'f32', [2, 3]), b.param('h/0/bias', 'f32', [3])).add(b.param('head', 'bf16', [3]).convert('f32')).add(shift));
  });

  test('are renamed, transposed, rounded and loaded in part', async () => {
    const made = await program({ entries: { model: model() } }, { on: 'cpu', worker: false });
    const file = decodeSafetensors(encodeSafetensors({ 'layers/0/weight': f32([3, 2]), 'layers/0/bias': f32([3]), head: f32([3], Float32Array.of(1, 1 + 2 ** -9, -2)), 'optim/m': f32([3]) })).tensors;
    for (const target of [made, model()]) { // the program's own state keeps its value
      const fit = matchTensors(file, target, { rename: { layers: 'h' }, outIn: ['*/*/weight'], extra: ['optim'], cast: true });
      assert.deepEqual(Object.keys(fit).sort(), ['h/0/bias', 'h/0/weight', 'head']);
      assert.deepEqual(fit['h/0/weight'].shape, [2, 3]);
      assert.deepEqual([...fit['h/0/weight'].data], [0, 2, 4, 1, 3, 5]);
      assert.equal(fit.head.dtype, 'bf16');
      assert.deepEqual([...fit.head.data], [0x3f80, 0x3f80, 0xc000]);
      await made.load(fit);
    }
    assert.deepEqual([...await made.read('h/0/weight')], [0, 2, 4, 1, 3, 5]);
    const part = matchTensors({ 'layers.0.weight': f32([2, 3]) }, made, { rename: (name) => name.replace('layers', 'h').replaceAll('.', '/'), missing: ['head', 'h/*/bias'] });
    await made.load(part, { allowMissing: true });
    assert.deepEqual([...await made.read('h/0/weight')], [0, 1, 2, 3, 4, 5]);
    assert.deepEqual(matchTensors({ gone: f32([1]) }, made, { rename: () => '', missing: ['h', 'head'] }), {});
    assert.deepEqual(Object.keys(matchTensors(file, made, { rename: { layers: 'h' }, outIn: ['h/?/weigh[a-t]'], extra: ['opti[^x]/m'], missing: ['h/[0-3]'], cast: true })).sort(), ['h/0/bias', 'h/0/weight', 'head']);
    const other = { head: f32([5]), 'bn/num_batches_tracked': f32([]) }; // a head for other classes
    assert.deepEqual(matchTensors(other, made, { missing: ['h', 'head'], extra: ['head'] }), {});
    const up = { ports: [{ name: 'up/weight', kind: 'param', dtype: 'f32' }] }, turned = matchTensors({ 'up/weight': f32([2, 2, 3]) }, up, { outIn: ['*/weight'], inOut: ['up'] });
    assert.deepEqual(turned['up/weight'].shape, [3, 2, 2]);
    assert.deepEqual([...turned['up/weight'].data], [0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11]); // a transposed convolution: [in, out, window] there
    made.close();
  });

  test('that do not fit are reported with the nearest names', () => {
    const all = { 'h/0/weight': f32([2, 3]), 'h/0/bias': f32([3]), head: f32([3]) }, { head, ...rest } = all;
    const refused = (tensors, options, kind, message) => assert.throws(() => matchTensors(tensors, model(), options), { kind, message });
    refused({ ...rest, heads: head }, {}, 'missing', /the file lacks head \(the nearest is heads\), and the program lacks heads \(the nearest is head\): rename, or missing or extra/);
    refused({ ...all, more: head }, {}, 'name', /the program lacks more: rename, or extra$/);
    refused(rest, { missing: ['haed'] }, 'name', /missing has haed \(the nearest is head\), which matches nothing/);
    refused(all, { outIn: ['w'] }, 'name', /outIn has w/);
    refused(all, { inOut: ['w'] }, 'name', /inOut has w/);
    refused(all, { missing: ['h/[1-9]'] }, 'name', /which matches nothing/);
    refused(all, { missing: ['h/[3-0]'] }, 'attr', /ranges from low to high/);
    refused({ a: head, b: head }, { rename: () => 'head' }, 'name', /tensors a and b are both renamed to head/);
    refused(all, { rename: () => 1 }, 'attr', /the new name of/);
    refused(all, { missing: 'head' }, 'attr', /a list of patterns/);
    refused(all, { only: [] }, 'name', /only/);
    assert.throws(() => matchTensors(all), { kind: 'missing', message: /a program or a graph/ });
    assert.throws(() => matchTensors(undefined, model()), { kind: 'missing', message: /tensors by name/ });
  });
});
