// Files of language models: GGUF and folders of Hugging Face, in memory, in Blobs and by ranges.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { openGGUF, openHF } from '../dist/lm.js';
import { encodeSafetensors } from '../dist/safetensors.js';
import { writeGGUF } from './gguf.mjs';
import { serve } from './rig/ranges.mjs';

const testdata = new URL('../../native/lm/testdata/', import.meta.url), read = (name) => readFileSync(new URL(name, testdata));

// A writer of GGUF by its specification.
const u32 = (n) => [...new Uint8Array(Uint32Array.of(n).buffer)], u64 = (n) => [...new Uint8Array(BigUint64Array.of(BigInt(n)).buffer)];
const raw = (array) => [...new Uint8Array(array.buffer)];
const str = (s) => [...u64(Buffer.byteLength(s)), ...Buffer.from(s)];
const kv = (key, kind, ...bytes) => [...str(key), ...u32(kind), ...bytes.flat()];
const list = (kind, n, bytes) => [...u32(kind), ...u64(n), ...bytes];
const info = ([name, type, dims, , offset]) => [...str(name), ...u32(dims.length), ...dims.flatMap(u64), ...u32(type), ...u64(offset)];
/** A file of metadata and of tensors: name, type, sizes as the file has them, bytes. */
function gguf(metadata, tensors = [], version = 3) {
  let at = 0;
  const placed = tensors.map((t) => {
    const one = [...t, at];
    at += Math.ceil(t[3].length / 32) * 32;
    return one;
  });
  const head = [...Buffer.from('GGUF'), ...u32(version), ...u64(tensors.length), ...u64(metadata.length), ...metadata.flat(), ...placed.flatMap(info)];
  const file = new Uint8Array(Math.ceil(head.length / 32) * 32 + at);
  file.set(head);
  for (const [, , , bytes, offset] of placed) file.set(bytes, Math.ceil(head.length / 32) * 32 + offset);
  return file;
}

test('a file that the gguf package 0.19.0 wrote has the tensors of the model', async () => {
  const f = await openGGUF(new Blob([read('llama/model.gguf')]));
  const h = await openHF({ 'config.json': new Blob([read('llama/config.json')]), 'model.safetensors': new Blob([read('llama/model.safetensors')]) });
  assert.deepEqual([f.metadata.get('general.architecture'), f.metadata.get('llama.block_count'), f.metadata.get('llama.rope.freq_base')], ['llama', 2, 500]);
  assert.deepEqual([f.tensors.get('token_embd.weight').type, f.tensors.get('token_embd.weight').shape, f.tensors.get('token_embd.weight').bytes], ['q8_0', [64, 32], 2176]);
  assert.deepEqual([h.metadata.get('hidden_size'), h.tokenizer, h.template], [32, undefined, undefined]);
  const named = [['blk.1.ffn_down.weight', 'model.layers.1.mlp.down_proj.weight'], ['blk.0.attn_v.weight', 'model.layers.0.self_attn.v_proj.weight'], ['output_norm.weight', 'model.norm.weight']];
  for (const [one, other] of named) assert.deepEqual(f.tensors.get(one).shape, h.tensors.get(other).shape, one);
  const floats = named.filter(([one]) => f.tensors.get(one).type === 'f32');
  assert.ok(floats.length >= 2);
  for (const [one, other] of floats) assert.deepEqual(await f.read(one), await h.read(other), one);
  const whole = await f.read('output_norm.weight');
  assert.deepEqual(await f.read('output_norm.weight', 4, 12), whole.slice(4, 12));
  await assert.rejects(f.read('none'), { name: 'RlxError', kind: 'name' });
  for (const range of [[-1], [0, 129], [9, 8], [0.5]]) await assert.rejects(f.read('output_norm.weight', ...range), { name: 'RlxError', kind: 'index' });
  for (const file of [f, h]) {
    file.close();
    await assert.rejects(file.read(file.tensors.keys().next().value), { name: 'RlxError', kind: 'closed' });
  }
});

const everyKind = gguf([
  kv('a.u8', 0, [1]), kv('a.i8', 1, [255]), kv('a.u16', 2, [2, 0]), kv('a.i16', 3, [254, 255]), kv('a.u32', 4, u32(3)), kv('a.i32', 5, u32(-3)), kv('a.f32', 6, raw(Float32Array.of(0.5))),
  kv('a.bool', 7, [1]), kv('a.text', 8, str('ü')), kv('a.u64', 10, u64(2n ** 63n)), kv('b.u64', 10, u64(5)), kv('a.i64', 11, u64(-4n & 0xffffffffffffffffn)), kv('a.f64', 12, raw(Float64Array.of(0.25))),
  kv('l.text', 9, list(8, 3, [...str('a'), ...str(''), ...str('ü')])), kv('l.f32', 9, list(6, 2, raw(Float32Array.of(1, 2)))), kv('l.i32', 9, list(5, 1, u32(-1))), kv('l.bool', 9, list(7, 2, [1, 0])),
  kv('l.u8', 9, list(0, 1, [7])), kv('l.l', 9, list(9, 2, [...list(0, 1, [1]), ...list(8, 1, str('x'))])), kv('l.u64', 9, list(10, 1, u64(9))),
], [['w', 2, [32, 2], Uint8Array.from({ length: 36 }, (_, i) => i)], ['s', 0, [], new Uint8Array(4)]]);

