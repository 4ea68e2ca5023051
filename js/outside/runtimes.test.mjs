// The packed package in Node 20 to 24, Bun, Deno and workerd: the scripts of its README train, save,
// load and come to their end, and a mistake shows the line that made it.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { installPacked } from '../test/rig/package.mjs';
import { files } from './readme.mjs';

const tools = join(import.meta.dirname, 'node_modules');
const runtimes = {
  'the Node at hand': [process.execPath],
  'Node 22': [join(tools, 'node22/bin/node')],
  'Node 24': [join(tools, 'node24/bin/node')],
  Bun: [join(tools, '.bin/bun')],
  Deno: [join(tools, '.bin/deno'), 'run', '-A', '--no-prompt'],
};
/** A script that does not end by itself is ended, and fails: they take seconds. */
const timeout = 60_000;

/** Runs a script of the project. */
function run([command, ...args], file, cwd = project.folder) {
  const env = { ...process.env, NO_COLOR: '1', DENO_NO_UPDATE_CHECK: '1' };
  return new Promise((resolve) => execFile(command, [...args, file], { cwd, env, timeout, killSignal: 'SIGKILL' }, (error, stdout, stderr) =>
    resolve({ code: error ? error.code ?? error.signal : 0, stdout, stderr })));
}

/** Mistakes: what is wrong, its line, what the error says of it, and whether it begins inside the package, where a call may be one of many. */
const mistakes = {
  'an op': {
    script: `
import { graph, init } from '@rlx-go/rlx';
await init();
graph('wrong', (b) => {
  const x = b.input('x', 'f32', [2, 3]);
  b.output('y', x.matmul(x)); // here
});`, says: 'matmul(f32[2,3], f32[2,3]): shape mismatch: rows of [2,3] have 3 elements, columns of [2,3] have 2' },
  'a loop': {
    script: `
import { graph, init } from '@rlx-go/rlx';
await init();
graph('wrong', { inputs: { x: ['f32', [3]] } }, (b, { x }) => {
  const { carries } = b.scan({ carries: [x], length: 2 }, (_, __, [last]) => ({
    carries: [last.reshape([4])], // here
  }));
  return { y: carries[0] };
});`, says: 'reshape(f32[3]) {shape=[4]}: shape mismatch: shape is [4], not of the 3 elements of x' },
  training: {
    script: `
import { graph, init, train } from '@rlx-go/rlx';
await init();
const model = graph('model', (b) => b.output('loss', b.param('w', 'f32', [3]).square().mean()));
await train(model, { optimizer: { kind: 'adam' }, ratee: 0.1 }); // here
`, says: 'train has no option ratee' },
  'a run': {
    script: `
import { graph, init, train } from '@rlx-go/rlx';
await init();
const model = graph('model', (b) => b.output('loss', b.param('w', 'f32', [3]).square().mean()));
const { program } = await train(model, { optimizer: { kind: 'adam' }, rate: 0.1 });
await program.run('stepp'); // here
`, says: 'the plan has no entry stepp', inside: true },
};

let project;
before(async () => {
  const scripts = Object.entries(mistakes).map(([name, { script }]) => [`${name.replace(' ', '-')}.mjs`, script.trimStart()]);
  project = await installPacked({ 'line.mjs': files['line.mjs'], 'plan.mjs': files['plan.mjs'], 'worker.mjs': files['worker.mjs'], ...Object.fromEntries(scripts) });
});
after(() => project?.remove());

for (const [name, command] of Object.entries(runtimes)) {
  describe(name, () => {
    test('trains, saves, loads, and ends by itself', async () => {
      const { code, stdout, stderr } = await run(command, 'line.mjs');
      assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
      const [, slope, loss] = stdout.match(/^slope (\S+), loss (\S+)$/m).map(Number);
      assert.ok(Math.abs(slope - 2) < 1e-2 && loss < 1e-3, stdout);
      assert.equal((await readFile(join(project.folder, 'line.safetensors'))).includes('"slope"'), true);
    });
    for (const [what, { script, says, inside = false }] of Object.entries(mistakes)) {
      if (inside && name === 'Bun') continue; // its stacks forget a module that waits
      test(`a mistake in ${what} shows its line and says what it is`, async () => {
        const { code, stderr } = await run(command, `${what.replace(' ', '-')}.mjs`), lines = script.trimStart().split('\n');
        const line = lines.findIndex((text) => text.endsWith('// here'));
        assert.equal(code, 1);
        assert.ok(inside || stderr.includes(lines[line].trim()), stderr);
        assert.ok(stderr.includes(`RlxError: ${says}`), stderr);
        const places = [...stderr.matchAll(/^ +at (?:.*?\()?(?:async )?(?:file:\/\/)?(\/.*?:\d+):\d+\)?(?: \{)?$/gm)].map(([, place]) => place);
        const own = places.indexOf(`${join(project.folder, `${what.replace(' ', '-')}.mjs`)}:${line + 1}`);
        assert.ok(inside ? own > 0 : own === 0, stderr);
        assert.ok(stderr.length < 4000, `${stderr.length} characters`);
      });
    }
  });
}

/** A worker that calls the one of the README, and compiles graphs by itself. */
const inWorkerd = `
import { compile, decodeSafetensors, graph, init } from './all.mjs';
import wasm from './rlx.wasm';
import { trained } from './worker.mjs';

export default {
  async test() {
    const first = await trained(), second = decodeSafetensors(await trained(first)).tensors;
    if (!(Math.abs(second.slope.data[0] - 2) <= 1e-2)) throw new Error('slope ' + second.slope.data[0]);
    await init({ wasm, compileWorker: false });
    const made = graph('twice', (b) => b.output('y', b.input('x', 'f32', [2]).mul(2)));
    const plan = await compile({ entries: { main: made }, target: 'wasm' });
    console.log('slope ' + second.slope.data[0] + ', plan of ' + plan.length + ' bytes');
  },
};
`;
const config = `
using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (services = [(name = "main", worker = .main)]);
const main :Workerd.Worker = (compatibilityDate = "2026-11-01", modules = [
  (name = "main.mjs", esModule = embed "bundled/main.mjs"),
  (name = "line.wasm", wasm = embed "line.wasm"),
  (name = "line.rlxp", data = embed "line.rlxp"),
  (name = "rlx.wasm", wasm = embed "node_modules/@rlx-go/rlx/dist/rlx.wasm"),
]);
`;

test('workerd trains by code that was compiled before, saves and loads; its compiler compiles', async () => {
  const write = (name, text) => writeFile(join(project.folder, name), text);
  await Promise.all([
    project.node('plan.mjs'), write('main.mjs', inWorkerd), write('config.capnp', config),
    write('all.mjs', "export * from '@rlx-go/rlx'; export { decodeSafetensors } from '@rlx-go/rlx/safetensors';"),
  ]);
  await project.esbuild('main.mjs', '--bundle', '--format=esm', '--external:*.wasm', '--external:*.rlxp', '--outdir=bundled', '--out-extension:.js=.mjs', '--log-level=error');
  const { code, stdout, stderr } = await run([join(tools, '.bin/workerd'), 'test'], 'config.capnp');
  assert.equal(code, 0, stdout + stderr);
  assert.match(stdout, /^slope (1\.99|2)\S*, plan of \d{3,} bytes$/m);
});
