// Prints what a page downloads, raw and compressed, and fails when a budget is broken.

import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { build } from 'esbuild';

const dist = join(import.meta.dirname, 'dist');

const gzip = (bytes) => gzipSync(bytes, { level: 9 }).length;
const brotli = (bytes) => brotliCompressSync(bytes, {
  params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length },
}).length;

// measure adds up files that are each fetched, hence compressed, on their own.
function measure(parts) {
  const sum = (size) => parts.reduce((total, part) => total + size(part), 0);
  return { raw: sum((part) => part.length), gzip: sum(gzip), brotli: sum(brotli) };
}

// wasm is a module as `make wasm` left it.
const wasm = (name) => [readFileSync(join(dist, name))];

// reached lists a file of a graph of files, and what it imports: at once, or also later.
function reached(graph, name, later, found = new Set()) {
  if (!found.has(name) && graph[name]) {
    found.add(name);
    for (const { path, kind } of graph[name].imports) if (later || kind !== 'dynamic-import') reached(graph, path, later, found);
  }
  return found;
}

// packed are the files that make an export, as the package has them, which is how a page without a
// bundler loads them; bundled those that esbuild makes of what a page imports of it.
const packed = (name, later = false) => files(name, '*', later, ({ inputs }) => inputs);
const bundled = (name, imports = '*', later = false) => files(name, imports, later, ({ outputs }) => outputs);

async function files(name, imports, later, graphOf) {
  const { metafile, outputFiles } = await build({
    stdin: { contents: `export ${imports} from './${name}';`, resolveDir: dist }, bundle: true, splitting: true, minify: true, format: 'esm', target: 'es2022',
    outdir: 'unused', write: false, metafile: true, absWorkingDir: dist, external: ['node:*'], legalComments: 'none', logLevel: 'error',
  });
  const made = new Map(outputFiles.map(({ path, contents }) => [relative(dist, path), contents]));
  const graph = graphOf(metafile), names = [...reached(graph, graph[name] ? name : 'unused/stdin.js', later)];
  return names.map((path) => made.get(path) ?? readFileSync(join(dist, path)));
}

const rows = [
  { name: 'compiler, rlx.wasm', parts: () => wasm('rlx.wasm'), budget: { brotli: 1_110_000 } },
  { name: '@rlx-go/rlx', parts: () => packed('index.js') },
  { name: '@rlx-go/rlx/runtime', parts: () => packed('runtime.js'), budget: { gzip: 15 * 1024 } },
  { name: '  with the CPU', parts: () => packed('runtime.js', true) },
  { name: '  bundled by esbuild', parts: () => bundled('runtime.js') },
  { name: '  with the CPU', parts: () => bundled('runtime.js', '*', true) },
  { name: '  openSession of that', parts: () => bundled('runtime.js', '{ openSession }') },
];

const cells = (values) => console.log(`${values[0].padEnd(28)}${values.slice(1).map((value) => String(value).padStart(12)).join('')}`);
const broken = [];
cells(['bytes', 'raw', 'gzip -9', 'brotli 11', 'budget']);
for (const { name, parts, budget = {} } of rows) {
  const size = measure(await parts());
  const [kind, limit] = Object.entries(budget)[0] ?? [];
  cells([name, size.raw, size.gzip, size.brotli, kind ? `${limit}` : '']);
  if (kind && size[kind] > limit) broken.push(`${name} is ${size[kind]} bytes in ${kind}, budget ${limit}`);
}
for (const line of broken) console.error(`size: ${line}`);
process.exit(broken.length > 0 ? 1 : 0);
