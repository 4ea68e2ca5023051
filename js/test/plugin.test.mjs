// The plug-in of bundlers, called as they call it, in a project of its own: what a server gets, and where a mistake is.
// js/outside has the bundlers themselves.

import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { after, before, test } from 'node:test';
import { closeCompiler } from '../dist/index.js';
import { rlx } from '../dist/vite.js';

const root = join(import.meta.dirname, '..');
const square = `import { ahead, graph } from '@rlx-go/rlx';
import { n } from './size';
interface Unused { of: string }
export const square = ahead(() => ({
  entries: { main: graph('square', (b) => b.output('y', b.input('x', 'f32', [n]).OP)) },
}));
`;
const projects = {};

before(async () => {
  for (const bundler of ['esbuild', 'rolldown']) {
    const folder = projects[bundler] = await mkdtemp(join(tmpdir(), 'rlx-plugin-'));
    await mkdir(join(folder, 'node_modules/@rlx-go'), { recursive: true });
    await symlink(root, join(folder, 'node_modules/@rlx-go/rlx'));
    await symlink(join(root, 'node_modules', bundler), join(folder, 'node_modules', bundler));
    await writeFile(join(folder, 'size.ts'), 'export const n: number = 2;\n');
    for (const [name, op] of [['square', 'square()'], ['wrong', 'reshape([3])']]) await writeFile(join(folder, `${name}.rlx.ts`), square.replace('OP', op));
  }
});
after(async () => {
  await closeCompiler();
  for (const folder of Object.values(projects)) await rm(folder, { recursive: true, force: true });
});

const load = (path, options) => rlx().load.call({ addWatchFile() {}, emitFile: () => 'file' }, path, options);

test('a server, which has no page that an address could be relative to, gets the plan in its module', async () => {
  const folder = projects.esbuild, { code } = await load(join(folder, 'square.rlx.ts'), { ssr: true }), own = join(folder, 'square.mjs');
  await writeFile(own, code);
  const program = await (await import(pathToFileURL(own).href)).square.open({ on: 'cpu', worker: false });
  const { reading } = await program.run('main', { x: Float32Array.of(3, -4) }, { read: ['y'] });
  assert.deepEqual((await reading).values.y, Float32Array.of(9, 16));
  program.close();
  assert.match((await load(join(folder, 'square.rlx.ts'))).code, /fetched\(import\.meta\.ROLLUP_FILE_URL_file, /);
});

for (const bundler of ['esbuild', 'rolldown']) {
  test(`a mistake is at its line of the source that ${bundler} bundled`, async () => {
    const path = join(projects[bundler], 'wrong.rlx.ts'), column = square.split('\n')[4].indexOf('OP') + 1;
    await assert.rejects(load(path), (error) => {
      assert.ok(error.message.startsWith(`${path}:5:${column}: reshape(f32[2]) {shape=[3]}: shape mismatch`), error.message);
      assert.deepEqual(error.loc, { file: path, line: 5, column: column - 1 });
      assert.ok(error.stack.includes(`${path}:5:${column}`) && !/\.mjs-?\d*:/.test(error.stack.split('\n')[1]), error.stack);
      return true;
    });
    assert.deepEqual((await readdir(projects[bundler])).filter((name) => name.startsWith('.')), []);
  });
}

for (const bundler of ['esbuild', 'rolldown']) {
  test(`files of a module that fails are watched, also one that ${bundler} cannot parse`, async () => {
    const folder = projects[bundler], path = join(folder, 'fails.rlx.ts'), part = join(folder, 'part.ts');
    await writeFile(path, "import { part } from './part';\nexport const one = part;\n");
    for (const text of ["throw new Error('not yet');\nexport const part = 1;\n", 'export const part = (1;\n']) {
      await writeFile(part, text);
      const watched = [];
      await assert.rejects(rlx().load.call({ addWatchFile: (file) => watched.push(file) }, path));
      assert.ok(watched.includes(part), `${watched}`);
    }
  });
}
