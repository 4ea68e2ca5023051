// The documentation: the examples of ops give what their page says, links lead somewhere, and search finds.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import * as rlx from '../../js/dist/index.js';
import { sectionsOf } from '../docs/markdown.mjs';
import { entriesOf, search } from '../web/search.js';

const root = join(import.meta.dirname, '../..'), folder = join(root, 'demo/web/docs');
const ops = JSON.parse(readFileSync(join(root, 'build/ops.json'), 'utf8'));
const pages = new Map(readdirSync(folder).filter((name) => name.endsWith('.html')).map((name) => [name, readFileSync(join(folder, name), 'utf8')]));

/**
 * Runs all examples, with one compilation: each gets a stand-in for `program`, which keeps its graph and inputs.
 * @returns {Promise<Map<string, ArrayLike<number>[]>>} what each op's example printed
 */
async function printedByAll(examples) {
  await rlx.init({ worker: false, compileWorker: false, cache: false });
  const entries = {}, waiting = [], printed = new Map();
  let opened;
  const ready = new Promise((resolve) => { opened = resolve; });
  const run = ({ op, example: { code } }) => {
    const lines = [];
    printed.set(op, lines);
    const standIn = async (module) => {
      entries[op] = module.entries.example;
      let inputs;
      return {
        async run(_, given) { inputs = given; },
        async read(name) {
          const { reading } = await (await ready).run(op, inputs, { read: [name] });
          return (await reading).values[name];
        },
        close() {},
      };
    };
    const body = code.replace(/^import .*;$/m, '').replace('await init();', '');
    return new Function('graph', 'program', 'console', `return (async () => {${body}})();`)(rlx.graph, standIn, { log: (value) => lines.push(value) });
  };
  for (const one of examples) waiting.push(run(one));
  while (Object.keys(entries).length < examples.length) await new Promise((resolve) => setImmediate(resolve));
  const program = await rlx.program({ entries }, { on: 'cpu', worker: false });
  opened(program);
  await Promise.all(waiting);
  program.close();
  return printed;
}

const number = (x) => typeof x === 'string' ? Number(x) : x;

test('the example of every op runs and gives the results that its page shows', async () => {
  const examples = ops.filter(({ example }) => example);
  assert.ok(examples.length > 290, `${examples.length} ops have an example`);
  const printed = await printedByAll(examples);
  for (const { op, example: { results } } of examples) {
    results.forEach(({ values }, i) => {
      const got = Array.from(printed.get(op)[i]);
      assert.equal(got.length, values.length, `${op}: elements`);
      values.map(number).forEach((want, k) => {
        const near = Object.is(got[k], want) || Number.isNaN(want) === Number.isNaN(got[k]) && (got[k] === want || Math.abs(got[k] - want) <= 2e-5 * Math.max(1, Math.abs(want)));
        assert.ok(near, `${op}: element ${k} is ${got[k]}, the page says ${want}`);
      });
    });
  }
});

test('every op has a section with its TypeScript and Go, and says how it is differentiated', () => {
  const all = [...pages.values()].join('\n');
  for (const { op, method } of ops) {
    const section = new RegExp(`<h2 id="${op}">[^]*?</section>`).exec(all)?.[0];
    assert.ok(section, `${op} has no section`);
    assert.match(section, /Derivative: /, op);
    assert.match(section, /<h3>Go<\/h3>/, op);
    if (method) assert.match(section, /<h3>TypeScript<\/h3>/, op);
  }
});

test('links within the documentation lead to what is there, and no id is given twice', () => {
  for (const [name, html] of pages) {
    const ids = [...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);
    assert.deepEqual(ids.filter((id, i) => ids.indexOf(id) !== i), [], name);
    for (const [, href] of html.matchAll(/<a [^>]*?href="([^"]+)"/g)) {
      if (/^https?:|^\.\.\//.test(href)) continue;
      const [file, anchor] = href.split('#'), target = pages.get(file || name);
      assert.ok(target, `${name}: ${href}`);
      if (anchor) assert.ok(target.includes(` id="${anchor}"`), `${name}: ${href} has no such place`);
    }
    assert.doesNotMatch(html.replace(/<(pre|code|template)\b[^]*?<\/\1>/g, ''), /undefined|\[object|\*\*/, name);
  }
});

test('search finds ops by both names, guides by their words, and the exact name first', () => {
  const entries = entriesOf(JSON.parse(readFileSync(join(folder, 'search.json'), 'utf8')));
  const titles = (query) => search(entries, query).map(({ title }) => title);
  assert.equal(titles('softmax')[0], 'softmax');
  assert.equal(titles('reduceSum')[0], 'reduce_sum');
  assert.equal(titles('log')[0], 'log');
  assert.ok(titles('checkpoint files').includes('Save and resume'));
  assert.ok(titles('fine-tune').length > 0);
  assert.deepEqual(titles('zzzz'), []);
  assert.deepEqual(titles('  '), []);
  for (const { href } of entries) assert.ok(pages.has(href.split('#')[0]), href);
});

test('search finds what PyTorch has under another name', () => {
  const entries = entriesOf(JSON.parse(readFileSync(join(folder, 'search.json'), 'utf8')));
  const queries = {
    'torch.cat': 'b.concat(', unsqueeze: 'x.expandDims(', 'x.permute(0, 2, 1)': 'x.transpose(', masked_fill: 'b.where(', bmm: 'x.matmul(', index_select: 'x.take(', 'nn.BatchNorm2d': 'nn.batchNorm(',
    scaled_dot_product_attention: 'q.attention(', 'optimizer.step()': 'trainer.run(', autocast: 'precision', 'lr scheduler': 'schedule', DataLoader: 'batches(', 'clip_grad_norm_': 'clipNorm',
    'gradient accumulation': 'accumulate', 'how to save a model': 'encodeSafetensors', 'freezing layers': 'frozen', 'x.item()': 'program.read(', no_grad: 'an entry without an optimizer',
  };
  for (const [query, here] of Object.entries(queries)) {
    const [first] = search(entries, query);
    assert.ok(first?.text.includes(here), `${query} finds ${first?.title}: ${first?.text}`);
  }
  assert.equal(search(entries, 'F.softmax')[0].title, 'softmax', 'an op of the name is before what stands for it');
});

test('Markdown becomes HTML: markup is escaped, code keeps its signs, tables and lists their cells and items', () => {
  const [first, second] = sectionsOf('# A `b`\n\nText < *very* **bold** `x*y*` [here](a.md).\n\n## Two words\n\n| a | b |\n|---|---|\n| 1 \\| 2 | `3` |\n\n- one\n  goes on\n- two\n\n```ts\nconst x = 1 < 2;\n```\n', { link: (href) => `to/${href}` });
  assert.equal(first.title, 'A b');
  assert.equal(first.html, '<p>Text &#60; <em>very</em> <strong>bold</strong> <code>x*y*</code> <a href="to/a.md">here</a>.</p>\n');
  assert.equal(second.slug, 'two-words');
  assert.match(second.html, /<td>1 \| 2<\/td><td><code>3<\/code><\/td>/);
  assert.match(second.html, /<li>one goes on<\/li>\n<li>two<\/li>/);
  assert.match(second.html, /<span class="keyword">const<\/span> x = <span class="number">1<\/span> &#60; /);
});
