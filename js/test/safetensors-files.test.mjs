// Files of tensors that are read one by one, and written so: from memory, Blobs, folders and addresses.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { decodeSafetensors, encodeSafetensors, openSafetensors, writeSafetensors } from '../dist/safetensors.js';
import { openHF } from '../dist/lm.js';
import { serve } from './rig/ranges.mjs';

const f32 = (shape, ...x) => ({ dtype: 'f32', shape, data: Float32Array.from(x) });
const tensors = {
  w: f32([2, 2], 1, 2, 3, 4), small: { dtype: 'bf16', shape: [2], data: Uint16Array.of(0x3f80, 0xc000) }, big: { dtype: 'i64', shape: [1], data: BigInt64Array.of(-5n) },
  one: f32([], 7), none: f32([0, 3]), flags: { dtype: 'bool', shape: [2], data: Uint8Array.of(1, 0) },
};
const whole = encodeSafetensors(tensors, { made: 'here' });

/** A file with a header and bytes. */
function raw(header, bytes) {
  const json = Buffer.from(JSON.stringify(header)), out = Buffer.alloc(8 + json.length + bytes.length);
  out.writeBigUInt64LE(BigInt(json.length));
  json.copy(out, 8);
  Buffer.from(bytes).copy(out, 8 + json.length);
  return new Uint8Array(out);
}

/** A folder of a file system by its files. */
const directory = (files) => ({
  async* keys() { yield* Object.keys(files); },
  async getFileHandle(name) {
    if (!files[name]) throw new DOMException('none', 'NotFoundError');
    return { getFile: async () => files[name] };
  },
});
const rejects = (promise, kind, message) => assert.rejects(promise, { name: 'RlxError', kind, message });

describe('a file', () => {
  for (const [what, given] of [['bytes', whole], ['a Blob', new Blob([whole])], ['a handle', { getFile: async () => new Blob([whole]) }]]) {
    test(what, async () => {
      const file = await openSafetensors(given);
      assert.deepEqual([...file.tensors].map(([name, { dtype, shape, bytes }]) => [name, dtype, [...shape], bytes]), [
        ['big', 'i64', [1], 8], ['flags', 'bool', [2], 2], ['none', 'f32', [0, 3], 0], ['one', 'f32', [], 4], ['small', 'bf16', [2], 4], ['w', 'f32', [2, 2], 16],
      ]);
      assert.deepEqual(file.metadata, { made: 'here' });
      for (const [name, tensor] of Object.entries(tensors)) assert.deepEqual({ ...await file.read(name) }, tensor);
      assert.deepEqual((await file.read('small')).as('f32').data, Float32Array.of(1, -2));
      file.close();
      await rejects(file.read('w'), 'closed', /closed/);
    });
  }

  test('20 GB of which the header and one tensor are read', async () => {
    const size = 20e9, head = raw({ first: { dtype: 'U8', shape: [size - 4], data_offsets: [0, size - 4] }, last: { dtype: 'F32', shape: [1], data_offsets: [size - 4, size] } }, []);
    let read = 0;
    /** A Blob whose bytes after the header are zeros but for the last four. */
    class Large extends Blob {
      get size() { return head.length + size; }
      slice(begin, end) {
        read += end - begin;
        return new Blob([end <= head.length ? head.subarray(begin, end) : new Uint8Array(Float32Array.of(2.5).buffer)]);
      }
    }
    const file = await openSafetensors(new Large([]));
    assert.equal(read, head.length);
    assert.deepEqual([...(await file.read('last')).data], [2.5]);
    assert.equal(read, head.length + 4);
  });

  test('a type that is not known is refused for its tensor alone', async () => {
    const file = await openSafetensors(raw({ a: { dtype: 'F8_E8M0', shape: [2], data_offsets: [0, 2] }, b: { dtype: 'U8', shape: [1], data_offsets: [2, 3] }, c: { dtype: 'BOOL', shape: [1], data_offsets: [3, 4] } }, [1, 2, 3, 4]));
    assert.deepEqual([...(await file.read('b')).data], [3]);
    assert.equal(file.tensors.get('a').dtype, 'F8_E8M0');
    await rejects(file.read('a'), 'dtype', /a has the type F8_E8M0/);
    await rejects(file.read('c'), 'syntax', /c is BOOL/);
    await rejects(file.read('d'), 'name', /no tensor d/);
    await rejects(file.read(), 'name', /no tensor undefined/);
  });
});

