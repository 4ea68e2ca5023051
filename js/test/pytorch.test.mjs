// The tables of PYTORCH.md, and that of GUIDE.md: what they say is written here does build a graph, and what runs elsewhere has its names.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { before, test } from 'node:test';
import * as rlx from '../dist/index.js';
import * as losses from '../dist/losses.js';
import * as nn from '../dist/nn.js';

/** The code of the last column of the tables after a heading of a file. */
const codesOf = (file, heading) => readFileSync(new URL(`../${file}`, import.meta.url), 'utf8').split(heading)[1].split('\n').filter((line) => /^\| (?!PyTorch)/.test(line))
  .flatMap((line) => [...line.split(' | ').at(-1).matchAll(/`([^`]+)`/g)].map(([, code]) => code));
const codes = codesOf('PYTORCH.md', '# From PyTorch'), brief = codesOf('GUIDE.md', '## From PyTorch, Keras and Flax');

/** What the values of the tables may be: each line of them is for some. */
const shapes = [[4, 3], [2, 3], [1, 3], [3], [2, 2, 4, 4], [4, 4], [2, 8, 64], [4, 4, 64], [4, 4, 4]], types = ['f32', 'i32', 'bool'];

before(() => rlx.init({ worker: false, compileWorker: false, cache: false }));

/** Builds a graph with a line of the tables, whose values are of a shape and a type. */
function build(code, shape, dtype) {
  rlx.graph('line', (b) => {
    nn.train(b);
    const input = (name, of, type = dtype) => b.input(name, type, of), rest = shape.slice(0, -1);
    const x = input('x', shape), y = input('y', shape), labels = input('labels', rest, 'i32'), indices = input('indices', shape.slice(0, 1), 'i32');
    const [q, k, v] = ['q', 'k', 'v'].map((name) => input(name, [2, 4, 8, 16], 'f32')), lengths = input('lengths', [4], 'i32');
    const names = {
      b, x, y, q, k, v, nn, losses, labels, indices, lengths, times: lengths, key: b.randomKey(1), logits: x, a: x, p: code.includes('Bernoulli') ? b.value(0.5, 'f32') : y, n: y, target: input('target', rest),
      mask: input('mask', [8, 8], 'bool'), ids: input('ids', [4, 8], 'i32'), window: input('window', [2], 'f32'), start: input('start', [shape.length], 'i32'), condition: input('condition', shape, 'bool'), layers: (z) => nn.linear(z, 2),
    };
    const value = new Function(...Object.keys(names), `return ${code};`)(...Object.values(names));
    if (code.includes('b.state')) b.setState('count', value);
    b.output('x', x);
  });
}

test('what builds a graph does so for values of some shape and type', () => {
  const built = codes.filter((code) => /^(x|b|q|key|condition|logits|nn|losses)\.\w+\(/.test(code));
  assert.ok(built.length >= 140, `${built.length} lines`);
  const refused = built.flatMap((code) => {
    const problems = new Set(), fits = shapes.some((shape) => types.some((dtype) => {
      try {
        build(code, shape, dtype);
        return true;
      } catch (error) {
        problems.add(error.message);
        return false;
      }
    }));
    return fits ? [] : [`${code}:\n${[...problems].join('\n')}`];
  });
  assert.deepEqual(refused, []);
});

test('what derives, trains and runs has its names', () => {
  let x;
  const model = rlx.graph('model', (b) => b.output('loss', x = b.input('x', 'f32')));
  const program = { read() {}, load() {}, bind() {}, device: {} }, trainer = { step() {}, save() {}, saveParams() {}, run() {}, program };
  const owners = { model, g: model, trainer, program, b: rlx.GraphBuilder.prototype, nn, x, c: x, logits: x };
  assert.ok(brief.length > 60, `${brief.length} in GUIDE.md`);
  for (const code of [...codes, ...brief]) {
    for (const [, of, name] of code.matchAll(/(?<![\w/.])(model|g|trainer|program|b|nn|x|c|logits)\.(\w+)/g)) assert.ok(name in owners[of], code);
  }
});
