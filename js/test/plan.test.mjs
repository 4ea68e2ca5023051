// Plan files, whole and damaged, with no device.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodePlan, RlxError } from '../dist/runtime.js';
import { linearPlan, seal } from './linear.mjs';

/** Decodes, and returns the kind of the error, or undefined. */
function kindOf(bytes) {
  try {
    decodePlan(bytes);
  } catch (error) {
    assert.ok(error instanceof RlxError, error.stack);
    return error.kind;
  }
}

const section = (tag, flags, payload = []) => [...Buffer.from(tag), flags, 0, 0, 0, payload.length, 0, 0, 0, ...payload];
const withSection = (...args) => seal(Uint8Array.from([...linearPlan(), ...section(...args)]));
const changed = (change) => {
  const bytes = linearPlan();
  change(bytes, new DataView(bytes.buffer));
  return seal(bytes);
};

test('the golden plan of version 1.0 is read', () => {
  const plan = decodePlan(linearPlan());
  assert.equal(plan.name, 'linear');
  assert.deepEqual(plan.symbols, [{ name: 'batch', value: 4 }]);
  assert.deepEqual(plan.entries.map(({ name }) => name), ['init', 'step', 'predict', 'fold', 'pick']);
  assert.deepEqual(plan.slots.find(({ name }) => name === 'label').range, [0, 4]);
  assert.equal(plan.slots.find(({ name }) => name === 'free').range, undefined);
  assert.deepEqual(plan.entries[3].steps.map(({ kind }) => kind), ['dispatch', 'repeat', 'copy']);
  assert.deepEqual([...plan.constants[0].data.slice(0, 4)], [0, 0, 0x80, 0x3f]);
  assert.deepEqual(plan.status.codes, [{ code: 7, node: 'pick(free)', message: 'index outside [0, 4)' }]);
  assert.equal(plan.requires.limits.maxStorageBuffersPerShaderStage, 8);
});

test('a part of a larger buffer is read as well', () => {
  const bytes = linearPlan(), larger = new Uint8Array(bytes.length + 9);
  larger.set(bytes, 5);
  assert.equal(decodePlan(larger.subarray(5, 5 + bytes.length)).name, 'linear');
  assert.equal(decodePlan(bytes.buffer).name, 'linear');
});

test('versions', () => {
  assert.equal(kindOf(changed((b) => { b[6] = 9; })), undefined, 'a later minor version');
  assert.equal(kindOf(changed((b) => { b[4] = 2; })), 'version', 'another major version');
  assert.equal(kindOf(withSection('FUTR', 0, [1, 2, 3, 4])), undefined, 'an unknown optional section');
  assert.throws(() => decodePlan(withSection('FUTR', 1)), { kind: 'version', message: /FUTR/ });
  assert.throws(() => decodePlan(withSection('BUFS', 1, [0, 0, 0, 0])), { kind: 'plan', message: /twice/ });
});

test('a file of another kind is not a plan', () => {
  assert.equal(kindOf(new Uint8Array(0)), 'plan');
  assert.throws(() => decodePlan(Buffer.from('<!doctype html><title>404</title>')), { kind: 'plan', message: /RLXP/ });
});

test('every truncation is an error', () => {
  const bytes = linearPlan(), status = Buffer.from(bytes).lastIndexOf('STAT');
  for (let n = 0; n < bytes.length; n++) {
    assert.equal(kindOf(bytes.slice(0, n)), 'plan', `${n} bytes`);
    // With a right header the sections' own checks are met; only STAT can be done without.
    if (n >= 16 && n !== status) assert.equal(kindOf(seal(bytes.slice(0, n))), 'plan', `${n} bytes, sealed`);
  }
});

test('every changed byte is an error', () => {
  const bytes = linearPlan();
  for (let i = 0; i < bytes.length; i++) {
    if (i === 6 || i === 7) continue; // the minor version
    bytes[i] ^= 0x81;
    assert.ok(['plan', 'version'].includes(kindOf(bytes)), `byte ${i}`);
    bytes[i] ^= 0x81;
  }
});

test('changes under a right checksum end soon, in a plan or an error of its kind', () => {
  let state = 12345;
  const random = (n) => {
    state = Math.imul(state, 1664525) + 1013904223 >>> 0;
    return Math.floor(state / 2 ** 32 * n);
  };
  const begun = performance.now();
  let refused = 0;
  for (let round = 0; round < 3000; round++) {
    const bytes = linearPlan();
    for (let n = 1 + random(4); n > 0; n--) bytes[16 + random(bytes.length - 16)] = [0, 1, 0x7f, 0xff, random(256)][random(5)];
    if (kindOf(seal(bytes)) !== undefined) refused++;
  }
  assert.ok(refused > 500, `${refused} refused`);
  assert.ok(performance.now() - begun < 20_000);
});

test('a plan that would never end is refused', () => {
  const bytes = Buffer.from(linearPlan()), view = new DataView(bytes.buffer, bytes.byteOffset);
  // Each repeat is a record of kind 2: its count follows.
  for (let at = bytes.indexOf('ENTR'), found = 0; found < 2; at += 4) {
    if (view.getUint32(at, true) === 2 && [2, 3].includes(view.getUint32(at + 4, true)) && view.getUint32(at + 8, true) === 1) {
      view.setUint32(at + 4, 65536, true);
      found++;
    }
  }
  assert.throws(() => decodePlan(seal(new Uint8Array(bytes))), { kind: 'plan', message: /too many dispatches/ });
});