test('metadata of every kind, tensors, both versions', async () => {
  for (const version of [2, 3]) {
    const file = everyKind.slice();
    file[4] = version;
    const f = await openGGUF(file);
    assert.deepEqual(Object.fromEntries(f.metadata), {
      'a.u8': 1, 'a.i8': -1, 'a.u16': 2, 'a.i16': -2, 'a.u32': 3, 'a.i32': -3, 'a.f32': 0.5, 'a.bool': true, 'a.text': 'ü', 'a.u64': 2n ** 63n, 'b.u64': 5, 'a.i64': -4, 'a.f64': 0.25,
      'l.text': ['a', '', 'ü'], 'l.f32': Float32Array.of(1, 2), 'l.i32': Int32Array.of(-1), 'l.bool': [true, false], 'l.u8': Uint8Array.of(7), 'l.l': [Uint8Array.of(1), ['x']], 'l.u64': BigUint64Array.of(9n),
    });
    assert.deepEqual([f.tensors.get('w').shape, f.tensors.get('w').type, f.tensors.get('w').bytes, f.tensors.get('s').shape], [[2, 32], 'q4_0', 36, []]);
    assert.deepEqual([...await f.read('w')], Array.from({ length: 36 }, (_, i) => i));
  }
});

describe('files that lie are refused before memory is taken', () => {
  const good = gguf([kv('k', 8, str('v'))], [['w', 0, [2], new Uint8Array(8)]]), huge = [255, 255, 255, 255, 255, 255, 255, 127];
  const changed = (at, ...bytes) => {
    const out = good.slice();
    out.set(bytes, at);
    return out;
  };
  test('cut short', async () => {
    await openGGUF(good);
    for (let n = 0; n < good.length - 24; n++) await assert.rejects(openGGUF(good.subarray(0, n)), { name: 'RlxError', kind: 'syntax' }, `${n} of ${good.length} bytes`);
  });
  for (const [what, file, kind] of [
    ['the number of tensors', changed(8, ...huge), 'syntax'], ['the number of keys', changed(16, ...huge), 'syntax'], ['the length of a key', changed(24, ...huge), 'syntax'], ['a kind of value', changed(33, 13), 'syntax'],
    ['the length of a text', changed(37, ...huge), 'syntax'], ['version 1', changed(4, 1), 'unsupported'], ['big endian', changed(4, 0, 0, 0, 3), 'unsupported'], ['no GGUF', changed(0, 0), 'syntax'],
    ['an array longer than the file', gguf([kv('l', 9, list(6, 2 ** 40, []))]), 'syntax'], ['arrays in arrays', gguf([kv('l', 9, [...Array.from({ length: 20 }, () => list(9, 1, [])).flat(), ...list(0, 1, [1])])]), 'syntax'],
    ['a key twice', gguf([kv('k', 0, [1]), kv('k', 0, [1])]), 'syntax'], ['a tensor twice', gguf([], [['w', 24, [1], [1]], ['w', 24, [1], [1]]]), 'syntax'], ['5 axes', gguf([], [['w', 24, [1, 1, 1, 1, 1], [1]]]), 'syntax'],
    ['2^60 elements', gguf([], [['w', 24, [2 ** 30, 2 ** 30], [1]]]), 'syntax'], ['more elements than bytes', gguf([], [['w', 24, [999], [1]]]), 'syntax'], ['an unknown type', gguf([], [['w', 99, [1], [1]]]), 'syntax'],
    ['rows that are no blocks', gguf([], [['w', 2, [16, 2], new Uint8Array(18)]]), 'syntax'], ['an alignment', gguf([kv('general.alignment', 4, u32(3))]), 'syntax'],
  ]) test(what, () => assert.rejects(openGGUF(file), { name: 'RlxError', kind }));
  test('what is no file', async () => {
    for (const [given, kind] of [[3, 'attr'], [null, 'attr'], ['no address', 'attr'], [[], 'missing']]) await assert.rejects(openGGUF(given), { name: 'RlxError', kind });
  });
});

/** A model in two files. */
const split = (no, tensors) => gguf([kv('split.no', 2, [no, 0]), kv('split.count', 2, [2, 0]), kv('split.tensors.count', 5, u32(2))], tensors);
const first = split(0, [['a', 24, [1], [1]]]), second = split(1, [['b', 24, [1], [2]]]);

