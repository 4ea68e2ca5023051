// The page without a GPU: rlx's WebAssembly beside that of jax-js, in one Chromium, by turns, each in the
// main thread of a page of its own; rlx also in a page that is isolated from other origins, where it has
// threads. The least of some rounds counts, as others may use the machine.
//
//   node js/bench/cpu.mjs [ROUNDS]

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openChromium } from '../test/rig/chromium.mjs';
import { serve } from '../test/rig/serve.mjs';
import { bundle } from './bundle.mjs';
import { cpuJobs } from './jobs.mjs';

const here = import.meta.dirname;
const plans = join(here, '../../build/plans'); // by plans/main.go
const rounds = Number(process.argv[2] ?? 3), isolation = { 'cross-origin-opener-policy': 'same-origin', 'cross-origin-embedder-policy': 'require-corp' };
const pages = [{ name: 'rlx' }, { name: 'jax' }, { name: 'rlx', headers: isolation, as: 'rlx with threads' }];

// How long a job is timed in a round: engines compile what runs often once more, beside it.
const milliseconds = 4000;

// once is one round of a job: the least milliseconds per step, and the loss of the third.
async function once(page, index) {
  const loss = await page.evaluate((i) => globalThis.startJob('cpu', i), index);
  let least = Infinity;
  for (const end = Date.now() + milliseconds; Date.now() < end;) {
    const { wall } = await page.evaluate((t) => globalThis.timeJob(t), { steps: 2, repeats: 1 });
    least = Math.min(least, wall);
  }
  await page.evaluate(() => globalThis.endJob());
  return { loss, wall: least };
}

async function measure(folder) {
  await bundle(join(here, 'page.mjs'), join(folder, 'page'), 'browser');
  const html = '<!doctype html><link rel="icon" href="data:,"><script type="module" src="/page.mjs"></script>';
  const browser = await openChromium({ webgpu: 'no adapter' }), servers = [], opened = [];
  for (const { name, headers } of pages) {
    const server = await serve({ '/': join(folder, 'page'), '/plans': plans, '/bench.html': { body: html, type: 'text/html' }, '/thread-worker.js': join(here, '../dist/thread-worker.js') }, { headers });
    const page = await browser.open(`${server.origin}/bench.html`);
    await page.waitForFunction(() => globalThis.openPeer);
    await page.evaluate((peer) => globalThis.openPeer(peer, { device: 'wasm' }), name);
    servers.push(server);
    opened.push(page);
  }
  for (const [index, { name, rate }] of cpuJobs.entries()) {
    const best = pages.map(() => ({ wall: Infinity }));
    for (let r = 0; r < rounds; r++) {
      for (const [i, page] of opened.entries()) {
        const got = await once(page, index);
        if (got.wall < best[i].wall) best[i] = got;
      }
    }
    const cells = best.map(({ wall, loss }, i) => `${pages[i].as ?? pages[i].name} ${wall.toFixed(3)} ms (${rate(wall)})${loss === undefined ? '' : `, loss ${loss.toFixed(5)}`}`);
    console.log(`${name.padEnd(34)} ${cells.join('   ')}   ratio ${(best[1].wall / best[0].wall).toFixed(2)}`);
  }
  await browser.close();
  for (const server of servers) await server.close();
}

const folder = mkdtempSync(join(tmpdir(), 'rlx-bench-'));
try {
  await measure(folder);
} finally {
  rmSync(folder, { recursive: true });
}
