// The imports of js/src, of types too: no circle of files, and folders import those below them alone.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { parseAst } from 'rolldown/parseAst';

const src = join(import.meta.dirname, '../src');

// The folders, lowest layer first. A folder imports itself and folders of lower layers; of two
// folders in one layer, neither imports the other. The files outside folders, the package's entry
// points, import any folder, and none imports them.
const layers = [
  ['values'],
  ['files'],
  ['plan', 'safetensors', 'wasm'],
  ['program'],
  ['host'],
  ['gpu', 'graph'],
  ['worker'],
  ['cpu'],
  ['runtime'],
  ['compile', 'fit', 'functions', 'nn', 'pixels', 'lm/chat', 'lm/tokenizer'],
  ['lm', 'lm/grammar', 'sizes'],
  ['lm/model', 'onnx'],
  ['.'],
];

/** The files that a module imports, in any form. */
function* importsIn(node) {
  if (Object(node) !== node) return;
  const from = node.source ?? (node.type === 'TSImportType' ? node.argument : undefined);
  if (typeof from?.value === 'string' && from.value.startsWith('.')) yield from.value;
  for (const part of Object.values(node)) yield* importsIn(part);
}

/** The imports of each file of a tree, by its path there; `read` gives the text of one. */
function arrowsOf(files, read) {
  return new Map(files.map((file) => {
    const found = [...importsIn(parseAst(read(file), { lang: 'ts' }))];
    return [file, [...new Set(found)].map((path) => join(dirname(file), path.replace(/\.js$/, '.ts')))];
  }));
}

/** A circle of files that import each other, if there is one: a search in depth. */
function circleIn(arrows) {
  const done = new Set(), path = [];
  const visit = (file) => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file)) return undefined;
    done.add(file);
    path.push(file);
    for (const next of arrows.get(file) ?? []) {
      const circle = visit(next);
      if (circle) return circle;
    }
    path.pop();
    return undefined;
  };
  for (const file of arrows.keys()) {
    const circle = visit(file);
    if (circle) return circle;
  }
  return undefined;
}

const files = readdirSync(src, { recursive: true }).filter((name) => name.endsWith('.ts') && !name.endsWith('.d.ts'));
const arrows = arrowsOf(files, (file) => readFileSync(join(src, file), 'utf8'));

test('imports of all forms are found, and a circle of them', () => {
  const texts = {
    'a.ts': "import { b } from './b/b.js'; import type { X } from 'elsewhere';",
    'b/b.ts': "export type { C } from './c.js';",
    'b/c.ts': "export const d = async () => (await import('../d.js')).d;",
    'd.ts': "export type A = import('./a.js').A; export * from './e.js';",
    'e.ts': 'export {};',
  };
  const found = arrowsOf(Object.keys(texts), (file) => texts[file]);
  assert.deepEqual(Object.fromEntries(found), { 'a.ts': ['b/b.ts'], 'b/b.ts': ['b/c.ts'], 'b/c.ts': ['d.ts'], 'd.ts': ['a.ts', 'e.ts'], 'e.ts': [] });
  assert.deepEqual(circleIn(found), ['a.ts', 'b/b.ts', 'b/c.ts', 'd.ts', 'a.ts']);
  found.set('d.ts', ['e.ts']);
  assert.equal(circleIn(found), undefined);
});

test('every file that is imported is there', () => {
  for (const [file, imports] of arrows) for (const path of imports) assert.ok(arrows.has(path), `${file} imports ${path}`);
});

test('no files import each other in a circle', () => assert.equal(circleIn(arrows)?.join(' → '), undefined));

test('folders import those of layers below', () => {
  const layerOf = (file) => layers.findIndex((folders) => folders.includes(dirname(file)));
  assert.deepEqual([...new Set(files.map(dirname))].sort(), layers.flat().sort());
  for (const [file, imports] of arrows) {
    for (const path of imports) {
      const fine = dirname(file) === dirname(path) || layerOf(path) < layerOf(file);
      assert.ok(fine, `${file} imports ${path}, of a folder that is not below its own`);
    }
  }
});
