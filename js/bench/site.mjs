// Writes the files of the site's benchmark to demo/web/bench: the jobs, a chunk of code for each
// library, and peers.json, which lists them with their sizes. A library whose package is not
// installed (npm ci in this folder) is listed without a size.

import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from '../node_modules/esbuild/lib/main.js';

const here = import.meta.dirname, out = join(here, '../../demo/web/bench'), dist = join(here, '../dist');
const ortWasm = 'ort-wasm-simd-threaded.asyncify.wasm';

const peers = [
  { name: 'rlx', title: 'rlx', entry: 'built', trains: true },
  { name: 'jax', title: 'jax-js', entry: 'jax', package: '@jax-js/jax', trains: true },
  { name: 'tfjs', title: 'TensorFlow.js', entry: 'tfjs', package: '@tensorflow/tfjs-core', trains: true },
  { name: 'ort', title: 'onnxruntime-web', entry: 'ort', package: 'onnxruntime-web', assets: [`onnxruntime-web/dist/${ortWasm}`] },
  { name: 'transformers', title: 'transformers.js', entry: 'transformers', package: '@huggingface/transformers', assets: [`onnxruntime-web/dist/${ortWasm}`] },
];

const installed = ({ package: name }) => !name || existsSync(join(here, 'node_modules', name, 'package.json'));

/** All files that a module of the bundle comes with, itself included. */
function closure(outputs, path, seen = new Set()) {
  if (!seen.has(path) && outputs[path]) {
    seen.add(path);
    for (const one of outputs[path].imports) closure(outputs, one.path, seen);
  }
  return [...seen];
}

/** The files that a page which compiles loads of the package. */
const ownFiles = () => {
  const found = new Set(), visit = (name) => {
    if (found.has(name)) return;
    found.add(name);
    for (const [, next] of readFileSync(join(dist, name), 'utf8').matchAll(/from\s*["']\.\/([\w.-]+)["']/g)) visit(next);
  };
  visit('index.js');
  return [...found, 'rlx.wasm'].map((name) => join(dist, name));
};

const sizesOf = (paths) => paths.map((path) => readFileSync(path)).reduce((sum, bytes) => ({ bytes: sum.bytes + bytes.length, gzip: sum.gzip + gzipSync(bytes, { level: 6 }).length }), { bytes: 0, gzip: 0 });

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const present = peers.filter(installed);
const { metafile: { outputs } } = await build({
  entryPoints: { jobs: join(here, 'jobs.mjs'), ...Object.fromEntries(present.map(({ name, entry }) => [name, join(here, `peers/${entry}.mjs`)])) },
  outdir: out, bundle: true, splitting: true, minify: true, format: 'esm', target: 'es2022', platform: 'browser',
  external: ['node:*', 'node-fetch'], legalComments: 'none', logLevel: 'error', metafile: true, absWorkingDir: here, chunkNames: 'part-[hash]',
});
const list = peers.map(({ name, title, trains, assets = [] }) => {
  if (!present.some((one) => one.name === name)) return { name, title };
  const main = Object.keys(outputs).find((path) => path.endsWith(`/${name}.js`));
  const paths = name === 'rlx' ? ownFiles() : closure(outputs, main).map((path) => join(here, path));
  for (const asset of assets) {
    copyFileSync(join(here, 'node_modules', asset), join(out, asset.split('/').at(-1)));
    paths.push(join(here, 'node_modules', asset));
  }
  return { name, title, trains, ...sizesOf(paths), ...assets.length && { wasm: ortWasm } };
});
writeFileSync(join(out, 'peers.json'), JSON.stringify(list));
