// The runtime in Chromium: the page's thread and a worker, a hidden tab, a lost device.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { batch, close, linearPlan, reference } from '../linear.mjs';
import { closeShared, crashGPU, hide, plainHost, shareChromium } from '../rig/chromium.mjs';
import { hold } from '../../bench/hold.mjs';
import { countGPU } from '../rig/counter.mjs';
import { serve, strictCSP } from '../rig/serve.mjs';

const html = '<!doctype html><html lang="en"><title>rlx</title><script type="module" src="/page.mjs"></script></html>';
const script = `
import { openProgram, startWorker, Trainer } from '/dist/runtime.js';
globalThis.startWorker = startWorker;
const batch = ${batch};
globalThis.open = async (options) => openProgram(await (await fetch('/linear.rlxp')).arrayBuffer(), options);
globalThis.train = async (options, run) => {
  const program = globalThis.program = await globalThis.open(options);
  await program.run('init');
  const losses = globalThis.losses = [];
  const trainer = new Trainer(program, { history: { ring: 'history', count: 'count' } });
  const { steps, seconds } = await trainer.run({ batches: batch, inputs: { rate: 0.2 }, onProgress: (p) => losses.push(...p.losses), ...run });
  return { losses, steps, seconds, w: [...await program.read('w')], device: program.device.description };
};
globalThis.ready = true;
`;

let server;
before(async () => {
  server = await serve({
    '/': { body: html, type: 'text/html' }, '/page.mjs': { body: script }, '/linear.rlxp': { body: Buffer.from(linearPlan()) },
    '/dist': new URL('../../dist', import.meta.url).pathname, '/favicon.ico': { body: '' },
  }, { csp: strictCSP, hosts: [plainHost] });
});
after(() => Promise.all([server.close(), closeShared()]));

async function open(t, { counted = false, ...options } = {}) {
  const browser = await shareChromium(options);
  t.after(() => browser.close());
  if (counted) await browser.context.addInitScript(countGPU);
  const page = await browser.open(`${server.origin}/`);
  await page.waitForFunction(() => globalThis.ready);
  return page;
}

const expected = (steps) => {
  const want = reference(), losses = Array.from({ length: steps }, (_, i) => want.step(batch(i), Math.fround(0.2)));
  return { losses, w: want.w };
};

for (const worker of [false, true]) {
  test(`trains as the reference does, ${worker ? 'in a worker' : 'in the page'}, and asks for no WebAssembly`, async (t) => {
    const page = await open(t), want = expected(200);
    const got = await page.evaluate((worker) => globalThis.train({ worker }, { steps: 200 }), worker);
    assert.ok(close(got.losses, want.losses, 1e-4));
    assert.ok(close(got.w, want.w, 1e-4));
    assert.match(got.device, /swiftshader/i);
    assert.deepEqual(page.problems, []);
    assert.deepEqual(server.requests.filter((path) => path.endsWith('.wasm')), []);
  });
}

test('a step is one encoder, one pass and one submission', async (t) => {
  const page = await open(t, { counted: true });
  const { counts, live } = await page.evaluate(async () => {
    await globalThis.train({ inFlight: 2 }, { steps: 20 }); // with more, runs share submissions
    const before = gpuCounter.liveBuffers();
    gpuCounter.take();
    for (let i = 0; i < 100; i++) await globalThis.program.run('step', { x: new Float32Array(12), t: new Float32Array(4), rate: 0.1 });
    return { counts: gpuCounter.take(), live: gpuCounter.liveBuffers() - before };
  });
  assert.equal(live, 0);
  assert.deepEqual(counts, {
    'device.createCommandEncoder': 100, 'encoder.beginComputePass': 100, 'encoder.finish': 100, 'queue.submit': 100, 'queue.writeBuffer': 201, // x and t, and once the rate
    'queue.onSubmittedWorkDone': 100, 'pass.dispatchWorkgroups': 200, 'pass.setPipeline': 200, 'pass.setBindGroup': 300,
  });
});

