// The conformance suite over Dawn, on lavapipe, which has f16: all but large kernels.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runConformance } from './conformance.mjs';
import { isLight, load } from './conformance-suite.mjs';
import { openDawn } from './rig/dawn.mjs';

test('lavapipe passes the light modules of the conformance suite, f16 among them', async () => {
  const { device } = await openDawn({ backend: 'lavapipe', features: ['shader-f16'] });
  const { passed, deviating, failures, skipped } = await runConformance({ device, load, select: isLight });
  assert.deepEqual(failures, []);
  assert.deepEqual(skipped, []);
  assert.equal(deviating, 0);
  assert.ok(passed > 1200, `only ${passed} results`);
});
