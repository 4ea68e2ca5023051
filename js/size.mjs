// Prints the size of a page's downloads, raw and compressed, and fails if it exceeds a budget.
// First come the files that a module needs to run, then those of the CPU.

import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { build } from 'esbuild';

const dist = join(import.meta.dirname, 'dist');

const gzip = (bytes) => gzipSync(bytes, { level: 9 }).length;
// The window is that of the brotli command. Node's own, 4 MiB, is half of the module.
const brotli = (bytes) => brotliCompressSync(bytes, {
  params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length },
}).length;

// measure adds up files that are each fetched, hence compressed, on their own.
function measure(parts) {
  const sum = (size) => parts.reduce((total, part) => total + size(part), 0);
  return { raw: sum((part) => part.length), gzip: sum(gzip), brotli: sum(brotli) };
}

// wasm is a module as `make wasm` left it.
const wasm = (name) => [readFileSync(join(dist, name))];

// reached lists a file of a graph and the files that it imports: at once or, if asked for, later. A page
// that sets no bound on memory never loads what keeps to one, one without large inputs for a GPU not what maps them,
// one whose plans have no loops without a trip count not what reads their conditions, one that asks for no worker not
// what speaks to it, and one whose programs do not recover not what recovers them.
function reached(graph, path, later, found = new Set()) {
  if (found.has(path)) return found;
  found.add(path);
  for (const { path: next, kind } of graph[path].imports) if (kind !== 'dynamic-import' || (later && !/\/?(memory|uploads|loops|remote|recover)-/.test(next))) reached(graph, next, later, found);
  return found;
}

// bundle bundles a page's imports of an export with esbuild.
async function bundle(name, imports = '*') {
  const { metafile, outputFiles } = await build({
    stdin: { contents: `export ${imports} from './${name}';`, resolveDir: dist }, absWorkingDir: dist, outdir: 'page', write: false, metafile: true,
    bundle: true, splitting: true, minify: true, format: 'esm', target: 'es2022', external: ['node:*'], legalComments: 'none', logLevel: 'error',
  });
  return { metafile, files: new Map(outputFiles.map(({ path, contents }) => [relative(dist, path), contents])) };
}

// packed are the files of an export in the package, which a page without a bundler loads.
async function packed(name, later = false) {
  const { metafile } = await bundle(name);
  return [...reached(metafile.inputs, name, later)].map((path) => readFileSync(join(dist, path)));
}

// bundled are the files that a bundler makes of it.
async function bundled(name, imports, later = false) {
  const { metafile, files } = await bundle(name, imports);
  return [...reached(metafile.outputs, 'page/stdin.js', later)].map((path) => files.get(path));
}

// only is a file of the package, without the files that it imports.
const only = async (name) => readFileSync(join(dist, name));

// chunks are those of some names, withChunks a file of the package, too.
const chunks = (...names) => names.map((name) => readFileSync(join(dist, readdirSync(dist).find((file) => file.startsWith(`${name}-`) && file.endsWith('.js')))));
const withChunks = (file, ...names) => [readFileSync(join(dist, file)), ...chunks(...names)];

// lmWith are the files of /lm: its own, those that read files and configurations, and chunks that are loaded with a file.
const lmWith = (...later) => withChunks('lm.js', 'model', 'source', 'shards', ...later);

// besides are the files of an export that a page with another one lacks.
async function besides(name, other, later) {
  const at = async (file) => [...reached((await bundle(file)).metafile.inputs, file, later)], known = new Set(await at(other));
  return (await at(name)).filter((path) => !known.has(path)).map((path) => readFileSync(join(dist, path)));
}

const rows = [
  { name: 'compiler, rlx.wasm', parts: () => wasm('rlx.wasm'), budget: { brotli: 1_256_000 } },
  { name: 'padding, sizes.wasm', parts: () => wasm('sizes.wasm'), budget: { brotli: 785_000 } },
  { name: 'ONNX models, onnx.wasm', parts: () => wasm('onnx.wasm'), budget: { brotli: 875_000 } },
  { name: '@rlx-go/rlx, at first', parts: () => packed('index.js') },
  { name: '/fit, besides', parts: async () => [await only('fit.js')] },
  { name: '/sizes, besides', parts: () => withChunks('sizes.js', 'program'), budget: { gzip: 6.5 * 1024 } },
  { name: '/devices, besides', parts: async () => [await only('devices.js')], budget: { gzip: 4 * 1024 } },
  { name: '/sized, besides /runtime', parts: () => besides('sized.js', 'runtime.js', true), budget: { gzip: 7.5 * 1024 } },
  // Half of it is of /sizes and /lm, too: entries with open sizes, and files that are read piece by piece.
  { name: '/onnx, besides', parts: () => besides('onnx.js', 'index.js', false), budget: { gzip: 11 * 1024 } },
  { name: '/lm, besides', parts: async () => lmWith(), budget: { gzip: 42.5 * 1024 } },
  { name: '  with a GGUF file', parts: async () => lmWith('scaling', 'of-gguf'), budget: { gzip: 45.75 * 1024 } },
  { name: '  with a folder', parts: async () => lmWith('scaling', 'of-hf'), budget: { gzip: 46.75 * 1024 } },
  { name: '  slots and drafts', parts: () => chunks('several'), budget: { gzip: 5.25 * 1024 } },
  { name: '/grammar, besides /lm', parts: () => besides('grammar.js', 'lm.js', true), budget: { gzip: 4.5 * 1024 } },
  { name: '/runtime, at first', parts: () => packed('runtime.js'), budget: { gzip: 15.5 * 1024 } },
  // Threads, grids and steps of the CPU are a chunk of 2.1 KB, compressed on its own: 128 B of room for what is fixed there.
  { name: '  with the CPU', parts: () => packed('runtime.js', true), budget: { gzip: 17.75 * 1024 } },
  { name: '  by esbuild, at first', parts: () => bundled('runtime.js') },
  { name: '    with the CPU', parts: () => bundled('runtime.js', '*', true) },
  { name: '    openProgram, at first', parts: () => bundled('runtime.js', '{ openProgram }'), budget: { gzip: 13 * 1024 } },
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
