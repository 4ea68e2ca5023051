// The parts of the playground that need no page.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { linesOfKernel } from '../web/kernels.js';
import { countOps, linkOf } from '../web/playground/graphs.js';
import { labelled, languageOf, placeInText } from '../web/playground/language.js';
import { linked } from '../web/playground/links.js';
import { lifetimes } from '../web/playground/memory.js';
import { withoutLabels } from '../web/playground/place.js';
import { placeOf, withAddresses } from '../web/playground/program.js';
import { pack, unpack } from '../web/playground/share.js';

test('a program imports the package by its name, and lines stay where they are', () => {
  const source = "import { graph } from '@rlx-go/rlx';\nimport * as nn from \"@rlx-go/rlx/nn\";\nimport { plot } from './draw.js';\nconst other = await import('other');\n// from '@rlx-go/none'\n";
  assert.equal(withAddresses(source, 'http://a.test/demo/playground/worker.js'),
    "import { graph } from 'http://a.test/demo/playground/rlx.js';\nimport * as nn from \"http://a.test/demo/rlx/nn.js\";\nimport { plot } from 'http://a.test/demo/playground/draw.js';\nconst other = await import('other');\n// from '@rlx-go/none'\n");
});

test('an error is found in the program by its stack', () => {
  const address = 'blob:http://a.test/1-2';
  assert.deepEqual(placeOf(`Error: x\n    at f (http://a.test/rlx.js:1:2)\n    at ${address}:12:7\n    at ${address}:40:1`, address), { line: 12, column: 7 });
  const lines = [[[0, 0, 4, 2]], [[0, 0, 6, 0], [7, 0, 8, 3]], []], made = (place) => placeOf(`Error: x\n    at ${address}:${place}`, address, lines);
  assert.deepEqual([made('1:1'), made('2:7'), made('2:8'), made('2:20'), made('3:1'), made('9:1')],
    [{ line: 5, column: 3 }, { line: 7, column: 1 }, { line: 9, column: 4 }, { line: 9, column: 4 }, undefined, undefined], 'of a module that was made from the program');
  for (const stack of [undefined, '', 'Error: x\n    at f (http://a.test/rlx.js:1:2)']) assert.equal(placeOf(stack, address), undefined);
});

test('a program goes into an address and comes back', async () => {
  for (const source of ['', 'const x = 1;\n', `// ${'π → ∞ 😀 '.repeat(5000)}`]) {
    const packed = await pack(source);
    assert.match(packed, /^[\w-]*$/);
    assert.equal(await unpack(packed), source);
  }
  for (const damaged of ['%%%', 'AAAA', `${(await pack('const x = 1;'.repeat(50))).slice(0, 20)}`]) assert.equal(await unpack(damaged), undefined, damaged);
});

test('ops are counted without ports and constants', () => {
  assert.equal(countOps('graph "g" {\n  %0 = input "x" : f32[4]\n  %1 = constant 1 : f32[]\n  %2 = add(%0, %1) : f32[4]\n  %3, %4 = split(%2) : f32[2], f32[2]\n  output "y" = %3\n}\n'), 2);
});

test('a tensor is in memory from the dispatch that writes it to the last that reads it', () => {
  const at = (buffer, offset) => ({ buffer, offset, bytes: 16 });
  const plan = { buffers: [{ kind: 'input', bytes: 16 }, { kind: 'temp', bytes: 32 }], kernels: [{ storage: ['read', 'write'] }] };
  const dispatch = (...bindings) => ({ kind: 'dispatch', kernel: 0, groups: [1, 1, 1], bindings });
  const steps = [
    dispatch(at(0, 0), at(1, 0)), // writes a
    { kind: 'repeat', count: 3, odd: [], steps: [dispatch(at(1, 0), at(1, 16))] }, // a to b
    dispatch(at(1, 16), at(1, 0)), // b to c, where a was
    dispatch(at(1, 0), at(1, 0)), // c, in place: it goes on
  ];
  const life = (offset, first, last) => ({ buffer: 1, offset, bytes: 16, first, last });
  const found = lifetimes(plan, { steps }).sort((a, b) => a.first - b.first || a.last - b.last);
  assert.deepEqual(found, [life(0, 0, 1), life(16, 1, 2), life(0, 2, 3)]);
});

test('the language of a text is known by its first word, and ops of graphs are labelled by their lines', () => {
  for (const text of ['graph "a" {', '\n// of two\n\n  // lines\n graph "a" {']) assert.equal(languageOf(text), 'graph', text);
  for (const text of ['', "import { graph } from '@rlx-go/rlx';", "graph('a', build);", '// graph "a" {']) assert.equal(languageOf(text), 'program', text);
  const text = `graph "a" {
  %0 = input "x" : f32[n,2] // "in"
  %1, %b = split(%0) {sizes=[1,1] s="a \\"] : f32[]"} : (f32[n,1], f32[n,1]) // two
  %2 = sin(%1) : f32[n,1] #"mine"
  %3 = constant 1 : f32[]
  output "y" = %2
}`;
  assert.equal(labelled(text), text.replace('f32[n,1]) //', 'f32[n,1]) #"split, line 3" //'));
  assert.deepEqual(placeInText('3:17: sin has type f32[2]'), { line: 3, column: 17, message: 'sin has type f32[2]' });
  assert.equal(placeInText('Line 3: no'), undefined);
});

test('parts of the views are linked by lines of the program and by tensors', () => {
  const op = linkOf('  %4 = tanh(%3) : f32[8] #"layer 1/tanh, line 7"'), port = linkOf('  %2 = param "w, line 3" : f32[1]'), result = linkOf('  output "loss" = %9');
  assert.deepEqual([op, port, result], [{ lines: [7], names: [] }, { lines: [], names: ['w, line 3'] }, { lines: [], names: ['loss'] }]);
  assert.deepEqual(linesOfKernel({ name: 'reduce_linear_line_7_tanh_line_12_parts' }), [7, 12]);
  assert.deepEqual(linesOfKernel({ name: 'map_outline_3_line_4x' }), []);
  assert.ok(linked(op, { lines: [3, 7] }) && linked(port, { names: ['w, line 3'] }));
  assert.ok(!linked(op, port) && !linked(undefined, op) && !linked(port, { names: ['loss'] }));
  assert.equal(withoutLabels('Matmul "matmul, line 4"(f32[2]): bad, axis "x"'), 'Matmul(f32[2]): bad, axis "x"');
});
