// The TypeScript examples of the READMEs, of LAYERS.md and of GUIDE.md, run unchanged in Node.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { transform } from 'esbuild';
import * as devices from '../dist/devices.js';
import * as dist from '../dist/dist.js';
import * as fit from '../dist/fit.js';
import * as grammar from '../dist/grammar.js';
import * as rlx from '../dist/index.js';
import * as lm from '../dist/lm.js';
import * as nn from '../dist/nn.js';
import * as onnx from '../dist/onnx.js';
import * as pixels from '../dist/pixels.js';
import * as safetensors from '../dist/safetensors.js';
import * as sizes from '../dist/sizes.js';
import { openDawn } from './rig/dawn.mjs';
import { perceptron } from './rig/onnx.mjs';

const packages = { '@rlx-go/rlx': rlx, '@rlx-go/rlx/devices': devices, '@rlx-go/rlx/dist': dist, '@rlx-go/rlx/fit': fit, '@rlx-go/rlx/grammar': grammar, '@rlx-go/rlx/lm': lm, '@rlx-go/rlx/nn': nn, '@rlx-go/rlx/onnx': onnx, '@rlx-go/rlx/pixels': pixels, '@rlx-go/rlx/runtime': rlx, '@rlx-go/rlx/safetensors': safetensors, '@rlx-go/rlx/sizes': sizes };