test('a model that is split is opened by all of its files', async () => {
  const f = await openGGUF([new Blob([first]), second]);
  assert.deepEqual([[...await f.read('a')], [...await f.read('b')]], [[1], [2]]);
  for (const [files, kind, message] of [
    [[first], 'missing', /one of 2/], [[second, first], 'syntax', /number 1/], [[first, first], 'syntax', /twice/], [[first, split(1, [])], 'syntax', /1 tensors/], [[first, second, second], 'syntax', /twice/],
  ]) await assert.rejects(openGGUF(files), { name: 'RlxError', kind, message });
});

test('by ranges only the header is read, and the tensors that are asked for', async (t) => {
  const tokens = Array.from({ length: 150000 }, (_, i) => `token ${i}`);
  const file = gguf([kv('tokens', 9, [...u32(8), ...u64(tokens.length)])], []); // the texts follow: bytes by the thousand are no arguments
  const texts = Buffer.concat(tokens.flatMap((token) => [Buffer.from(u64(token.length)), Buffer.from(token)]));
  const head = Buffer.concat([file.subarray(0, 24 + 8 + 6 + 4 + 12), texts, Buffer.from(info(['w', 24, [20 << 20], , 0]))]);
  head.writeUInt32LE(1, 8);
  const whole = Buffer.concat([head, Buffer.alloc(-head.length & 31), Buffer.alloc(20 << 20, 7)]), { url, seen } = await serve(t, { 'm.gguf': whole });
  const f = await openGGUF(`${url}m.gguf`);
  assert.deepEqual(f.metadata.get('tokens'), tokens);
  assert.ok(head.length > 2 << 20 && seen.bytes < 2 * head.length + (1 << 20), `${seen.bytes} bytes of a header of ${head.length}`);
  const before = seen.bytes;
  assert.deepEqual([...await f.read('w', 5, 9)], [7, 7, 7, 7]);
  assert.equal(seen.bytes - before, 4);
  const reading = f.read('w');
  f.close();
  await assert.rejects(reading, { name: 'RlxError', kind: 'closed' });
});

test('reads of neighbours that begin together are one request, and each has memory of its own', async (t) => {
  const sizes = { a: 64, b: 32, c: 3 << 20, d: 32 }, tensors = Object.entries(sizes).map(([name, n], i) => [name, { shape: [n / 4], type: 'f32', data: new Uint8Array(n).fill(i + 1) }]);
  const file = Buffer.from(writeGGUF({ 'general.architecture': 'none' }, Object.fromEntries(tensors)));
  const { url, seen } = await serve(t, { 'm.gguf': file }), f = await openGGUF(`${url}m.gguf`);
  const counted = async (reads) => {
    const { bytes, requests } = seen, got = await Promise.all(reads.map((one) => f.read(...one)));
    return { got, bytes: seen.bytes - bytes, requests: seen.requests - requests };
  };
  const { got, ...all } = await counted([['b'], ['a'], ['b', 1, 3], ['c', 0, 4]]);
  assert.deepEqual(all, { bytes: 100, requests: 1 });
  assert.deepEqual(got, [new Uint8Array(32).fill(2), new Uint8Array(64).fill(1), Uint8Array.of(2, 2), Uint8Array.of(3, 3, 3, 3)]);
  assert.equal(new Set(got.map(({ buffer }) => buffer)).size, 4);
  assert.ok(got.every((one) => one.buffer.byteLength === one.length));
  const { bytes, requests } = await counted([['a'], ['d']]);
  assert.deepEqual([bytes, requests], [96, 2], 'what lies between is not read');
  const reading = [f.read('a'), f.read('b')];
  f.close();
  for (const one of reading) await assert.rejects(one, { name: 'RlxError', kind: 'closed' });
});

test('split files, folders and errors by their addresses', async (t) => {
  const files = {
    'm-00001-of-00002.gguf': first, 'm-00002-of-00002.gguf': second, 'part.gguf': first, 'lost-00001-of-00002.gguf': first,
    'llama/config.json': read('llama/config.json'), 'llama/model.safetensors': read('llama/model.safetensors'),
  };
  const { url } = await serve(t, files), f = await openGGUF(`${url}m-00001-of-00002.gguf?download=true`);
  assert.deepEqual([...await f.read('b')], [2]);
  await assert.rejects(openGGUF(`${url}part.gguf`), { kind: 'syntax', message: /name of the first ends in -00001-of-00002\.gguf/ });
  await assert.rejects(openGGUF(`${url}lost-00001-of-00002.gguf`), { name: 'RlxError', kind: 'missing', message: /lost-00002-of-00002\.gguf cannot be loaded: 404/ });
  const h = await openHF(`${url}llama`);
  assert.equal((await h.read('lm_head.weight')).length, 8192);
  await assert.rejects(openHF(`${url}none/`), { name: 'RlxError', kind: 'missing', message: /no (config\.json|model\.safetensors)/ });
  files['m-00002-of-00002.gguf'] = Buffer.concat([second, second]);
  await assert.rejects(f.read('b'), { name: 'RlxError', kind: 'missing', message: /changed/ });
  const { url: plain } = await serve(t, files, { ranges: false });
  await assert.rejects(openGGUF(`${plain}m-00001-of-00002.gguf`), { name: 'RlxError', kind: 'unsupported', message: /ignores the range.*Blob/ });
  await assert.rejects(openGGUF('http://127.0.0.1:1/m.gguf'), { name: 'RlxError', kind: 'missing' });
});

