// Compares the compiler in Chromium with the same compiler as a native program: milliseconds from
// the text of a training step's graph to the bytes of its plan. A page compiles in one thread; the
// native program collects garbage in others. The two take turns, and the fastest round counts, as
// others may use the machine. It also prints processor time, of the page's main thread and of all
// native ones, and the time of a page's first compilation, during which the engine still optimises
// the module's code.
//
//   node js/bench/compile.mjs [ROUNDS [NAME]...]
//
// Where names are given, only these graphs of compile/main.go are compiled, which may be large
// ones that take too long otherwise: branches-100000.

import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { openChromium } from '../test/rig/chromium.mjs';
import { scriptPage, serve } from '../test/rig/serve.mjs';

const root = join(import.meta.dirname, '../..'), folder = join(root, 'build/plans');
const rounds = Number(process.argv[2] ?? 3), names = process.argv.slice(3), compilations = 3; // of each graph in a round

const script = `
import { compile, init } from '/dist/index.js';
const limits = { maxStorageBufferBindingSize: 2 ** 31 - 4, maxBufferSize: 2 ** 32 - 4 }; // as in compile/main.go
globalThis.load = async (name) => {
  await init({ compileWorker: false });
  globalThis.step = await (await fetch('/plans/compile-' + name + '.txt')).text();
};
globalThis.time = async () => {
  const begun = performance.now();
  await compile({ entries: { step }, limits });
  return performance.now() - begun;
};
globalThis.ready = true;
`;

mkdirSync(folder, { recursive: true });
const program = join(root, 'build/compile');
execFileSync('go', ['build', '-o', program, './js/bench/compile'], { cwd: root, stdio: 'inherit' });
const native = () => execFileSync(program, [folder, String(compilations), ...names], { encoding: 'utf8' }).trim().split('\n').map((line) => JSON.parse(line));

// inPage compiles a graph in a new page.
async function inPage(browser, origin, name) {
  const page = await browser.open(`${origin}/`), session = await page.context().newCDPSession(page), rounds = [];
  await page.waitForFunction(() => globalThis.ready);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  const used = async () => 1e3 * (await session.send('Performance.getMetrics')).metrics.find((metric) => metric.name === 'ThreadTime').value;
  await page.evaluate((name) => globalThis.load(name), name);
  for (let i = 0; i < compilations; i++) {
    const before = await used(), wall = await page.evaluate(() => globalThis.time());
    rounds.push({ wall, cpu: await used() - before });
  }
  await page.close();
  return rounds;
}

const server = await serve({ '/': scriptPage, '/page.mjs': { body: script }, '/dist': join(root, 'js/dist'), '/plans': folder });
const browser = await openChromium({ webgpu: 'no adapter' });
const all = new Map();
for (let i = 0; i < rounds; i++) {
  for (const { name, nodes, rounds: here } of native()) {
    if (!all.has(name)) all.set(name, { nodes, here: [], there: [] });
    all.get(name).here.push(here);
    all.get(name).there.push(await inPage(browser, server.origin, name));
  }
}
await browser.close();
await server.close();

// least is the minimum of a kind of time, over all compilations or those that were first in their
// process.
const least = (processes, kind, first) => Math.min(...processes.flatMap((rounds) => first ? rounds[0][kind] : rounds.map((round) => round[kind])));
console.table([...all].flatMap(([graph, { nodes, here, there }]) => [['wall', false], ['wall', true], ['cpu', false], ['cpu', true]].map(([kind, first]) => {
  const native = least(here, kind, first), page = least(there, kind, first);
  return { graph, nodes, time: `${kind}${first ? ', first' : ''}`, 'native, ms': Math.round(native), 'Chromium, ms': Math.round(page), ratio: Number((page / native).toFixed(2)) };
})));
