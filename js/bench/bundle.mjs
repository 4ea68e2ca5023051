// Bundles a benchmark program with the peers it imports into a new folder.

import { basename } from 'node:path';
import { build } from 'esbuild';

// TensorFlow.js calls require() where it finds itself in Node.
const requireInModules = "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";

/**
 * @param {string} entry the program
 * @param {string} outdir where it and its chunks go, named .mjs
 * @param {'node' | 'browser'} platform what it will run in
 * @param {string} name what the program's file is called there, less .mjs
 */
export async function bundle(entry, outdir, platform, name = basename(entry, '.mjs')) {
  await build({
    entryPoints: { [name]: entry },
    outdir,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    platform,
    external: ['node:*', 'node-fetch', 'playwright-core', 'sharp'],
    ...(platform === 'node' && { mainFields: ['module', 'main'], banner: { js: requireInModules } }),
    legalComments: 'none',
    logLevel: 'error',
  });
}