describe('folders of Hugging Face', () => {
  const blob = (value) => new Blob([value instanceof Uint8Array || typeof value === 'string' ? value : JSON.stringify(value)]);
  const folder = (files) => Object.fromEntries(Object.entries(files).map(([name, value]) => [name, blob(value)]));
  const tensor = (...x) => ({ dtype: 'f32', shape: [x.length], data: Float32Array.from(x) });
  const shards = { 'a.safetensors': encodeSafetensors({ x: tensor(1) }), 'b.safetensors': encodeSafetensors({ y: tensor(2, 3) }), 'model.safetensors.index.json': { weight_map: { x: 'a.safetensors', y: 'b.safetensors' } } };
  const tokenizer = { model: { type: 'WordLevel', vocab: { '<s>': 0, '</s>': 1, '<end>': 2, hi: 3 } }, added_tokens: [{ id: 0, content: '<s>', special: true }, { id: 2, content: '<end>', special: true }] };

  test('files of tensors, a tokenizer, a template', async () => {
    const h = await openHF(folder({
      'config.json': { eos_token_id: 1 }, ...shards, 'tokenizer.json': tokenizer, 'generation_config.json': { eos_token_id: [2, 1] },
      'tokenizer_config.json': { bos_token: { content: '<s>' }, eos_token: '</s>', chat_template: [{ name: 'tool_use', template: 'no' }, { name: 'default', template: 'yes' }] },
    }));
    assert.deepEqual([[...h.tensors.keys()], new Float32Array((await h.read('y')).buffer)], [['x', 'y'], Float32Array.of(2, 3)]);
    assert.deepEqual([h.template, h.tokenizer.bos, h.tokenizer.eos, [...h.tokenizer.encode('hi')], h.tokenizer], ['yes', 0, [1, 2], [3], h.tokenizer]);
    assert.equal((await openHF(folder({ 'config.json': {}, ...shards, 'tokenizer_config.json': { chat_template: 'a' }, 'chat_template.jinja': 'b' }))).template, 'b');
  });

  test('the folders of a file system', async () => {
    const files = folder({ 'config.json': { a: 1 }, ...shards });
    const handle = { getFileHandle: async (name) => {
      if (!files[name]) throw new DOMException('none', 'NotFoundError');
      return { getFile: async () => files[name] };
    } };
    assert.equal((await openHF(handle)).metadata.get('a'), 1);
  });

  for (const [what, files, kind, message] of [
    ['no config.json', { ...shards }, 'missing', /config\.json/], ['no tensors', { 'config.json': {} }, 'missing', /model\.safetensors/], ['a file that is not there', { 'config.json': {}, ...shards, 'b.safetensors': undefined }, 'missing', /b\.safetensors/],
    ['JSON that is none', { 'config.json': '{' , ...shards }, 'syntax', /config\.json/], ['a list', { 'config.json': [], ...shards }, 'syntax', /Array/], ['no weight_map', { 'config.json': {}, 'model.safetensors.index.json': {} }, 'syntax', /weight_map/],
    ['a path', { 'config.json': {}, ...shards, 'model.safetensors.index.json': { weight_map: { x: '../a.safetensors' } } }, 'syntax', /beside/],
    ['a tensor in another file', { 'config.json': {}, ...shards, 'model.safetensors.index.json': { weight_map: { x: 'b.safetensors', y: 'b.safetensors' } } }, 'syntax', /tensor x is not in b/],
    ['a tensor beside the index', { 'config.json': {}, ...shards, 'model.safetensors.index.json': { weight_map: { y: 'a.safetensors' } } }, 'syntax', /tensor x is in undefined/],
    ['tensors cut short', { 'config.json': {}, ...shards, 'a.safetensors': shards['a.safetensors'].subarray(0, 20) }, 'syntax', /cut short/], ['no bytes', { 'config.json': {}, ...shards, 'a.safetensors': '' }, 'syntax', /cut short/],
  ]) test(what, () => assert.rejects(openHF(folder(Object.fromEntries(Object.entries(files).filter(([, value]) => value !== undefined)))), { name: 'RlxError', kind, message }));
});
