// The demo, end to end, in Chromium.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { axe, crashGPU, hide } from '../../../js/test/rig/chromium.mjs';
import { countGPU } from '../../../js/test/rig/counter.mjs';
import { traceTasks } from './tasks.mjs';
import { accuracyOf, colored, draw, figure, inked, openDemo, serveDemo, stepsOf } from './page.mjs';

const { drawings } = JSON.parse(readFileSync(new URL('../../testdata/drawings.json', import.meta.url)));
const curves = JSON.parse(readFileSync(new URL('../../testdata/curves.json', import.meta.url)));
const shots = new URL('../../../build/demo/', import.meta.url).pathname;

let server;
before(async () => {
  mkdirSync(shots, { recursive: true });
  server = await serveDemo();
});
after(() => server.close());

test('trains on WebGPU to 94 %, moves at once, and keeps the page free', async (t) => {
  const page = await openDemo(t, server, { viewport: { width: 1280, height: 900 } });
  assert.equal(await page.locator('#device-kind').textContent(), 'WebGPU');
  assert.match(await page.locator('#device').textContent(), /swiftshader/i);
  assert.match(await page.locator('#dispatches').textContent(), /1 submission/);
  const blank = await colored(page, 'loss-chart', '--loss');
  assert.equal(blank, 0);
  const tasks = await traceTasks(page);
  await page.click('#train');
  await page.waitForFunction(() => document.getElementById('step').textContent !== '0', null, { timeout: 1000, polling: 20 });
  await accuracyOf(page, 94);
  const longest = await tasks.longest();
  assert.ok(longest.ms < 16, `a task of the main thread took ${longest.ms.toFixed(1)} ms of it: ${longest.what}`);
  assert.ok(await colored(page, 'loss-chart', '--loss') > 200, 'the curve of losses');
  assert.ok(await colored(page, 'accuracy-chart', '--right') > 200, 'the curve of accuracy');
  assert.ok(await inked(page, 'filters') > 1000, 'the filters');
  const mistakes = await page.locator('#mistakes-list li').count();
  assert.ok(mistakes > 0 && mistakes <= 22, `${mistakes} mistakes`);
  assert.ok(await figure(page, 'speed') > 0);
  const three = drawings.find(({ digit }) => digit === 3);
  await draw(page, three.strokes);
  await page.waitForFunction(() => /reads 3/.test(document.getElementById('verdict').textContent));
  await page.click('#train');
  await page.waitForFunction(() => document.getElementById('train').textContent === 'Train');
  const step = await figure(page, 'step');
  await page.waitForTimeout(500);
  assert.equal(await figure(page, 'step'), step, 'paused');
  await page.evaluate(() => scrollTo(0, 0));
  await page.screenshot({ path: `${shots}desktop.png`, fullPage: true });
  assert.deepEqual(await axe(page), []);
  assert.deepEqual(page.problems, []);
});

for (const [webgpu, reason] of [['absent', /navigator\.gpu is missing/], ['no adapter', /no adapter/]]) {
  test(`trains on the CPU to 94 %, and says why, with WebGPU ${webgpu}`, async (t) => {
    const page = await openDemo(t, server, { webgpu });
    assert.equal(await page.locator('#device-kind').textContent(), 'CPU');
    assert.match(await page.locator('#device-reason').textContent(), reason);
    await page.click('#train');
    if (webgpu === 'no adapter') return stepsOf(page, 20);
    await accuracyOf(page, 94);
    await page.click('#show-kernels');
    await page.getByText('for a GPU; this page runs on the CPU').waitFor();
    await page.click('#close-kernels');
    assert.deepEqual(await axe(page), []);
    assert.deepEqual(page.problems, []);
  });
}