for (const worker of [false, true]) {
  test(`goes on in a hidden tab, ${worker ? 'in a worker' : 'in the page'}`, async (t) => {
    const page = await open(t, { background: true });
    const running = page.evaluate((worker) => {
      globalThis.stop = new AbortController();
      return globalThis.train({ worker }, { steps: 1e9, signal: globalThis.stop.signal });
    }, worker);
    await page.waitForFunction(() => globalThis.losses?.length > 50);
    const before = await page.evaluate('losses.length');
    await hide(page, 2000);
    const after = await page.evaluate('losses.length');
    // A frozen page runs nothing; training goes on when it is thawed.
    const session = await page.context().newCDPSession(page), freeze = (state) => session.send('Page.setWebLifecycleState', { state });
    await freeze('frozen');
    await new Promise((resolve) => setTimeout(resolve, 300));
    await freeze('active');
    const thawed = await page.evaluate('losses.length');
    await page.waitForFunction((thawed) => globalThis.losses.length > thawed + 50, thawed, { polling: 100 });
    await page.evaluate('stop.abort()');
    const { steps, w } = await running;
    assert.ok(after - before > 200, `${after - before} steps in 2 s`);
    assert.ok(close(w, expected(steps).w, 1e-4));
  });
}

test('reports a lost device', async (t) => {
  const page = await open(t);
  const failed = page.evaluate(async () => {
    try {
      await globalThis.train({}, { steps: 1e9 });
    } catch ({ name, kind, message, place }) {
      return { name, kind, message, steps: place.steps };
    }
  });
  await page.waitForFunction(() => globalThis.losses?.length > 20);
  await crashGPU(page);
  const { name, kind, message, steps } = await failed;
  assert.deepEqual([name, kind], ['RlxError', 'lost'], message);
  assert.ok(steps > 20, message);
});

test('goes on after the GPU process crashed, in a worker', async (t) => {
  const page = await open(t);
  const running = page.evaluate(() => {
    globalThis.stop = new AbortController();
    const recover = { snapshotEvery: { steps: 10 }, onRecovered: ({ step, lostSteps, reason: { kind } }) => { globalThis.recovered = { step, lostSteps, kind }; } };
    return globalThis.train({ worker: true, recover }, { steps: 1e9, signal: globalThis.stop.signal });
  });
  await page.waitForFunction(() => globalThis.losses?.length > 20);
  await crashGPU(page);
  await page.waitForFunction(() => globalThis.recovered);
  const before = await page.evaluate('losses.length');
  await page.waitForFunction((before) => globalThis.losses.length > before + 20, before);
  await page.evaluate('stop.abort()');
  const { steps, w, losses } = await running, recovered = await page.evaluate('recovered'), want = expected(steps);
  assert.ok(recovered.step >= 20 && recovered.step % 10 === 0 && recovered.kind === 'lost', JSON.stringify(recovered));
  assert.ok(close(w, want.w, 1e-4));
  assert.ok(close(losses.slice(-10), want.losses.slice(-10), 1e-4));
  assert.deepEqual(page.problems, []);
});

test('rejects the calls that a worker did not answer before it was ended', async (t) => {
  const page = await open(t);
  const { kinds, lost } = await page.evaluate(async () => {
    const worker = globalThis.startWorker(), program = await globalThis.open({ worker });
    await program.run('init');
    // Enough steps that some are unanswered even where this thread stops between the calls and the worker does not.
    const calls = Array.from({ length: 2000 }, () => program.run('step', { x: new Float32Array(12), t: new Float32Array(4), rate: 0.1 }));
    calls.push(program.read('w'), program.save());
    worker.terminate();
    const kinds = (await Promise.allSettled(calls)).map(({ status, reason }) => reason?.kind ?? status);
    return { kinds, lost: (await program.lost).kind };
  });
  const first = kinds.indexOf('lost');
  assert.ok(first >= 0 && kinds.slice(0, first).every((kind) => kind === 'fulfilled') && kinds.slice(first).every((kind) => kind === 'lost'), `call ${first} is the first of ${[...new Set(kinds)]}`);
  assert.equal(lost, 'lost');
});

test('says what is missing where there is no adapter, and where there is no WebGPU', async (t) => {
  for (const [webgpu, text] of [['no adapter', /no adapter/], ['absent', /WebGPU is not here/]]) {
    const page = await open(t, { webgpu });
    const { kind, message } = await page.evaluate(() => globalThis.open({}).catch(({ kind, message }) => ({ kind, message })));
    assert.equal(kind, 'device');
    assert.match(message, text);
  }
});

test('3,000 steps with snapshots hold no more than before', async (t) => {
  const { before, after } = await hold({ plan: linearPlan(), on: 'gpu', steps: 3000, warmUp: 500 });
  t.diagnostic(`heap: ${before.heap} bytes before, ${after.heap} after`);
  // The pool of buffers may still grow, to at most two for each run in flight.
  assert.ok(after.buffers - before.buffers <= 64 && after.tensors === before.tensors && after.wasm === before.wasm, JSON.stringify({ before, after }));
  assert.ok(after.heap - before.heap < 100 * 3000, `${after.heap - before.heap} bytes more`);
});
