// The texts of all errors that the package makes, in a golden file. `RLX_UPDATE=1 node --test test/errors.test.mjs` writes it.
//
// A text says what is wrong with what, what was given, and what is required, in this order: "x is i32: it must be f32".

import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseAst } from 'rolldown/parseAst';

const src = join(import.meta.dirname, '../src'), golden = join(import.meta.dirname, 'testdata/errors.golden');

/** For functions that make errors, the places of the kind, if there is one, and of the text among their arguments. */
const makers = { RlxError: [0, 1], need: [1, 2], unknownName: [undefined, 0], wrong: [0, 3], fail: [0, 1], require: [undefined, 1], checkGiven: [undefined, 2], bad: [undefined, 0], checkFunction: [undefined, 0] };

/** The literal parts of a text, with {} for each value in it; undefined for what is no text. */
function textOf(node) {
  switch (node?.type) {
    case 'Literal': return typeof node.value === 'string' ? node.value : undefined;
    case 'TemplateLiteral': return node.quasis.map(({ value }, i) => value.cooked + (i < node.expressions.length ? '{}' : '')).join('');
    case 'ConditionalExpression': return [textOf(node.consequent), textOf(node.alternate)].filter((one) => one !== undefined).join(' | ') || undefined;
    case 'BinaryExpression': return `${textOf(node.left) ?? '{}'}${textOf(node.right) ?? '{}'}`;
    default: return undefined;
  }
}

/** The errors in a tree: lines of kind and text. */
function* errorsIn(node) {
  if (Object(node) !== node) return;
  if (node.type === 'CallExpression' || node.type === 'NewExpression') {
    const name = node.callee.name ?? node.callee.property?.name, [kind, text] = Object.hasOwn(makers, name ?? '') ? makers[name] : [];
    const message = text === undefined ? undefined : textOf(node.arguments[text]);
    if (message !== undefined) yield `${(kind !== undefined && textOf(node.arguments[kind])) || name}: ${message}`;
  }
  for (const [key, part] of Object.entries(node)) if (key !== 'parent') yield* errorsIn(part);
}

const texts = readdirSync(src, { recursive: true }).filter((name) => /\.ts$/.test(name) && !/\.(d|gen)\.ts$/.test(name)).sort().flatMap((name) => {
  const found = [...errorsIn(parseAst(readFileSync(join(src, name), 'utf8'), { lang: 'ts' }))];
  return found.length ? [`# ${name}`, ...found] : [];
});

test('the texts of errors are those of the golden file', () => {
  const now = `${texts.join('\n')}\n`;
  if (process.env.RLX_UPDATE) writeFileSync(golden, now);
  assert.equal(now, readFileSync(golden, 'utf8'));
});

test('texts say what was given before what is required', () => {
  assert.ok(texts.length > 100);
  assert.deepEqual(texts.filter((text) => /, given (as|with)/.test(text)), []);
});
