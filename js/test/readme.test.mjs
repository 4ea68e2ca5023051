// The TypeScript examples of the READMEs and of LAYERS.md, run as they stand there, in Node.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { transform } from 'esbuild';
import * as rlx from '../dist/index.js';
import * as nn from '../dist/nn.js';
import * as safetensors from '../dist/safetensors.js';
import { openDawn } from './rig/dawn.mjs';

const packages = { '@rlx-go/rlx': rlx, '@rlx-go/rlx/nn': nn, '@rlx-go/rlx/runtime': rlx, '@rlx-go/rlx/safetensors': safetensors };

/** The examples of a file, by the headings over them. */
async function examplesIn(path) {
  const text = await readFile(join(import.meta.dirname, '../..', path), 'utf8');
  return text.split(/^## /m).flatMap((section) => {
    const code = section.match(/```ts\n([^]*?)```/)?.[1];
    return code ? [{ name: section.split('\n', 1)[0], code }] : [];
  });
}

/** Runs an example and gives the lines it printed. */
async function printedBy(example) {
  const { code } = await transform(example, { loader: 'ts', target: 'esnext' });
  const body = code.replace(/^import (?:\* as )?(\{[^}]*\}|\w+) from "([^"]*)";$/gm, 'const $1 = packages["$2"];').replace('await init();', 'await init({ gpu });');
  const printed = [], { gpu } = await openDawn();
  await new Function('packages', 'gpu', 'console', `return (async () => {${body}})();`)(packages, gpu, { log: (line) => printed.push(line) });
  return printed;
}

/** The most lines of a model with its training, without empty ones. */
const mostLines = { 'A convolutional network': 20, 'A language model': 60, 'A U-Net': 60 };

const lossOf = (line) => Number(line.match(/^loss (\S+) on /)[1]);
const expected = {
  'README.md': {
    'In TypeScript': (lines) => assert.ok(lossOf(lines[0]) < 0.05),
  },
  'js/README.md': {
    Train: (lines) => assert.ok(lines.length === 13 && lossOf(lines[12]) < 0.01),
    'Save, go on, infer': ([line]) => assert.ok(Math.abs(line.match(/^at 10: (\S+)$/)[1] - 21) < 0.1),
    'A plan made ahead of time': ([line]) => assert.deepEqual(line.match(/^w is (\S+)$/)[1].split(',').map((x) => Math.round(x * 1e3) / 1e3), [1, 2, 3]),
    'Derivatives and loops': (lines) => assert.deepEqual(lines, ['slope 12, powers 2,4,8,16']),
    Errors: (lines) => assert.deepEqual(lines, ['shape: matmul(f32[2,3], f32[2,3]): shape mismatch: rows of [2,3] have 3 elements, columns of [2,3] have 2']),
  },
  'js/LAYERS.md': {
    'A convolutional network': ([line]) => assert.ok(Number(line.match(/^loss (\S+)$/)[1]) < 0.01),
    'A language model': ([line]) => assert.match(line, /^loss 0\.[0-4]\d*: quick brown fox/),
    'A U-Net': ([line]) => assert.ok(Number(line.match(/^loss (\S+)$/)[1]) < 0.1),
  },
};

for (const [path, checks] of Object.entries(expected)) {
  const examples = await examplesIn(path);
  test(`${path} has the examples that are checked`, () => assert.deepEqual(examples.map(({ name }) => name), Object.keys(checks)));
  for (const { name, code } of examples) {
    test(`${path}: ${name}`, async () => {
      const lineCount = code.split('\n').filter((line) => line.trim()).length;
      assert.ok(lineCount <= (mostLines[name] ?? Infinity), `${lineCount} lines`);
      const lines = await printedBy(code);
      try {
        checks[name](lines);
      } catch (reason) {
        throw new Error(`it printed\n${lines.join('\n')}`, { cause: reason });
      }
    });
  }
}
