// Measures a visitor's wait: the time from a graph's text to the result of its first training step,
// over Dawn in Node and in Chromium, with empty caches. Each run has a separate process and cache,
// and the fastest run counts, as others may use the machine.
//
//   go run ./js/bench/plans build/plans
//   node js/bench/first.mjs [ROUNDS]
//
// runs small graphs on GPUs made of software, and also on a GPU that computes nothing: that is this project's
// and Dawn's own part. With RLX_DAWN_BACKEND=default the language models of jobs.mjs run on this
// machine's GPU, as a program for h200/pack.mjs too; in Chromium only where $CHROMIUM names one.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { openGPU } from '../test/rig/dawn.mjs';
import { scriptPage, serve } from '../test/rig/serve.mjs';
import { firstStep, parts } from './first/once.mjs';

const plans = process.env.RLX_PLANS ?? join(import.meta.dirname, '../../build/plans'); // by plans/main.go
const js = process.env.RLX_DATA ? join(process.env.RLX_DATA, 'js') : join(import.meta.dirname, '..');
const realGPU = process.env.RLX_DAWN_BACKEND === 'default';

const script = `
import { firstStep, visit } from '/js/bench/first/once.mjs';
const textOf = async (name) => (await fetch('/plans/first-' + name + '.txt')).text(), wasm = '/js/dist/rlx.wasm';
globalThis.first = async (name) => firstStep(name, { text: await textOf(name), gpu: navigator.gpu, wasm });
globalThis.visit = async (name) => visit(name, { text: await textOf(name), wasm });
`;

const models = ['gpt-4-128', 'gpt-6-384'];

// inNode does a first step in this process.
const inNode = (name, backend) => firstStep(name, {
  text: readFileSync(join(plans, `first-${name}.txt`), 'utf8'), gpu: openGPU({ backend }), wasm: pathToFileURL(join(js, 'dist/rlx.wasm')),
});

// processorTime is the milliseconds of processor time that a browser's processes have taken.
async function processorTime(page) {
  const session = await page.context().browser().newBrowserCDPSession(), { processInfo } = await session.send('SystemInfo.getProcessInfo');
  await session.detach();
  return 1e3 * processInfo.reduce((sum, { cpuTime }) => sum + cpuTime, 0);
}

// inChromium does a first step in a new browser, and then two visits: the second finds what the first has kept.
async function inChromium(name) {
  const { openChromium } = await import('../test/rig/chromium.mjs'); // a machine without a browser lacks what drives one
  const server = await serve({ '/': scriptPage, '/page.mjs': { body: script, type: 'text/javascript' }, '/js': js, '/plans': plans });
  const browser = await openChromium({ webgpu: realGPU ? 'default' : 'swiftshader' });
  try {
    const page = await browser.open(`${server.origin}/`);
    const ask = async (what) => {
      await page.waitForFunction((what) => globalThis[what], what);
      return page.evaluate(([what, name]) => globalThis[what](name), [what, name]);
    };
    const first = await ask('first');
    await page.reload();
    await ask('visit');
    const before = await processorTime(page);
    await page.reload();
    return { ...first, again: await ask('visit'), againCPU: await processorTime(page) - before };
  } finally {
    await browser.close();
    await server.close();
  }
}

const bytesIn = (folder) => readdirSync(folder, { recursive: true }).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);

// fresh is one run in a process with an empty driver cache, which is deleted afterwards.
function fresh(name, backend) {
  const home = mkdtempSync(join(tmpdir(), 'rlx-first-'));
  try {
    const env = { ...process.env, HOME: home, XDG_CACHE_HOME: home, __GL_SHADER_DISK_CACHE_PATH: home, MESA_SHADER_CACHE_DISABLE: 'true' };
    const out = execFileSync(process.execPath, [fileURLToPath(import.meta.url), 'once', name, backend], { env, stdio: 'pipe', encoding: 'utf8' });
    return { ...JSON.parse(out), cached: bytesIn(home) };
  } finally {
    rmSync(home, { recursive: true });
  }
}

function row([name, backend], rounds) {
  const all = (run) => parts.reduce((sum, part) => sum + run[part], 0) - run.compiler;
  const runs = Array.from({ length: rounds }, () => fresh(name, backend)).sort((a, b) => all(a) - all(b));
  const [least] = runs, ms = (part) => Math.round(least[part]);
  return {
    model: name, GPU: backend, ...Object.fromEntries(parts.map((part) => [part, ms(part)])),
    'from graph': Math.round(all(least)), 'from plan': Math.round(all(least) - least.graph - least.plan), 'from graph, slowest': Math.round(all(runs.at(-1))),
    ...least.again && { 'second visit': ms('again'), 'its processor time': ms('againCPU') },
    ...least.whole && { 'drafts replaced after': ms('whole') },
    'bytes cached': least.cached, ...backend !== 'null' && { loss: least.loss },
  };
}

if (process.argv[2] === 'once') {
  const [name, backend] = process.argv.slice(3);
  console.log(JSON.stringify(await (backend === 'chromium' ? inChromium(name) : inNode(name, backend))));
  process.exit(0);
}
const software = [['lm', 'swiftshader'], ['lm', 'chromium'], ['lm', 'lavapipe'], ['lm', 'null'], ['equation', 'lavapipe'], ['equation', 'null'], ['gpt-4-128', 'null']];
const hardware = models.flatMap((name) => [[name, 'default'], ...process.env.CHROMIUM ? [[name, 'chromium']] : []]);
const cases = realGPU ? hardware : software;
console.log('milliseconds; the first step follows the parts before it');
console.table(cases.map((one) => row(one, Number(process.argv[2] ?? 3))));
