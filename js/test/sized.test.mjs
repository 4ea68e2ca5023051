// Plan files with open sizes, over Dawn and on the CPU, without the compiler.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { openProgram } from '../dist/runtime.js';
import { openSized } from '../dist/sized.js';
import { openDawn } from './rig/dawn.mjs';
import { isError } from './rig/is-error.mjs';

const shared = JSON.parse(readFileSync(join(import.meta.dirname, '../../internal/compiler/plan/sized/testdata/open.json')));
const file = new Uint8Array(Buffer.from(shared.file, 'base64'));
const plain = new Uint8Array(readFileSync(join(import.meta.dirname, '../../internal/compiler/plan/testdata/linear_v1_0.rlxp')));

let dawn;
before(async () => { dawn = await openDawn(); });
after(() => dawn.close());

const w = Float32Array.of(0.5, -1, 2, 0.25);
const rows = (batch, seq) => ({ shape: [batch, seq, 4], data: Float32Array.from({ length: batch * seq * 4 }, (_, i) => Math.sin(i * 1.7)) });

/** The softmax over each row of the products with w. */
function expected({ shape: [batch, seq], data }) {
  return Array.from({ length: batch }, (_, i) => {
    const all = Array.from({ length: seq }, (_, j) => Math.exp(w.reduce((sum, v, k) => sum + v * data[(i * seq + j) * 4 + k], 0))), total = all.reduce((a, b) => a + b, 0);
    return all.map((e) => e / total);
  }).flat();
}

for (const on of ['gpu', 'cpu']) {
  describe(`on the ${on}`, () => {
    const open = async (t, options = {}) => {
      const made = await openSized(file, { on, ...on === 'gpu' && { device: dawn.device }, ...options });
      t.after(() => made.close());
      return made;
    };

    test('a call is padded to the smallest plan that serves it; weights and states are common', async (t) => {
      const made = await open(t), y = async (x) => (await (await made.run('run', { x }, { read: ['y', 'calls'] })).reading).values;
      await assert.rejects(made.run('run', { x: rows(2, 3) }), isError('missing', /w is missing: give f32\[4\], or load it/));
      await made.load({ w: { dtype: 'f32', shape: [4], data: w } });
      for (const [i, [batch, seq]] of [[2, 3], [1, 2], [4, 1], [3, 3]].entries()) {
        const x = rows(batch, seq), values = await y(x), want = expected(x);
        assert.equal(values.y.length, want.length);
        values.y.forEach((v, k) => assert.ok(Math.abs(v - want[k]) < 1e-5, `${batch} by ${seq}: element ${k} is ${v} instead of ${want[k]}`));
        assert.deepEqual([...values.calls], [i + 1]);
      }
      assert.equal(made.compiled, 2);
      const { reading } = await made.run('double', {}, { read: ['w2'] });
      assert.deepEqual([...(await reading).values.w2], [...w].map((v) => 2 * v));
      assert.deepEqual(made.plan.entries.map(({ name }) => name), ['double']);
      assert.equal(made.device.name, on === 'gpu' ? 'webgpu' : 'cpu');
    });

    test('a size without a plan is refused with those of the file', async (t) => {
      const made = await open(t, { buckets: 1 });
      await made.load({ w: { dtype: 'f32', shape: [4], data: w } });
      for (const [batch, seq] of [[5, 1], [1, 4]]) {
        const text = new RegExp(`run: the file has no plan for batch=${batch}, seq=${seq}: it has batch=2, seq=3; batch=4, seq=3`);
        await assert.rejects(made.run('run', { x: rows(batch, seq) }), isError('limit', text));
        await assert.rejects(made.prepare('run', { batch, seq }), isError('limit', text));
      }
      await made.prepare('run', { batch: 3, seq: 1 });
      await assert.rejects(made.prepare('run', { bach: 3, seq: 1 }), isError('name', /has no symbol bach/));
      await assert.rejects(made.run('rum', {}), isError('name', /run/));
      for (const batch of [1, 4, 2, 3]) assert.equal((await (await made.run('run', { x: rows(batch, 2) }, { read: ['y'] })).reading).values.y.length, batch * 2);
      assert.equal(made.compiled, 1);
      assert.deepEqual([...await made.read('calls')], [4]);
    });
  });
}

/** CRC-32 as in IEEE 802.3. */
const crc32 = (bytes) => {
  let c = -1;
  for (const byte of bytes) {
    c ^= byte;
    for (let bit = 0; bit < 8; bit++) c = c & 1 ? c >>> 1 ^ 0xedb88320 : c >>> 1;
  }
  return ~c >>> 0;
};

test('hostile files are refused by the rules that Go refuses them by', async () => {
  for (const { what, Old, New, rule } of shared.cases) {
    const before = Buffer.from(Old ?? '', 'base64'), base = Buffer.from(file), at = base.indexOf(before);
    const bytes = Buffer.concat([base.subarray(0, at), Buffer.from(New ?? '', 'base64'), base.subarray(at + before.length)]);
    bytes.writeUInt32LE(bytes.length, 8);
    bytes.writeUInt32LE(crc32(bytes.subarray(16)), 12);
    const opened = openSized(new Uint8Array(bytes), { on: 'cpu' });
    if (!rule) (await opened).close();
    else await assert.rejects(opened, (error) => isError(rule === 8 ? 'version' : 'plan', new RegExp(`\\(rule ${rule}\\)`))(error), what);
  }
  await assert.rejects(openSized(file.subarray(0, 400)), isError('plan', /rule 1/));
  await assert.rejects(openSized(undefined), isError('plan', /rule 1/));
  await assert.rejects(openSized(file, { bucket: 3 }), isError('name', /buckets/));
  await assert.rejects(openProgram(file), isError('version', /section OPEN is not known/));
  await assert.rejects(openSized(plain), isError('version', /openProgram opens it/));
});
