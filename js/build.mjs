// Builds the npm package's JavaScript and types into dist/: one file for each export of
// package.json, chunks of code beside them (so that `new URL('./worker.js',
// import.meta.url)` holds from any of them), and declarations by tsc. All of it is
// minified, for pages that load it as it is, in short lines; source maps tell what it was. The
// WebAssembly modules are built by `make wasm`.

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

// removeOldCode takes from dist what an earlier build left: code that is not among the
// outputs of this one, and all types, which alone have folders.
function removeOldCode(outputs) {
  const made = new Set(outputs);
  for (const entry of readdirSync(dist, { withFileTypes: true })) {
    const { name } = entry, old = /\.js(\.map)?$/.test(name) && name !== 'wasm_exec.js' && !made.has(name);
    if (entry.isDirectory() || name.endsWith('.d.ts') || old) rmSync(join(dist, name), { recursive: true });
  }
}

// What a page downloads before all else lies in one file: apart, the same code would take more
// bytes, as files are compressed one by one. Where a program is on the CPU a chunk comes after it.
const first = ['values', 'plan', 'program', 'gpu', 'worker', 'runtime'].map((folder) => join(here, 'src', folder, sep));
const chunks = { groups: [{ name: 'core', test: (path) => first.some((folder) => path.startsWith(folder)) }] };

// shortLines breaks the lines of what was minified.
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

// stamp returns the hash of the compiler's module, by which plans are kept, and has the module say it, too, in a section that
// a module has besides its code: a page may give one that it compiled by itself.
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

// code builds some entry points and returns the names of the files it made. Those of workers hold
// all they need, because bundlers copy a worker's file as it is.
async function code(input, codeSplitting) {
  const { output } = await build({
    input,
    platform: 'neutral',
    external: /^node:/,
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
