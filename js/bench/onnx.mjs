// ONNX models in a page on the CPU, beside onnxruntime-web: what a visitor waits for, from the file to the first result, and
// each run after it. Each library has a new page in each round, in turns, one thread, and the fastest of the rounds counts.
//
//   make build/onnx/.installed
//   node js/bench/onnx.mjs [ROUNDS]

import { join } from 'node:path';
import { openChromium } from '../test/rig/chromium.mjs';
import { scriptPage, serve } from '../test/rig/serve.mjs';

const here = import.meta.dirname, rounds = Number(process.argv[2] ?? 3);

/** The models of PyPI's packages, by the folders that the suite writes, with the shapes of their inputs. */
const models = [
  { name: 'magika', folder: 'magika_0', inputs: { bytes: ['int32', [1, 2048]] } },
  { name: 'rapidocr, angle', folder: 'rapidocr_cls_0', inputs: { x: ['float32', [1, 3, 48, 192]] } },
  { name: 'rapidocr, detection', folder: 'rapidocr_det_0', inputs: { x: ['float32', [1, 3, 320, 320]] } },
  { name: 'rapidocr, recognition', folder: 'rapidocr_rec_0', inputs: { x: ['float32', [1, 3, 48, 320]] } },
  { name: 'silero', folder: 'silero_half_0', inputs: { input: ['float32', [1, 576]], state: ['float32', [2, 1, 128]] } },
];

const script = `
const fill = ([type, dims]) => {
  const n = dims.reduce((a, b) => a * b, 1);
  return { dims, data: type === 'int32' ? Int32Array.from({ length: n }, (_, i) => i * 7 % 257) : Float32Array.from({ length: n }, (_, i) => Math.sin(i * 0.37) / 2) };
};
const libraries = {
  async rlx(bytes) {
    const { openONNX } = await import('/dist/onnx.js'), model = await openONNX(bytes, { program: { on: 'cpu' } });
    return async (inputs) => Object.values(await model.run(Object.fromEntries(Object.entries(inputs).map(([name, { dims, data }]) => [name, { shape: dims, data }]))))[0].data;
  },
  async ort(bytes) {
    const ort = await import('/ort/ort.wasm.min.mjs');
    Object.assign(ort.env.wasm, { numThreads: 1, wasmPaths: '/ort/' });
    const session = await ort.InferenceSession.create(bytes, { executionProviders: ['wasm'] });
    return async (inputs) => Object.values(await session.run(Object.fromEntries(Object.entries(inputs).map(([name, { dims, data }]) => [name, new ort.Tensor(data instanceof Int32Array ? 'int32' : 'float32', data, dims)]))))[0].data;
  },
};
globalThis.measure = async (library, folder, shapes) => {
  const bytes = new Uint8Array(await (await fetch('/models/' + folder + '/model.onnx')).arrayBuffer());
  const inputs = Object.fromEntries(Object.entries(shapes).map(([name, shape]) => [name, fill(shape)])), begin = performance.now();
  const run = await libraries[library](bytes), opened = performance.now(), result = await run(inputs), first = performance.now(), walls = [];
  for (const end = performance.now() + 2000; performance.now() < end;) {
    const before = performance.now();
    await run(inputs);
    walls.push(performance.now() - before);
  }
  return { open: opened - begin, first: first - opened, each: walls.sort((a, b) => a - b)[walls.length >> 1], result: [...result.slice(0, 2000)] };
};
globalThis.ready = true;
`;

const server = await serve({ '/': scriptPage, '/page.mjs': { body: script }, '/dist': join(here, '../dist'), '/ort': join(here, 'node_modules/onnxruntime-web/dist'), '/models': join(here, '../../build/onnx/models') });
const browser = await openChromium();
console.log(`${'model'.padEnd(24)}${['open', 'first run', 'each run'].map((title) => `${title}, rlx / ort, ms`.padStart(30)).join('')}   apart`);
for (const { name, folder, inputs } of models) {
  const best = { rlx: {}, ort: {} };
  for (let round = 0; round < rounds; round++) {
    for (const [library, row] of Object.entries(best)) {
      const page = await browser.open(`${server.origin}/`);
      await page.waitForFunction(() => globalThis.ready);
      const { result, ...times } = await page.evaluate((given) => globalThis.measure(...given), [library, folder, inputs]);
      for (const [key, ms] of Object.entries(times)) row[key] = Math.min(row[key] ?? Infinity, ms);
      row.result = result;
      await page.close();
    }
  }
  const { rlx, ort } = best, apart = Math.max(...rlx.result.map((v, i) => Math.abs(v - ort.result[i])));
  console.log(`${name.padEnd(24)}${['open', 'first', 'each'].map((key) => `${rlx[key].toFixed(1)} / ${ort[key].toFixed(1)}`.padStart(30)).join('')}   ${apart.toExponential(1)}`);
}
await browser.close();
await server.close();
