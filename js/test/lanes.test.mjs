// Kernels in WebAssembly: vectors compute the same as single numbers, for all bit patterns, and
// 64-bit numbers are those of JavaScript.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { compile, graph, init, openProgram, program } from '../dist/index.js';

before(() => init());

const unary = ['abs', 'neg', 'sign', 'floor', 'ceil', 'round', 'exp', 'expm1', 'log', 'log1p', 'sqrt', 'rsqrt', 'sin', 'cos', 'tan', 'atan', 'tanh', 'sigmoid', 'erf', 'isNan', 'isFinite'];
const binary = ['add', 'sub', 'mul', 'div', 'max', 'min', 'lt', 'eq', 'ne', 'ge'];

const floats = (n) => graph(`floats of ${n}`, (b) => {
  const x = b.input('x', 'f32', [n]), y = b.input('y', 'f32', [n]);
  for (const op of unary) b.output(op, x[op]());
  for (const op of binary) b.output(op, x[op](y));
  b.output('i32', x.convert('i32'));
  b.output('u32', x.convert('u32'));
  b.output('choice', x.lt(y).select(x, y));
});

// bitPatterns are random ones, and one of every special kind of number.
function bitPatterns(n) {
  const words = new Uint32Array(n), special = [0, 0x80000000, 1, 0x807fffff, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001, 0x4f000000, 0xcf000001, 0x3f000000, 0x40200000];
  let state = 12345;
  for (let i = 0; i < n; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    words[i] = i % 3 === 0 ? special[state % special.length] : state ^ state >>> 13;
  }
  return new Float32Array(words.buffer);
}

test('four lanes compute what one number does, NaN, infinities and all, for random bits', async () => {
  const open = async (n) => openProgram(await compile({ entries: { run: floats(n) }, target: 'wasm' }), { on: 'cpu' });
  const n = 3000, wide = await open(n), narrow = await open(3), x = bitPatterns(n), y = bitPatterns(n).reverse();
  const names = [...unary, ...binary, 'i32', 'u32', 'choice'];
  await wide.run('run', { x, y });
  const lanes = (await wide.readAll(names)).values;
  for (let at = 0; at < n; at += 3) { // rows of three are no vectors
    await narrow.run('run', { x: x.slice(at, at + 3), y: y.slice(at, at + 3) });
    const { values } = await narrow.readAll(names);
    for (const name of names) {
      values[name].forEach((want, i) => assert.ok(Object.is(lanes[name][at + i], want), `${name}(${x[at + i]}, ${y[at + i]}) is ${lanes[name][at + i]} in lanes and ${want} alone`));
    }
  }
  wide.close();
  narrow.close();
});

const bytes = (array) => new Uint8Array(array.buffer);

test('f64 is as exact as Math, and i64 wraps', async () => {
  const functions = ['exp', 'expm1', 'log', 'log1p', 'sin', 'cos', 'tan', 'asin', 'acos', 'atan', 'sinh', 'cosh', 'tanh', 'sqrt', 'floor', 'ceil'];
  const made = await program({ entries: { run: graph('wide', (b) => {
    const x = b.input('x', 'f64', [5]), i = b.input('i', 'i64', [4]), j = b.input('j', 'i64', [4]);
    for (const name of functions) b.output(name, x[name]());
    b.output('pow', x.abs().pow(x));
    for (const name of ['add', 'mul', 'div', 'max', 'lt']) b.output(`i ${name}`, i[name](j));
    b.output('i f64', i.convert('f64'));
  }) } }, { on: 'cpu' });
  const x = Float64Array.of(-0.75, 0, 0.3, 0.5, 0.9999), i = BigInt64Array.of(2n ** 62n, -7n, 5n, -1n), j = BigInt64Array.of(3n, 2n, -5n, 2n ** 63n - 1n);
  await made.run('run', { x: bytes(x), i: bytes(i), j: bytes(j) });
  for (const name of functions) {
    assert.deepEqual(new Float64Array((await made.read(name)).buffer), x.map((v) => Math[name](v)), name);
  }
  assert.deepEqual(new Float64Array((await made.read('pow')).buffer), x.map((v) => Math.abs(v) ** v));
  const meaning = { add: (a, b) => a + b, mul: (a, b) => a * b, div: (a, b) => a / b, max: (a, b) => a > b ? a : b };
  for (const [name, f] of Object.entries(meaning)) {
    const want = BigInt64Array.from(i, (a, k) => BigInt.asIntN(64, f(a, j[k])));
    assert.deepEqual(new BigInt64Array((await made.read(`i ${name}`)).buffer), want, name);
  }
  assert.deepEqual([...await made.read('i lt')], [...i].map((a, k) => Number(a < j[k])));
  assert.deepEqual(new Float64Array((await made.read('i f64')).buffer), Float64Array.from(i, Number));
  made.close();
});

