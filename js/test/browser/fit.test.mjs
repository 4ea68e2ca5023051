// The loop of a training in Chromium, with checkpoints in the origin's private file system.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { batch, close, linearPlan, reference } from '../linear.mjs';
import { openChromium } from '../rig/chromium.mjs';
import { serve, strictCSP } from '../rig/serve.mjs';

const html = '<!doctype html><html lang="en"><title>rlx</title><script type="module" src="/page.mjs"></script></html>';
const script = `
import { files, fit } from '/dist/fit.js';
import { openProgram, Trainer } from '/dist/runtime.js';
const batch = ${batch};
globalThis.files = files;
globalThis.train = async (steps, cut) => {
  const program = await openProgram(await (await fetch('/linear.rlxp')).arrayBuffer());
  await program.run('init');
  const trainer = new Trainer(program, { history: { ring: 'history', count: 'count' } }), stop = new AbortController();
  const data = function* () {
    for (let i = 0; ; i++) {
      if (trainer.steps >= cut) stop.abort();
      yield { ...batch(i), rate: 0.2 };
    }
  };
  const save = { folder: 'runs/linear', every: 7, last: 2, resume: true };
  const end = await fit(trainer, { data, steps, every: 5, save, log: 'log.jsonl', signal: stop.signal }).catch(({ kind }) => kind);
  return { end: end.kind ?? end, steps: trainer.steps, w: [...await program.read('w')] };
};
// Tabs that write, read and remove the same files give the errors of their calls.
globalThis.share = async (rounds) => {
  const folder = await files('shared/by'), problems = new Set(), bytes = new Uint8Array(3000).fill(7);
  const noted = (call) => call.catch(({ message }) => { problems.add(message); return []; });
  for (let i = 0; i < rounds; i++) {
    await noted(folder.write(String(i % 3), bytes));
    for (const name of await noted(folder.list())) await noted(folder.read(name));
    await noted(folder.append('log.jsonl', Uint8Array.of(10)));
    await noted(folder.remove(String((i + 1) % 3)));
  }
  return [...problems];
};
globalThis.ready = true;
`;

let server;
before(async () => {
  server = await serve({
    '/': { body: html, type: 'text/html' }, '/page.mjs': { body: script }, '/linear.rlxp': { body: Buffer.from(linearPlan()) },
    '/dist': new URL('../../dist', import.meta.url).pathname, '/favicon.ico': { body: '' },
  }, { csp: strictCSP });
});
after(() => server.close());

test('a training is cut, the page reloads, and it goes on from its checkpoint', async (t) => {
  const browser = await openChromium();
  t.after(() => browser.close());
  const page = await browser.open(`${server.origin}/`);
  const run = async (...args) => {
    await page.waitForFunction(() => globalThis.ready);
    return page.evaluate((args) => globalThis.train(...args), args);
  };
  const first = await run(40, 18);
  assert.deepEqual([first.end, first.steps], ['abort', 18]);
  await page.evaluate(async () => { // of a page that ended in the middle of its first write
    let folder = await navigator.storage.getDirectory();
    for (const part of ['runs', 'linear']) folder = await folder.getDirectoryHandle(part);
    await folder.getFileHandle('step-00000099.safetensors', { create: true });
  });
  await page.reload();
  const second = await run(40, Infinity);
  assert.equal(second.end.step, 40);
  const want = reference();
  for (let i = 0; i < 40; i++) want.step(batch(i), Math.fround(0.2));
  assert.ok(close(second.w, want.w, 1e-4), `${second.w} instead of ${want.w}`);
  const { names, lines } = await page.evaluate(async () => {
    const folder = await globalThis.files('runs/linear');
    return { names: await folder.list(), lines: new TextDecoder().decode(await folder.read('log.jsonl')).trim().split('\n') };
  });
  assert.deepEqual(names.sort(), ['log.jsonl', 'step-00000035.safetensors', 'step-00000040.safetensors']);
  assert.deepEqual(lines.map((line) => JSON.parse(line).step), [5, 10, 15, 15, 20, 25, 30, 35, 40]);

  // A duplicated tab trains beside the first, into the same folder.
  const twin = await browser.open(`${server.origin}/`);
  await twin.waitForFunction(() => globalThis.ready);
  const both = await Promise.all([run(60, Infinity), twin.evaluate(() => globalThis.train(60, Infinity))]);
  for (let i = 40; i < 60; i++) want.step(batch(i), Math.fround(0.2));
  for (const { end, w } of both) assert.ok(end.step === 60 && close(w, want.w, 1e-4), `${end} ${w}`);
  assert.deepEqual(twin.problems, []);

  // Where storage is full training goes on, and ends with the error of the last checkpoint.
  const session = await page.context().newCDPSession(page);
  await session.send('Storage.overrideQuotaForOrigin', { origin: server.origin, quotaSize: 1 });
  const warned = page.problems.length, full = await run(80, Infinity);
  assert.deepEqual([full.end, full.steps], ['store', 80]);
  assert.match(page.problems[warned] ?? '', /rlx: training goes on without a checkpoint: folder runs\/linear: .*quota/i);
  page.problems.length = 0;
  assert.deepEqual(page.problems, []);
});

test('tabs that share a folder wait for each other', async (t) => {
  const browser = await openChromium({ webgpu: 'no adapter' });
  t.after(() => browser.close());
  const tabs = [await browser.open(`${server.origin}/`), await browser.open(`${server.origin}/`)];
  for (const tab of tabs) await tab.waitForFunction(() => globalThis.ready);
  const rounds = 60, problems = await Promise.all(tabs.map((tab) => tab.evaluate((count) => globalThis.share(count), rounds)));
  assert.deepEqual(problems, [[], []]);
  const log = await tabs[0].evaluate(async () => (await (await globalThis.files('shared/by')).read('log.jsonl')).length);
  assert.equal(log, 2 * rounds, 'no line of the log is lost');
  for (const { problems: seen } of tabs) assert.deepEqual(seen, []);
});