describe('several files', () => {
  const parts = { 'a.safetensors': encodeSafetensors({ x: f32([1], 1) }, { a: '1' }), 'b.safetensors': encodeSafetensors({ y: f32([2], 2, 3) }, { b: '2' }) };
  const index = { 'm.safetensors.index.json': Buffer.from(JSON.stringify({ metadata: { total_size: 12 }, weight_map: { x: 'a.safetensors', y: 'b.safetensors' } })) };
  const other = { 'c.safetensors': encodeSafetensors({ x: f32([1], 9) }), 'readme.md': Buffer.from('text') };
  const blobs = (files) => Object.fromEntries(Object.entries(files).map(([name, bytes]) => [name, new Blob([bytes])]));
  const check = async (file) => {
    assert.deepEqual([[...file.tensors.keys()], [...(await file.read('x')).data], [...(await file.read('y')).data], file.metadata], [['x', 'y'], [1], [2, 3], { a: '1', b: '2' }]);
    file.close();
    await rejects(file.read('y'), 'closed', /closed/);
  };
  test('blobs with an index, and without one', async () => {
    await check(await openSafetensors(blobs({ ...parts, ...index, ...other })));
    await check(await openSafetensors(blobs({ ...parts, 'readme.md': other['readme.md'] })));
  });
  test('a folder of a file system', async () => {
    await check(await openSafetensors(directory(blobs({ ...parts, ...index, ...other }))));
    await check(await openSafetensors(directory(blobs(parts))));
  });
  test('addresses: an index, a file, of which ranges are read', async (t) => {
    const long = encodeSafetensors({ w: { dtype: 'u8', shape: [1 << 20], data: new Uint8Array(1 << 20).fill(3) }, v: f32([2], 5, 6) });
    const { url, seen } = await serve(t, { ...Object.fromEntries(Object.entries({ ...parts, ...index, ...other, 'm#.index.json': index['m.safetensors.index.json'] }).map(([name, bytes]) => [`of/${name}`, Buffer.from(bytes)])), 'long.safetensors': Buffer.from(long) });
    await check(await openSafetensors(`${url}of/m.safetensors.index.json?download=true`));
    await check(await openSafetensors(new URL('of/m.safetensors.index.json', url)));
    seen.bytes = 0;
    const file = await openSafetensors(`${url}long.safetensors`);
    assert.deepEqual([...(await file.read('v')).data], [5, 6]);
    assert.ok(seen.bytes < 1000, `${seen.bytes} bytes`);
    await rejects(openSafetensors(`${url}none.safetensors`), 'missing', /none\.safetensors.*404/);
    await rejects(openSafetensors(`${url}none.index.json`), 'missing', /none\.index\.json/);
    await check(await openSafetensors(`${url}of/m%23.index.json`));
    seen.version = '"1"';
    const changing = await openSafetensors(`${url}long.safetensors`);
    assert.deepEqual([...(await changing.read('v')).data], [5, 6]);
    seen.version = '"2"';
    await rejects(changing.read('v'), 'missing', /long\.safetensors has been changed since/);
    // Copies of one file by the same server: its ETag, or its time, may be another.
    const [first, second] = ['Tue, 24 Nov 2026 10:00:00 GMT', 'Wed, 25 Nov 2026 10:00:00 GMT'];
    Object.assign(seen, { version: '"1"', time: first });
    const copied = await openSafetensors(`${url}long.safetensors`);
    for (const [version, time] of [['"2"', first], ['"1"', second], ['"1"', ''], ['', first], ['', '']]) {
      Object.assign(seen, { version, time });
      assert.deepEqual([...(await copied.read('v')).data], [5, 6], `${version} of ${time}`);
    }
    for (const [version, time] of [['"2"', second], ['"2"', ''], ['', second]]) {
      Object.assign(seen, { version, time });
      await rejects(copied.read('v'), 'missing', /long\.safetensors has been changed since/);
    }
    const { url: plain } = await serve(t, { 'a.safetensors': Buffer.from(parts['a.safetensors']) }, { ranges: false });
    await rejects(openSafetensors(`${plain}a.safetensors`), 'unsupported', /range/);
  });
  test('what is refused', async () => {
    const list = (weight_map) => ({ 'm.safetensors.index.json': Buffer.from(JSON.stringify({ weight_map })) });
    await rejects(openSafetensors(blobs({ ...parts, ...list({ x: '../a.safetensors' }) })), 'syntax', /beside/);
    await rejects(openSafetensors(blobs({ ...parts, ...list({ x: 'a.safetensors', y: 'a.safetensors' }) })), 'syntax', /tensor y is not in a/);
    await rejects(openSafetensors(blobs({ ...parts, ...list({ x: 'a.safetensors', y: 'd.safetensors' }) })), 'missing', /d\.safetensors/);
    await rejects(openSafetensors(blobs({ ...parts, ...other })), 'syntax', /x is in another file/);
    await rejects(openSafetensors(blobs({ ...index, 'n.safetensors.index.json': index['m.safetensors.index.json'] })), 'name', /one index/);
    await rejects(openSafetensors({}), 'missing', /no file/);
    for (const bad of [new Uint8Array(7), new Uint8Array(20)]) await rejects(openSafetensors(blobs({ ...parts, 'c.safetensors': bad })), 'syntax', /^c\.safetensors: /);
    for (const given of [undefined, null, 3]) await rejects(openSafetensors(given), 'attr', /a file or a folder|a folder/);
    await rejects(openSafetensors(new Uint8Array(3)), 'syntax', /cut short/);
    await rejects(openSafetensors(whole.subarray(0, whole.length - 1)), 'syntax', /cut short/);
    await rejects(openSafetensors(new Uint8Array([0x50, 0x4b, 3, 4, 0, 0, 0, 0, 0])), 'syntax', /torch\.save/);
  });
  test('files and folders that are removed', async () => {
    const getFile = async () => { throw new DOMException('gone', 'NotReadableError'); }, gone = { name: 'models', async* keys() { throw new DOMException('gone', 'NotFoundError'); }, getFileHandle() {} };
    const folder = { async* keys() { yield 'a.safetensors'; }, getFileHandle: async () => ({ getFile }) };
    for (const [given, message] of [[{ name: 'a.safetensors', getFile }, /^a\.safetensors cannot be read: gone/], [folder, /^a\.safetensors cannot be read: gone/], [gone, /^models cannot be read: gone/]]) {
      await rejects(openSafetensors(given), 'missing', message);
    }
    await rejects(openHF(folder), 'missing', /cannot be read: gone/);
  });
});

