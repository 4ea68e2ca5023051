// TypeScript in the playground: what is left of a program is what esbuild makes of it, at the same lines and columns.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { transformSync } from '../../js/node_modules/esbuild/lib/main.js';
import { erased } from '../web/playground/erase.js';

const root = join(import.meta.dirname, '../..'), examples = join(root, 'demo/web/playground/examples');

/** The program as esbuild writes it, without imports and exports of no names, which it leaves out. */
const written = (code, loader) => transformSync(code, { loader, target: 'esnext', legalComments: 'none', minifyWhitespace: true, minifySyntax: true }).code
  .replace(/(?:import|(?:import|export)\{\}from)"[^"]*";/g, '');

function holds(source) {
  const code = erased(source);
  assert.equal(code.length, source.length);
  assert.deepEqual(code.match(/\n/g), source.match(/\n/g));
  assert.equal(written(code, 'js'), written(source, 'ts'));
}

/** Each has what is only in TypeScript, or what looks like it. */
const programs = `const a = b ? (c) : d => e;
const a = b ? (c): d => e : f;
f<A>(x); f<A, B>(y); new Map<string, Array<number>>(); x = a < b; f(a < b, c > d); x = a<b>c;
const x = y as const satisfies Z; let v = <T,>(x: T) => x, w = async <T>(x: T): Promise<T> => x;
const { a, b: { c } = {} }: { a: X; b?: Y } = z; let [d, , e = 1]: [number, string?] = c;
function f(this: Foo, a?: number, ...r: string[]): asserts a is number {}
function f(a: string): void; function f(a: any) {} async function g(): Promise<void>; async function g() {}
abstract class A<T> extends B<T> implements C, D { private readonly x?: number = 1; declare y: string; static z!: T; abstract m(): void; n?(): void; get q(): number { return 1; } [k: string]: any; static { f(); } async *g<T>() {} }
class A { get = 1; static = 2; async; readonly; set x(v: number) {} #p: number = 1; m() { return #p in this; } override o() {} }
type A = { [K in keyof T]: T[K] extends \`\${infer U}\` ? U : never }; interface B extends C<D> { x(): void } declare const z: number; declare module "x" { const y: number }
export type { A } from "b"; export type B = 1; export interface C {} export default interface D {}
import type { A } from "a"; import { type B, c } from "b"; import D, { E } from "e"; c(D); let x: E;
for (const x of y as Z[]) {} for (let i = 0 as number; i in a; i++); for (const k in o) {}
x!.y!.z![0]!(); x = y!; let a = b! + c!; a ||= b!;
const r = a / b / c, s = /[/]\\/(?<n>x)/g.test(y), t = \`a\${\`b\${c as D}\`}e\`;
const f = (a: (x: number) => string, b = { c: 1 } as D): ((y: Z) => W) => a;
const o = { async *m<T>(x: T): void {}, get a(): number { return 1; }, get, set: 1, async: 2, [k]: 3 as X, "s"(): void {} };
let x: typeof import("a").b | null | -1 | \`a\${string}\`, y: readonly string[][] = [], z: new () => T, w: abstract new (...a: any[]) => T, u: unique symbol, k: keyof typeof z;
try { } catch (e: unknown) { } finally { } label: for (;;) break label;
const g = f<string>; const h = f<string>?.(x); const i = (b as C)?.d, j = (<F>g).h;
let u: A extends B ? C : D = 1, f: <T>(x: T) => x is U; let as, of = as; as(x);
x = a ?.5 : b; x = a?.b; x = a ?? b; if (a) { } /re/.test(b);
switch (a as B) { case (1 as C): x(); default: { y() } } do { x } while (y) z();
let yielded = function* () { const x = yield; yield* y; yield (z as A); }; const x = a ? async (b): Promise<C> => d : e;
export const a: number = 1, b = <const>[1]; export default class<T> {} export { a as c, type C };`.split('\n');

test('what is left of TypeScript is the program that esbuild makes of it', () => {
  for (const program of [...programs, 'a = b\ntype C = D\n;(e)', 'let f = (x): {\n a: 1 } => y;', 'const a = b\n  ? (c) : (d);\n']) holds(program);
});

test('so it is of the source of the package, and JavaScript stays as it is', () => {
  const folder = join(root, 'js/src'), files = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith('.ts') && !name.endsWith('.d.ts'));
  let read = 0;
  for (const name of files) {
    const source = readFileSync(join(folder, name), 'utf8');
    if (/constructor\([^)]*(?:readonly|private) /.test(source)) continue; // fields that are declared by parameters
    holds(source);
    read++;
  }
  assert.ok(read > 180, `${read} files`);
  for (const name of readdirSync(examples).filter((one) => one.endsWith('.js'))) {
    const source = readFileSync(join(examples, name), 'utf8');
    assert.equal(erased(source), source, name);
  }
});

test('what is more than a type is refused with its place, and so is what cannot be read', () => {
  const refused = (source, message, place) => assert.throws(() => erased(source), (error) => {
    assert.ok(error instanceof SyntaxError);
    assert.match(error.message, message);
    assert.deepEqual(error.place, place, source);
    return true;
  });
  refused('let a: number;\nenum B { c }', /^an enum is more than a type/, { line: 2, column: 1 });
  refused('class A { constructor(private x: number) {} }', /^a parameter that declares a field/, { line: 1, column: 23 });
  refused('namespace A { }', /^a namespace is more/, { line: 1, column: 1 });
  refused('const x = ;', /^; is not expected here$/, { line: 1, column: 11 });
  refused('f(`a', /^a template has no end$/, { line: 1, column: 3 });
  refused('f(', /^the program ends too early$/, { line: 1, column: 3 });
});

test('examples in TypeScript have the types of the package', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'rlx-examples-')), config = join(folder, 'tsconfig.json'), dist = join(root, 'js/dist');
  t.after(() => rmSync(folder, { recursive: true }));
  const files = readdirSync(examples).filter((name) => name.endsWith('.ts'));
  assert.ok(files.length > 1);
  writeFileSync(join(folder, 'draw.js'), readFileSync(join(examples, '../draw.js'))); // beside the programs, as they import it
  for (const name of files) writeFileSync(join(folder, name), readFileSync(join(examples, name)));
  writeFileSync(join(folder, 'place.js'), 'export const lineHere = () => 1;\n');
  writeFileSync(config, JSON.stringify({
    compilerOptions: {
      target: 'es2022', module: 'esnext', moduleResolution: 'bundler', lib: ['es2023', 'dom', 'dom.iterable', 'esnext.disposable'], types: [], strict: true, allowJs: true,
      noUncheckedIndexedAccess: true, noEmit: true, paths: { '@rlx-go/rlx': [join(dist, 'index.d.ts')], '@rlx-go/rlx/*': [join(dist, '*.d.ts')] },
    },
    files,
  }));
  const { status, stdout } = spawnSync(process.execPath, [join(root, 'js/node_modules/typescript/lib/tsc.js'), '-p', config], { encoding: 'utf8' });
  assert.equal(status, 0, stdout);
});
