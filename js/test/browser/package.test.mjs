// The packed package in pages of others: built and served by Vite, and loaded from another
// origin. Graphs are compiled in a worker, programs live in workers.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { openChromium } from '../rig/chromium.mjs';
import { installPacked, viteServer } from '../rig/package.mjs';
import { serve } from '../rig/serve.mjs';

const script = (from) => `
import { graph, init, program } from '${from}';
const run = async (on) => {
  const made = graph('triple', (b) => b.output('y', b.input('x', 'f32', [2]).mul(3)));
  const s = await program({ entries: { main: made } }, { on });
  const { reading } = await s.run('main', { x: Float32Array.of(1, 2) }, { read: ['y'] });
  const y = [...(await reading).values.y];
  s.close();
  return y;
};
globalThis.results = init().then(async () => [await run('gpu'), await run('cpu')]);
`;
const html = '<!doctype html><html lang="en"><title>project</title><link rel="icon" href="data:,"><script type="module" src="/main.js"></script></html>';

let project, browser;
before(async () => {
  project = await installPacked({ 'index.html': html, 'main.js': script('@rlx-go/rlx') });
  browser = await openChromium();
});
after(async () => {
  await browser?.close();
  await project?.remove();
});

async function check(origin) {
  const page = await browser.open(`${origin}/`);
  await page.waitForFunction(() => globalThis.results, undefined, { timeout: 60_000 });
  assert.deepEqual(await page.evaluate(() => globalThis.results), [[3, 6], [3, 6]]);
  assert.deepEqual(page.problems, []);
}

test('Vite builds it', async (t) => {
  await project.vite('build', '--logLevel', 'error');
  const server = await serve({ '/': join(project.folder, 'dist') });
  t.after(() => server.close());
  await check(server.origin);
});

test('Vite serves it in development', async (t) => {
  const server = await viteServer(project.folder);
  t.after(() => server.close());
  await check(server.origin);
});

test('a page of the plug-in loads once in development, at its first visit too', async (t) => {
  const own = await installPacked({
    'index.html': html,
    'triple.rlx.js': "import { ahead, graph } from '@rlx-go/rlx';\nexport const triple = ahead(() => ({ entries: { main: graph('triple', (b) => b.output('y', b.input('x', 'f32', [2]).mul(3))) } }));\n",
    'main.js': `import { triple } from './triple.rlx.js';
      globalThis.results = triple.open({ on: 'cpu' }).then(async (s) => {
        const { openProgram } = await import('@rlx-go/rlx/runtime'), { reading } = await s.run('main', { x: Float32Array.of(1, 2) }, { read: ['y'] });
        return [...(await reading).values.y, typeof openProgram];
      });`,
  });
  t.after(() => own.remove());
  await Promise.all(['vite', 'esbuild'].map((name) => own.link(name)));
  const { rlx } = await import(pathToFileURL(join(own.installed, 'dist/vite.js')));
  const server = await viteServer(own.folder, [rlx()]);
  t.after(() => server.close());
  const page = await browser.open(), visits = [];
  page.on('request', (request) => { if (request.isNavigationRequest()) visits.push(request.url()); });
  await page.goto(`${server.origin}/`);
  const results = () => page.waitForFunction(() => globalThis.results).then((found) => found.jsonValue());
  assert.deepEqual(await results(), [3, 6, 'function']);
  await new Promise((resolve) => setTimeout(resolve, 1500)); // Vite bundles what it finds late soon after
  assert.deepEqual(visits, [`${server.origin}/`]);
  assert.deepEqual(page.problems, []);
});

test('a page loads it from another origin', async (t) => {
  const host = await serve({ '/rlx': join(project.installed, 'dist') }, { headers: { 'access-control-allow-origin': '*' } });
  const page = await serve({ '/': { body: html, type: 'text/html' }, '/main.js': { body: script(`${host.origin}/rlx/index.js`) } });
  t.after(() => Promise.all([host.close(), page.close()]));
  await check(page.origin);
});
