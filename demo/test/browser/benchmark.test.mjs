// The benchmark's page in Chromium: rlx runs, a library that cannot be loaded says so, results can be copied.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { axe } from '../../../js/test/rig/chromium.mjs';
import { openDemo, serveDemo, shots } from './page.mjs';

let server;
before(async () => { server = await serveDemo(); });
after(() => server.close());

const list = [{ name: 'rlx', title: 'rlx', bytes: 1, gzip: 1.8e6 }, { name: 'none', title: 'Another', bytes: 1, gzip: 1e5 }];

test('jobs are timed on the device, a library that cannot be loaded says why, and results are copied', async (t) => {
  const page = await openDemo(t, server, {
    path: '/benchmark.html?jobs=tiny', viewport: { width: 360, height: 740 },
    prepare: (one) => one.context().route('**/bench/peers.json', (route) => route.fulfill({ json: list })),
  });
  const loaded = () => server.requests.filter((path) => /rlx\.wasm|bench\/rlx\.js/.test(path));
  assert.deepEqual(loaded(), [], 'nothing is loaded before it is asked for');
  assert.match(await page.locator('#machine').textContent(), /swiftshader/i);
  assert.match(await page.locator('#peers').textContent(), /rlx 1\.8 MB *Another 0\.1 MB/);
  await page.click('#run');
  await page.waitForFunction(() => document.getElementById('state').textContent === 'Done.', null, { timeout: 60_000, polling: 100 });
  const kinds = await page.locator('#table [data-kind]').evaluateAll((rows) => rows.map(({ dataset }) => dataset.kind));
  assert.deepEqual(kinds, ['best', 'failed', 'best', 'failed', 'best', 'failed']);
  assert.match(await page.locator('#table').textContent(), /matmul 64rlx[\d.]+ GFLOP\/s[\d.]+ ms/);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.click('#copy');
  await page.waitForFunction(() => document.getElementById('copy').textContent === 'Copied');
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /swiftshader; Chromium \d+[^]*\| matmul 64 \| [\d.]+ GFLOP\/s \([\d.]+ ms\) \| – \(.*did not come from its server/);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'nothing is wider than the screen');
  await page.screenshot({ path: `${shots}benchmark-phone.png`, fullPage: true });
  assert.deepEqual(await axe(page), []);
  assert.deepEqual(page.problems.filter((text) => !/bench\/none\.js/.test(text)), []);
});

test('every library of the list gives a figure of each job that it has', async (t) => {
  const page = await openDemo(t, server, { path: '/benchmark.html?jobs=tiny' });
  const titles = ['rlx', 'jax-js', 'TensorFlow.js', 'onnxruntime-web', 'transformers.js'], [own, jax, tfjs, ort, transformers] = titles;
  assert.deepEqual(await page.locator('#peers label').evaluateAll((all) => all.map((one) => [one.innerText.trim().split(/\s/)[0], one.firstChild.checked])), titles.map((title) => [title, true]), 'make demo-assets bundles them');
  await page.click('#run');
  await page.waitForFunction(() => document.getElementById('state').textContent === 'Done.', null, { timeout: 240_000, polling: 100 });
  const jobs = await page.locator('#table tbody').evaluateAll((bodies) => bodies.map((body) => [...body.querySelectorAll('[data-kind]')].map((row) => ({ title: row.firstChild.textContent, kind: row.dataset.kind, text: row.innerText.replaceAll(/\s+/g, ' ') }))));
  t.diagnostic(jobs.flat().map(({ text }) => text).join('; '));
  const measured = jobs.map((rows) => rows.filter(({ kind }) => kind !== 'failed').map(({ title }) => title));
  assert.deepEqual(measured, [[own, jax, tfjs, ort], [own, jax, tfjs], [own, tfjs, ort, transformers]], jobs.flat().map(({ text }) => text).join('; '));
  assert.deepEqual(page.problems, []);
});
