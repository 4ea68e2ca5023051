// Tint, Chromium's compiler, and Dawn's checks of pipelines and bindings accept every kernel of the conformance suite,
// at the limits that every device has. The null backend runs nothing: other tests run parts of the suite, and native
// WebGPU every sample.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openProgram } from '../dist/runtime.js';
import { load } from './conformance-suite.mjs';
import { openDawn } from './rig/dawn.mjs';

test('Tint compiles every kernel of the conformance suite, and Dawn takes its bindings', async () => {
  const { device } = await openDawn({ backend: 'null', features: ['shader-f16', 'subgroups', 'subgroup-size-control'] });
  const { modules } = JSON.parse(new TextDecoder().decode(await load('index.json'))), refused = [];
  let kernels = 0;
  for (const { name, plan } of modules) {
    try {
      const program = await openProgram(await load(plan), { device, drafts: false });
      kernels += program.plan.kernels.length;
      program.close();
    } catch (error) {
      refused.push(`${name}: ${error.message}`);
    }
  }
  assert.deepEqual(refused, []);
  assert.ok(kernels > 2000, `only ${kernels} kernels`);
});
