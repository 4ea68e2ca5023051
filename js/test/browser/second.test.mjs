// The wait of who comes again to a page: the time to the first step of a small language model, whose plan is in IndexedDB.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openChromium } from '../rig/chromium.mjs';
import { scriptPage, serve } from '../rig/serve.mjs';

/**
 * The longest that it may take, in milliseconds, on SwiftShader, and the most visits until one is as quick: others may use
 * the machine.
 */
const bound = 1000, visits = 30;

const script = `
import * as rlx from '/dist/index.js';
import { firstStep } from '/small-gpt.mjs';
const begun = performance.now();
await rlx.init({ lazy: true });
const { loss } = await firstStep(rlx), now = performance.now();
globalThis.done = { loss, ms: now - begun, page: now };
`;

test('a second visit makes its first step within a second, on SwiftShader', async (t) => {
  const server = await serve({
    '/': scriptPage, '/page.mjs': { body: script, type: 'text/javascript' }, '/dist': new URL('../../dist', import.meta.url).pathname,
    '/small-gpt.mjs': new URL('../small-gpt.mjs', import.meta.url).pathname,
  });
  t.after(() => server.close());
  const browser = await openChromium({ webgpu: 'swiftshader' });
  t.after(() => browser.close());
  const page = await browser.open(`${server.origin}/`), found = [];
  const visit = async () => {
    await page.waitForFunction(() => globalThis.done, null, { timeout: 60_000 });
    const { loss, ms, page: since } = await page.evaluate(() => globalThis.done), compiles = server.requests.some((path) => path.endsWith('.wasm'));
    assert.ok(Math.abs(loss - Math.log(65)) < 1, `a loss of ${loss} of 65 tokens that are as likely`);
    assert.equal(compiles, found.length === 0, `visit ${found.length + 1} asks for ${server.requests}`);
    found.push({ ms, since });
  };
  await visit();
  while (found.length <= visits && (found.length === 1 || found.at(-1).ms > bound)) {
    server.requests.length = 0;
    await page.reload();
    await visit();
  }
  const text = found.map(({ ms, since }) => `${ms.toFixed(0)} ms, ${since.toFixed(0)} with loading the page`).join('; ');
  t.diagnostic(text);
  assert.ok(found.at(-1).ms <= bound, text);
  assert.deepEqual(page.problems, []);
});
