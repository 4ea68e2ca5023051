// The conformance suite in Chromium, in the page: the models, modules with dispatches in two dimensions, and of the others an eighth,
// on the CPU a quarter of the heavy ones, whose kernels SwiftShader takes seconds to compile. Tint compiles all modules in Node
// (conformance-tint.test.mjs), lavapipe runs a part of the light ones over the same Dawn, native WebGPU runs every
// sample on the same SwiftShader, and Node the whole suite on the same engine of WebAssembly.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { suiteFolder } from '../conformance-suite.mjs';
import { openChromium } from '../rig/chromium.mjs';
import { serve, strictCSP } from '../rig/serve.mjs';

const html = '<!doctype html><html lang="en"><title>rlx</title><script type="module" src="/page.mjs"></script></html>';
const script = `
import { runConformance } from '/test/conformance.mjs';
import { isLight, isModel, isPlane } from '/test/conformance-light.mjs';
const load = async (name) => (await fetch('/suite/' + name)).arrayBuffer();
globalThis.run = async (on) => {
  const device = on === 'gpu' ? await (await navigator.gpu.requestAdapter()).requestDevice() : undefined;
  const count = { light: 0, heavy: 0 };
  const select = (module) => isModel(module) || isPlane(module) || (isLight(module) ? count.light++ % 8 : count.heavy++ % (device ? 8 : 4)) === 0;
  return runConformance({ device, load, select });
};
globalThis.ready = true;
`;

for (const [on, name] of [['gpu', /swiftshader/i], ['cpu', /^CPU$/]]) {
  test(`Chromium passes the conformance suite on the ${on.toUpperCase()}, but for f16`, async (t) => {
    const folder = (path) => fileURLToPath(new URL(path, import.meta.url));
    const server = await serve({
      '/': { body: html, type: 'text/html' }, '/page.mjs': { body: script }, '/favicon.ico': { body: '' },
      '/test': folder('..'), '/dist': folder('../../dist'), '/suite': fileURLToPath(suiteFolder),
    }, { csp: strictCSP });
    t.after(() => server.close());
    const browser = await openChromium();
    t.after(() => browser.close());
    const page = await browser.open(`${server.origin}/`);
    await page.waitForFunction(() => globalThis.ready);
const { device, passed, failures, skipped } = await page.evaluate((on) => globalThis.run(on), on);
    assert.match(device, name);
    assert.deepEqual(failures, []);
    if (on === 'gpu') assert.deepEqual(skipped.filter((name) => !name.includes('f16')), []);
    assert.ok(passed > (on === 'gpu' ? 750 : 850), `only ${passed} results`);
    assert.deepEqual(page.problems, []);
  });
}
