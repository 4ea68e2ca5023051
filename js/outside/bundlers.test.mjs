// Pages that Vite, webpack, esbuild and Rollup build of the packed package, by the files that its README
// shows: they train in Chromium under the strict policy, with threads where they are isolated.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { openChromium } from '../test/rig/chromium.mjs';
import { installPacked } from '../test/rig/package.mjs';
import { serve, strictCSP } from '../test/rig/serve.mjs';
import { aheadScripts, app, page, planning, runtime, typed } from './fixtures.mjs';
import { files } from './readme.mjs';

const tools = join(import.meta.dirname, 'node_modules');
const isolation = { 'cross-origin-opener-policy': 'same-origin', 'cross-origin-embedder-policy': 'require-corp' };

// inFolder is a file of the README that builds two pages, into a separate folder.
function inFolder(name, folder) {
  const two = files[name].replaceAll("['app.js']", "['app.js', 'runtime.js']").replaceAll("{ app: './app.js' }", "{ app: './app.js', runtime: './runtime.js' }");
  assert.ok(name === 'vite.config.js' || two !== files[name], `${name} names app.js`);
  return two.replaceAll("'dist'", `'${folder}'`).replaceAll('/dist`', `/${folder}\``).replaceAll('`dist/', `\`${folder}/`);
}

// How to run each bundler: a script of the project that runs its file unchanged.
const scripts = {
  'run-vite.mjs': `
import { build } from 'vite';
await build({ configFile: 'vite.config.js', logLevel: 'error', build: { outDir: 'vite', rollupOptions: { input: ['index.html', 'runtime.html'] } } });
`,
  'run-webpack.mjs': `
import webpack from 'webpack';
import config from './webpack.config.js';
const stats = await new Promise((resolve, reject) => webpack(config, (error, done) => error ? reject(error) : resolve(done)));
if (stats.hasErrors()) throw new Error(stats.toString());
`,
  'run-rollup.mjs': `
import { rollup } from 'rollup';
import config from './rollup.config.js';
const bundle = await rollup({ ...config, onwarn(warning) { throw new Error(warning.message); } });
await bundle.write(config.output);
`,
};
const bundlers = { vite: 'run-vite.mjs', webpack: 'run-webpack.mjs', esbuild: 'esbuild.mjs', rollup: 'run-rollup.mjs' };

let project, browser;
const built = {}, ahead = {};
before(async () => {
  project = await installPacked({
    'index.html': page('/app.js'), 'runtime.html': page('/runtime.js'), 'app.js': app, 'runtime.js': runtime, 'planning.mjs': planning, ...scripts,
    'ahead.html': page('/ahead.js'), ...Object.fromEntries(['square.rlx.js', 'ahead.js', 'ahead.vite.config.js'].map((name) => [name, files[name]])), ...aheadScripts, ...typed,
    'vite.config.js': inFolder('vite.config.js', 'vite'), 'webpack.config.js': inFolder('webpack.config.js', 'webpack'),
    'esbuild.mjs': inFolder('esbuild.mjs', 'esbuild'), 'rollup.config.js': inFolder('rollup.config.js', 'rollup'),
  });
  for (const name of ['vite', 'esbuild']) await project.link(name);
  for (const name of ['webpack', 'rollup', '@rollup/plugin-node-resolve']) await project.link(name, tools);
  for (const [name, script] of Object.entries(bundlers)) built[name] = project.node(script);
  for (const bundler of ['vite', 'rollup', 'esbuild']) ahead[bundler] = project.node(`ahead-${bundler}.mjs`);
  for (const done of [...Object.values(built), ...Object.values(ahead)]) done.catch(() => {});
  [browser] = await Promise.all([openChromium({ webgpu: 'no adapter' }), project.node('planning.mjs')]);
});
after(async () => {
  await browser?.close();
  await Promise.allSettled([...Object.values(built), ...Object.values(ahead)]);
  await project?.remove();
});

/** Opens a page of a bundle, and gives what it computes and how many scripts it asks for. */
async function visit(bundler, name, headers) {
  const html = (script) => ({ body: page(script, bundler === 'webpack'), type: 'text/html' });
  const pages = bundler === 'vite' ? {} : { '/index.html': html('/app.js'), '/runtime.html': html('/runtime.js') };
  const server = await serve({ '/': join(project.folder, bundler), '/product.rlxp': join(project.folder, 'product.rlxp'), ...pages }, { csp: strictCSP, headers });
  try {
    const open = await browser.open(`${server.origin}/${name}.html`);
    const { isolated, cores, losses } = await open.evaluate(async () => ({
      isolated: crossOriginIsolated, cores: navigator.hardwareConcurrency, losses: await globalThis.results,
    }));
    assert.deepEqual(open.problems, []);
    await open.close();
    return { isolated, cores, losses, scripts: server.requests.filter((path) => path.endsWith('.js')).length };
  } finally {
    await server.close();
  }
}

describe('the plug-in', () => {
  for (const bundler of ['vite', 'rollup', 'esbuild']) {
    test(`of ${bundler} puts a plan in place of the compiler`, async () => {
      await ahead[bundler];
      const own = bundler === 'vite' ? {} : { '/ahead.html': { body: page('/ahead.js'), type: 'text/html' } };
      const server = await serve({ '/': join(project.folder, `ahead-${bundler}`), ...own }, { csp: strictCSP });
      try {
        const open = await browser.open(`${server.origin}/ahead.html`);
        await open.waitForFunction(() => globalThis.results);
        assert.deepEqual((await open.evaluate(() => globalThis.results)).map((x) => Math.round(x * 1e3) / 1e3), [1, 2, 3]);
        assert.deepEqual(open.problems, []);
        await open.close();
        assert.ok(server.requests.some((path) => path.endsWith('.rlxp')) && !server.requests.some((path) => path.endsWith('.wasm')), server.requests.join());
      } finally {
        await server.close();
      }
    });
  }

  test('takes TypeScript, its types and its imports', async () => {
    await ahead.esbuild;
    await project.tsc('--noEmit', '--strict', '--target', 'es2022', '--module', 'es2022', '--moduleResolution', 'bundler', '--lib', 'es2023,dom,esnext.disposable', '--types', '', 'typed.ts');
    const [name] = (await project.list('typed')).filter((name) => name.endsWith('.rlxp'));
    assert.match(name, /^double-/);
    const code = await readFile(join(project.folder, 'typed/typed.js'), 'utf8');
    assert.match(code, /new Float32Array\(\[2, -0\.5\]\)/);
    assert.doesNotMatch(code, /GraphBuilder/);
  });

  test('serves plans in development', async () => assert.equal(await project.node('ahead-serve.mjs'), '200 RLXP\n'));
});

for (const bundler of Object.keys(bundlers)) {
  describe(bundler, () => {
    for (const [name, what] of [['index', 'the compiler'], ['runtime', 'the runtime alone']]) {
      test(`a page with ${what} trains, and has threads where it is isolated`, async () => {
        await built[bundler];
        const alone = await visit(bundler, name, {}), shared = await visit(bundler, name, isolation);
        assert.deepEqual([alone.isolated, shared.isolated], [false, true]);
        assert.ok(alone.losses[0] > 0);
        assert.deepEqual(alone.losses, [alone.losses[0], alone.losses[0]]);
        assert.deepEqual(shared.losses, alone.losses);
        const threads = shared.scripts - alone.scripts, most = 2 * (shared.cores - 1); // of two programs
        assert.ok(threads >= Math.min(2, most) && threads <= most, `${threads} threads`);
      });
    }
  });
}
