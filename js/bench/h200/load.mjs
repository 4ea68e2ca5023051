// The wait for the first token of a language model of 135 million weights, by phases: the modules' code, the file's header, the
// program (compiled, or of the cache of plans), its weights from the file to the device, and the first token after a prompt of 16. In
// Chromium each visit is a new tab, and the file is in the origin's private file system; in Node each is a process, with a folder
// of plans. The first visit compiles. A program for pack.mjs, which gives it lm-jobs.mjs and load-jobs.mjs by --data, or by itself:
//
//   RLX_DAWN_BACKEND=default node js/bench/h200/load.mjs [VISITS [gpu|cpu]]
//
// RLX_PLACES (node chromium) says where.

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, openAsBlob, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { openGPU } from '../../test/rig/dawn.mjs';
import { scriptPage, serve } from '../../test/rig/serve.mjs';

const places = (process.env.RLX_PLACES ?? 'node chromium').split(' ');
const dist = process.env.RLX_PAGE ? join(process.env.RLX_PAGE, 'rlx') : join(import.meta.dirname, '../../dist');
const scripts = process.env.RLX_PAGE ? process.env.RLX_DATA : import.meta.dirname;
const jobs = () => import(pathToFileURL(join(scripts, 'load-jobs.mjs')));

/** A store of plans in a folder. */
function storeIn(folder) {
  const at = (key) => join(folder, key);
  return {
    get: (key) => { try { return new Uint8Array(readFileSync(at(key))); } catch { return undefined; } }, // the first time there is none
    set: (key, value) => writeFileSync(at(key), value), clear: () => rmSync(folder, { recursive: true }),
  };
}

/** One visit in this process. */
async function once(folder, on) {
  const { load } = await jobs(), init = { ...on === 'gpu' && { gpu: openGPU() }, cache: storeIn(join(folder, 'plans')), worker: false };
  const modules = ['index.js', 'lm.js'].map((name) => pathToFileURL(join(dist, name)).href);
  return load({ modules, open: () => openAsBlob(join(folder, 'model.gguf')), init, on, worker: false });
}

async function inNode(visits, on) {
  const folder = mkdtempSync(join(tmpdir(), 'rlx-load-')), { file } = await jobs();
  try {
    mkdirSync(join(folder, 'plans'));
    writeFileSync(join(folder, 'model.gguf'), new Uint8Array(await (await file()).arrayBuffer()));
    const visit = () => JSON.parse(execFileSync(process.execPath, [fileURLToPath(import.meta.url), 'once', folder, on], { encoding: 'utf8' }).trim().split('\n').at(-1));
    show('Node', Array.from({ length: visits }, visit));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function inChromium(visits, on) {
  const served = ['lm-jobs.mjs', 'load-jobs.mjs'].map((name) => [`/${name}`, join(scripts, name)]);
  const server = await serve({ '/bench.html': scriptPage, '/page.mjs': { body: '', type: 'text/javascript' }, '/rlx': dist, ...Object.fromEntries(served) });
  const { openChromium } = await import('../../test/rig/chromium.mjs');
  // Tabs of the browser's own profile: others keep files and plans in memory.
  const browser = await openChromium({ background: true, webgpu: process.env.RLX_DAWN_BACKEND === 'default' ? 'default' : 'swiftshader' });
  const inTab = async (job, ...given) => {
    const page = await browser.open(`${server.origin}/bench.html`);
    try {
      return await page.evaluate(async ([path, name, args]) => (await import(path))[name](...args), ['/load-jobs.mjs', job, given]);
    } finally {
      await page.close();
    }
  };
  try {
    await inTab('keep');
    const runs = [];
    while (runs.length < visits) runs.push(await inTab('loadKept', on));
    show('Chromium', runs);
  } finally {
    await browser.close();
    await server.close();
  }
}

/** Prints the milliseconds of the first visit, and the median and the least of the others. */
function show(place, [first, ...later]) {
  console.log(`${place}, ${first.device}: milliseconds`);
  const row = (name) => {
    const sorted = later.map(({ ms }) => ms[name]).sort((a, b) => a - b), all = { 'first visit': first.ms[name], ...sorted.length && { 'median of later ones': sorted[sorted.length >> 1], least: sorted[0] } };
    return [name, Object.fromEntries(Object.entries(all).map(([of, ms]) => [of, Math.round(ms)]))];
  };
  console.table(Object.fromEntries(Object.keys(first.ms).map(row)));
}

const [job = 5, ...given] = process.argv.slice(2);
if (job === 'once') {
  console.log(JSON.stringify(await once(...given)));
} else {
  const [on = 'gpu'] = given;
  if (places.includes('node')) await inNode(Number(job), on);
  if (places.includes('chromium')) await inChromium(Number(job), on);
}
process.exit(0);
