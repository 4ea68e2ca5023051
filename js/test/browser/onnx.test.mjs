// ONNX models of Blobs, as files that a user chose are, in Chromium, on a GPU and on the CPU.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { openChromium } from '../rig/chromium.mjs';
import { arraysOf, perceptron, perceptronOf } from '../rig/onnx.mjs';
import { scriptPage, serve, strictCSP } from '../rig/serve.mjs';

const script = `
import { openONNX } from '/dist/onnx.js';

globalThis.runModel = async (name, on, inputs) => {
  const model = await openONNX(await (await fetch('/' + name)).blob(), { program: { on } }), given = {}, got = {};
  for (const [key, { dims, list, integer }] of Object.entries(inputs)) given[key] = { shape: dims, data: integer ? Int32Array.from(list) : Float32Array.from(list) };
  for (const [key, { shape, data }] of Object.entries(await model.run(given))) got[key] = { dims: shape, list: [...data] };
  const { device } = await model.program({ on });
  const failed = await openONNX(new Blob(['no model'])).then(() => '', ({ kind }) => kind);
  model.close();
  return { got, device: device.name, failed };
};
globalThis.ready = true;
`;

const stored = arraysOf(readFileSync(new URL('../../../ir/format/onnx/testdata/microsoft.npz', import.meta.url)));
const mlp = perceptron(), x = Float32Array.from({ length: 48 }, (_, i) => Math.sin(i));
const names = ['nbits_4', 'several', 'grouped'], integers = (data) => data instanceof BigInt64Array || data instanceof Int32Array;
/** The inputs or outputs of a stored case. */
const part = (name, prefix) => Object.fromEntries([...stored].filter(([key]) => key.startsWith(`${name}/${prefix}/`)).map(([key, { dims, data }]) => [key.split('/')[2], { dims, list: Array.from(data, Number), integer: integers(data) }]));
const cases = [['mlp', mlp.bytes, { x: { dims: [3, 16], list: [...x] } }, { y: { dims: [3, 3], list: perceptronOf(mlp.weights, x) } }],
  ...names.map((name) => [name, stored.get(`${name}/model`).data, part(name, 'in'), part(name, 'out')])];

let server, browser;
before(async () => {
  const files = Object.fromEntries(cases.map(([name, bytes]) => [`/${name}`, { body: Buffer.from(bytes) }]));
  server = await serve({ '/': scriptPage, '/page.mjs': { body: script }, ...files, '/dist': new URL('../../dist', import.meta.url).pathname }, { csp: strictCSP });
  browser = await openChromium();
});
after(async () => {
  await browser?.close();
  await server?.close();
});

for (const on of ['gpu', 'cpu']) {
  test(`models of Blobs run on the ${on}`, async () => {
    const page = await browser.open(`${server.origin}/`);
    await page.waitForFunction(() => globalThis.ready);
    for (const [name, , inputs, want] of cases) {
      const { got, device, failed } = await page.evaluate((given) => globalThis.runModel(...given), [name, on, inputs]);
      assert.deepEqual([device, failed], [on === 'gpu' ? 'webgpu' : 'cpu', 'syntax']);
      for (const [key, { dims, list }] of Object.entries(want)) {
        assert.deepEqual(got[key].dims, dims, `${name}: ${key}`);
        got[key].list.forEach((v, i) => assert.ok(Math.abs(v - list[i]) <= 1e-4 * Math.max(1, Math.abs(list[i])), `${name}: ${key}: element ${i} is ${v}, not ${list[i]}`));
      }
    }
    assert.deepEqual(page.problems, []);
    await page.close();
  });
}
