// Builds the npm package's JavaScript and types into dist/: one file for each export of
// package.json, chunks of code next to them (so that `new URL('./worker.js', import.meta.url)` is
// valid in all of them), and declarations by tsc. All code is minified, for pages that load it
// unchanged, in short lines; source maps lead to the source. The WebAssembly modules are built by
// `make wasm`.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join, sep } from 'node:path';
import { build } from 'rolldown';
import { breakLines } from './lines.mjs';

const here = import.meta.dirname;
const dist = join(here, 'dist');

// entryPoints lists the sources of package.json's exports: ./dist/NAME.js is src/NAME.ts.
function entryPoints() {
  const { exports } = JSON.parse(readFileSync(join(here, 'package.json'), 'utf8'));
  const targets = Object.values(exports).map((target) => target.types && target.default).filter(Boolean);
  return targets.map((target) => join(here, target.replace(/^\.\/dist\/(.*)\.js$/, 'src/$1.ts')));
}

// removeOldCode removes the output of earlier builds from dist: code that this build does not
// write, and all types, which have folders.
function removeOldCode(outputs) {
  const made = new Set(outputs);
  for (const entry of readdirSync(dist, { withFileTypes: true })) {
    const { name } = entry, old = /\.js(\.map)?$/.test(name) && name !== 'wasm_exec.js' && !made.has(name);
    if (entry.isDirectory() || name.endsWith('.d.ts') || old) rmSync(join(dist, name), { recursive: true });
  }
}

// The code of the first download is one file: as separate files it would take more bytes, since
// each is compressed separately. A program on the CPU or in a worker loads another chunk later.
const first = [...['values', 'plan', 'program', 'gpu', 'runtime'].map((folder) => join(here, 'src', folder, sep)), join(here, 'src', 'worker', 'start.ts')];
// A program that recovers, or has loops without a trip count, loads their code when it is opened.
const later = [join('runtime', 'recover.ts'), join('runtime', 'resume.ts'), join('gpu', 'loops.ts')];
// What programs with open sizes share, compiled here or before, is one chunk, too, of which /onnx needs a part.
const family = ['box', 'buckets', 'entry', 'family'].map((name) => join(here, 'src/sizes', `${name}.ts`));
// So is what /lm, and what it loads later, share.
const model = ['config', 'decoder', 'family', 'graphs', 'model', 'sample', 'weights'].map((name) => join(here, 'src/lm/model', `${name}.ts`));
const chunks = {
  groups: [
    { name: 'core', test: (path) => first.some((part) => path.startsWith(part)) && !later.some((file) => path.endsWith(file)) },
    { name: 'family', test: (path) => family.includes(path) },
    { name: 'model', test: (path) => model.includes(path), includeDependenciesRecursively: false },
  ],
};

// shortLines breaks the lines of minified code.
const shortLines = {
  name: 'short-lines',
  generateBundle(_, bundle) {
    for (const chunk of Object.values(bundle)) {
      const map = chunk.sourcemapFileName && bundle[chunk.sourcemapFileName];
      if (!map) continue;
      const broken = breakLines(chunk.code, JSON.parse(map.source));
      chunk.code = broken.code;
      map.source = JSON.stringify(broken.map);
    }
  },
};

// stamp returns the hash of the compiler's module, part of the key of plans, and adds it to the
// module in a custom section, for pages that pass a module they compiled themselves.
function stamp() {
  const path = join(dist, 'rlx.wasm'), name = Buffer.from('rlx build'), bytes = readFileSync(path), length = 32;
  const section = (text) => Buffer.concat([Buffer.of(0, 1 + name.length + length, name.length), name, Buffer.from(text)]);
  const hashOf = (code) => createHash('sha256').update(code).digest('hex').slice(0, length);
  const at = bytes.length - section('').length - length, last = bytes.subarray(at);
  if (last.equals(section(last.subarray(-length)))) return hashOf(bytes.subarray(0, at));
  const hash = hashOf(bytes);
  writeFileSync(path, Buffer.concat([bytes, section(hash)]));
  return hash;
}

// code builds some entry points and returns the names of the files it made. Those of workers are
// self-contained, because bundlers copy a worker's file unchanged.
async function code(input, codeSplitting) {
  const { output } = await build({
    input,
    platform: 'neutral',
    external: /^node:/,
    preserveEntrySignatures: 'allow-extension', // the group without its dependencies needs it; no entry point has more exports
    plugins: [shortLines],
    checks: { pluginTimings: false },
    transform: { target: 'es2022', define: { compilerBuild: JSON.stringify(compilerBuild) } },
    output: { dir: dist, chunkFileNames: '[name]-[hash:6].js', codeSplitting, minify: true, sourcemap: true },
  });
  return output.map(({ fileName }) => fileName);
}

const compilerBuild = stamp();
const isWorker = (path) => path.endsWith('worker.ts');
const entries = entryPoints(), workers = entries.filter(isWorker);
const made = await Promise.all([code(entries.filter((path) => !isWorker(path)), chunks), ...workers.map((path) => code(path, false))]);
removeOldCode(made.flat());
for (const project of ['tsconfig.json', 'tsconfig.node.json']) execFileSync(process.execPath, [join(here, 'node_modules/typescript/lib/tsc.js'), '-p', join(here, project)], { stdio: 'inherit' });
// npm packs nothing from above.
for (const path of ['LICENSE', 'ir/ops/OPS.md']) copyFileSync(join(here, '..', path), join(here, basename(path)));
