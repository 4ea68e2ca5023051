// Prints what the pages of the site take until a visitor sees them, in Chromium with empty caches: the first contentful paint, the largest
// one, how much moves on the page after it was painted, the longest task of the main thread, and the bytes, packed by gzip, that are
// loaded in the first seconds. Of several loads the least of each counts, as others may use the machine.
//
//   make demo-assets && node js/bench/paint.mjs [LOADS] [PAGE ...]
//
// The GPU in software would take the time of what paints, so there is none. Times are measured at the speed of this machine's
// processor and at a quarter of it, as on a phone.

import { gzipSync } from 'node:zlib';
import { demoMounts, demoOptions } from '../serve.mjs';
import { openChromium } from '../test/rig/chromium.mjs';
import { serve } from '../test/rig/serve.mjs';

const [loads = '3', ...asked] = process.argv.slice(2);
const pages = asked.length ? asked : ['', 'digits.html', 'gpt.html', 'playground.html', 'chat.html', 'docs/', 'benchmark.html'];
/** How long a page is watched, in milliseconds. */
const watched = 4000;

/** Records what a page shows, in the page. */
function observe() {
  const seen = globalThis.seen = { paint: NaN, largest: NaN, shift: 0, task: 0 };
  const each = (type, take) => new PerformanceObserver((list) => list.getEntries().forEach(take)).observe({ type, buffered: true });
  each('paint', ({ name, startTime }) => { if (name === 'first-contentful-paint') seen.paint = startTime; });
  each('largest-contentful-paint', ({ startTime }) => { seen.largest = startTime; });
  each('layout-shift', ({ value, hadRecentInput }) => { if (!hadRecentInput) seen.shift += value; });
  each('longtask', ({ duration }) => { seen.task = Math.max(seen.task, duration); });
}

/** Loads a page in a profile that has seen nothing, with the processor slowed by a factor. */
async function load(browser, url, slower) {
  const context = await browser.context.browser().newContext({ viewport: { width: 1280, height: 800 } }), page = await context.newPage();
  const session = await context.newCDPSession(page);
  await session.send('Emulation.setCPUThrottlingRate', { rate: slower });
  await page.addInitScript(observe);
  await page.goto(url);
  await page.waitForTimeout(watched);
  const seen = await page.evaluate(() => globalThis.seen);
  await context.close();
  return seen;
}

/** The bytes of files as they are sent. */
async function packed(origin, paths) {
  const sizes = await Promise.all([...new Set(paths)].map(async (path) => gzipSync(Buffer.from(await (await fetch(origin + path)).arrayBuffer())).length));
  return sizes.reduce((sum, size) => sum + size, 0);
}

const server = await serve(demoMounts, demoOptions), browser = await openChromium({ webgpu: 'no adapter' }), rows = [];
for (const name of pages) {
  const row = { page: `/${name}` };
  for (const slower of [1, 4]) {
    const runs = [];
    for (let i = 0; i < Number(loads); i++) {
      const before = server.requests.length;
      runs.push(await load(browser, `${server.origin}/${name}`, slower));
      row['KB'] ??= Math.round(await packed(server.origin, server.requests.slice(before).filter((path) => !/favicon|\.wasm$/.test(path))) / 1000);
    }
    const least = (of) => Math.min(...runs.map((run) => run[of])), at = slower > 1 ? `, ${slower} × slower` : '';
    Object.assign(row, { [`paint${at}`]: Math.round(least('paint')), [`largest${at}`]: Math.round(least('largest')), [`task${at}`]: Math.round(least('task')), [`shift${at}`]: +least('shift').toFixed(3) });
  }
  rows.push(row);
}
await browser.close();
await server.close();
console.table(rows);