test('works on a phone: 360 pixels, touch, dark', async (t) => {
  const page = await openDemo(t, server, { viewport: { width: 360, height: 780 }, touch: true, reducedMotion: true, prepare: (one) => one.emulateMedia({ colorScheme: 'dark' }) });
  await page.tap('#train');
  await stepsOf(page, 40);
  const wide = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
  assert.ok(wide[0] <= wide[1], `${wide[0]} pixels in ${wide[1]}`);
  await page.tap('#take');
  await page.waitForFunction(() => /reads \d\. It is \d\./.test(document.getElementById('verdict').textContent));
  assert.ok(await inked(page, 'counts') > 1000, 'the counts');
  await page.tap('#clear');
  const pad = await page.locator('#pad').boundingBox();
  const session = await page.context().newCDPSession(page);
  const touch = (type, points) => session.send('Input.dispatchTouchEvent', { type, touchPoints: points.map(([x, y]) => ({ x: pad.x + x * pad.width, y: pad.y + y * pad.height })) });
  const scrolled = await page.evaluate(() => scrollY);
  await touch('touchStart', [[0.5, 0.15]]);
  for (let i = 1; i <= 10; i++) await touch('touchMove', [[0.5, 0.15 + i * 0.07]]);
  await touch('touchEnd', []);
  await page.waitForFunction(() => /reads \d/.test(document.getElementById('verdict').textContent));
  assert.equal(await page.evaluate(() => scrollY), scrolled, 'drawing does not scroll');
  const small = await page.evaluate(() => [...document.querySelectorAll('button, .choice label, .button')].filter((one) => one.checkVisibility() && one.getBoundingClientRect().height < 40).map((one) => one.id));
  assert.deepEqual(small, [], 'large enough for a finger');
  await page.screenshot({ path: `${shots}phone.png`, fullPage: true });
  assert.deepEqual(await axe(page), []);
  assert.deepEqual(page.problems, []);
});

