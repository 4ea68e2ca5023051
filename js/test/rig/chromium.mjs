// The real browser: Debian's Chromium, headless, with WebGPU on SwiftShader.
//
//   const browser = await openChromium();
//   const page = await browser.open(`${server.origin}/`);
//   ...
//   await browser.close();
//
// page.problems holds the page's problems: exceptions, console errors, warnings of rlx, and
// requests to any host but the test's own.

import { spawn } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const executables = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

// Quiet flags: a fresh profile otherwise looks for updates and services on start.
const quiet = [
  '--no-first-run', '--disable-quic', '--disable-background-networking', '--disable-component-update', '--disable-sync',
  '--disable-default-apps', '--disable-domain-reliability', '--no-pings',
];

// How a page finds WebGPU. Without --enable-unsafe-webgpu, requestAdapter() returns null on a
// software adapter. The machine's own GPU (default) is found through Vulkan without a display, for
// which NVIDIA's driver needs files that the GPU process's sandbox hides. No flag removes
// navigator.gpu, but plain http does, in workers too, on any host but the local one.
export const plainHost = 'plain.test';
const webgpuFlags = {
  swiftshader: ['--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader'],
  default: ['--enable-unsafe-webgpu', '--use-angle=vulkan', '--enable-features=Vulkan', '--disable-vulkan-surface', '--disable-gpu-sandbox', '--ignore-gpu-blocklist'],
  'no adapter': [],
  absent: [`--host-resolver-rules=MAP ${plainHost} 127.0.0.1`],
};

function findExecutable() {
  const file = executables.find((name) => name && existsSync(name));
  if (!file) throw new Error("rig: no Chromium here: run 'make deps', or name one in $CHROMIUM");
  return file;
}

// What Chromium says of an isolated page that is no secure context, which cannot be isolated.
const notIsolated = 'The Cross-Origin-Opener-Policy header has been ignored';

// watch collects a page's complaints in page.problems.
function watch(page) {
  page.problems = [];
  page.on('pageerror', (error) => page.problems.push(`exception: ${error.message}`));
  page.on('console', (message) => {
    if (message.text().startsWith(notIsolated)) return;
    if (message.type() === 'error' || message.text().startsWith('rlx: ')) page.problems.push(`console: ${message.text()} (${message.location().url})`);
  });
  page.on('request', (request) => {
    const { protocol, hostname } = new URL(request.url());
    if (protocol.startsWith('http') && !['127.0.0.1', 'localhost', plainHost].includes(hostname)) page.problems.push(`foreign request: ${request.url()}`);
  });
}

// start runs Chromium and returns its address for the DevTools protocol.
async function start(profile, args) {
  const child = spawn(findExecutable(), [...args, `--user-data-dir=${profile}`, '--remote-debugging-port=0', 'about:blank'], { stdio: ['ignore', 'ignore', 'pipe'] });
  const reap = () => {
    child.kill('SIGKILL');
    rmSync(profile, { recursive: true, force: true, maxRetries: 3 });
  };
  process.once('exit', reap);
  const ended = new Promise((resolve) => child.once('exit', resolve)).then(() => process.off('exit', reap));
  const endpoint = await new Promise((resolve, reject) => {
    let log = '';
    child.stderr.setEncoding('utf8').on('data', (text) => {
      log = (log + text).slice(-10_000);
      const found = /DevTools listening on (\S+)/.exec(log);
      if (found) resolve(found[1]);
    });
    child.once('exit', (code) => reject(new Error(`rig: Chromium ended with ${code} on its start:\n${log}`)));
    child.once('error', reject);
  });
  return { child, endpoint, ended };
}

