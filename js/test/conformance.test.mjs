// The conformance suite in Node on the CPU. Over Dawn, lavapipe runs a part of the light modules
// (conformance-lavapipe.test.mjs) and SwiftShader, in Chromium, models and a part of the others
// (browser/conformance.test.mjs); Tint compiles all (conformance-tint.test.mjs).

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runConformance } from './conformance.mjs';
import { load } from './conformance-suite.mjs';
import { openDawn } from './rig/dawn.mjs';

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