test('the learning rate, and a step, create nothing; the WGSL shown is the WGSL that runs', async (t) => {
  const recordShaders = () => {
    globalThis.shaders = new Set();
    const original = GPUDevice.prototype.createShaderModule;
    GPUDevice.prototype.createShaderModule = function (descriptor) {
      globalThis.shaders.add(descriptor.code);
      return original.call(this, descriptor);
    };
  };
  const page = await openDemo(t, server, { path: '/?worker=off', init: [countGPU, recordShaders] });
  await page.click('#train');
  await stepsOf(page, 6);
  const { counts, live } = await page.evaluate(async () => {
    const slider = document.getElementById('rate'), before = gpuCounter.liveBuffers();
    gpuCounter.take();
    for (let i = 0; i < 20; i++) {
      slider.value = -4 + i / 8;
      slider.dispatchEvent(new Event('input'));
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    return { counts: gpuCounter.take(), live: gpuCounter.liveBuffers() - before };
  });
  assert.equal(live, 0);
  assert.deepEqual(Object.keys(counts).filter((name) => /^device\./.test(name)), ['device.createCommandEncoder']);
  assert.ok(counts['queue.submit'] > 5);
  assert.equal(counts['device.createCommandEncoder'], counts['queue.submit']);
  await page.click('#train');
  await page.click('#show-kernels');
  const buttons = page.locator('#kernel-list button'), shown = [];
  for (let i = 0; i < await buttons.count(); i++) {
    await buttons.nth(i).click();
    shown.push(await page.evaluate(() => document.getElementById('kernel-source').textContent));
  }
  const ran = await page.evaluate(() => [...globalThis.shaders]);
  assert.deepEqual(shown.sort(), ran.sort());
  await page.screenshot({ path: `${shots}kernels.png` });
  assert.deepEqual(await axe(page), []);
  assert.deepEqual(page.problems, []);
});

test('the same seed gives the losses of the meaning', async (t) => {
  const page = await openDemo(t, server);
  for (const [model, steps] of [['mlp', 50], ['cnn', 50]]) {
    const losses = await page.evaluate(async ([name, n, { rate, seed }]) => {
      const [{ Engine, open }, { loadDigits }] = await Promise.all([import('/engine.js'), import('/digits.js')]);
      const { session } = await open(name, 'gpu'), engine = new Engine(session, name, await loadDigits()), all = [];
      engine.rate = rate;
      await engine.reset(seed);
      await engine.train({ steps: n, onLosses: (_, some) => all.push(...some) });
      engine.close();
      return all;
    }, [model, steps, curves]);
    assert.equal(losses.length, steps);
    losses.forEach((loss, i) => assert.ok(Math.abs(loss - curves.losses[model][i]) < 1e-4, `${model}, step ${i}: ${loss}, not ${curves.losses[model][i]}`));
  }
});

test('goes on for ten seconds out of sight', async (t) => {
  const page = await openDemo(t, server, { background: true });
  await page.click('#train');
  await stepsOf(page, 5);
  await hide(page, 10_000);
  const hidden = await page.evaluate(() => document.getElementById('step').textContent);
  await page.waitForTimeout(2000);
  const shown = await figure(page, 'step');
  assert.ok(Number(hidden.replace(',', '')) > 40, `${hidden} steps when it was seen again`);
  assert.ok(shown > Number(hidden.replace(',', '')), 'it goes on');
  assert.deepEqual(page.problems, []);
});

test('a lost device is told, with the steps that are gone, and one can start again', async (t) => {
  const page = await openDemo(t, server);
  await page.click('#train');
  await stepsOf(page, 20);
  await crashGPU(page);
  await page.locator('#problem').waitFor({ state: 'visible' });
  assert.equal(await page.locator('#problem-kind').textContent(), 'lost:');
  assert.match(await page.locator('#problem-text').textContent(), /\d\d+ steps since the state was last saved are gone/);
  assert.deepEqual(await axe(page), []);
  await page.click('#reopen');
  await page.waitForFunction(() => !document.getElementById('train').disabled, null, { timeout: 30_000 });
  assert.ok(await page.locator('#problem').isHidden());
  await page.click('#train');
  await stepsOf(page, 5);
});

test('the GPU and the CPU run side by side to the same losses', async (t) => {
  const page = await openDemo(t, server);
  await page.click('#race');
  await page.waitForFunction(() => /\.$/.test(document.getElementById('race-text').textContent), null, { timeout: 120_000 });
  assert.match(await page.locator('#race-text').textContent(), /^Here the .PU is .* differ by at most \de-[5-9]\./);
  for (const where of ['gpu', 'cpu']) {
    const [steps, speed, loss] = (await page.locator(`#race-${where} td`).allTextContents()).map(Number);
    assert.ok(steps > 5 && speed > 0 && loss > 0 && loss < 2.6, `${where}: ${steps} ${speed} ${loss}`);
  }
  assert.deepEqual(page.problems, []);
});

test('weights are saved and loaded, by keyboard where there is one', async (t) => {
  const page = await openDemo(t, server);
  await page.focus('input[name=model]:checked');
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'train');
  await page.keyboard.press('Enter');
  await page.focus('#rate');
  await page.keyboard.press('ArrowRight');
  assert.equal(await page.locator('#rate-value').textContent(), '0.0022');
  await stepsOf(page, 30);
  await page.click('#reset');
  await page.waitForFunction(() => Number(document.getElementById('step').textContent) < 20);
  await stepsOf(page, 5);
  assert.equal(await page.locator('#train').textContent(), 'Pause', 'a reset does not end the training');
  await accuracyOf(page, 60);
  await page.click('#train');
  await page.waitForFunction(() => document.getElementById('train').textContent === 'Train');
  const learned = await figure(page, 'accuracy');
  const [download] = await Promise.all([page.waitForEvent('download'), page.click('#save')]);
  assert.equal(download.suggestedFilename(), 'digits-mlp.safetensors');
  const file = await download.path();
  await page.click('#reset');
  await page.waitForFunction(() => document.getElementById('step').textContent === '0' && parseFloat(document.getElementById('accuracy').textContent) < 40);
  await page.setInputFiles('#load', file);
  await page.waitForFunction((want) => parseFloat(document.getElementById('accuracy').textContent) === want, learned);
  assert.deepEqual(page.problems, []);
});

test('the runtime alone trains to 94 %, without WebAssembly, and tells of a lost device', async (t) => {
  const page = await openDemo(t, server, { path: '/small.html' }), from = server.requests.length;
  await page.click('#train');
  await page.waitForFunction(() => /% of the test digits/.test(document.getElementById('result').textContent), null, { timeout: 150_000 });
  const result = await page.locator('#result').textContent();
  assert.ok(parseFloat(result) >= 94, result);
  assert.deepEqual(server.requests.slice(from).filter((path) => /wasm|index\.js/.test(path)), []);
  assert.deepEqual(await axe(page), []);
  await page.click('#train');
  await page.waitForFunction(() => /^step/.test(document.getElementById('result').textContent));
  await crashGPU(page);
  await page.locator('#problem').waitFor({ state: 'visible' });
  assert.match(await page.locator('#problem').textContent(), /^lost: .*steps since the state was last saved are gone/);
});
