// Plans in IndexedDB, in Chromium: the loads of the second visit, two tabs at once, damage, the
// bound and a lack of room. The rig's pages are off the record: their data lives as long as their
// browser.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openChromium } from '../rig/chromium.mjs';
import { serve, strictCSP } from '../rig/serve.mjs';

const html = '<!doctype html><html lang="en"><title>rlx</title><script type="module" src="/page.mjs"></script></html>';
const script = `
import { clearCache, graph, train } from '/dist/index.js';
globalThis.clearCache = clearCache;
const line = (slope) => graph('line', { inputs: { x: ['f32', [2]] }, params: { w: ['f32', [], slope] } }, (_, { x, w }) => ({ loss: x.mul(w).square().mean() }));
globalThis.loss = async (slope = 2) => {
  const { program } = await train(() => line(slope), { optimizer: { kind: 'sgd' }, rate: 0.1, on: 'cpu' });
  const { reading } = await program.run('step', { x: Float32Array.of(1, 2) }, { read: ['loss'] });
  const { values } = await reading;
  program.close();
  return values.loss[0];
};
const done = (request) => new Promise((resolve, reject) => { request.onsuccess = () => resolve(request.result); request.onerror = () => reject(request.error); });
// What is kept: the keys, after a change of them all.
globalThis.kept = async (change) => {
  const database = await done(indexedDB.open('rlx-plans', 1)), transaction = database.transaction(['values', 'uses'], 'readwrite');
  const [values, uses] = ['values', 'uses'].map((name) => transaction.objectStore(name)), keys = await done(values.getAllKeys());
  if (change === 'damage') for (const key of keys) values.put((await done(values.get(key))).map((byte, i) => i === 60 ? byte ^ 1 : byte), key);
  // Values that together exceed the bound, the first the oldest.
  if (change === 'fill') for (let i = 0; i < 3; i++) { values.put(new Uint8Array(8), 'old' + i); uses.put({ bytes: 30 << 20, used: i + 1 }, 'old' + i); }
  await new Promise((resolve) => { transaction.oncomplete = resolve; });
  database.close();
  return keys.map((key) => key.replace(/-.*/, '')).sort();
};
globalThis.lackRoom = () => {
  const { put } = IDBObjectStore.prototype;
  let left = 1;
  IDBObjectStore.prototype.put = function (...args) {
    if (this.name === 'values' && left-- > 0) throw new DOMException('no room', 'QuotaExceededError');
    return put.apply(this, args);
  };
};
globalThis.ready = true;
`;

let server, browser;
before(async () => {
  server = await serve({
    '/': { body: html, type: 'text/html' }, '/page.mjs': { body: script }, '/dist': new URL('../../dist', import.meta.url).pathname, '/favicon.ico': { body: '' },
  }, { csp: strictCSP });
  browser = await openChromium({ webgpu: 'no adapter' });
});
after(() => Promise.all([server.close(), browser?.close()]));

/** Opens a tab. */
async function open() {
  const page = await browser.open(`${server.origin}/`);
  await page.waitForFunction(() => globalThis.ready);
  return page;
}

/** The loss of a first step, and whether the compiler was asked for. */
async function visited(page, slope) {
  const before = server.requests.length, loss = await page.evaluate((slope) => globalThis.loss(slope), slope);
  await page.waitForTimeout(20); // the value is written meanwhile
  return { loss, compiled: server.requests.slice(before).some((path) => /rlx\.wasm|compiler-worker/.test(path)) };
}

test('a second visit needs no compiler, and what is damaged is made again', async () => {
  const first = await open();
  assert.deepEqual(await visited(first), { loss: 10, compiled: true });
  assert.deepEqual(await first.evaluate(() => globalThis.kept()), ['graphs', 'plan']);
  const second = await open();
  assert.deepEqual(await visited(second), { loss: 10, compiled: false });
  await second.evaluate(() => globalThis.kept('damage'));
  const third = await open();
  assert.deepEqual(await visited(third), { loss: 10, compiled: true });
  const fourth = await open();
  assert.deepEqual(await visited(fourth), { loss: 10, compiled: false });
  for (const page of [first, second, third, fourth]) {
    assert.deepEqual(page.problems, []);
    await page.close();
  }
});

test('two tabs may compile the same at once', async () => {
  const tabs = await Promise.all([open(), open()]);
  assert.deepEqual(await Promise.all(tabs.map((page) => page.evaluate(() => globalThis.loss(3)))), [22.5, 22.5]);
  const third = await open();
  assert.deepEqual(await visited(third, 3), { loss: 22.5, compiled: false });
  for (const page of [...tabs, third]) assert.deepEqual(page.problems, []);
});

test('a database that is refused, or never opens, is none', async () => {
  for (const [kind, most] of [['refused', 2000], ['silent', 6000]]) {
    const page = await open();
    const ms = await page.evaluate(async (how) => {
      IDBFactory.prototype.open = () => {
        if (how === 'refused') throw new DOMException('The operation is insecure.', 'SecurityError');
        return {};
      };
      const begun = performance.now();
      for (const slope of [6, 7]) await globalThis.loss(slope);
      return performance.now() - begun;
    }, kind);
    assert.ok(ms < most, `${kind}: ${ms} ms`);
    assert.deepEqual(page.problems, []);
    await page.close();
  }
});

test('above the bound the least recently used go; without room all others; clearCache removes all', async () => {
  const page = await open();
  await page.evaluate(() => globalThis.clearCache());
  assert.deepEqual(await page.evaluate(() => globalThis.kept('fill')), []);
  assert.equal((await visited(page, 4)).loss, 40);
  assert.deepEqual(await page.evaluate(() => globalThis.kept()), ['graphs', 'old1', 'old2', 'plan']);
  await page.evaluate(() => globalThis.lackRoom());
  assert.equal((await visited(page, 5)).loss, 62.5);
  assert.deepEqual((await page.evaluate(() => globalThis.kept())).filter((name) => name.startsWith('old')), []);
  await page.evaluate(() => globalThis.clearCache());
  assert.deepEqual(await page.evaluate(() => globalThis.kept()), []);
  assert.deepEqual(page.problems, []);
});
