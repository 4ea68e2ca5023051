// The playground in Chromium: what a visitor writes runs, and is shown.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { axe } from '../../../js/test/rig/chromium.mjs';
import { examples } from '../../web/playground/examples.js';
import { inkOf, openDemo, serveDemo, shots } from './page.mjs';
import { longestTask } from './tasks.mjs';

let server;
before(async () => { server = await serveDemo(); });
after(() => server.close());

const ended = (page, how = 'Ended') => page.waitForFunction((word) => document.getElementById('state').textContent.startsWith(word), how, { timeout: 60_000, polling: 50 });

/** Writes a program into the editor and runs it. */
async function write(page, source) {
  await page.fill('#source', source);
  await page.press('#source', 'Control+Enter');
}

test('the first example runs by itself; its graphs, kernels and memory are shown', async (t) => {
  const page = await openDemo(t, server, { path: '/playground.html' });
  await ended(page);
  assert.match(await page.locator('#log').textContent(), /^1500 steps on /);
  const labels = await page.locator('#figures canvas').evaluateAll((all) => all.map(({ ariaLabel }) => ariaLabel));
  assert.match(labels.join('\n'), /^Loss: wave, 0\.\d+ at its end$/m);
  assert.match(labels.join('\n'), /^What it has learned: data, 256 points; network, /m);
  assert.ok(await inkOf(page.locator('#figures canvas').last()) > 1000, 'the points');
  await page.screenshot({ path: `${shots}playground.png`, fullPage: true });
  assert.deepEqual(await axe(page), []);

  await page.click('#graph-tab');
  await page.selectOption('#graph-choice', 'step (compiled)');
  await page.waitForFunction(() => /state "w1" = %\d+/.test(document.getElementById('graph-text').textContent));
  await page.hover('#graph-text [data-value="%6"]');
  assert.ok(await page.locator('#graph-text .linked').count() > 1, 'a value and its uses are marked');
  assert.deepEqual(await axe(page), []);
  const lines = () => page.locator('#editor .lit').evaluateAll((all) => all.map((bar) => Number(bar.style.getPropertyValue('--at')) + 1));
  await page.click('#graph-text .row:has-text("mul_zero"):has-text("tanh, line 8")'); // of the derivative
  assert.deepEqual(await lines(), [8]);

  await page.click('#kernel-tab');
  assert.match((await page.locator('#kernel-items button.linked').allTextContents()).join('\n'), /^Linear, tanhline 8: w2, b2$/m, 'the forward kernel of the line is marked');
  assert.ok(await page.locator('#memory .column').count() > 2);
  await page.hover('#source', { position: { x: 100, y: 530 } }); // line 26, which plots
  assert.deepEqual(await page.locator('#figures .lit figcaption').allTextContents(), ['What it has learned']);
  assert.equal(await page.locator('#result-tab.has').count(), 1);
  assert.match(await page.locator('#kernel-note').textContent(), /^\d+ dispatches of \d+ kernels/);
  assert.match(await page.locator('#kernel-wgsl').textContent(), /@compute @workgroup_size/);
  assert.ok(await page.locator('#memory .life').count() > 3);
  const { x, y, width } = await page.locator('#memory').boundingBox();
  await page.mouse.move(x + width - 4, y + 100);
  assert.equal(await page.locator('#kernel-items button.linked').count(), 1, 'the kernel of the column is marked');
  await page.screenshot({ path: `${shots}playground-kernels.png`, fullPage: true });
  assert.deepEqual(await axe(page), []);
  assert.deepEqual(page.problems, []);
});

