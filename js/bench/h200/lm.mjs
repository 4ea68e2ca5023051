// Tokens, a prompt and QLoRA of a language model of 135 million weights on this machine's GPU, over Dawn in Node and in Chromium: a
// program for pack.mjs, which gives it the file lm-jobs.mjs by --data, or by itself:
//
//   RLX_DAWN_BACKEND=default node js/bench/h200/lm.mjs [JOB]...
//
// The jobs are packed, f32 and qlora. The best of some runs counts. RLX_PLACES (node chromium) says where.

import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { openGPU } from '../../test/rig/dawn.mjs';
import { scriptPage, serve } from '../../test/rig/serve.mjs';

const jobs = process.argv.length > 2 ? process.argv.slice(2) : process.env.RLX_JOBS?.split(' ');
const dist = process.env.RLX_PAGE ? join(process.env.RLX_PAGE, process.env.RLX_DIST ?? 'rlx') : join(import.meta.dirname, '../../dist');
const script = process.env.RLX_PAGE ? join(process.env.RLX_DATA, 'lm-jobs.mjs') : join(import.meta.dirname, 'lm-jobs.mjs');
const load = (file) => import(pathToFileURL(file));

async function inNode() {
  const [rlx, lm, { run }] = await Promise.all([load(join(dist, 'index.js')), load(join(dist, 'lm.js')), load(script)]);
  const gpu = openGPU(), { info } = await gpu.requestAdapter();
  console.log(`Dawn in Node: ${info.description || info.device}`);
  await run({ rlx, lm, gpu, print: (line) => console.log(line) }, jobs);
}

async function inChromium() {
  const server = await serve({ '/bench.html': scriptPage, '/page.mjs': { body: '', type: 'text/javascript' }, '/jobs.mjs': script, '/rlx': dist });
  const { openChromium } = await import('../../test/rig/chromium.mjs'), browser = await openChromium({ webgpu: process.env.CHROMIUM ? 'default' : 'swiftshader' });
  const page = await browser.open(`${server.origin}/bench.html`);
  console.log('Chromium');
  page.on('console', (message) => console.log(message.text()));
  // The paths are those of the page's server, which no bundler resolves.
  await page.evaluate(async ([given, ...paths]) => {
    const [rlx, lm, { run }] = await Promise.all(paths.map((path) => import(path)));
    await run({ rlx, lm, print: (line) => console.log(line) }, given);
  }, [jobs, '/rlx/index.js', '/rlx/lm.js', '/jobs.mjs']);
  await browser.close();
}

const places = (process.env.RLX_PLACES ?? 'node chromium').split(' ');
if (places.includes('node')) await inNode();
if (places.includes('chromium')) await inChromium();
process.exit(0);
