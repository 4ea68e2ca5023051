// Pictures of a page as inputs, in Chromium: each kind of source gives the bytes that were drawn, on a GPU, on the CPU and in a worker.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ahead, graph, init } from '../../dist/index.js';
import { openChromium } from '../rig/chromium.mjs';
import { scriptPage, serve } from '../rig/serve.mjs';

const script = `
import { openProgram } from '/dist/runtime.js';
import { imageInput } from '/dist/pixels.js';

const colors = ['#ff0000', '#00ff00', '#0000ff', '#ffffff'];
/** Draws four squares, of one pixel if the side is 2. */
function draw(canvas) {
  const context = canvas.getContext('2d'), half = canvas.width / 2;
  colors.forEach((color, i) => {
    context.fillStyle = color;
    context.fillRect(half * (i % 2), half * (i >> 1), half, half);
  });
  return canvas;
}
const canvas = (side) => draw(Object.assign(document.createElement('canvas'), { width: side, height: side }));
const image = async (src, options) => {
  const made = Object.assign(new Image(), options, { src });
  await new Promise((resolve, reject) => Object.assign(made, { onload: resolve, onerror: reject }));
  return made;
};
async function video(side) {
  const from = canvas(side), made = Object.assign(document.createElement('video'), { muted: true, srcObject: from.captureStream() });
  const again = setInterval(() => draw(from), 20);
  await made.play();
  clearInterval(again);
  return made;
}

/** Sources with four squares in 2 × 2 pixels, or more where a codec needs them. */
const sources = {
  ImageData: () => canvas(2).getContext('2d').getImageData(0, 0, 2, 2),
  ImageBitmap: () => createImageBitmap(canvas(2)),
  VideoFrame: () => new VideoFrame(canvas(2), { timestamp: 0 }),
  HTMLCanvasElement: () => canvas(2),
  OffscreenCanvas: () => draw(new OffscreenCanvas(2, 2)),
  HTMLImageElement: () => image(canvas(2).toDataURL()),
  HTMLVideoElement: () => video(32),
};

globalThis.open = async (options) => {
  globalThis.program = await openProgram(await (await fetch('/plan.rlxp')).arrayBuffer(), options);
  return program.device.name;
};
globalThis.pixels = async (kind) => {
  const source = await sources[kind](), input = imageInput(program, 'main', 'x', { fit: 'stretch' });
  const { reading } = await program.run('main', { x: await input.copy(source) }, { read: ['y'] }), { values: { y } } = await reading;
  source.close?.();
  const closed = source.close ? await input.copy(source).catch(({ kind, message }) => kind + ': ' + message) : undefined;
  input.close();
  return { y: [...y], closed };
};
globalThis.refused = async (what, origin) => {
  const input = imageInput(program, 'main', 'x', { fit: 'cover' });
  const tainted = async () => {
    const made = canvas(2);
    made.getContext('2d').drawImage(await image(origin + '/other.png'), 0, 0);
    return made;
  };
  const given = { tainted, video: () => document.createElement('video'), image: () => new Image(), blob: () => new Blob([]), origin: () => image(origin + '/other.png') };
  return input.copy(await given[what]()).then(() => undefined, ({ name, kind, message }) => name + ' ' + kind + ': ' + message);
};
globalThis.ready = true;
`;

// One red pixel.
const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC', 'base64');

let server, other, browser;
before(async () => {
  await init({ worker: false, compileWorker: false, cache: false });
  const main = graph('same', (b) => b.output('y', b.input('x', 'u8', [2, 2, 3]).convert('i32')));
  const plan = await ahead({ entries: { main } }).plan();
  server = await serve({ '/': scriptPage, '/page.mjs': { body: script }, '/plan.rlxp': { body: Buffer.from(plan) }, '/dist': new URL('../../dist', import.meta.url).pathname });
  other = await serve({ '/other.png': { body: png, headers: { 'cross-origin-resource-policy': 'cross-origin' } } });
  browser = await openChromium({ args: ['--autoplay-policy=no-user-gesture-required'] });
});
after(async () => {
  await browser?.close();
  await server?.close();
  await other?.close();
});

const squares = [255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255];
/** The same of 32 × 32 pixels, averaged to 2 × 2: along an axis a square weighs 12 and its neighbour 2, by the triangle of 16 pixels around the centre of 8. */
const mixed = squares.map((_, i) => [0, 1, 2, 3].reduce((sum, square) => sum + squares[3 * square + i % 3] * [36, 6, 1][[square & 1, square >> 1].filter((at, axis) => at !== (Math.floor(i / 3) >> axis & 1)).length] / 49, 0));

for (const [place, options] of [['gpu', { on: 'gpu' }], ['cpu', { on: 'cpu' }], ['worker', { on: 'gpu', worker: true }]]) {
  test(`all kinds of pictures, and what is refused: ${place}`, async () => {
    const page = await browser.open(`${server.origin}/`);
    await page.waitForFunction(() => globalThis.ready);
    assert.equal(await page.evaluate((o) => globalThis.open(o), options), place === 'cpu' ? 'cpu' : 'webgpu');
    for (const kind of ['ImageData', 'ImageBitmap', 'VideoFrame', 'HTMLCanvasElement', 'OffscreenCanvas', 'HTMLImageElement']) {
      const { y, closed } = await page.evaluate((k) => globalThis.pixels(k), kind);
      assert.deepEqual(y, squares, kind);
      if (closed) assert.equal(closed, `closed: main: x is ${kind} that was closed: it must be open`);
    }
    const { y } = await page.evaluate(() => globalThis.pixels('HTMLVideoElement'));
    y.forEach((v, i) => assert.ok(Math.abs(v - mixed[i]) <= 3, `a video, whose colours codecs round: ${y}, not ${mixed}`));
    const refused = (what) => page.evaluate(([w, o]) => globalThis.refused(w, o), [what, other.origin]);
    assert.equal(await refused('tainted'), 'RlxError attr: main: x is HTMLCanvasElement with pixels of another origin: it must be of this one, or loaded with crossOrigin');
    assert.equal(await refused('origin'), 'RlxError attr: main: x is HTMLImageElement with pixels of another origin: it must be of this one, or loaded with crossOrigin');
    assert.equal(await refused('video'), 'RlxError missing: main: x is HTMLVideoElement without a picture: it must be loaded, and of at least one pixel');
    assert.equal(await refused('image'), 'RlxError missing: main: x is HTMLImageElement without a picture: it must be loaded, and of at least one pixel');
    assert.match(await refused('blob'), /^RlxError dtype: main: x is Blob: it must be ImageBitmap, VideoFrame, /);
    assert.deepEqual(page.problems.filter((text) => !text.includes('/other.png')), []);
    await page.close();
  });
}
