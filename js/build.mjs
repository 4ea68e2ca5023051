// Builds the npm package's JavaScript and types into dist/: one file for each export of
// package.json, shared code in chunks beside them (so that `new URL('./worker.js',
// import.meta.url)` holds from any of them), and declarations by tsc. The WebAssembly
// modules are built by `make wasm`.

import { execFileSync } from 'node:child_process';
import { copyFileSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { build } from 'esbuild';

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
  const made = new Set(outputs.map((path) => join(here, path)));
  for (const entry of readdirSync(dist, { withFileTypes: true })) {
    const { name } = entry, path = join(dist, name);
    const old = name.endsWith('.d.ts') || (name.endsWith('.js') && name !== 'wasm_exec.js' && !made.has(path));
    if (entry.isDirectory() || old) rmSync(path, { recursive: true });
  }
}

// code builds some entry points and returns the files it made. Those of workers hold all
// they need and are minified, because bundlers copy a worker's file as it is.
async function code(entries, splitting) {
  const { metafile } = await build({
    entryPoints: entries,
    outdir: dist,
    bundle: true,
    splitting,
    minify: !splitting,
    chunkNames: '[name]-[hash]',
    format: 'esm',
    platform: 'neutral',
    target: 'es2022',
    legalComments: 'none',
    logLevel: 'warning',
    metafile: true,
    absWorkingDir: here,
  });
  return Object.keys(metafile.outputs);
}

const isWorker = (path) => path.endsWith('worker.ts');
const entries = entryPoints();
removeOldCode([...await code(entries.filter(isWorker), false), ...await code(entries.filter((path) => !isWorker(path)), true)]);
execFileSync(process.execPath, [join(here, 'node_modules/typescript/lib/tsc.js'), '-p', here], { stdio: 'inherit' });
// npm packs nothing from above.
for (const path of ['LICENSE', 'ir/ops/OPS.md']) copyFileSync(join(here, '..', path), join(here, basename(path)));
