// The host's work per training step, of rlx and its peers: over Dawn in Node, and in
// Chromium. The GPUs here are software, so this does not measure kernels.
//
//   node js/bench/run.mjs [PEER...]

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { openChromium } from '../test/rig/chromium.mjs';
import { scriptPage, serve } from '../test/rig/serve.mjs';
import { bundle } from './bundle.mjs';
import { hostJobs } from './jobs.mjs';
import { peers } from './peers/index.mjs';

const here = import.meta.dirname;
const plans = join(here, '../../build/plans'); // by plans/main.go

// One result is read every ten steps, as a page that shows its loss does. jax-js gets
// slower with every step that is enqueued and not yet waited for.
const steps = 10;

const addon = join(dirname(createRequire(import.meta.url).resolve('webgpu')), `dist/${process.platform}-${process.arch}/dawn.node`);

// inNode runs one peer in a new process.
function inNode(program, peer, backend, repeats) {
  const output = execFileSync(process.execPath, [program, peer, backend, 'host', String(steps), String(repeats)], {
    env: { ...process.env, RLX_DAWN_NODE: addon, RLX_PLANS: plans }, stdio: ['ignore', 'pipe', 'ignore'], encoding: 'utf8',
  });
  return JSON.parse(output);
}

// mainThread is how long the page's main thread has been busy so far, in milliseconds.
async function mainThread(session) {
  const { metrics } = await session.send('Performance.getMetrics');
  return 1e3 * metrics.find(({ name }) => name === 'TaskDuration').value;
}

// inChromium runs one peer in a new browser.
async function inChromium(origin, peer, repeats) {
  const browser = await openChromium();
  const page = await browser.open(`${origin}/bench.html`);
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable');
  const row = await page.evaluate((name) => globalThis.openPeer(name), peer);
  const results = [];
  for (const [index, { name }] of hostJobs.entries()) {
    const loss = await page.evaluate((i) => globalThis.startJob('host', i), index);
    const before = await mainThread(session);
    const times = await page.evaluate((t) => globalThis.timeJob(t), { steps, repeats });
    const busy = (await mainThread(session) - before) / (2 * steps * repeats);
    await page.evaluate(() => globalThis.endJob());
    results.push({ ...row, job: name, loss, ...times, host: busy });
  }
  await browser.close();
  return results;
}

async function measureAll(names, folder) {
  await bundle(join(here, 'node.mjs'), join(folder, 'node'), 'node');
  await bundle(join(here, 'page.mjs'), join(folder, 'page'), 'browser');
  const server = await serve({ '/': join(folder, 'page'), '/plans': plans, '/bench.html': scriptPage });
  const program = join(folder, 'node/node.mjs');
  const rows = [];
  for (const name of names) {
    const idle = inNode(program, name, 'null', 25);
    const lavapipe = inNode(program, name, 'lavapipe', 9);
    const chromium = await inChromium(server.origin, name, 9);
    hostJobs.forEach((_, i) => rows.push({ idle: idle[i], lavapipe: lavapipe[i], chromium: chromium[i] }));
  }
  await server.close();
  return rows;
}

const ms = (value) => (value === undefined ? '–' : value.toFixed(value < 10 ? 3 : 1));

function print(rows) {
  const line = (cells) => console.log(`${cells[0].padEnd(40)}${cells[1].padEnd(16)}${cells.slice(2).map((cell) => cell.padStart(16)).join('')}`);
  line(['milliseconds per Adam step', '', 'Dawn, no GPU', 'Dawn, lavapipe', 'Chromium', 'Chromium', 'loss of']);
  line(['job', 'library', 'host only', 'to result', 'main thread', 'to result', 'step 3']);
  for (const { idle, lavapipe, chromium } of rows.toSorted((a, b) => a.idle.job.localeCompare(b.idle.job))) {
    line([idle.job, `${idle.peer} ${idle.version}`, ms(idle.wall), ms(lavapipe.wall), ms(chromium.host), ms(chromium.wall),
      lavapipe.loss?.toFixed(5) ?? lavapipe.error ?? '–']);
  }
}

const folder = mkdtempSync(join(tmpdir(), 'rlx-bench-'));
try {
  print(await measureAll(process.argv.length > 2 ? process.argv.slice(2) : Object.keys(peers), folder));
} finally {
  rmSync(folder, { recursive: true });
}
