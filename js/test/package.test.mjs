// The packed package in a separate project: its types, in Node, and bundled by esbuild.

import assert from 'node:assert/strict';
import { copyFileSync, readdirSync, readFileSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { installPacked } from './rig/package.mjs';

const script = `
import { graph, init, program } from '@rlx-go/rlx';
const { openGPU } = await import(process.env.RIG);
await init({ gpu: openGPU() });
const made = graph('triple', (b) => b.output('y', b.input('x', 'f32', [2]).mul(3)));
for (const on of ['gpu', 'cpu']) {
  try {
    const s = await program({ entries: { main: made } }, { on });
    const { reading } = await s.run('main', { x: Float32Array.of(1, 2) }, { read: ['y'] });
    console.log(on, s.device.description, String((await reading).values.y));
  } catch (error) {
    console.log(on, error.kind, error.message);
  }
}
process.exit(0);
`;

const types = `
import { batches, type DType, type Graph, graph, init, type Measured, RlxError, scope, program, type Tensor, train, type Value } from '@rlx-go/rlx';
import { openProgram, type Program } from '@rlx-go/rlx/runtime';
import { decodeSafetensors } from '@rlx-go/rlx/safetensors';

await init({ powerPreference: 'low-power' });
const made: Graph = graph('g', (b) => {
  const dtype: DType = 'f32', x: Value = b.input('x', dtype, ['batch', 3]);
  const y: Value = x.mul(2).add(x).layerNorm(undefined, undefined, { epsilon: 1e-6 }).reduceSum(1);
  // @ts-expect-error a float type that there is not
  b.input('z', 'f33');
  // @ts-expect-error the axes are numbers
  x.reduceSum(['1']);
  // @ts-expect-error the shape is required
  b.iota({ axis: 0 });
  b.output('y', y);
});
const s: Program = await program({ entries: { main: made }, symbols: { batch: 2 } });
const values: Record<string, ArrayLike<number>> = (await s.readAll(['y'])).values;
{
  using tensors = scope();
  using kept: Tensor = tensors.release(await s.keep('y'));
  const disposed: Disposable = kept;
}
const measured: Measured[] = [];
const tune = { onMeasured: (group: Measured) => void measured.push(group), onProblem: ({ kind }: RlxError) => console.log(kind === 'store') };
const trainer = await train(made, { optimizer: { kind: 'adamw', weightDecay: 0.1 }, loss: 'y', tune });
await trainer.run({ steps: 1, batches: batches({}, { size: 1 }) }).catch((e: unknown) => e instanceof RlxError && e.kind === 'shape');
console.log(values, openProgram, decodeSafetensors);
`;

/** The examples of the package's README and LAYERS.md, as files of the project. */
const guide = Object.fromEntries([...['README', 'LAYERS', 'GUIDE'].map((name) => readFileSync(new URL(`../${name}.md`, import.meta.url), 'utf8')).join('\n').matchAll(/```ts\n([^]*?)```/g)].map(([, code], i) => [`guide${i}.ts`, code]));

let project;
before(async () => {
  project = await installPacked({
    'main.mjs': script,
    'types.ts': types,
    ...guide,
    'tsconfig.json': JSON.stringify({ compilerOptions: {
      target: 'es2022', module: 'nodenext', lib: ['es2023', 'dom', 'esnext.disposable'], types: [], strict: true, exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true, skipLibCheck: false, noEmit: true,
    }, files: ['types.ts', ...Object.keys(guide)] }),
  });
});
after(() => project?.remove());

const env = { RIG: new URL('rig/dawn.mjs', import.meta.url).href };

test('it holds modules, types and licence, and no source', async () => {
  const files = await project.list('node_modules/@rlx-go/rlx');
  for (const name of ['dist/index.js', 'dist/index.d.ts', 'dist/runtime.js', 'dist/nn.js', 'dist/fit.js', 'dist/sizes.js', 'dist/sized.js', 'dist/ahead.js', 'dist/edge.js', 'dist/vite.js', 'dist/vite.d.ts', 'dist/rlx.wasm', 'dist/sizes.wasm', 'dist/onnx.js', 'dist/onnx.wasm', 'dist/worker.js', 'dist/compiler-worker.js', 'LICENSE', 'README.md', 'OPS.md', 'LAYERS.md', 'GUIDE.md', 'PARITY.md', 'PYTORCH.md']) {
    assert.ok(files.includes(name), `${name} is not in the package`);
  }
  assert.ok(!files.some((name) => name.startsWith('src') || name.startsWith('test')));
});

test("its types are strict, without skipLibCheck, and fit its README's examples", async () => {
  assert.ok(Object.keys(guide).length > 4);
  await project.tsc('-p', '.');
});

test('its declarations use no names of WebGPU but two, which they declare: TypeScript 5.9 has none', () => {
  const seen = new Set(), names = new Set();
  const visit = (file) => {
    if (seen.has(file)) return;
    seen.add(file);
    const text = readFileSync(file, 'utf8');
    for (const [, path] of text.matchAll(/(?:from|import\() *'(\.[^']*)\.js'/g)) visit(join(dirname(file), `${path}.d.ts`));
    for (const [name] of text.replace(/\/\*[^]*?\*\//g, '').matchAll(/\bGPU\w*/g)) names.add(name);
  };
  const { exports } = JSON.parse(readFileSync(join(project.installed, 'package.json'), 'utf8'));
  for (const { types: path } of Object.values(exports)) if (path) visit(join(project.installed, path));
  assert.ok(seen.size > 10);
  assert.deepEqual([...names].filter((name) => name !== 'GPUProgramOptions').sort(), ['GPU', 'GPUDevice']);
  assert.match(readFileSync(join(project.installed, 'dist/gpu/device.d.ts'), 'utf8'), /declare global \{\s*interface GPU \{\s*\}\s*interface GPUDevice \{\s*\}/);
});

test('Node runs it over Dawn and on the CPU', async () => {
  const out = await project.node('main.mjs', env);
  assert.match(out, /^gpu .*3,6$/m);
  assert.match(out, /^cpu CPU 3,6$/m);
});

test('what runs plans on the CPU is loaded where it is asked for, and an error where it is not there', async () => {
  const dist = join(project.installed, 'dist'), chunk = readdirSync(dist).find((name) => /^cpu-program-.*\.js$/.test(name));
  renameSync(join(dist, chunk), join(dist, 'elsewhere'));
  const out = await project.node('main.mjs', env).finally(() => renameSync(join(dist, 'elsewhere'), join(dist, chunk)));
  assert.match(out, /^gpu .*3,6$/m);
  assert.match(out, /^cpu wasm .*cpu-program/m);
});

test('esbuild bundles it; the module goes beside the bundle', async () => {
  await project.esbuild('main.mjs', '--bundle', '--format=esm', '--outdir=bundled', '--out-extension:.js=.mjs', '--minify', '--log-level=error');
  copyFileSync(join(project.installed, 'dist/rlx.wasm'), join(project.folder, 'bundled/rlx.wasm'));
  assert.ok(readFileSync(join(project.folder, 'bundled/main.mjs')).length < 200_000);
  assert.match(await project.node('bundled/main.mjs', env), /^cpu CPU 3,6$/m);
});
