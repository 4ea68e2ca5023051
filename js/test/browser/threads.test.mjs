// Threads on the CPU, in a page that is isolated from other origins: kernels are shared among workers,
// with the same results as in one thread, to the last bit.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openChromium } from '../rig/chromium.mjs';
import { isolation, serve, strictCSP } from '../rig/serve.mjs';

const html = '<!doctype html><html lang="en"><title>rlx</title><script type="module" src="/page.mjs"></script></html>';
const script = `
import { graph, init, program } from '/dist/index.js';
await init();
const numbers = (size, seed) => Float32Array.from({ length: size }, (_, i) => Math.sin(i * seed) );
/** Products, rows, columns, a scan and a convolution, all large enough to be divided. */
const made = () => graph('work', (b) => {
  const x = b.input('x', 'f32', [301, 217]), w = b.param('w', 'f32', [217, 190]), total = b.state('total', 'f32', [190]);
  const h = x.matmul(w).add(total).tanh();
  b.output('rows', h.softmax(-1));
  b.output('columns', x.exp().reduceSum([0]));
  b.output('running', h.cumsum({ axis: 1 }));
  b.output('batches', x.reshape([7, 43, 217]).matmul(x.reshape([7, 43, 217]).transpose([0, 2, 1])));
  const image = b.input('image', 'f32', [3, 40, 40, 5]), filter = b.input('filter', 'f32', [3, 3, 5, 32]);
  b.output('picture', image.conv2d(filter, undefined, { padLo: [1, 1], padHi: [1, 1] }).relu());
  b.setState('total', total.add(h.mean([0])));
});
const inputs = { x: numbers(301 * 217, 0.37), image: numbers(3 * 40 * 40 * 5, 0.11), filter: numbers(9 * 5 * 32, 0.23) };
const names = ['rows', 'columns', 'running', 'batches', 'picture', 'total'];
const digest = async (values) => [...new Uint8Array(await crypto.subtle.digest('SHA-256', values))].join();
globalThis.run = async (worker) => {
  const s = await program({ entries: { work: made() } }, { on: 'cpu', worker });
  await s.write('w', numbers(217 * 190, 0.71));
  const out = [];
  for (let i = 0; i < 3; i++) {
    const { reading } = await s.run('work', inputs, { steps: 2, read: names });
    const { values } = await reading;
    for (const name of names) out.push(name + ' ' + await digest(values[name]));
    await new Promise((done) => setTimeout(done, 30)); // threads fall asleep, and are woken
  }
  s.close();
  return out;
};
/** How many workgroups there are in some runs right after a program is opened, and how many of them this thread claims. */
globalThis.shares = async () => {
  const { compareExchange, store } = Atomics, n = 256, shares = { all: 0, own: 0 };
  const g = graph('product', (b) => { b.setState('y', b.state('y', 'f32', [n, n]).matmul(b.param('w', 'f32', [n, n], 0))); });
  const s = await program({ entries: { product: g } }, { on: 'cpu', worker: false });
  Atomics.compareExchange = (words, at, before, after) => {
    const found = compareExchange(words, at, before, after);
    if (found === before) shares.own++;
    return found;
  };
  Atomics.store = (words, at, value) => {
    if (at === 1) shares.all += value; // workgroups that are not done
    return store(words, at, value);
  };
  for (let i = 0; i < 100; i++) await s.run('product');
  Object.assign(Atomics, { compareExchange, store });
  s.close();
  return shares;
};
globalThis.ready = true;
`;

const serveWith = (headers, more) => serve({
  '/': { body: html, type: 'text/html' }, '/page.mjs': { body: script }, '/dist': new URL('../../dist', import.meta.url).pathname, '/favicon.ico': { body: '' }, ...more,
}, { csp: strictCSP, headers });

let browser;
before(async () => { browser = await openChromium({ webgpu: 'no adapter' }); });
after(() => browser.close());

async function results(t, headers, worker) {
  const server = await serveWith(headers);
  t.after(() => server.close());
  const page = await browser.open(`${server.origin}/`);
  await page.waitForFunction(() => globalThis.ready);
  const cores = await page.evaluate(() => navigator.hardwareConcurrency), out = await page.evaluate((w) => globalThis.run(w), worker);
  assert.deepEqual(page.problems, []);
  return { out, cores, threads: server.requests.filter((path) => path.endsWith('/dist/worker.js')).length - (worker ? 1 : 0) };
}

for (const worker of [true, false]) {
  test(`threads ${worker ? 'of a worker' : 'beside the page'} compute what one thread does`, async (t) => {
    const shared = await results(t, isolation, worker), alone = await results(t, {}, worker);
    assert.equal(shared.threads, Math.min(8, shared.cores) - 1);
    assert.equal(alone.threads, 0);
    assert.equal(new Set(alone.out).size, 3 + 3 * 3, 'rows, running and total change from run to run');
    assert.deepEqual(shared.out, alone.out);
  });
}

test('threads are there when a program is open, though the page does nothing but compute', async (t) => {
  const server = await serveWith(isolation);
  t.after(() => server.close());
  const page = await browser.open(`${server.origin}/`);
  await page.waitForFunction(() => globalThis.ready);
  const { all, own } = await page.evaluate(() => globalThis.shares());
  assert.ok(all >= 200, 'the product is divided');
  assert.ok(own < all, `one thread did all of ${all}`);
});

test('a script of threads that is not there costs time, is reported, and changes no result', async (t) => {
  const server = await serveWith(isolation, { '/dist/worker.js': '/nowhere' });
  t.after(() => server.close());
  const page = await browser.open(`${server.origin}/`), warning = page.waitForEvent('console', (message) => message.type() === 'warning');
  await page.waitForFunction(() => globalThis.ready);
  const out = await page.evaluate(() => globalThis.run(false));
  assert.match((await warning).text(), /a thread failed/);
  assert.deepEqual(out, (await results(t, {}, false)).out);
});
