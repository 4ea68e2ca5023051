// What the tests build and run: a page that trains, a page that runs a plan, a script.

/** A product large enough to be divided among threads, trained for some steps in a worker and beside the page. */
export const app = `
import { batches, graph, init, train } from '@rlx-go/rlx';

const n = 128;
const rows = (seed) => ({ dtype: 'f32', shape: [n, n], data: Float32Array.from({ length: n * n }, (_, i) => Math.sin(seed * i)) });
async function trained(model, worker) {
  const trainer = await train(model, { optimizer: { kind: 'adam' }, rate: 0.01, on: 'cpu', worker });
  const { loss } = await trainer.run({ steps: 5, batches: batches({ x: rows(0.3), y: rows(0.7) }, { size: n }) });
  trainer.program.close();
  return loss;
}
globalThis.results = (async () => {
  await init();
  const model = graph('product', (b) => {
    b.output('loss', b.input('x', 'f32', [n, n]).matmul(b.param('w', 'f32', [n, n])).sub(b.input('y', 'f32', [n, n])).square().mean());
  });
  return [await trained(model, true), await trained(model, false)];
})();
`;

/** The same with the runtime alone: the plan is a file beside the page. */
export const runtime = `
import { openProgram } from '@rlx-go/rlx/runtime';

const n = 128;
const rows = (seed) => Float32Array.from({ length: n * n }, (_, i) => Math.sin(seed * i));
async function trained(plan, worker) {
  const program = await openProgram(plan, { on: 'cpu', worker });
  await program.write('w', rows(0.5));
  for (let i = 0; i < 5; i++) await program.run('step', { x: rows(0.3), y: rows(0.7), lr: 0.01 });
  const loss = (await program.read('loss'))[0];
  program.close();
  return loss;
}
globalThis.results = (async () => {
  const plan = await (await fetch('product.rlxp')).arrayBuffer();
  return [await trained(plan, true), await trained(plan, false)];
})();
`;

/** Writes the plan of the page that has the runtime alone. */
export const planning = `
import { writeFile } from 'node:fs/promises';
import { compile, graph, init } from '@rlx-go/rlx';

await init();
const n = 128, model = graph('product', (b) => {
  b.output('loss', b.input('x', 'f32', [n, n]).matmul(b.param('w', 'f32', [n, n])).sub(b.input('y', 'f32', [n, n])).square().mean());
});
await writeFile('product.rlxp', await compile({ entries: { step: model.step({ optimizer: { kind: 'adam' } }) }, target: 'wasm' }));
`;

/** What the README's module imports by no name: the types that a page sees of one in TypeScript, and what it may export and import. */
export const typed = {
  'sizes.ts': 'export const n: number = 2;\n',
  'double.rlx.ts': `
import { ahead, graph } from '@rlx-go/rlx';
import { n } from './sizes';
export const labels: string[] = ['one', 'two'];
export default ahead(() => ({ entries: { main: graph('double', { inputs: { x: ['f32', [n]] }, params: { w: ['f32', [n], Float32Array.of(2, -0.5)] }, outputs: { y: ['f32', [n]] } }, (_, { x, w }) => ({ y: x.mul(w) })) } }));
`,
  'typed.ts': `
import double, { labels } from './double.rlx.js';
const program = await double.open(), { reading } = await program.run('main', { x: Float32Array.of(1, 4) }, { read: ['y'] });
const y: Float32Array = (await reading).values.y;
console.log(labels.join(), y.join());
program.close();
`,
};

/** Builds the README's module by each plug-in. */
export const aheadScripts = {
  'ahead-vite.mjs': `
import { build } from 'vite';
await build({ configFile: 'ahead.vite.config.js', logLevel: 'error', build: { outDir: 'ahead-vite' } });
`,
  'ahead-rollup.mjs': `
import { nodeResolve } from '@rollup/plugin-node-resolve';
import { rlx } from '@rlx-go/rlx/vite';
import { rollup } from 'rollup';
const bundle = await rollup({ input: ['ahead.js'], plugins: [rlx(), nodeResolve()], onwarn(warning) { throw new Error(warning.message); } });
await bundle.write({ dir: 'ahead-rollup', format: 'es' });
`,
  'ahead-esbuild.mjs': `
import { esbuild } from '@rlx-go/rlx/vite';
import { build } from 'esbuild';
await build({ entryPoints: ['ahead.js'], bundle: true, splitting: true, format: 'esm', outdir: 'ahead-esbuild', plugins: [esbuild()] });
await build({ entryPoints: ['typed.ts'], bundle: true, format: 'esm', outdir: 'typed', plugins: [esbuild()] });
`,
  'ahead-serve.mjs': `
import { createServer } from 'vite';
const server = await createServer({ configFile: 'ahead.vite.config.js', logLevel: 'error', optimizeDeps: { noDiscovery: true }, server: { host: '127.0.0.1', port: 0 } });
await server.listen();
const { code } = await server.transformRequest('/square.rlx.js'), [, path] = code.match(/"(\\/@rlx\\/[^"]*)"/);
const plan = await fetch('http://127.0.0.1:' + server.httpServer.address().port + path);
console.log(plan.status, (await plan.text()).slice(0, 4));
await server.close();
`,
};

/** A page that is a script: a module, or what webpack makes, which is none. */
export const page = (script, classic = false) =>
  `<!doctype html><html lang="en"><title>rlx</title><link rel="icon" href="data:,"><script ${classic ? 'defer' : 'type="module"'} src="${script}"></script></html>`;
