// The light part of the conformance suite in Chromium, in the page.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { isLight, suiteFolder } from '../conformance-suite.mjs';
import { openChromium } from '../rig/chromium.mjs';
import { serve, strictCSP } from '../rig/serve.mjs';

const html = '<!doctype html><html lang="en"><title>rlx</title><script type="module" src="/page.mjs"></script></html>';
const script = `
import { runConformance } from '/test/conformance.mjs';
const load = async (name) => (await fetch('/suite/' + name)).arrayBuffer();
globalThis.run = async () => {
  const device = await (await navigator.gpu.requestAdapter()).requestDevice();
  return runConformance({ device, load, select: ${isLight} });
};
globalThis.ready = true;
`;

test('Chromium passes the light modules of the conformance suite', async (t) => {
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
  const { device, passed, failures } = await page.evaluate(() => globalThis.run());
  assert.match(device, /swiftshader/i);
  assert.deepEqual(failures, []);
  assert.ok(passed > 1000, `only ${passed} results`);
  assert.deepEqual(page.problems, []);
});
