// Drafts: kernels that run in place of others while those are compiled.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { decodePlan, openProgram } from '../dist/runtime.js';
import { countGPU } from './rig/counter.mjs';
import { openDawn } from './rig/dawn.mjs';

// The plan of linear.mjs with a draft for the kernel of predict: four workgroups of one thread.
const drafted = () => new Uint8Array(readFileSync(new URL('../../internal/compiler/plan/testdata/drafted_v1_3.rlxp', import.meta.url)));
const x = Float32Array.from({ length: 12 }, (_, i) => i), weights = [0.5, 1, 1.5], draftGroups = '4,1,1';

let dawn, counter;
before(async () => {
  dawn = await openDawn();
  counter = countGPU();
});
after(() => dawn.close());

/** What goes on by itself has gone on. */
const settled = () => new Promise((resolve) => setTimeout(resolve, 200));

/**
 * The test's device, where pipelines of whole kernels are made when the returned function is called:
 * those of entry predict that have four threads.
 */
function slow({ fail = false } = {}) {
  let release;
  const released = new Promise((resolve) => { release = resolve; }), whole = new WeakSet(), asked = [];
  const device = new Proxy(dawn.device, {
    get(target, name) {
      const value = Reflect.get(target, name, target);
      if (name === 'createShaderModule') return (descriptor) => {
        const module = value.call(target, descriptor);
        if (/predict$/.test(descriptor.label) && descriptor.code.includes('@workgroup_size(4)')) whole.add(module);
        return module;
      };
      if (name === 'createComputePipelineAsync') return async (descriptor) => {
        if (!whole.has(descriptor.compute.module)) return value.call(target, descriptor);
        asked.push(descriptor.label);
        await released;
        if (fail) throw new Error('the driver gave up');
        return value.call(target, descriptor);
      };
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  return { device, asked, async release() { release(); await settled(); } };
}

/** Runs predict, and returns the groups of its dispatch. */
async function predict(program) {
  counter.take();
  const { reading } = await program.run('predict', { x }, { read: ['prediction'] });
  const { prediction } = (await reading).values;
  assert.deepEqual([...prediction], [0, 1, 2, 3].map((r) => weights.reduce((sum, w, i) => sum + x[3 * r + i] * w, 0)));
  return counter.dispatches().map(String);
}

async function open(t, device, options) {
  const program = await openProgram(drafted(), { device, ...options });
  t.after(() => program.close());
  await program.run('init');
  return program;
}

test('a program is ready while a kernel is compiled, which then takes the place of its draft', async (t) => {
  const gate = slow(), program = await open(t, gate.device);
  assert.equal(gate.asked.length, 0, 'nothing is compiled beside the first run');
  assert.deepEqual(await predict(program), [draftGroups]);
  await settled();
  assert.equal(gate.asked.length, 1);
  assert.deepEqual(await predict(program), [draftGroups]);
  await gate.release();
  assert.deepEqual(await predict(program), ['1,1,1']);
});

test('without drafts a program waits for its kernels', async (t) => {
  const gate = slow();
  const opening = open(t, gate.device, { drafts: false });
  assert.equal(await Promise.race([opening, new Promise((resolve) => setTimeout(resolve, 200, 'waits'))]), 'waits');
  await gate.release();
  assert.deepEqual(await predict(await opening), ['1,1,1']);
});

test('a draft stays where its kernel cannot be compiled, and where the program is closed before', async (t) => {
  const gate = slow({ fail: true }), program = await open(t, gate.device);
  assert.deepEqual(await predict(program), [draftGroups]);
  await gate.release();
  assert.deepEqual(await predict(program), [draftGroups]);
  const other = slow(), closed = await open(t, other.device);
  await predict(closed);
  closed.close();
  await other.release();
});

test('what a plan says of drafts is read', () => {
  const { kernels, entries } = decodePlan(drafted());
  const [{ name, draft }, ...others] = kernels.filter((kernel) => kernel.draft);
  assert.deepEqual([name, others], ['predict', []]);
  assert.match(draft, /@workgroup_size\(1\)/);
  assert.deepEqual(entries.flatMap(({ steps }) => steps.filter((step) => step.draft)).map((step) => step.draft), [[4, 1, 1]]);
});