test('a graph of thousands of lines is shown in short tasks, and its values are linked', async (t) => {
  const page = await openDemo(t, server, { path: '/playground.html', webgpu: 'absent' });
  await ended(page);
  await write(page, `import { graph, init } from '@rlx-go/rlx';
await init();
const build = (n) => graph('long' + n, (b) => {
  let x = b.input('x', 'f32', [4]);
  for (let i = 0; i < n; i++) x = x.sin();
  b.output('y', x);
});
build(9);
build(6000);`);
  await ended(page);
  await page.click('#graph-tab');
  const longest = await longestTask(page, async () => {
    await page.selectOption('#graph-choice', 'long9');
    await page.waitForFunction(() => !document.getElementById('graph-text').textContent.includes('%5999'));
    await page.selectOption('#graph-choice', 'long6000');
    await page.waitForFunction(() => document.querySelectorAll('#graph-text [data-value="%5999"]').length === 2);
  });
  t.diagnostic(longest.text);
  assert.ok(longest.ms < 16, longest.text);
  await page.hover('#graph-text [data-value="%3"]');
  assert.deepEqual(await page.locator('#graph-text .linked').allTextContents(), ['%3', '%3']);
  assert.deepEqual(page.problems, []);
});

test('an error shows its line, an endless program can be stopped, and a link brings a program back', async (t) => {
  const page = await openDemo(t, server, { path: '/playground.html' });
  const failure = page.locator('#failure');
  await write(page, "import { graph, init } from '@rlx-go/rlx';\nawait init();\n\ngraph('g', (b) => b.output('y', b.input('x', 'f32', [2, 3]).matmul(b.input('w', 'f32', [2, 3]))));\n");
  await ended(page, 'Failed');
  assert.match(await failure.textContent(), /^Line 4: Matmul\(f32\[2,3\], f32\[2,3\]\).*\(shape\)$/);
  assert.equal(await page.locator('#editor .wrong').textContent(), '4');
  await page.hover('#source', { position: { x: 180, y: 83 } }); // b.output, in the fourth line
  await page.waitForFunction(() => /^GraphBuilder\.output\(name: string/.test(document.getElementById('hint-code').textContent), null, { polling: 50 });
  await page.fill('#source', "import type { Value } from '@rlx-go/rlx';\nexport const f = (x: Value) => x.mat");
  await page.waitForFunction(() => document.getElementById('hint-text').textContent === 'Tab completes the first.', null, { polling: 50 });
  await page.press('#source', 'Tab');
  assert.match(await page.inputValue('#source'), /=> x\.matmul$/);
  await write(page, 'const = 1;\n');
  await ended(page, 'Failed');
  assert.match(await failure.textContent(), /SyntaxError/);

  await write(page, "console.log('begun', [1, 2], new Float32Array(2));\nfor (;;);\n");
  await page.waitForFunction(() => document.getElementById('log').textContent === 'begun [1,2] [0, 0]\n', null, { polling: 50 });
  await page.click('#run');
  assert.match(await page.locator('#state').textContent(), /^Stopped after /);

  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.fill('#source', "console.log('from a link');\n");
  await page.click('#share');
  await page.waitForFunction(() => document.getElementById('share').textContent === 'Copied');
  const link = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(link, /playground\.html#code=[\w-]+$/);
  const other = await page.context().newPage();
  await other.goto(link);
  await other.waitForFunction(() => document.documentElement.dataset.ready);
  assert.equal(await other.inputValue('#source'), "console.log('from a link');\n");
  assert.equal(await other.locator('#log').textContent(), '', 'it does not run by itself');
  await other.goto(`${link.slice(0, -9)}`);
  await other.waitForFunction(() => /no program that can be read/.test(document.getElementById('notice-text').textContent));
  assert.deepEqual(page.problems, []);
});

test('a program in TypeScript runs, its errors have their lines, and the editor completes what the package exports', async (t) => {
  const page = await openDemo(t, server, { path: '/playground.html' });
  const failure = page.locator('#failure'), log = page.locator('#log');
  await write(page, `import { type Graph, graph, init, type Value } from '@rlx-go/rlx';
interface Named { readonly name: string }
await init();
const twice = <T extends Value>(x: T): Value => x.mul(2);
const made: Graph & Named = graph('twice', { inputs: { x: ['f32', [2]] } }, (b, { x }) => ({ y: twice(x)! }));
console.log((made as Named).name);
function failing(of: number): never { throw new Error(\`with \${of}\`); }
failing(9);`);
  await ended(page, 'Failed');
  assert.equal(await failure.textContent(), 'Line 7: With 9.');
  assert.equal(await log.textContent(), 'twice\n');
  assert.equal(await page.locator('#editor .wrong').textContent(), '7');
  await write(page, 'const a: number = 1;\nconst b: = 2;\n');
  await ended(page, 'Failed');
  assert.equal(await failure.textContent(), 'Line 2: Type expected. (SyntaxError)');
  await write(page, 'enum Color { red = 3 }\nconsole.log(Color.red);\n');
  await ended(page);
  assert.equal(await log.textContent(), '3\n', 'an enum is more than a type');
  await page.fill('#source', 'const t = await tra');
  await page.getByText('Tab completes the first.').waitFor();
  assert.match(await page.locator('#hint-code').textContent(), /^train\b/);
  await page.press('#source', 'Tab');
  await page.waitForFunction(() => /^train\(graph: Graph</.test(document.getElementById('hint-code').textContent), null, { polling: 50 });
  assert.equal(await page.inputValue('#source'), 'import { train } from "@rlx-go/rlx";\n\nconst t = await train');
  assert.deepEqual(page.problems, []);
});

/** Waits until the program has that many type errors. */
const problemsOf = (page, count) => page.waitForFunction((want) => document.querySelectorAll('#problem-list button').length === want, count, { timeout: 60_000, polling: 50 });

test('a type error is underlined, listed and read out, and found by keys; names are chosen on a phone', async (t) => {
  const page = await openDemo(t, server, { path: '/playground.html', viewport: { width: 390, height: 844 }, touch: true });
  await ended(page);
  const said = () => page.locator('#status').textContent();
  await page.fill('#source', "import { graph } from '@rlx-go/rlx';\n\nconst a: number = 'b';\ngraph('g', (b) => b.output('y', b.input('x', 'f32', [2]).sinn()));\n");
  await problemsOf(page, 2);
  assert.deepEqual(await page.locator('#editor .marks u').allTextContents(), ['a', 'sinn']);
  const [mark, word, away] = await page.evaluate(() => {
    const [u] = document.querySelectorAll('.marks u'), colored = document.createTreeWalker(document.querySelector('.colored'), NodeFilter.SHOW_TEXT), range = document.createRange();
    let before = document.getElementById('source').value.indexOf('a: number');
    for (let node = colored.nextNode(); ; before -= node.length, node = colored.nextNode()) {
      if (before >= node.length) continue;
      range.setStart(node, before);
      range.setEnd(node, before + 1);
      break;
    }
    const { y, height } = document.querySelector('#editor .lines span:nth-child(3)').getBoundingClientRect();
    return [...[u, range].map((one) => one.getBoundingClientRect()).map((box) => [box.x, box.y, box.width].map(Math.round)), Math.abs(y + height / 2 - u.getBoundingClientRect().y - u.getBoundingClientRect().height / 2)];
  });
  assert.deepEqual(mark, word, 'the line is below the word');
  assert.ok(away < 2, 'and in the row of its number');
  assert.equal(await said(), "2 type errors. Line 3: Type 'string' is not assignable to type 'number'.");
  assert.deepEqual(await page.locator('#source').evaluate((area) => [area.ariaInvalid, area.getAttribute('aria-describedby').split(' ').map((id) => document.getElementById(id).textContent).at(-1)]), ['true', '2 type errors']);
  const selected = () => page.locator('#source').evaluate((area) => area.value.slice(area.selectionStart, area.selectionEnd));
  await page.press('#source', 'Control+Home');
  await page.press('#source', 'F8');
  assert.deepEqual([await selected(), await said()], ['a', "Line 3: Type 'string' is not assignable to type 'number'."]);
  assert.equal(await page.locator('#hint-text').textContent(), await said());
  await page.press('#source', 'F8');
  assert.equal(await selected(), 'sinn');
  await page.press('#source', 'F8');
  assert.equal(await selected(), 'a', 'from the last to the first');
  await page.tap('#problem-list li:nth-child(2) button');
  assert.equal(await selected(), 'sinn');
  assert.match(await page.locator('#hint-text').textContent(), /^Line 4: Property 'sinn'/);
  assert.deepEqual(await axe(page), []);
  await page.emulateMedia({ colorScheme: 'dark' });
  assert.deepEqual(await axe(page), []);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'nothing is wider than the screen');
  await page.screenshot({ path: `${shots}playground-types.png`, fullPage: true });

  await page.fill('#source', "import { graph } from '@rlx-go/rlx';\nconst a: string = 1;\nb;\n");
  await page.waitForFunction(() => document.getElementById('status').textContent === "2 type errors. Line 2: Type 'number' is not assignable to type 'string'.", null, { polling: 50 });
  await page.fill('#source', "import { graph } from '@rlx-go/rlx';\ngraph('g', (b) => b.inp");
  await page.locator('#hint-code button', { hasText: 'input' }).tap();
  assert.match(await page.inputValue('#source'), /\(b\) => b\.input$/);
  await page.keyboard.type("('x', ");
  await page.waitForFunction(() => document.querySelector('#hint-code b')?.textContent === 'dtype: DType', null, { polling: 50 });
  await page.keyboard.type("'f32', [2]));\n");
  await page.waitForFunction(() => document.getElementById('status').textContent === 'No type errors');
  await problemsOf(page, 0);
  assert.deepEqual(page.problems, []);
});

test('until types are here a program runs as it is, or waits; without them it says why; once here they need no network', async (t) => {
  const waiting = [];
  const hold = (page) => page.context().route('**/assets/types.*', (route) => { waiting.push(route); });
  const page = await openDemo(t, server, { path: '/playground.html', prepare: hold }), log = page.locator('#log'), failure = page.locator('#failure');
  await ended(page);
  await write(page, "console.log('as it is');\n");
  await ended(page);
  assert.equal(await log.textContent(), 'as it is\n');
  await write(page, "console.log('begun');\nJSON.parse('{');\n");
  await ended(page, 'Failed');
  assert.equal(await log.textContent(), 'begun\n', 'a program that began is not run again');
  assert.match(await failure.textContent(), /^Line 2: .*\(SyntaxError\)$/);
  await write(page, "const a: string = 'typed';\nconsole.log(a);\n");
  await ended(page, 'Loading TypeScript');
  for (const route of waiting.splice(0)) await route.abort();
  await ended(page, 'Failed');
  assert.match(await failure.textContent(), /should it be TypeScript, what checks types cannot be loaded\. \(SyntaxError\)$/);

  await page.context().unroute('**/assets/types.*');
  page.problems.length = 0;
  await page.click('#run');
  await ended(page);
  assert.equal(await log.textContent(), 'typed\n');
  await page.fill('#source', 'const a: string = 1;\n');
  await problemsOf(page, 1);
  await page.context().setOffline(true);
  await write(page, 'const a: string = 2, b: number = "";\n');
  await problemsOf(page, 2);
  assert.deepEqual(page.problems, []);
});

test('a graph as text has its gradient, kernels, memory and results, linked by its lines, and stays a graph in a link', async (t) => {
  const page = await openDemo(t, server, { path: '/playground.html#text' });
  await ended(page);
  assert.equal(await page.locator('#language').textContent(), 'Graph text');
  assert.match(await page.locator('#log').textContent(), /^line: loss = \[[\d.]+\]$/m);
  await page.click('#graph-tab');
  assert.deepEqual(await page.locator('#graph-choice option').allTextContents(), ['predict', 'line', 'grad_line', 'predict (compiled)', 'line (compiled)', 'grad_line (compiled)']);
  await page.selectOption('#graph-choice', 'grad_line (compiled)');
  await page.waitForFunction(() => /output "grad\/w"/.test(document.getElementById('graph-text').textContent));
  await page.click('#graph-text .row:has-text("dot_general, line 14") >> nth=0');
  assert.deepEqual(await page.locator('#editor .lit').evaluateAll((all) => all.map((bar) => Number(bar.style.getPropertyValue('--at')) + 1)), [14]);
  await page.click('#kernel-tab');
  await page.selectOption('#entry-choice', 'grad_line');
  assert.ok(await page.locator('#memory .life').count() > 0);
  assert.match(await page.locator('#kernel-wgsl').textContent(), /@compute @workgroup_size/);
  await page.screenshot({ path: `${shots}playground-text.png`, fullPage: true });
  assert.deepEqual(await axe(page), []);

  const given = await page.inputValue('#source');
  await write(page, given.replace('%loss = mean(%square) {axes=[0]} : f32[]', '%loss = mean(%square) {axes=[0]} : f32[2]'));
  await ended(page, 'Failed');
  assert.match(await page.locator('#failure').textContent(), /^Line 17: Mean has type f32\[\]\. \(syntax\)$/);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.click('#share');
  await page.waitForFunction(() => document.getElementById('share').textContent === 'Copied');
  const other = await page.context().newPage();
  await other.goto(await page.evaluate(() => navigator.clipboard.readText()));
  await other.waitForFunction(() => document.documentElement.dataset.ready);
  assert.equal(await other.locator('#language').textContent(), 'Graph text');
  assert.deepEqual(page.problems, []);
});

test('nine curves of one chart look different from each other, in the chart and its legend', async (t) => {
  const page = await openDemo(t, server, { path: '/playground.html' });
  await write(page, "import { plot } from './draw.js';\nplot('Nine', Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`curve ${i}`, { x: [0, 1], y: [i, i + 1] }])));\n");
  await ended(page);
  const keys = page.locator('#figures .key');
  const looks = await keys.evaluateAll((all) => all.map((key) => getComputedStyle(key)).map(({ backgroundColor, maskImage }) => `${backgroundColor} ${maskImage}`));
  assert.equal(looks.length, 9);
  assert.equal(new Set(looks).size, 9, looks.join('\n'));
  await page.screenshot({ path: `${shots}playground-nine.png`, fullPage: true });
  assert.deepEqual(page.problems, []);
});

test('every example begins and shows something, on a phone too', async (t) => {
  const page = await openDemo(t, server, { path: '/playground.html', viewport: { width: 390, height: 844 }, touch: true });
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'nothing is wider than the screen');
  await page.waitForFunction(() => document.querySelector('#figures canvas, #log span, #failure:not([hidden])')); // all is loaded
  await page.context().setOffline(true);
  await page.selectOption('#example', 'gan');
  await page.getByText('The example gan cannot be loaded: is the device offline? Choose it again once it is back.').waitFor();
  await page.context().setOffline(false);
  page.problems.length = 0;
  for (const { name } of examples) {
    await page.selectOption('#example', name);
    await page.waitForFunction(() => document.querySelector('#figures canvas, #log span, #failure:not([hidden])'), null, { timeout: 60_000, polling: 50 });
    assert.equal(await page.locator('#failure').textContent(), '', name);
  }
  await page.fill('#source', '// mine');
  await page.selectOption('#example', 'sine');
  await page.waitForFunction(() => document.getElementById('source').value.startsWith('// A small network'));
  await page.selectOption('#example', '');
  assert.equal(await page.inputValue('#source'), '// mine');
  assert.deepEqual(page.problems, []);
});
