// The compiler in Chromium beside the same compiler as a native program: from the text of a
// training step's graph to the bytes of its plan, in milliseconds. A page compiles in one thread;
// the native program collects its memory in others. The two take turns, and the least of the
// rounds counts, as others may use the machine; what a page's first compilation takes, while the
// engine still makes the module's code faster, is beside it.
//
//   node js/bench/compile.mjs [ROUNDS]

import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { openChromium } from '../test/rig/chromium.mjs';
import { serve } from '../test/rig/serve.mjs';

const root = join(import.meta.dirname, '../..'), folder = join(root, 'build/plans');
const rounds = Number(process.argv[2] ?? 3), compilations = 3; // of each graph in a round

const html = '<!doctype html><link rel="icon" href="data:,"><script type="module" src="/page.mjs"></script>';
const script = `
import { compile, init } from '/dist/index.js';
const limits = { maxStorageBufferBindingSize: 2 ** 31 - 4, maxBufferSize: 2 ** 32 - 4 }; // as in compile/main.go
globalThis.time = async (name, times) => {
  await init({ compileWorker: false });
  const step = await (await fetch('/plans/compile-' + name + '.txt')).text(), took = [];
  for (let i = 0; i < times; i++) {
    const begun = performance.now();
    await compile({ entries: { step }, limits });
    took.push(performance.now() - begun);
  }
  return { first: took[0], least: Math.min(...took) };
};
globalThis.ready = true;
`;

mkdirSync(folder, { recursive: true });
const program = join(root, 'build/compile');
execFileSync('go', ['build', '-o', program, './js/bench/compile'], { cwd: root, stdio: 'inherit' });
const native = () => execFileSync(program, [folder, String(compilations)], { encoding: 'utf8' }).trim().split('\n').map((line) => JSON.parse(line));

// inPage times a graph in a page of its own.
async function inPage(browser, origin, name) {
  const page = await browser.open(`${origin}/`);
  await page.waitForFunction(() => globalThis.ready);
  const times = await page.evaluate(([name, times]) => globalThis.time(name, times), [name, compilations]);
  await page.close();
  return times;
}

const least = (a, b) => ({ first: Math.min(a.first, b.first), least: Math.min(a.least, b.least) });

const server = await serve({ '/': { body: html, type: 'text/html' }, '/page.mjs': { body: script }, '/dist': join(root, 'js/dist'), '/plans': folder });
const browser = await openChromium({ webgpu: 'no adapter' });
const best = new Map();
for (let i = 0; i < rounds; i++) {
  for (const { name, nodes, ...here } of native()) {
    const there = await inPage(browser, server.origin, name), old = best.get(name);
    best.set(name, { nodes, here: least(here, old?.here ?? here), there: least(there, old?.there ?? there) });
  }
}
await browser.close();
await server.close();
console.table(Object.fromEntries([...best].map(([name, { nodes, here, there }]) => [name, {
  nodes, 'native, ms': Math.round(here.least), 'Chromium, ms': Math.round(there.least), ratio: Number((there.least / here.least).toFixed(2)),
  'first native': Math.round(here.first), 'first Chromium': Math.round(there.first), 'ratio of firsts': Number((there.first / here.first).toFixed(2)),
}])));
