// Writes what the playground checks programs with into demo/web/assets: types.js, TypeScript's service in a worker, and types.json, the
// declarations of what a program may use: of the language, of a worker, of the package and of draw.js.
//
//   node demo/build/types.mjs

import { mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { build } from '../../js/node_modules/esbuild/lib/main.js';
import ts from '../../js/node_modules/typescript-js/lib/typescript.js';
import { options, places } from '../types/language.js';
import { modules } from '../web/playground/program.js';

const root = join(import.meta.dirname, '../..'), out = join(root, 'demo/web/assets'), dist = join(root, 'js/dist'), web = join(root, 'demo/web/playground');
const libraries = realpathSync(join(root, 'js/node_modules/typescript-js/lib')); // which node_modules may link to

/** A library of TypeScript without comments and indentation: a fifth of all declarations is in its comments. */
const short = (text) => text.replace(/\/\*[^]*?\*\//g, '').replace(/^\s+/gm, '');

/** The files of a program that imports all modules, by the paths of the service. */
function declarations() {
  const entries = Object.keys(modules).filter((name) => name.startsWith('@')).map((name) => [name.replace('@rlx-go/rlx', '.'), name === '@rlx-go/rlx' ? 'index' : name.split('/').at(-1)]);
  const all = ts.createProgram(entries.map(([, file]) => join(dist, `${file}.d.ts`)), options), files = {};
  for (const { fileName, text } of all.getSourceFiles()) {
    const inside = (folder) => !relative(folder, fileName).startsWith('..');
    if (inside(dist)) files[`${places.package}dist/${relative(dist, fileName)}`] = text;
    else if (inside(libraries)) files[places.libraries + relative(libraries, fileName)] = short(text);
    else throw new Error(`types: ${fileName} is no declaration of the package or of TypeScript`);
  }
  const exports = Object.fromEntries(entries.map(([name, file]) => [name, { types: `./dist/${file}.d.ts` }]));
  return { ...files, [`${places.package}package.json`]: JSON.stringify({ name: '@rlx-go/rlx', type: 'module', exports }), [places.draw]: drawTypes() };
}

/** The declarations of draw.js, by its comments. */
function drawTypes() {
  let found;
  const program = ts.createProgram([join(web, 'draw.js')], { ...options, allowJs: true, checkJs: false, declaration: true, emitDeclarationOnly: true });
  program.emit(undefined, (path, text) => { if (path.endsWith('/draw.d.ts')) found = text; });
  return found;
}

mkdirSync(out, { recursive: true });
writeFileSync(join(out, 'types.json'), JSON.stringify(declarations()));
await build({
  entryPoints: [join(root, 'demo/types/worker.js')], outfile: join(out, 'types.js'), bundle: true, minify: true, format: 'esm', target: 'es2022', platform: 'browser',
  external: ['fs', 'path', 'os', 'inspector', 'perf_hooks', 'crypto', 'module'], // which TypeScript asks for in Node alone
  banner: { js: '// With TypeScript, (c) Microsoft Corporation, and sourcemap-codec, (c) Justin Ridgewell: licenses Apache-2.0 and MIT.' },
  legalComments: 'none', logLevel: 'warning',
});
