// Pictures as inputs, on a GPU and on the CPU: from bytes in memory, as Node has no others. test/browser/pixels.test.mjs has those of pages.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { graph, init, program } from '../dist/index.js';
import { imageInput } from '../dist/pixels.js';
import { countGPU } from './rig/counter.mjs';
import { openDawn } from './rig/dawn.mjs';

const resized = JSON.parse(readFileSync(new URL('testdata/pixels.json', import.meta.url)));

/** A graph that returns its input in f32. */
const same = (dtype, shape) => graph('same', (b) => b.output('y', b.input('x', dtype, shape).convert('f32').mul(1)));
const entries = () => ({
  cover: same('f32', [3, 4, 5]), contain: same('u8', [5, 4]), stretch: same('f16', [5, 7, 3]),
  bytes: same('u8', [3, 3, 3, 3]), colors: same('u8', [1, 2, 4]), luma: same('f32', [1, 2, 1]), odd: same('i32', [2, 2, 4]), flat: same('u8', [3, 5]), rows: same('u8', [2, 5, 5, 2]), adding: adding(),
});

/** A graph that adds up its inputs. */
const adding = () => graph('adding', (b) => {
  const total = b.state('total', 'f32', []);
  b.setState('total', total.add(b.input('x', 'u8', [1, 2]).convert('f32').sum()));
});

/** A picture with channel c of pixel (x, y) by a function; alpha is channel 3. */
const picture = (width, height, of) => ({ width, height, data: Uint8ClampedArray.from({ length: 4 * width * height }, (_, i) => of((i >> 2) % width, Math.floor((i >> 2) / width), i & 3)) });
/** The picture of testdata/pixels.py. */
const slanted = (width, height) => picture(width, height, (x, y, c) => c === 3 ? 255 : (37 * x + 91 * y + 50 * c) % 256);

let dawn, counter, places;
before(async () => {
  dawn = await openDawn();
  counter = countGPU();
  await init({ worker: false, compileWorker: false, cache: false });
  const made = entries();
  places = { gpu: await program({ entries: made }, { device: dawn.device, worker: false, inFlight: 16 }), cpu: await program({ entries: made }, { on: 'cpu', worker: false }) };
});
after(() => {
  for (const one of Object.values(places)) one.close();
  dawn.close();
});

/** Runs an entry on pictures. */
async function run(on, entry, sources, options) {
  const input = imageInput(places[on], entry, 'x', options);
  const { reading } = await places[on].run(entry, { x: await input.copy(sources) }, { read: ['y'] });
  const { y } = (await reading).values;
  input.close();
  return [...y];
}

const near = (got, want, within, what) => {
  assert.equal(got.length, want.length);
  got.forEach((v, i) => assert.ok(Math.abs(v - want[i]) <= within, `${what}: element ${i} is ${v}, not ${want[i]}`));
};

for (const on of ['gpu', 'cpu']) {
  test(`pictures of other sizes are those of Pillow, on the ${on}`, async () => {
    near(await run(on, 'cover', slanted(17, 9), { fit: 'cover', channels: 'first' }), resized.cover.map((v) => v / 255), 1e-5, 'cover');
    near(await run(on, 'contain', slanted(9, 30), { fit: 'contain' }), resized.contain, 0.5 + 1e-2, 'contain');
    near(await run(on, 'stretch', slanted(3, 2), { fit: 'stretch' }), resized.stretch.map((v) => v / 255), 2 ** -11 + 1e-5, 'stretch');
  });

  test(`bytes of pictures of the input's size are exact, on the ${on}`, async () => {
    const three = [0, 1, 2].map((k) => picture(3, 3, (x, y, c) => c === 3 ? 255 : (60 * k + 20 * y + 7 * x + c) % 256)); // 27 bytes each: words have bytes of two
    const want = three.flatMap(({ data }) => [...data].filter((_, i) => i % 4 < 3));
    assert.deepEqual(await run(on, 'bytes', three), want);
    assert.deepEqual(await run(on, 'bytes', three.toReversed(), { fit: 'cover' }), want.slice(54).concat(want.slice(27, 54), want.slice(0, 27)));
  });

  test(`alpha is kept in four channels, and in fewer lies over black, on the ${on}`, async () => {
    const half = picture(2, 1, (x, _, c) => [[200, 100, 50, 128], [10, 20, 30, 255]][x][c]);
    assert.deepEqual(await run(on, 'colors', half), [...half.data]);
    const lumaOf = (r, g, b) => 0.299 * r + 0.587 * g + 0.114 * b;
    near(await run(on, 'luma', half), [lumaOf(200, 100, 50) * 128 / 255, lumaOf(10, 20, 30)].map((v) => v / 255), 1e-5, 'luma');
  });

  test(`runs see the pictures that their tensor had, on the ${on}`, async () => {
    await places[on].write('total', 0);
    const input = imageInput(places[on], 'adding', 'x');
    for (let k = 0; k < 24; k++) await places[on].run('adding', { x: await input.copy(picture(2, 1, (_, __, c) => c === 3 ? 255 : k)) }); // more than share a submission
    assert.deepEqual([...await places[on].read('total')], [2 * 23 * 12]);
    const last = await input.copy(picture(2, 1, () => 255));
    assert.deepEqual([...await last.data()], [255, 255]);
    input.close();
    await assert.rejects(input.copy(picture(2, 1, () => 1)), { kind: 'closed', message: 'the image input was closed' });
    await assert.rejects(places[on].run('adding', { x: last }), { kind: 'closed' });
  });
}