// The largest exponent is that of infinity and NaN (IEEE 754, binary16; bfloat16 has 8 and 7 bits).
function halfNumber(bits, wide, places) {
  const one = 2 ** places, top = 2 ** wide - 1, bias = top >> 1;
  const sign = bits >> 15 ? -1 : 1, exponent = (bits >> places) & top, fraction = bits % one;
  if (exponent === top) return fraction ? NaN : sign * Infinity;
  return sign * (exponent === 0 ? fraction * 2 ** (1 - bias) : (one + fraction) * 2 ** (exponent - bias)) / one;
}

for (const [dtype, wide, places] of [['f16', 5, 10], ['bf16', 8, 7]]) {
  test(`every ${dtype} is the f32 that it stands for, and what lies between two goes to the nearest, ties to even`, async () => {
    const n = 1 << 16, made = await program({ entries: { run: graph(dtype, (b) => {
      b.output('wide', b.input('x', dtype, [n]).convert('f32'));
      b.output('near', b.input('y', 'f32', [2, n]).convert(dtype));
      b.output('odd', b.input('z', dtype, [7]).neg());
    }) } }, { on: 'cpu' });
    const x = Uint16Array.from({ length: n }, (_, bits) => bits), wanted = Float32Array.from(x, (bits) => halfNumber(bits, wide, places));
    const isWhole = (bits) => Number.isFinite(wanted[bits]) && Number.isFinite(wanted[bits + 1]) && (bits & 0x7fff) !== 0x7fff;
    const y = new Float32Array(2 * n); // each number, and the middle between it and the next
    x.forEach((bits) => { y[bits] = wanted[bits]; y[n + bits] = isWhole(bits) ? (wanted[bits] + wanted[bits + 1]) / 2 : 0; });
    await made.run('run', { x, y, z: x.slice(15360, 15367) });
    const { values } = await made.readAll(['wide', 'near', 'odd']);
    wanted.forEach((want, bits) => assert.ok(Object.is(values.wide[bits], want), `${bits} is ${values.wide[bits]}, not ${want}`));
    for (const bits of x) {
      if (!Number.isNaN(wanted[bits])) assert.equal(values.near[bits], bits);
      if (isWhole(bits)) assert.equal(values.near[n + bits], bits + bits % 2, `between ${wanted[bits]} and the next`);
    }
    assert.deepEqual([...values.odd], [...x.slice(15360, 15367)].map((bits) => bits | 0x8000));
    made.close();
  });
}

test('integers of 8 and 16 bits wrap, and are found where they do not lie side by side', async () => {
  const types = { i8: Int8Array, u8: Uint8Array, i16: Int16Array, u16: Uint16Array };
  const made = await program({ entries: { run: graph('narrow', (b) => {
    for (const dtype of Object.keys(types)) {
      const x = b.input(`x ${dtype}`, dtype, [7]), y = b.input(`y ${dtype}`, dtype, [7]);
      for (const name of ['add', 'sub', 'mul', 'max']) b.output(`${name} ${dtype}`, x[name](y));
      const turned = b.input(`m ${dtype}`, dtype, [9, 8]).transpose([1, 0]);
      b.output(`turned ${dtype}`, turned);
      b.output(`wide ${dtype}`, turned.convert('i32'));
    }
  }) } }, { on: 'cpu' });
  const meaning = { add: (a, b) => a + b, sub: (a, b) => a - b, mul: (a, b) => a * b, max: Math.max }, inputs = {};
  for (const [dtype, Type] of Object.entries(types)) {
    inputs[`x ${dtype}`] = Type.of(0, 1, -1, 127, 128, 200, 32767);
    inputs[`y ${dtype}`] = Type.of(-1, 255, 3, 2, -128, 100, 32767);
    inputs[`m ${dtype}`] = Type.from({ length: 72 }, (_, i) => i * 7919);
  }
  await made.run('run', inputs);
  for (const [dtype, Type] of Object.entries(types)) {
    for (const [name, f] of Object.entries(meaning)) {
      const want = Type.from(inputs[`x ${dtype}`], (a, i) => f(a, inputs[`y ${dtype}`][i]));
      assert.deepEqual(await made.read(`${name} ${dtype}`), want, `${name} of ${dtype}`);
    }
    const turned = inputs[`m ${dtype}`].map((_, i, m) => m[i % 9 * 8 + Math.floor(i / 9)]);
    assert.deepEqual(await made.read(`turned ${dtype}`), turned, dtype);
    assert.deepEqual(await made.read(`wide ${dtype}`), Int32Array.from(turned), dtype);
  }
  made.close();
});

test('what WebAssembly kernels lack is refused with its place', async () => {
  const error = graph('error', (b) => b.output('y', b.input('x', 'f64', [4]).erf()));
  await assert.rejects(program({ entries: { error } }, { on: 'cpu' }), { kind: 'unsupported', message: /erf of f64/ });
});

test('a browser without vectors gets an error that says so', async (t) => {
  const plan = await compile({ entries: { run: floats(3) }, target: 'wasm' });
  t.mock.method(WebAssembly, 'validate', () => false);
  await assert.rejects(openProgram(plan), { name: 'RlxError', kind: 'device', message: /SIMD/ });
  await assert.rejects(openProgram(plan, { on: 'gpu' }), { kind: 'device' });
});
