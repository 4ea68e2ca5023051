// The conformance suite over Dawn, on lavapipe, which has f16 and subgroups of one size: of the modules without
// large kernels a quarter of those with f16, which no other device here has, and an eighth of the others. Native WebGPU
// runs all samples, and SwiftShader, in Chromium, a part of the modules. The kernel of linear_recurrence takes LLVM half as
// long as all others together: it runs on SwiftShader alone.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runConformance } from './conformance.mjs';
import { isLight } from './conformance-light.mjs';
import { load } from './conformance-suite.mjs';
import { openDawn } from './rig/dawn.mjs';

process.env.LP_NATIVE_VECTOR_WIDTH = '256'; // its subgroups have a lane for each 32 bits: no plan makes use of those of four

test('lavapipe passes a part of the light modules of the conformance suite, f16 and subgroups among them', async () => {
  const { device } = await openDawn({ backend: 'lavapipe', features: ['shader-f16', 'subgroups', 'subgroup-size-control'] });
  let halves = 0, others = 0;
  const select = (module) => isLight(module) && (module.features.includes('shader-f16') ? halves++ % 4 : others++ % 8) === 2 && !module.name.startsWith('linear_recurrence');
  const { passed, deviating, bySubgroups, failures, skipped } = await runConformance({ device, load, select });
  assert.deepEqual(failures, []);
  assert.deepEqual(skipped, []);
  assert.equal(deviating, 0);
  assert.ok(bySubgroups > 15, `only ${bySubgroups} cases by subgroups`);
  assert.ok(passed > 600, `only ${passed} results`);
});