test('a model of Hugging Face is opened as a file of tensors', async () => {
  const at = new URL('../../native/lm/testdata/llama/model.safetensors', import.meta.url), bytes = readFileSync(at), file = await openSafetensors(new Blob([bytes])), { tensors: all } = decodeSafetensors(bytes);
  assert.deepEqual([...file.tensors.keys()].sort(), Object.keys(all).sort());
  for (const [name, { data }] of Object.entries(all)) assert.deepEqual((await file.read(name)).data, data);
});

describe('writing', () => {
  /** A stream that keeps what is written, and how it ended. */
  function sink({ fail } = {}) {
    const kept = { chunks: [], closed: false, aborted: undefined };
    const stream = new WritableStream({
      write(chunk) {
        if (kept.chunks.length === fail) throw new Error('full');
        kept.chunks.push(chunk.slice());
      },
      close() { kept.closed = true; }, abort(reason) { kept.aborted = reason; },
    });
    return { kept, stream };
  }
  const entriesOf = (all, log = []) => Object.entries(all).map(([name, { dtype, shape, data }]) => ({ name, dtype, shape, read: async () => { log.push(name); return data; } }));

  test('gives the bytes of encodeSafetensors for names in order, one tensor after the other', async () => {
    const { kept, stream } = sink(), sorted = Object.fromEntries(Object.entries(tensors).sort(([a], [b]) => a < b ? -1 : 1)), log = [];
    await writeSafetensors(stream, entriesOf(sorted, log), { made: 'here' });
    assert.deepEqual([Buffer.concat(kept.chunks).equals(whole), kept.closed, kept.chunks.length, log], [true, true, 7, Object.keys(sorted)]);
    const { kept: unsorted, stream: to } = sink();
    await writeSafetensors(to, entriesOf(tensors));
    assert.deepEqual({ ...(await (await openSafetensors(Buffer.concat(unsorted.chunks))).read('w')) }, tensors.w);
  });

  test('what is refused, and ends the stream', async () => {
    const [w] = entriesOf({ w: tensors.w });
    for (const [entries, kind, message] of [
      [[w, w], 'name', /w is there twice/], [[{ ...w, dtype: 'q4' }], 'dtype', /no type for q4/], [[{ ...w, shape: [-1] }], 'dtype', /w is/], [[undefined], 'dtype', /undefined/], [[{ ...w, name: '__metadata__' }], 'name', /__metadata__/],
      [[{ ...w, shape: [3] }], 'shape', /w has 4 elements/], [[{ ...w, read: () => new Uint8Array(4) }], 'dtype', /Float32Array/], [[{ ...w, read: () => undefined }], 'dtype', /Float32Array/],
      [[w, { ...w, name: 'v', read: undefined }], 'attr', /read of v .*a function/],
    ]) {
      const { kept, stream } = sink();
      await rejects(writeSafetensors(stream, entries), kind, message);
      assert.equal(kept.chunks.length > 0, /w has|Float32Array/.test(message.source), 'nothing is written of what cannot be described');
      assert.deepEqual([kept.closed, kept.aborted?.kind], [false, kind]);
    }
    const { kept, stream } = sink({ fail: 1 });
    await assert.rejects(writeSafetensors(stream, [w]), /full/);
    assert.equal(kept.closed, false);
    await rejects(writeSafetensors(3, [w]), 'attr', /WritableStream/);
    const { stream: once } = sink();
    await writeSafetensors(once, [w]);
    await rejects(writeSafetensors(once, [w]), 'closed', /writeSafetensors/);
    const { stream: locked } = sink(), writer = locked.getWriter();
    await rejects(writeSafetensors(locked, [w]), 'attr', /without a writer/);
    writer.releaseLock();
    await rejects(writeSafetensors(sink().stream, 3), 'attr', /a list/);
    await rejects(writeSafetensors(sink().stream, [w], { a: 3 }), 'syntax', /metadata/);
  });
});
