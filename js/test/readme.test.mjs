// The TypeScript example of the README, run as it stands there, over Dawn.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import * as rlx from '../dist/index.js';
import { openDawn } from './rig/dawn.mjs';

const readme = await readFile(join(import.meta.dirname, '../../README.md'), 'utf8');

test('the example in the README trains', async () => {
  const code = readme.match(/```ts\n([^]*?)```/)[1];
  const body = code
    .replace(/^import (\{[^}]*\}) from '@rlx-go\/rlx';/m, 'const $1 = rlx;')
    .replace('await init();', 'await init({ gpu });');
  const printed = [];
  const { gpu } = await openDawn();
  const run = new Function('rlx', 'gpu', 'console', `return (async () => {${body}})();`);
  await run(rlx, gpu, { log: (line) => printed.push(line) });
  assert.equal(printed.length, 1);
  const loss = Number(printed[0].match(/^loss (\S+) on /)[1]);
  assert.ok(loss < 0.05, printed[0]);
});