// launch starts Chromium with a profile of its own, and connects to it.
async function launch(flags, noDefaults) {
  const profile = await mkdtemp(join(tmpdir(), 'rlx-chromium-'));
  const { child, endpoint, ended } = await start(profile, flags);
  const browser = await chromium.connectOverCDP(endpoint, { noDefaults });
  return {
    browser,
    async close() {
      const session = await browser.newBrowserCDPSession();
      await session.send('Browser.close').catch(() => child.kill('SIGKILL'));
      await ended;
      await rm(profile, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}

// flagsOf is the command line of a browser: '--headless=new' is the whole browser, without a window.
const flagsOf = ({ width, height }, webgpu, args) => ['--headless=new', '--no-sandbox', `--window-size=${width},${height}`, ...quiet, ...webgpuFlags[webgpu], ...args];

// handleOf is what a test holds: tabs in a context, and close, which ends what was opened for it.
function handleOf(context, webgpu, close) {
  context.setDefaultTimeout(90_000); // a machine that other tests share is slow
  context.on('page', watch);
  return {
    context,
    /** Opens a tab, at an address on 127.0.0.1 if one is given. */
    async open(url) {
      const page = await context.newPage();
      if (url) await page.goto(webgpu === 'absent' ? url.replace('127.0.0.1', plainHost) : url);
      return page;
    },
    close,
  };
}

const desk = { width: 1280, height: 800 };
const contextOf = (browser, { viewport = desk, touch = false, reducedMotion = false }) => browser.newContext({ viewport, hasTouch: touch, reducedMotion: reducedMotion ? 'reduce' : null });

/**
 * Starts Chromium with a profile of its own.
 * @param {{webgpu?: 'swiftshader' | 'default' | 'no adapter' | 'absent', background?: boolean, viewport?: {width: number, height: number}, touch?: boolean,
 *   reducedMotion?: boolean, args?: string[]}} options webgpu says what a page finds: an adapter
 *   (of software, or whatever Vulkan driver the machine has), a navigator.gpu that has none, or no navigator.gpu (the page is then no secure context);
 *   background true makes tabs as a visitor has them: they can be hidden, and are throttled then
 *   (by default every tab believes that it is in front).
 */
export async function openChromium(options = {}) {
  const { webgpu = 'swiftshader', background = false, viewport = desk, args = [] } = options;
  const { browser, close } = await launch(flagsOf(viewport, webgpu, args), background);
  return handleOf(background ? browser.contexts()[0] : await contextOf(browser, options), webgpu, close);
}

const shared = new Map(); // browsers by how a page finds WebGPU

/**
 * Opens a context of its own, with storage and caches of its own, in a browser that tests of a file share: to start and
 * to end one takes as much of the processor as many a test. A browser whose GPU process was ended is not shared further,
 * nor one with background or args. closeShared ends them. The options are those of openChromium.
 */
export async function shareChromium(options = {}) {
  const { webgpu = 'swiftshader', background, args } = options;
  if (background || args) return openChromium(options);
  if (!shared.has(webgpu)) shared.set(webgpu, await launch(flagsOf(desk, webgpu, []), false));
  const owner = shared.get(webgpu), context = await contextOf(owner.browser, options);
  return handleOf(context, webgpu, () => shared.get(webgpu) === owner ? context.close() : owner.close());
}

/** Ends the browsers that were shared, once the tests of a file are over. */
export async function closeShared() {
  const all = [...shared.values()];
  shared.clear();
  await Promise.all(all.map(({ close }) => close()));
}

/**
 * Hides a page for some milliseconds, as switching to another tab does, and shows it
 * again. Needs a browser opened with background: true.
 */
export async function hide(page, ms) {
  const until = (state) => page.waitForFunction((wanted) => document.visibilityState === wanted, state, { polling: 100, timeout: 5000 });
  const other = await page.context().newPage();
  await other.bringToFront();
  await until('hidden');
  await new Promise((resolve) => setTimeout(resolve, ms));
  await page.bringToFront();
  await until('visible');
  await other.close();
}

/** Ends the browser's GPU process: every GPUDevice in every page is lost. */
export async function crashGPU(page) {
  const browser = page.context().browser(), session = await browser.newBrowserCDPSession();
  for (const [key, one] of shared) if (one.browser === browser) shared.delete(key);
  await session.send('Browser.crashGpuProcess');
  await session.detach();
}

/** Records every task of the main thread longer than 50 ms from now on; longTasks reads them. */
export async function watchLongTasks(page) {
  await page.addInitScript(() => {
    globalThis.rigLongTasks = [];
    new PerformanceObserver((list) => {
      for (const { startTime, duration } of list.getEntries()) globalThis.rigLongTasks.push({ startTime, duration });
    }).observe({ type: 'longtask', buffered: true });
  });
}

/** The tasks over 50 ms that watchLongTasks saw: [{startTime, duration}] in milliseconds. */
export const longTasks = (page) => page.evaluate(() => globalThis.rigLongTasks);

/**
 * Runs axe over the page and gives its violations: [{id, impact, help, nodes}], nodes being selectors. A strict CSP does not
 * stand in the way.
 */
export async function axe(page) {
  const source = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  await page.evaluate(source);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  return violations
    .map(({ id, impact, help, nodes }) => ({ id, impact, help, nodes: nodes.map((node) => node.target.join(' ')) }));
}
