// Loading and losing the WebAssembly module.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { closeCompiler, compile, graph, init } from '../dist/index.js';
import { isError } from './rig/is-error.mjs';

const file = new URL('../dist/rlx.wasm', import.meta.url);
const twice = () => graph('twice', (b) => b.output('y', b.input('x', 'f32').mul(2)));

/** Makes the module's memory fail under a call, once. */
function failing(make) {
  const { set } = Uint8Array.prototype;
  Uint8Array.prototype.set = function (...args) {
    if (this.buffer.byteLength > 1 << 20) throw new RangeError('out of memory');
    return set.apply(this, args);
  };
  try {
    make();
  } finally {
    Uint8Array.prototype.set = set;
  }
}

test('before init there is no compiler, and init says so', () => {
  assert.throws(twice, isError('wasm', /await init\(\) first/));
});

test('a module that is not there is an error, and can be given later', async () => {
  await assert.rejects(init({ wasm: 'data:application/wasm;base64,AA==' }), isError('wasm', /./));
  await assert.rejects(init({ wasm: new URL('nowhere.wasm', file) }), isError('wasm', /nowhere/));
  await init({ wasm: readFileSync(file) });
  assert.match(twice().text(), /mul/);
  await init({ wasm: await WebAssembly.compile(readFileSync(file)) });
  assert.match(twice().text(), /mul/);
});

test('after the module failed, calls say so until init starts it anew', async () => {
  await init({ wasm: file });
  const old = twice();
  failing(() => assert.throws(twice, isError('wasm', /out of memory/)));
  assert.throws(twice, isError('wasm', /await init\(\) to start it anew/));
  assert.throws(() => old.text(), isError('wasm', /anew/));
  await init();
  assert.match(twice().text(), /mul/);
  assert.throws(() => old.text(), isError('closed', /started anew/));
});

test('a compiler that was closed has no graphs, and init starts another', async () => {
  await init();
  const old = twice(), compiling = compile({ entries: { old } });
  closeCompiler();
  await assert.rejects(compiling, isError('wasm', /await init\(\) first/));
  assert.throws(twice, isError('wasm', /await init\(\) first/));
  await init();
  assert.match(twice().text(), /mul/);
  assert.throws(() => old.text(), isError('closed', /started anew/));
});
