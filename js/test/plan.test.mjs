// Plan files, whole and damaged, with no device.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { crc32 } from 'node:zlib';
import { decodePlan, openProgram, RlxError } from '../dist/runtime.js';
import { linearPlan, linearPlanWith, seal } from './linear.mjs';

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
  assert.throws(() => decodePlan(withSection('ROUT', 1, [0, 0, 0, 0])), { kind: 'version', message: /ROUT/ }, 'routines of libraries, which a page has not');
  assert.throws(() => decodePlan(withSection('BUFS', 1, [0, 0, 0, 0])), { kind: 'plan', message: /twice/ });
});

test('a file of another kind is not a plan', () => {
  assert.equal(kindOf(new Uint8Array(0)), 'plan');
  assert.throws(() => decodePlan(Buffer.from('<!doctype html><title>404</title>')), { kind: 'plan', message: /no plan file/ });
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

// The files of internal/compiler/plan/testdata/cases.json, on which the Go package says the same.
const shared = JSON.parse(readFileSync(new URL('../../internal/compiler/plan/testdata/cases.json', import.meta.url), 'utf8'));
const base = Buffer.from(shared.base, 'base64');

/** The file of a case: edits of the base, from the last to the first. */
function fileOf({ edits, raw }) {
  const file = edits.reduceRight((bytes, { at, remove = 0, insert = '' }) => Buffer.concat([bytes.subarray(0, at), Buffer.from(insert, 'base64'), bytes.subarray(at + remove)]), base);
  return raw ? file : seal(file);
}

/** What decodePlan says of a file: the number of the rule it breaks, 0 where none, and the kind of the error. */
function verdict(file) {
  try {
    decodePlan(file);
    return { rule: 0 };
  } catch (error) {
    assert.ok(error instanceof RlxError, error.stack);
    const [, rule] = error.message.match(/ \(rule (\d+)\)$/) ?? assert.fail(error.message);
    return { rule: Number(rule), kind: error.kind };
  }
}

describe('a plan file is judged as in Go', () => {
  for (const { rule, kind, what, ...how } of shared.cases) test(`rule ${rule}: ${what}`, () => {
    assert.deepEqual(verdict(fileOf({ ...how })), rule === 0 ? { rule } : { rule, kind: kind === 'version' ? kind : 'plan' });
  });
});

/** Makes the mutant that the Go package makes. */
function mutant(seed, below) {
  const bytes = Buffer.from(seed), place = () => 16 + 4 * below((bytes.length - 16) >> 2);
  for (let n = 1 + below(2) * below(3); n > 0; n--) {
    const at = place(), v = bytes.readUInt32LE(at), put = (n) => bytes.writeUInt32LE(n >>> 0, at);
    switch (below(8)) {
      case 0: put(below(9)); break;
      case 1: put(v + 1); break;
      case 2: put(v - 1); break;
      case 3: put(v * 2); break;
      case 4: put(v ^ 1 << below(32)); break;
      case 5: put(256 * below(17)); break;
      case 6: put([2 ** 32 - 1, 2 ** 31 - 1, 2 ** 31, 2 ** 16][below(4)]); break;
      case 7: {
        const from = place();
        bytes.copyWithin(at, from, from + 4 * (1 + below(12)));
      }
    }
  }
  return seal(bytes);
}

test('thousands of changed plan files are judged as in Go', () => {
  const letters = '.123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
  const seeds = shared.cases.filter(({ rule }) => rule === 0).map(fileOf), { verdicts, sum } = shared.mutants;
  let state = 1, made = 0;
  const below = (n) => {
    state = Math.imul(state, 1664525) + 1013904223 >>> 0;
    return Math.floor(state / 2 ** 32 * n);
  };
  const files = Array.from(verdicts.join(''), (_, i) => mutant(seeds[i % seeds.length], below));
  for (const file of files) made = crc32(file, made);
  assert.equal(made, sum, 'the mutants are others than those of the Go package');
  const wrong = files.flatMap((file, i) => {
    const got = letters[verdict(file).rule], want = verdicts.join('')[i];
    return got === want ? [] : [`mutant ${i}: ${got}, in Go ${want}`];
  });
  assert.deepEqual(wrong, []);
});

// A writer of plan files, for plans with very many of something.
const u32 = (...numbers) => Buffer.from(Uint32Array.from(numbers).buffer);
const u64 = (...numbers) => Buffer.from(BigUint64Array.from(numbers, BigInt).buffer);
const sized = (...fields) => {
  const body = Buffer.concat(fields);
  return Buffer.concat([u32(body.length), body, Buffer.alloc(-body.length & 3)]);
};
const string = (text) => sized(Buffer.from(text));
const list = (items) => Buffer.concat([u32(items.length), ...items]);
const many = (n, item) => list(Array.from({ length: n }, (_, i) => item(i)));
const entry = (name, outputs, steps) => sized(string(name), u32(0, 0), many(outputs, (i) => u32(i)), u32(0), steps);

/** A file with a state buffer of 512 bytes for each of n things, and one kernel bound to `arrays` places. */
function largePlan(n, { slots = list([]), arrays = 1, entries }) {
  const limits = [arrays, 512 * n, 512 * n, 0, 1, 1, 1, 1, 1];
  const parts = {
    META: [string('large'), string('by hand'), string('webgpu')], REQS: [u32(0), u64(...limits), u32(0, 0)],
    BUFS: [list([sized(u32(2), u64(512 * n))])], SLOT: [slots], CNST: [u32(0)],
    KRNL: [list([sized(string('k'), string('x'), u32(1, 1, 1), u32(0), many(arrays, () => u32(1)), u32(0, 0))])], ENTR: [entries],
  };
  const sections = Object.entries(parts).flatMap(([tag, fields]) => [Buffer.from(tag), u32(1), sized(...fields)]);
  return seal(Buffer.concat([Buffer.from('RLXP'), u32(1, 0, 0), ...sections]));
}

const dispatch = (bindings) => sized(u32(0, 0, 1, 1, 1), bindings);
const slot = (role, i) => sized(string(`${role} ${i}`), u32(role), string('f32'), u32(0, 0), u64(4 * i, 4), u32(0), u64(0, 0));

// What is checked pair by pair takes half a minute.
for (const [what, file] of [
  ['80,000 bindings', () => {
    const n = 80_000, at = (i) => Buffer.concat([u32(0), u64(256 * (i * 7919 % n), 8)]);
    return largePlan(n, { arrays: n, entries: list([entry('e', 0, list([dispatch(many(n, at))]))]) });
  }],
  ['80,000 outputs and states', () => largePlan(80_000, { slots: many(80_000, (i) => slot(3 + i % 2, i)), entries: list([entry('e', 80_000, list([]))]) })],
  ['200,000 entries', () => largePlan(1, { entries: many(200_000, (i) => entry(`e${i}`, 0, list([]))) })],
  ['200,000 steps', () => largePlan(1, { entries: list([entry('e', 0, many(200_000, () => dispatch(list([Buffer.concat([u32(0), u64(0, 8)])]))))]) })],
]) test(`a plan of ${what} is read soon`, () => {
  const bytes = file(), begun = process.cpuUsage();
  decodePlan(bytes);
  const { user, system } = process.cpuUsage(begun);
  assert.ok(user + system < 2e6, `${(user + system) / 1000} ms`);
});

test('a plan for another target is read, and not opened', async () => {
  const file = linearPlanWith('webgpu', 'abacus'), device = { features: new Set(), limits: decodePlan(file).requires.limits };
  await assert.rejects(openProgram(file, { device }), { kind: 'limit', message: /target abacus/ });
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
  assert.throws(() => decodePlan(seal(new Uint8Array(bytes))), { kind: 'plan', message: /entry fold \(rule 40\)/ });
});
