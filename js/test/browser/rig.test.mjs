// The browser rig itself: the environment of a page, and the rig's view of it.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { axe, closeShared, crashGPU, hide, openChromium, plainHost, shareChromium } from '../rig/chromium.mjs';
import { serve, strictCSP } from '../rig/serve.mjs';

const html = `<!doctype html><html lang="en"><title>rig</title><main><h1>rig</h1><img src="/dot.svg"></main>
<script type="module" src="/page.mjs"></script></html>`;
const worker = "(async () => postMessage(navigator.gpu ? (await navigator.gpu.requestAdapter())?.info.architecture ?? 'no adapter' : 'absent'))()";

let server;
before(async () => {
  server = await serve({
    '/': { body: html, type: 'text/html' },
    '/page.mjs': { body: 'globalThis.ticks = 0; setInterval(() => globalThis.ticks++, 10);' },
    '/worker.js': { body: worker },
    '/dot.svg': { body: '<svg xmlns="http://www.w3.org/2000/svg"/>' },
    '/favicon.ico': { body: '' },
  }, { csp: strictCSP, hosts: [plainHost] });
});
after(() => Promise.all([server.close(), closeShared()]));

for (const [webgpu, seen] of [['swiftshader', 'swiftshader'], ['no adapter', 'no adapter'], ['absent', 'absent']]) {
  test(`a worker of a page with WebGPU ${webgpu} finds it ${seen}`, async () => {
    const browser = await openChromium({ webgpu });
    const page = await browser.open(`${server.origin}/`);
    const found = await page.evaluate(() => new Promise((resolve) => { new Worker('/worker.js').onmessage = (event) => resolve(event.data); }));
    assert.equal(found, seen);
    assert.deepEqual(page.problems, []);
    await browser.close();
  });
}

test('a hidden page is throttled, a lost device is reported, axe and the CSP complain', async () => {
  const browser = await openChromium({ background: true });
  const page = await browser.open(`${server.origin}/`);
  const before = await page.evaluate('ticks');
  await hide(page, 2000);
  assert.ok(await page.evaluate('ticks') - before < 60, 'timers of a hidden page fire about once a second');

  const violations = await axe(page);
  assert.deepEqual(violations.map(({ id, nodes }) => [id, ...nodes]), [['image-alt', 'img']]);

  await page.evaluate(async () => {
    const device = await (await navigator.gpu.requestAdapter()).requestDevice();
    globalThis.lost = device.lost.then(({ reason }) => reason);
  });
  await crashGPU(page);
  assert.equal(await page.evaluate('lost'), 'unknown');

  await page.evaluate(() => { document.body.append(Object.assign(document.createElement('script'), { textContent: 'globalThis.inline = 1' })); });
  assert.equal(await page.evaluate('globalThis.inline'), undefined);
  assert.match(page.problems.join('\n'), /Content Security Policy/);
  await browser.close();
});

test('tests that share a browser share no storage, and not one whose GPU process ended', async () => {
  const visit = async () => {
    const browser = await shareChromium(), page = await browser.open(`${server.origin}/`);
    const kept = await page.evaluate(async () => {
      const found = [localStorage.getItem('visited'), (await indexedDB.databases()).length];
      localStorage.setItem('visited', 'true');
      await new Promise((resolve) => { indexedDB.open('visited').onsuccess = resolve; });
      return found;
    });
    assert.deepEqual(kept, [null, 0]);
    return { browser, page, process: browser.context.browser() };
  };
  const first = await visit();
  await first.browser.close();
  const second = await visit();
  assert.equal(second.process, first.process);
  await crashGPU(second.page);
  await second.browser.close();
  assert.ok(!second.process.isConnected());
  const third = await visit();
  assert.ok(await third.page.evaluate(async () => (await navigator.gpu.requestAdapter()) !== null));
  await third.browser.close();
});

test('the server answers with the right types and 404', async () => {
  const own = await serve({ '/rig': import.meta.dirname, '/x.wasm': { body: Buffer.from([0]) } });
  const type = async (path) => { const r = await fetch(own.origin + path); return `${r.status} ${r.headers.get('content-type')}`; };
  assert.equal(await type('/x.wasm'), '200 application/wasm');
  assert.equal(await type('/rig/rig.test.mjs'), '200 text/javascript; charset=utf-8');
  assert.match(await type('/rig/../../package.json'), /^404/);
  assert.match(await type('/rig/%2e%2e/run.mjs'), /^404/);
  await own.close();
});
