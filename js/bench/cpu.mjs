// The page without a GPU: rlx's WebAssembly and that of jax-js, in one Chromium, alternately, each
// in the main thread of its page; rlx also in an isolated page, where it has threads. The fastest
// of several rounds counts, as others may use the machine. The gain by threads is printed next to
// its limit: two pages that do the same job at once, each with one thread, since processors may
// share arithmetic units.
//
//   node js/bench/cpu.mjs [ROUNDS]

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openChromium } from '../test/rig/chromium.mjs';
import { isolation, scriptPage, serve } from '../test/rig/serve.mjs';
import { bundle } from './bundle.mjs';
import { cpuJobs } from './jobs.mjs';

const here = import.meta.dirname;
const plans = join(here, '../../build/plans'); // by plans/main.go
const rounds = Number(process.argv[2] ?? 3);
const pages = [{ name: 'rlx' }, { name: 'jax' }, { name: 'rlx', headers: isolation, as: 'rlx with threads' }, { name: 'rlx', as: 'rlx twice' }];

// How long a job is timed in a round: engines recompile hot code in the background.
const milliseconds = 4000;

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

// once is one round of a job in a page: milliseconds per step, and the loss of the third.
async function once(page, index) {
  const loss = await page.evaluate((i) => globalThis.startJob('cpu', i), index), walls = [];
  for (const end = Date.now() + milliseconds; Date.now() < end;) {
    walls.push((await page.evaluate((t) => globalThis.timeJob(t), { steps: 2, repeats: 1 })).wall);
  }
  await page.evaluate(() => globalThis.endJob());
  return { loss, wall: Math.min(...walls), usual: median(walls) };
}

// best is the best of each page at a job: the last page runs it at the same time as the first.
async function best(opened, index) {
  const [plain, peer, threads, twin] = opened, results = opened.map(() => ({ wall: Infinity, usual: Infinity }));
  const keep = (i, { wall, usual, loss }) => {
    results[i] = { loss, wall: Math.min(wall, results[i].wall), usual: Math.min(usual, results[i].usual) };
  };
  for (let r = 0; r < rounds; r++) {
    for (const [i, page] of [plain, peer, threads].entries()) keep(i, await once(page, index));
    keep(3, (await Promise.all([once(twin, index), once(plain, index)]))[0]);
  }
  return results;
}

async function measure(folder) {
  await bundle(join(here, 'page.mjs'), join(folder, 'page'), 'browser');
  const browser = await openChromium({ webgpu: 'no adapter' }), servers = [], opened = [];
  for (const { name, headers } of pages) {
    const server = await serve({ '/': join(folder, 'page'), '/plans': plans, '/bench.html': scriptPage, '/worker.js': join(here, '../dist/worker.js') }, { headers });
    const page = await browser.open(`${server.origin}/bench.html`);
    await page.waitForFunction(() => globalThis.openPeer);
    await page.evaluate((peer) => globalThis.openPeer(peer, { device: 'wasm' }), name);
    servers.push(server);
    opened.push(page);
    page.on('console', (message) => console.log(`${name}: ${message.text()}`)); // as of threads that did not start
  }
  for (const [index, { name, rate }] of cpuJobs.entries()) {
    const results = await best(opened, index), [plain, peer, threads, twice] = results;
    const cells = results.slice(0, 3).map(({ wall, loss }, i) => `${pages[i].as ?? pages[i].name} ${wall.toFixed(3)} ms (${rate(wall)})${loss === undefined ? '' : `, loss ${loss.toFixed(5)}`}`);
    const gain = plain.usual / threads.usual, most = 2 * plain.usual / twice.usual;
    console.log(`${name.padEnd(34)} ${cells.join('   ')}   ratio ${(peer.wall / plain.wall).toFixed(2)}, threads ${gain.toFixed(2)} of ${most.toFixed(2)}`);
  }
  const problems = opened.flatMap((page) => page.problems); // as a script that is not there, of a thread
  if (problems.length > 0) throw new Error(problems.join('\n'));
  await browser.close();
  for (const server of servers) await server.close();
}

const folder = mkdtempSync(join(tmpdir(), 'rlx-bench-'));
try {
  await measure(folder);
} finally {
  rmSync(folder, { recursive: true });
}
