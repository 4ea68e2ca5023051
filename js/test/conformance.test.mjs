// The conformance suite over Dawn: the light part on lavapipe.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runConformance } from './conformance.mjs';
import { isLight, load } from './conformance-suite.mjs';
import { openDawn } from './rig/dawn.mjs';

test('lavapipe passes the light modules of the conformance suite', async () => {
  const { device } = await openDawn({ backend: 'lavapipe' });
  const { passed, deviating, failures } = await runConformance({ device, load, select: isLight });
  assert.deepEqual(failures, []);
  assert.equal(deviating, 0);
  assert.ok(passed > 1000, `only ${passed} results`);
});
