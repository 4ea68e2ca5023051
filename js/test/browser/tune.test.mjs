// Tuning in Chromium, on SwiftShader: measurements are kept in IndexedDB. The rig's pages are off
// the record, like a private window's: their data lives as long as their browser.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { closeShared, shareChromium } from '../rig/chromium.mjs';
import { countGPU } from '../rig/counter.mjs';
import { serve, strictCSP } from '../rig/serve.mjs';

const html = '<!doctype html><html lang="en"><title>rlx</title><script type="module" src="/page.mjs"></script></html>';
const script = `
import { compile, decodePlan, graph, init, openProgram } from '/dist/index.js';
await init();
const module = { entries: { main: graph('sums', (b) => b.output('sums', b.input('x', 'f32', [2, 9000]).reduceSum([1]))) } };
const describe = async (plan) => {
  const program = await openProgram(plan), x = Float32Array.from({ length: 18000 }, (_, i) => i < 9000 ? 1 : 2);
  const { reading } = await program.run('main', { x }, { read: ['sums'] });
  const sums = [...(await reading).values.sums];
  program.close();
  return { sums, text: new TextDecoder('latin1').decode(plan), kernels: decodePlan(plan).kernels.map(({ name }) => name) };
};
globalThis.untuned = async () => describe(await compile(module));
globalThis.tuned = async () => {
  const measured = [], problems = [];
  globalThis.gpuCounter?.take();
  const plan = await compile({ ...module, tune: {
    onMeasured: (group) => measured.push(group), onProblem: ({ kind, message, place }) => problems.push({ kind, message, op: place.op }),
  } });
  const counts = globalThis.gpuCounter?.take();
  return { measured, problems, counts, ...await describe(plan) };
};
const done = (request) => new Promise((resolve, reject) => { request.onsuccess = () => resolve(request.result); request.onerror = () => reject(request.error); });
globalThis.openDatabase = (version) => done(indexedDB.open('rlx', version));
globalThis.stored = async (change) => {
  const database = await globalThis.openDatabase(1), objects = database.transaction('tuned', 'readwrite').objectStore('tuned');
  const keys = await done(objects.getAllKeys()), values = await done(objects.getAll());
  if (change !== undefined) for (const key of keys) await done(objects.put(change, key));
  database.close();
  return keys.map((key, i) => ({ key, value: values[i] }));
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

/** A function that opens pages that share storage. */
async function openBrowser(t, prepare) {
  const browser = await shareChromium();
  t.after(() => browser.close());
  if (prepare) await browser.context.addInitScript(`if (isSecureContext) (${prepare})()`); // an empty tab has no GPU, nor a database
  return async () => {
    const page = await browser.open(`${server.origin}/`);
    await page.waitForFunction(() => globalThis.ready);
    return page;
  };
}

const rightSums = [9000, 18000];

test('what was measured is taken, and not measured again by another page', async (t) => {
  const open = await openBrowser(t, countGPU);
  const page = await open(), first = await page.evaluate(() => globalThis.tuned());
  assert.deepEqual(first.sums, rightSums);
  assert.equal(first.measured.length, 1);
  const [{ name, schedule, untuned, tuned }] = first.measured;
  assert.match(name, /reduce_sum/);
  assert.match(schedule, /^(rows|columns) /);
  assert.ok(tuned > 0 && tuned <= untuned, `${tuned} ms tuned, ${untuned} untuned`);
  assert.ok(first.counts['device.createComputePipelineAsync'] > 2, 'several schedules were made into pipelines');
  const [{ key: [device, key], value }, ...more] = await page.evaluate(() => globalThis.stored());
  assert.deepEqual(more, []);
  assert.match(device, /swiftshader/i);
  assert.match(key, /^[0-9a-f]{32}$/);
  assert.deepEqual(value, { schedule, untuned, tuned });
  await page.close();
  const second = await (await open()).evaluate(() => globalThis.tuned());
  assert.deepEqual(second.measured, []);
  assert.deepEqual([second.text, second.sums], [first.text, rightSums]);
  assert.equal(second.counts['device.createComputePipelineAsync'], undefined);
  assert.equal(second.counts['queue.submit'], undefined);
  assert.deepEqual([first.problems, second.problems, page.problems], [[], [], []]);
});

test('a schedule that is kept decides, and one that is damaged is measured again', async (t) => {
  const open = await openBrowser(t), page = await open();
  const [plain, { measured: [{ name }] }] = [await page.evaluate(() => globalThis.untuned()), await page.evaluate(() => globalThis.tuned())];
  // By the rule two rows are split over workgroups; a candidate has them in one workgroup.
  assert.deepEqual(plain.kernels.map((kernel) => kernel.includes('_part')), [true, false]);
  await page.evaluate(() => globalThis.stored({ schedule: 'rows lanes=256 rows=1 split=1', untuned: 2, tuned: 1 }));
  const { kernels, measured, problems, sums } = await page.evaluate(() => globalThis.tuned());
  assert.deepEqual([kernels, measured, problems, sums], [['reduce_reduce_sum'], [], [], rightSums]);
  for (const value of ['nonsense', 7, null, { schedule: 'tiles m=64' }, { schedule: 3 }]) {
    await page.evaluate((value) => globalThis.stored(value), value);
    const { measured, problems: [problem, ...more], sums } = await page.evaluate(() => globalThis.tuned());
    assert.deepEqual([measured.length, more, sums], [1, [], rightSums], JSON.stringify(value));
    assert.deepEqual([problem.kind, problem.op], ['store', name]);
    assert.match(problem.message, /no schedule of the group/);
    const healed = await page.evaluate(() => globalThis.tuned());
    assert.deepEqual([healed.measured, healed.problems], [[], []]);
  }
  assert.deepEqual(page.problems, []);
});

const databases = {
  'is not there': () => Object.defineProperty(globalThis, 'indexedDB', { value: undefined }),
  'is forbidden': () => Object.defineProperty(globalThis, 'indexedDB', { get() { throw new DOMException('the origin is opaque', 'SecurityError'); } }),
  'is another one': () => { globalThis.spoilt = new Promise((resolve) => { indexedDB.open('rlx', 2).onsuccess = ({ target }) => resolve(target.result.close()); }); },
};
for (const [what, prepare] of Object.entries(databases)) {
  test(`where IndexedDB ${what}, all is measured each time, and a problem is reported`, async (t) => {
    const page = await (await openBrowser(t, prepare))();
    await page.evaluate(() => globalThis.spoilt);
    for (let i = 0; i < 2; i++) {
      const { measured, problems: [problem, ...more], sums } = await page.evaluate(() => globalThis.tuned());
      assert.deepEqual([measured.length, sums], [1, rightSums]);
      assert.deepEqual([problem.kind, more], ['store', []]);
      assert.match(problem.message, /results of tuning are not kept/);
    }
    assert.deepEqual(page.problems, []);
  });
}
