// PARITY.md says what Go exports and this package does not.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { goNames, parity, typescriptNames } from '../parity.mjs';

test('names are found in both languages', () => {
  assert.deepEqual(goNames('func One(x int)\n\nfunc (t *Two) Three()\n\ntype Two struct {\n\tField int\n}\n'), ['One', 'Two', 'Two.Three']);
  const found = typescriptNames(['export { a, type B as C } from "x";\nexport declare class D {\n    readonly e: number;\n    f<T>(): void;\n}\nexport declare const g: 1;\n']);
  assert.deepEqual([...found].sort(), ['C', 'D', 'D.e', 'D.f', 'a', 'g']);
});

test('the table is up to date: node js/parity.mjs writes it', () => {
  assert.equal(readFileSync(join(import.meta.dirname, '../PARITY.md'), 'utf8'), parity());
});
