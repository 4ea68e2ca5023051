// The packed package in pages of others: built and served by Vite, and loaded from another
// origin. Graphs are compiled in a worker, programs live in workers.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
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

test('a page loads it from another origin', async (t) => {
  const host = await serve({ '/rlx': join(project.installed, 'dist') }, { headers: { 'access-control-allow-origin': '*' } });
  const page = await serve({ '/': { body: html, type: 'text/html' }, '/main.js': { body: script(`${host.origin}/rlx/index.js`) } });
  t.after(() => Promise.all([host.close(), page.close()]));
  await check(page.origin);
});