test('copies create nothing after the first on the GPU, and read nothing back', async () => {
  const input = imageInput(places.gpu, 'contain', 'x', { fit: 'contain' });
  await input.copy(slanted(9, 30));
  counter.take();
  for (let i = 0; i < 3; i++) await input.copy(slanted(8, 20 + i));
  const calls = counter.take();
  for (const call of ['device.createBuffer', 'device.createTexture', 'device.createComputePipelineAsync', 'buffer.mapAsync']) assert.equal(calls[call] ?? 0, 0, call);
  assert.equal(calls['queue.submit'], 3);
  input.close();
});

/** What is refused: the call, and the error's kind and text. */
const refusals = [
  ['no program', () => imageInput(undefined, 'cover', 'x'), 'missing', /^imageInput: the program is Undefined: it must be a Program$/],
  ['an unknown entry', (p) => imageInput(p, 'covers', 'x'), 'name', /^imageInput: the plan has no entry covers: there are cover, /],
  ['an unknown input', (p) => imageInput(p, 'cover', 'z'), 'name', /^imageInput: cover has no input z: there are x$/],
  ['an unknown option', (p) => imageInput(p, 'cover', 'x', { size: 3 }), 'name', /^imageInput has no option size: there are fit, channels$/],
  ['an unknown fit', (p) => imageInput(p, 'cover', 'x', { fit: 'fill' }), 'name', /^imageInput: fit cannot be fill: there are cover, contain, stretch$/],
  ['another element type', (p) => imageInput(p, 'odd', 'x'), 'dtype', /^odd: x is i32: as a picture it must be u8, f16 or f32$/],
  ['another number of channels', (p) => imageInput(p, 'rows', 'x'), 'shape', /^rows: x is u8\[2,5,5,2\]: as a picture it must be \[height, width\], \[height, width, channels\] or \[batch, height, width, channels\], of 1, 3 or 4 channels$/],
  ['another size', (p) => imageInput(p, 'contain', 'x').copy(slanted(6, 5)), 'shape', /^contain: x is a picture of 6 × 5 pixels: it must be 4 × 5, or the option fit given$/],
  ['too few pictures', (p) => imageInput(p, 'bytes', 'x').copy([slanted(3, 3)]), 'shape', /^bytes: x has 1 pictures: it must be u8\[3,3,3,3\] of 3$/],
  ['no picture', (p) => imageInput(p, 'contain', 'x').copy({}), 'dtype', /^contain: x is Object: it must be ImageBitmap, VideoFrame, ImageData, /],
  ['nothing', (p) => imageInput(p, 'contain', 'x').copy(), 'dtype', /^contain: x is Undefined: /],
  ['too few bytes', (p) => imageInput(p, 'contain', 'x').copy({ width: 4, height: 5, data: new Uint8Array(60) }), 'shape', /^contain: x is given 60 bytes: a picture of 4 × 5 pixels has 80$/],
];

for (const [what, call, kind, message] of refusals) {
  test(`${what} is refused`, () => assert.rejects(async () => call(places.cpu), { name: 'RlxError', kind, message }));
}

test('a picture over the size of textures is refused, and the program goes on', async () => {
  const input = imageInput(places.gpu, 'flat', 'x', { fit: 'stretch' });
  await assert.rejects(input.copy(picture(8193, 1, () => 0)), { kind: 'limit', message: /^flat: x is a picture of 8193 × 1 pixels: it must be of at most 8192 by 8192$/ });
  await input.copy(picture(8192, 1, () => 0));
  input.close();
});

test('a closed program refuses copies', async () => {
  const one = await program({ entries: { main: same('u8', [2, 2]) } }, { device: dawn.device, worker: false }), input = imageInput(one, 'main', 'x');
  one.close();
  await assert.rejects(input.copy(picture(2, 2, () => 0)), { kind: 'closed', message: 'the program was closed' });
  input.close();
});
