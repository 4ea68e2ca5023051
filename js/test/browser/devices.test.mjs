// The devices of a page in Chromium: reports by the compiler's worker, rates that a second visit has, a program by a list.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { closeShared, shareChromium } from '../rig/chromium.mjs';
import { serve, strictCSP } from '../rig/serve.mjs';

const html = '<!doctype html><html lang="en"><title>rlx</title><script type="module" src="/page.mjs"></script></html>';
const script = `
import { calibrate, devices, devicesFor, openFor, ratesOf, reportOn } from '/dist/devices.js';
import { graph, init, program } from '/dist/index.js';
await init();
const model = graph('model', { inputs: { x: ['f32', ['batch', 8]] } }, (_, { x }) => ({ y: x.softmax(1) }));
globalThis.visit = async (measure) => {
  const known = await devices(), kept = await Promise.all(known.map(ratesOf));
  if (measure) for (const { name } of known) await calibrate(name);
  const opened = await openFor({ entries: { model }, symbols: { batch: 1 } }, { devices: 'cuda,webgpu,cpu' });
  await opened.run('model', { x: new Float32Array(8) });
  const y = [...await opened.read('y')];
  opened.close();
  return {
    names: known.map(({ name, error }) => [name, error?.kind]), kept: kept.map((one) => !!one), on: opened.device.name, y,
    reports: (await devicesFor(model)).map(String), refused: await reportOn(model, 'metal').catch(({ kind }) => kind),
  };
};
// What a program in a worker runs on the GPU.
globalThis.onGPU = async () => {
  const opened = await program({ entries: { model }, symbols: { batch: 1 } }, { on: 'gpu', worker: true }), sources = opened.plan.kernels.map(({ source }) => source);
  opened.close();
  return sources;
};
globalThis.ready = true;
`;

let server;
before(async () => {
  server = await serve({
    '/': { body: html, type: 'text/html' }, '/page.mjs': { body: script }, '/dist': new URL('../../dist', import.meta.url).pathname, '/favicon.ico': { body: '' },
  }, { csp: strictCSP });
});
after(() => Promise.all([server.close(), closeShared()]));

const visits = async (browser, ...measured) => {
  const page = await browser.open(`${server.origin}/`), all = [];
  for (const measure of measured) {
    if (all.length) await page.reload();
    await page.waitForFunction(() => globalThis.ready);
    all.push(await page.evaluate((measure) => globalThis.visit(measure), measure));
  }
  assert.deepEqual(page.problems, []);
  return all;
};

test('a page has WebGPU and the CPU, and the next visit knows how fast they were', async (t) => {
  const browser = await shareChromium();
  t.after(() => browser.close());
  const [first, second] = await visits(browser, true, false);
  const each = ['cpu', 'webgpu'].map((name) => `${name} computes all 1 nodes: 1 decomposed`);
  assert.deepEqual([first.names, first.kept, first.on, first.y, first.refused], [[['cpu', undefined], ['webgpu', undefined]], [false, false], 'webgpu', Array(8).fill(0.125), 'name']);
  assert.deepEqual([first.reports, second.reports], [each, each], 'SwiftShader is slower than WebAssembly');
  assert.deepEqual(second.kept, [true, true]);
});

test('kernels of a program in a worker are those for the GPU of the page', async (t) => {
  const browser = await shareChromium();
  t.after(() => browser.close());
  const page = await browser.open(`${server.origin}/`);
  await page.waitForFunction(() => globalThis.ready);
  const sources = await page.evaluate(() => globalThis.onGPU());
  assert.ok(sources.length === 1 && !sources[0].includes('workgroupBarrier'), `barriers take long on SwiftShader:\n${sources}`);
});

test('a page without an adapter has the CPU, and says why', async (t) => {
  const browser = await shareChromium({ webgpu: 'no adapter' });
  t.after(() => browser.close());
  const [only] = await visits(browser, false);
  assert.deepEqual([only.names, only.on, only.reports.length], [[['cpu', undefined], ['webgpu', 'device']], 'cpu', 1]);
});
