// The conformance suite over Dawn, on a GPU made of software.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { runConformance } from './conformance.mjs';
import { openDawn } from './rig/dawn.mjs';

const folder = new URL('../../build/conformance/', import.meta.url);

const load = async (name) => {
  const file = await readFile(new URL(name, folder));
  return file.buffer.slice(file.byteOffset, file.byteOffset + file.byteLength);
};

test('the conformance suite passes', async () => {
  const dawn = await openDawn();
  const lines = [];
  const { passed, failures } = await runConformance({ device: dawn.device, load, print: (line) => lines.push(line) });
  dawn.close();
  assert.deepEqual(failures, [], lines.join('\n'));
  assert.ok(passed > 1000, `only ${passed} results`);
});
