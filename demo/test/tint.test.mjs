// Tint, Chromium's compiler, and Dawn's checks of pipelines and bindings accept the kernels of the pages' networks at their
// own sizes, of which tests in a browser train some at smaller ones.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { openProgram } from '../../js/dist/runtime.js';
import { openDawn } from '../../js/test/rig/dawn.mjs';

for (const name of ['digits-mlp', 'digits-cnn', 'gpt-tiny', 'gpt-small', 'field']) {
  test(`Tint compiles ${name}`, async () => {
    const { device, close } = await openDawn({ backend: 'null' });
    const program = await openProgram(readFileSync(new URL(`../web/assets/${name}.rlxp`, import.meta.url)), { device, drafts: false });
    assert.ok(program.plan.kernels.length > 10);
    program.close();
    close();
  });
}
