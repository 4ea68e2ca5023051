// The conformance suite in Node: over Dawn, on SwiftShader, a quarter of the modules that lavapipe does
// not run (Chromium runs all of them on SwiftShader, over Dawn as well), and all of it on the CPU.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runConformance } from './conformance.mjs';
import { isLight, load } from './conformance-suite.mjs';
import { openDawn } from './rig/dawn.mjs';

test('SwiftShader passes a quarter of the heavy modules of the conformance suite, but for f16', async () => {
  const { device } = await openDawn({ backend: 'swiftshader' });
  let heavy = 0;
  const select = (module) => !isLight(module) && heavy++ % 4 === 0;
  const { passed, deviating, failures, skipped } = await runConformance({ device, load, select });
  assert.deepEqual(failures, []);
  assert.equal(deviating, 0);
  assert.deepEqual(skipped.filter((name) => !name.includes('f16')), []);
  assert.ok(passed > 200, `only ${passed} results`);
});

test('the CPU passes the whole conformance suite', async () => {
  const { passed, deviating, failures, skipped } = await runConformance({ load });
  assert.deepEqual(failures, []);
  assert.deepEqual(skipped, []);
  assert.equal(deviating, 0);
  assert.ok(passed > 2400, `only ${passed} results`);
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