// Examples write files.
const folder = fs.mkdtempSync(join(tmpdir(), 'rlx-guide-'));
globalThis.picked = new Blob([perceptron().bytes]);
globalThis.chosen = new Blob([fs.readFileSync(join(import.meta.dirname, '../../demo/web/tiny.gguf'))]); // the file of a visitor
process.chdir(folder);
after(() => {
  process.chdir('/');
  fs.rmSync(folder, { recursive: true });
});

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
    'Save, resume, infer': ([line]) => assert.ok(Math.abs(line.match(/^at 10: (\S+)$/)[1] - 21) < 0.1),
    'A plan made ahead of time': ([line]) => assert.deepEqual(line.match(/^w is (\S+)$/)[1].split(',').map((x) => Math.round(x * 1e3) / 1e3), [1, 2, 3]),
    'The second visit': ([line]) => assert.deepEqual(line.match(/^w is (\S+)$/)[1].split(',').map((x) => Math.round(x * 1e3) / 1e3), [1, 2, 3]),
    'Derivatives and loops': (lines) => assert.deepEqual(lines, ['slope 12, powers 2,4,8,16']),
    'Files of language models': (lines) => assert.deepEqual(lines, ['3,2,1,0,4 ab| |b|a|']),
    Errors: (lines) => assert.deepEqual(lines, ['shape: matmul(f32[2,3], f32[2,3]): shape mismatch: rows of [2,3] have 3 elements, columns of [2,3] have 2']),
  },
  'js/GUIDE.md': {
    'Train and evaluate': ([line]) => assert.ok(Number(line.match(/^accuracy (\S+) after \d+ epochs$/)[1]) > 0.9),
    'Data on the device': ([line]) => {
      const [, loss, ...w] = line.match(/^loss (\S+), w (\S+),(\S+)$/).map(Number);
      assert.ok(loss < 1e-3 && Math.abs(w[0] - 2) < 0.05 && Math.abs(w[1] + 3) < 0.05, line);
    },
    Measure: ([line]) => {
      const [, r2, error] = line.match(/^R² (\S+), error (\S+)$/).map(Number);
      assert.ok(r2 > 0.9 && error < 0.2, line);
    },
    'Save and resume': ([cut, end]) => {
      assert.equal(cut, 'abort: fit: step 100: the signal is aborted');
      assert.ok(Math.abs(end.match(/^step 300, slope (\S+)$/)[1] - 2) < 0.05);
    },
    Infer: ([trained, alone]) => {
      assert.ok(Math.abs(trained.match(/^while it trains (\S+)$/)[1] - 21) < 0.1);
      assert.equal(alone.split(' ')[1], trained.split(' ')[3]);
    },
    Pictures: (lines) => assert.deepEqual(lines, ['red, green, blue: 0.5,0.2,0.0']),
    Serve: ([answers, wrong]) => {
      assert.ok(answers.match(/^100 answers in (\d+) batches$/)[1] <= 8, answers);
      assert.equal(wrong, 'a wrong request: 400');
    },
    'Text, one token at a time': (lines) => assert.deepEqual(lines, ['equal: true']),
    Sizes: (lines) => assert.deepEqual(lines, ['one row 7', 'three rows 7,14,17', 'norm 1.414']),
    'An op of your own': (lines) => assert.deepEqual(lines, ['0 by 0.3536,1.0000,0.3536']),
    'A loop of your own': ([line]) => assert.ok(line.match(/^loss (\S+) after \d+ steps$/)[1] < 1e-4),
    'A GAN': ([line]) => assert.ok(Math.abs(line.match(/^mean (\S+)$/)[1] - 3) < 1),
    Distributions: ([line]) => {
      const [, mean, deviation] = line.match(/^mean (\S+), deviation (\S+)$/);
      assert.ok(Math.abs(mean - 3.2 * 51 / 51.25) < 0.05 && Math.abs(deviation - 51.25 ** -0.5) < 0.02, line);
    },
    LoRA: ([line, , weights]) => assert.ok(line.match(/^loss (\S+), frozen: true$/)[1] < 0.05 && weights === '4 weights'),
    'Language models': (lines) => assert.ok(/^\d+ bytes$/.test(lines[0]) && lines[1].length > 30 && lines.at(-1) === 'true length', lines.join('\n')),
    'Several texts and JSON': (lines) => assert.deepEqual(lines, ['3 texts of true', 'boolean']),
    'ONNX models': ([inputs, y, loss]) => {
      assert.deepEqual([inputs, y], ['x: f32[batch,16]', 'y: f32[4,3]']);
      assert.ok(loss.match(/^loss (\S+)$/)[1] < 0.05, loss);
    },
    'PyTorch weights': (lines) => assert.deepEqual(lines, ['y 5,10', 'the same file: true']),
    Devices: (lines) => {
      assert.match(lines[0], /^best: 2,4,6,8 on /);
      assert.match(lines[2], /^cpu: 2,4,6,8 on cpu, as asked$/);
    },
    'What a device computes': (lines) => {
      const [cpu, gpu, first, second, large, on] = lines;
      assert.match(`${cpu}\n${gpu}`, /^cpu: WebAssembly with .*SIMD\nwebgpu: .*llvmpipe/);
      assert.deepEqual([first, second], ['cpu', 'webgpu'].map((name) => `${name} computes all 1 nodes: 1 decomposed`));
      assert.match(large, /^webgpu cannot compute sqrt f32\[134217728\] of entry large: .* takes 536870912 bytes, and a binding of this target holds 134217728$/);
      assert.equal(on, 'on webgpu');
    },
    'A lost device': ([line]) => assert.equal(line, 'slope 2.000'),
    'Ahead of time': (lines) => assert.deepEqual(lines, ['y 0.25,0.25,0.25,0.25']),
    Errors: (lines) => assert.deepEqual(lines.map((line) => line.split(':')[0]), ['shape', 'missing', 'shape']),
  },
  'js/LAYERS.md': {
    'A convolutional network': ([line]) => assert.ok(Number(line.match(/^loss (\S+)$/)[1]) < 0.01),
    'A language model': ([line]) => assert.match(line, /^loss 0\.[0-4]\d*: quick brown fox/),
    'A U-Net': ([line]) => assert.ok(Number(line.match(/^loss (\S+)$/)[1]) < 0.1),
  },
};

const all = await Promise.all(Object.entries(expected).map(async ([path, checks]) => ({ path, checks, examples: await examplesIn(path) })));
for (const { path, checks, examples } of all) {
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
