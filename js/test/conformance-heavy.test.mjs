// The conformance suite over Dawn: the models and the products of matrices on SwiftShader,
// which compiles them in half the time that lavapipe takes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runConformance } from './conformance.mjs';
import { isHeavy, load } from './conformance-suite.mjs';
import { openDawn } from './rig/dawn.mjs';

test('SwiftShader passes the heavy modules of the conformance suite', async () => {
  const { device } = await openDawn({ backend: 'swiftshader' });
  const { passed, failures } = await runConformance({ device, load, select: isHeavy });
  assert.deepEqual(failures, []);
  assert.ok(passed > 200, `only ${passed} results`);
});

test('a wrong result fails', async () => {
  const { device } = await openDawn({ backend: 'swiftshader' });
  const tampered = async (name) => {
    const file = await load(name);
    if (name === 'values.bin') new Uint8Array(file).fill(1);
    return file;
  };
  const select = ({ name }) => name === 'softmax';
  const { failed, failures } = await runConformance({ device, load: tampered, select });
  assert.ok(failed > 0);
  assert.match(failures[0], /softmax: .* differ: element 0 is /);
});
