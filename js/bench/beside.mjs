// Libraries beside each other in one Chromium, in turns: each has a page of its own there, and the
// median of several rounds counts. What the libraries compute is printed, so that it can be compared.
//
//   node js/bench/beside.mjs SET PEER...
//
// Without arguments RLX_BESIDE has them, those of several runs with semicolons between. SET is one of jobs.mjs (networks, largeNetworks, site, …), or SET/REGEXP for some of its jobs. RLX_WEBGPU=default
// takes this machine's GPU instead of Chromium's in software. RLX_PAGE is a bundle of page.mjs with the
// package in its folder rlx, where this is a bundle itself; RLX_SECONDS how long a job runs for each library.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openChromium } from '../test/rig/chromium.mjs';
import { scriptPage, serve } from '../test/rig/serve.mjs';
import { sets } from './jobs.mjs';

const rounds = 3, seconds = Number(process.env.RLX_SECONDS ?? 6);
const runs = process.argv.length > 2 ? [process.argv.slice(2)] : (process.env.RLX_BESIDE ?? 'networks built tfjs').split(';').map((run) => run.trim().split(/ +/));

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

/** The milliseconds of a step in each page, by turns: pages of libraries that have the job. */
async function inTurns(pages, list, { index }) {
  const taking = [];
  for (const page of pages) {
    const row = { page, walls: [] };
    try {
      const before = performance.now();
      row.loss = await page.evaluate(([s, i]) => globalThis.startJob(s, i), [list, index]);
      row.started = performance.now() - before;
      const { wall } = await page.evaluate(() => globalThis.timeJob({ steps: 1, repeats: 1 }));
      row.steps = Math.min(1000, Math.max(1, Math.round(1e3 * seconds / rounds / 2 / wall)));
      taking.push(row);
    } catch (error) {
      row.error = error.message.split('\n')[0];
      taking.push(row);
    }
  }
  for (let r = 0; r < rounds; r++) {
    for (const row of taking) {
      if (!row.error) row.walls.push((await row.page.evaluate((steps) => globalThis.timeJob({ steps, repeats: 1 }), row.steps)).wall);
    }
  }
  for (const { page, error } of taking) if (!error) await page.evaluate(() => globalThis.endJob());
  return taking;
}

async function measure(folder) {
  const mounts = { '/': folder, '/bench.html': scriptPage, '/rlx': process.env.RLX_PAGE ? join(folder, 'rlx') : join(import.meta.dirname, '../dist') };
  if (!process.env.RLX_PAGE) mounts['/ort.wasm'] = join(import.meta.dirname, 'node_modules/onnxruntime-web/dist/ort-wasm-simd-threaded.asyncify.wasm');
  if (process.env.RLX_PLANS) mounts['/plans'] = process.env.RLX_PLANS;
  const server = await serve(mounts), browser = await openChromium({ webgpu: process.env.RLX_WEBGPU ?? 'swiftshader' });
  for (const run of runs) await besides(browser, server, run);
  await browser.close();
  await server.close();
}

/** Runs the jobs of a set in a page for each library. */
async function besides(browser, server, [set, ...names]) {
  const [list, pattern = '.'] = set.split('/'), pages = [];
  const jobs = sets[list].map((job, index) => ({ ...job, index })).filter(({ name }) => new RegExp(pattern).test(name));
  for (const name of names) {
    const page = await browser.open(`${server.origin}/bench.html`);
    await page.waitForFunction(() => globalThis.openPeer);
    const { peer, version } = await page.evaluate((one) => globalThis.openPeer(one), name);
    pages.push(Object.assign(page, { title: `${peer} ${version}` }));
  }
  for (const job of jobs) {
    console.log(job.name);
    for (const { page, walls, loss, error, started } of await inTurns(pages, list, job)) {
      const ms = median(walls);
      console.log(`  ${page.title.padEnd(24)} ${error ?? `${ms.toFixed(3).padStart(10)} ms, least ${Math.min(...walls).toFixed(3)}   ${job.rate(ms)}   first ${(started / 1e3).toFixed(2)} s${loss === undefined ? '' : `   loss ${loss.toPrecision(5)}`}`}`);
    }
  }
  for (const page of pages) await page.close();
}

if (process.env.RLX_PAGE) {
  await measure(process.env.RLX_PAGE);
} else {
  const { bundle } = await import('./bundle.mjs'), folder = mkdtempSync(join(tmpdir(), 'rlx-bench-'));
  try {
    await bundle(join(import.meta.dirname, 'page.mjs'), folder, 'browser');
    await measure(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
