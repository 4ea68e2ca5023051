// Prints what a page downloads, raw and compressed, and fails when a budget is broken.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
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

// bundled is an export, or what a page imports of it, as a bundler would put it into a page:
// minified, with everything it imports, at once or later.
async function bundled(name, imports = '*') {
  const { outputFiles } = await build({
    stdin: { contents: `export ${imports} from './${name}';`, resolveDir: dist }, bundle: true, splitting: true, minify: true, format: 'esm', target: 'es2022',
    outdir: 'unused', write: false, external: ['./wasm_exec.js', 'node:*'], legalComments: 'none', logLevel: 'error',
  });
  return outputFiles.map((file) => file.contents);
}

const rows = [
  { name: 'compiler, rlx.wasm', parts: () => wasm('rlx.wasm'), budget: { brotli: 1_110_000 } },
  { name: '@rlx-go/rlx', parts: () => bundled('index.js') },
  { name: '@rlx-go/rlx/runtime', parts: () => bundled('runtime.js'), budget: { gzip: 17 * 1024 } },
  { name: '  openSession of it', parts: () => bundled('runtime.js', '{ openSession }'), budget: { gzip: 15 * 1024 } },
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
