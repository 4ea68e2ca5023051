// Firefox and WebKit, Safari's engine, in Debian's versions. Neither supports the DevTools
// protocol, so a page is opened, runs a module, and reports its results itself.
//
//   const result = await visit(t, 'firefox', { module: 'export default () => 6 * 7', mounts });

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { serve } from './serve.mjs';

/** Firefox keeps to itself: no updates, no studies, no questions. */
const quiet = [
  'app.update.enabled', 'app.normandy.enabled', 'browser.shell.checkDefaultBrowser', 'datareporting.policy.dataSubmissionEnabled',
  'network.captive-portal-service.enabled', 'network.connectivity-service.enabled', 'extensions.getAddons.cache.enabled',
].map((name) => `user_pref("${name}", false);`);

/** On Linux its WebGPU is off by default, and refused on a GPU made of software. */
const webgpuOn = ['dom.webgpu.enabled', 'gfx.webgpu.ignore-blocklist'].map((name) => `user_pref("${name}", true);`);

const browsers = {
  firefox: {
    program: '/usr/bin/firefox-esr',
    async start(url, { profile, webgpu, env }) {
      await writeFile(join(profile, 'user.js'), [...quiet, ...webgpu ? webgpuOn : []].join('\n'));
      return [launch(this.program, ['--headless', '--no-remote', '--profile', profile, url], profile, env)];
    },
  },
  webkit: {
    program: '/usr/lib/x86_64-linux-gnu/webkit2gtk-4.1/MiniBrowser',
    async start(url, { profile, sharedMemory }) {
      const screen = spawn('Xvfb', ['-displayfd', '3', '-screen', '0', '1280x1024x24', '-nolisten', 'tcp'], { stdio: ['ignore', 'ignore', 'ignore', 'pipe'] });
      const number = await new Promise((resolve, reject) => {
        screen.stdio[3].once('data', (text) => resolve(String(text).trim()));
        screen.once('error', reject);
      });
      return [launch(this.program, ['--private', url], profile, { DISPLAY: `:${number}`, ...sharedMemory && { JSC_useSharedArrayBuffer: '1' } }), screen];
    },
  },
};

/** Starts a program in a group of its own, so that its helpers end with it. */
const launch = (program, args, home, env = {}) => spawn(program, args, { stdio: 'ignore', detached: true, env: { ...process.env, ...env, HOME: home } });

/** Why a test of a browser is to be skipped: it is not here, and RLX_REQUIRE does not name it. */
export function missing(name) {
  if (existsSync(browsers[name].program)) return false;
  if (process.env.RLX_REQUIRE?.split(',').includes(name)) throw new Error(`rig: RLX_REQUIRE asks for ${name}, and ${browsers[name].program} is not here: run 'make deps'`);
  return `${name} is not here`;
}

const html = '<!doctype html><html lang="en"><title>rlx</title><script type="module" src="/main.mjs"></script></html>';
const main = `
const problems = [];
addEventListener('error', ({ message }) => problems.push('exception: ' + message));
addEventListener('unhandledrejection', ({ reason }) => problems.push('rejection: ' + reason));
addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) => problems.push('policy: ' + violatedDirective + ' ' + blockedURI));
const report = (outcome) => fetch('/report', { method: 'POST', body: JSON.stringify({ ...outcome, problems, agent: navigator.userAgent }) });
try {
  const { default: run } = await import('/module.mjs');
  await report({ value: await run() });
} catch (error) {
  await report({ error: error + '\\n' + error.stack });
}
`;

/** The text that a page posts to /report. */
const reported = (server) => new Promise((resolve) => {
  server.on('request', async (request) => {
    if (request.url !== '/report') return;
    let text = '';
    for await (const chunk of request.setEncoding('utf8')) text += chunk;
    resolve(JSON.parse(text));
  });
});

/** Ends a browser with all of its processes, and the screen it is on. */
function end([browser, screen]) {
  try {
    process.kill(-browser.pid, 'SIGKILL');
  } catch {} // it has ended
  screen?.kill();
}

/**
 * Opens a page whose module exports a function as its default, and gives what that function
 * returns, which must fit JSON, what the page complained of and the paths that were asked for.
 * @param {import('node:test').TestContext} t
 * @param {'firefox' | 'webkit'} name
 * @param {{module: string, mounts: object, webgpu?: boolean, sharedMemory?: boolean, env?: Record<string, string>, csp?: string,
 *   headers?: Record<string, string>, seconds?: number}} options webgpu switches Firefox's WebGPU on; sharedMemory false leaves
 *   WebKit as it is by default, without the SharedArrayBuffer that Safari has; env is read by Firefox and its drivers; csp and
 *   headers are those of serve
 * @returns {Promise<{value: unknown, problems: string[], agent: string, requests: string[]}>}
 */
export async function visit(t, name, { module, mounts, webgpu = false, sharedMemory = true, env = {}, csp, headers, seconds = 120 }) {
  const own = { '/': { body: html, type: 'text/html' }, '/main.mjs': { body: main }, '/module.mjs': { body: module }, '/report': { body: '' }, '/favicon.ico': { body: '' } };
  const { origin, server, requests, close } = await serve({ ...own, ...mounts }, { csp, headers });
  const profile = await mkdtemp(join(tmpdir(), `rlx-${name}-`)), report = reported(server);
  const started = await browsers[name].start(`${origin}/`, { profile, webgpu, sharedMemory, env }), reap = () => end(started);
  const ended = new Promise((resolve) => started[0].once('exit', resolve));
  process.once('exit', reap);
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`rig: ${name} has not reported in ${seconds} s`)), 1000 * seconds); });
  t.after(async () => {
    clearTimeout(timer);
    process.off('exit', reap);
    reap();
    await ended;
    await close();
    await rm(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  });
  const { value, error, problems, agent } = await Promise.race([report, late]);
  if (error) throw new Error(`${name}: ${error}`);
  return { value, problems, agent, requests };
}
