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

/** A page that is a script: a module, or what webpack makes, which is none. */
export const page = (script, classic = false) =>
  `<!doctype html><html lang="en"><title>rlx</title><link rel="icon" href="data:,"><script ${classic ? 'defer' : 'type="module"'} src="${script}"></script></html>`;
