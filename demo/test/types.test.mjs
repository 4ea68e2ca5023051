// The language of the playground: TypeScript's service with the declarations of the package.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { Language, transpiled } from '../types/language.js';
import { examples } from '../web/playground/examples.js';

const asset = (name) => readFileSync(new URL(`../web/assets/${name}`, import.meta.url));
const language = new Language(JSON.parse(asset('types.json')));
const sources = examples.map(({ name, file = `${name}.js` }) => [file, readFileSync(new URL(`../web/playground/examples/${file}`, import.meta.url), 'utf8')]).filter(([file]) => !file.endsWith('.txt'));

/** What is said at the mark | of a program. */
const at = (marked, typing = true) => language.at(marked.replace('|', ''), marked.indexOf('|'), typing);
const namesAt = (marked) => at(marked).names?.map(({ name }) => name);

/** The program that the first name at the mark makes. */
function completed(marked) {
  const [{ edits }] = at(marked).names;
  return [...edits].sort((a, b) => b.start - a.start).reduce((text, { start, end, text: by }) => text.slice(0, start) + by + text.slice(end), marked.replace('|', ''));
}

test('no example has an error', () => {
  assert.ok(sources.length > 14);
  for (const [file, source] of sources) assert.deepEqual(language.check(source), [], file);
});

test('an error has its place, also where the program has no types', () => {
  const source = "import { graph } from '@rlx-go/rlx';\nconst a: number = 'b';\ngraph('g', (b) => b.output('y', b.input('x', 'f33', [2]).sinn()));\n";
  const found = language.check(source).map(({ start, end, line, message }) => [line, source.slice(start, end), message.split('\n')[0]]);
  assert.equal(found[0].join(), "2,a,Type 'string' is not assignable to type 'number'.");
  assert.deepEqual(found.slice(1).map(([line, part]) => [line, part]), [[3, "'f33'"], [3, 'sinn']]);
  assert.match(found[2][2], /^Property 'sinn' does not exist on type 'Value'\. Did you mean 'sin'\?$/);
  assert.deepEqual(language.check('const f = (x) => x.y;\nf(1);\n'), [], 'a type that is missing is no error');
  assert.deepEqual(language.check('const = 1;').map(({ line, message }) => [line, message]), [[1, 'Variable declaration expected.']]);
  assert.match(language.check("document.title = 'a worker has none';")[0].message, /^Cannot find name 'document'/);
  assert.deepEqual(language.check("import { plot } from './draw.js';\nplot('Title', { y: { x: [0], y: [1] } });\n"), []);
  assert.match(language.check("import { plot } from './draw.js';\nplot(3, {});\n")[0].message, /'number' is not assignable to parameter of type 'string'/);
  assert.match(language.check("import * as no from './other.js';")[0].message, /^Cannot find module/);
});

test('the service knows what is at a place, and how it may go on', () => {
  const model = "import { graph } from '@rlx-go/rlx';\ngraph('g', (b) => { const x = b.input('x', 'f32', [2]); ";
  assert.deepEqual(at(`${model}x.mat|mul(x);});`), { signature: 'Value.matmul(y: Value): Value', text: 'The matrix product, over the last axis and the one before last; axes before those are batch axes.' });
  assert.equal(at(`${model}x.matmul|(x);});`).signature, 'Value.matmul(y: Value): Value');
  assert.equal(namesAt(`${model}x.matm|`)[0], 'matmul');
  assert.equal(completed(`${model}x.matm|`), `${model}x.matmul`);
  assert.ok(namesAt(`${model}x.|`).includes('abs'), 'all members after a point');
  assert.equal(at(`${model}x.mat|y`).names, undefined, 'within a word nothing is completed');
  assert.equal(at('const tr|').names, undefined, 'two letters are a variable as often');
  assert.equal(at('// matm|').names, undefined);
  assert.equal(at(`${model}x.matm|`, false).names, undefined, 'the mouse completes nothing');
  const call = at(`${model}b.input('y', |`);
  assert.match(call.signature, /^input\(name: string, dtype: DType, shape\?: /);
  assert.equal(call.signature.slice(...call.active), 'dtype: DType');
  assert.match(at("import { train } from '@rlx-go/rlx';\nawait train|").signature, /^train\(graph: Graph</, 'without the parameters of types');
  assert.equal(at("import * as nn from '@rlx-go/rlx/nn';\nnn.linear|").text, 'x·weight + bias, [..., out], for x [..., in].');
});

test('a name of a module is imported as it is completed', () => {
  assert.equal(completed('const t = await tra|'), 'import { train } from "@rlx-go/rlx";\n\nconst t = await train');
  assert.equal(completed("import { init } from '@rlx-go/rlx';\nawait init();\nconst t = await tra|"), "import { init, train } from '@rlx-go/rlx';\nawait init();\nconst t = await train");
  assert.equal(completed('const y = cosineEmb|'), 'import { cosineEmbedding } from "@rlx-go/rlx/losses";\n\nconst y = cosineEmbedding');
});

test('JavaScript is made of programs, with the lines of the program', () => {
  const source = 'interface Named { name: string }\n\nenum Color { red = 3 }\nconst twice = <T extends number>(x: T): number => 2 * x;\n\nclass A { constructor(readonly x: number) {} }\n(globalThis as any).result = twice(Color.red) + new A(1).x;\nthrow new Error("x") as Named & Error;\n';
  const { code, lines, wrong } = transpiled(source);
  assert.equal(wrong, undefined);
  assert.doesNotMatch(code, /Named|sourceMappingURL/);
  const line = code.split('\n').findIndex((text) => text.startsWith('throw'));
  assert.equal(lines[line][0][2], 7);
  assert.deepEqual(transpiled('const a: number = 1;\nconst b: = 2;\n').wrong, { line: 2, message: 'Type expected.' });
  for (const [file, text] of sources) assert.equal(transpiled(text).wrong, undefined, file);
  assert.match(transpiled("import { type Graph, graph, Value } from '@rlx-go/rlx';\nlet x: Value;\ngraph;").code, /^import \{ graph \} from '@rlx-go\/rlx';/, 'types are not imported');
});

test('all that the editor loads for it is below 1.2 MB, compressed', (t) => {
  const [code, types] = ['types.js', 'types.json'].map((name) => gzipSync(asset(name), { level: 9 }).length);
  t.diagnostic(`${code} and ${types} bytes`);
  assert.ok(code + types < 1_200_000, `${code} and ${types} bytes`);
});
