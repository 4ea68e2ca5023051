// The demo, end to end, in Chromium. On SwiftShader a network makes some ten steps a second, and is trained until it
// has clearly learned; to 94 % it is trained on the CPU, and on WebGPU in Firefox (others.test.mjs). What a page shows
// wherever it computes is tested on the CPU, as SwiftShader compiles for seconds, and what it does while it trains, by small networks.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { axe, crashGPU, hide } from '../../../js/test/rig/chromium.mjs';
import { decodeSafetensors, encodeSafetensors } from '../../../js/dist/safetensors.js';
import { countGPU } from '../../../js/test/rig/counter.mjs';
import { demoOptions } from '../../../js/serve.mjs';
import { longestTask } from './tasks.mjs';
import { accuracyOf, bottomOf, colored, draw, figure, inked, openDemo, pause, readyOf, restart, serveDemo, serveSmall, shots, stepsOf } from './page.mjs';

const { drawings } = JSON.parse(readFileSync(new URL('../../testdata/drawings.json', import.meta.url)));
const curves = JSON.parse(readFileSync(new URL('../../testdata/curves.json', import.meta.url)));

let server, small;
before(async () => { [server, small] = await Promise.all([serveDemo(), serveSmall()]); });
after(() => Promise.all([server.close(), small.close()]));

/** Collects the digits that a page shows from its beginning on: a slow machine may have shown all before the page is ready. */
function watchDigits() {
  globalThis.digits = new Set();
  const look = (changes) => changes.forEach(({ target }) => target.id === 'counts' && !/nothing yet/.test(target.ariaLabel) && digits.add(target.ariaLabel));
  new MutationObserver(look).observe(document, { subtree: true, attributeFilter: ['aria-label'] });
}

test('there is something to see on the first screen, and it moves, before anyone trains or draws', async (t) => {
  const page = await openDemo(t, server, { webgpu: 'absent', init: [watchDigits] });
  for (const id of ['pad', 'bars', 'train', 'accuracy']) assert.ok(await bottomOf(page, id) < 700, `${id} ends at ${await bottomOf(page, id)}`);
  assert.match(await page.locator('#verdict').textContent(), /^It reads \d\. The digit is \d\. Not trained yet\.$/);
  assert.ok(await inked(page, 'pad') > 10_000, 'a digit in the pad');
  assert.ok(await inked(page, 'wall') > 10_000, 'the digits to learn from');
  assert.ok(await page.locator('#charts').isHidden(), 'no empty charts');
  await page.waitForFunction(() => digits.size > 1, null, { timeout: 60_000, polling: 100 });
  await page.click('#clear');
  await page.waitForTimeout(3000);
  assert.match(await page.locator('#counts').getAttribute('aria-label'), /nothing yet/, 'what one does oneself stays');
  assert.equal(await page.locator('#verdict').textContent(), 'Draw a digit.');
  await page.waitForFunction(() => /linear\(b\.param\('w1'/.test(document.getElementById('code').textContent));
  const links = await page.locator('a').evaluateAll((all) => all.map(({ href }) => href));
  for (const link of ['https://github.com/rlx-go/rlx', 'https://www.npmjs.com/package/@rlx-go/rlx']) assert.ok(links.includes(link), link);
  assert.deepEqual(await axe(page), []);
  assert.deepEqual(page.problems, []);
});

test('begins to learn by itself, until it is paused, and in this tab not again', async (t) => {
  const page = await openDemo(t, small, { begins: true });
  await stepsOf(page, 1);
  assert.equal(await page.locator('#train').textContent(), 'Pause');
  await pause(page);
  const steps = await figure(page, 'step');
  await page.reload();
  await readyOf(page);
  await page.waitForTimeout(500);
  assert.equal(await figure(page, 'step'), steps);
  const calm = await openDemo(t, server, { webgpu: 'absent', begins: true, reducedMotion: true });
  await readyOf(calm);
  await calm.waitForTimeout(500);
  assert.equal(await calm.locator('#step').textContent(), '0', 'not where motion is unwelcome');
  assert.deepEqual([...page.problems, ...calm.problems], []);
});

test('goes on where the last visit ended, unless it is to begin again, or what was kept is damaged', async (t) => {
  const page = await openDemo(t, server, { webgpu: 'absent' }), text = (id) => page.locator(`#${id}`).textContent();
  const again = async () => {
    await page.reload();
    await readyOf(page);
  };
  assert.ok(await page.locator('#goes-on').isHidden(), 'a first visit begins');
  await page.click('#train');
  await stepsOf(page, 200);
  await pause(page);
  const steps = await figure(page, 'step'), before = [await text('accuracy'), await text('loss')];
  await again();
  assert.equal(await figure(page, 'step'), steps);
  assert.deepEqual([await text('accuracy'), await text('loss')], before);
  assert.match(await page.getAttribute('#loss-chart', 'aria-label'), new RegExp(`at step ${steps}$`));
  assert.match(await text('goes-on'), /^It goes on from step [\d,]+ of your last visit/);
  await page.click('#train');
  await stepsOf(page, steps + 10);
  await pause(page);
  await page.click('#reset');
  await page.waitForFunction(() => document.getElementById('step').textContent === '0');
  assert.ok(await page.locator('#goes-on').isHidden());
  await again();
  assert.equal(await figure(page, 'step'), 0, 'what began again is not kept');
  await page.click('#train');
  await stepsOf(page, 20);
  await pause(page);
  await page.evaluate(() => new Promise((resolve) => {
    indexedDB.open('rlx-networks').onsuccess = ({ target: { result: database } }) => {
      const all = database.transaction('networks', 'readwrite').objectStore('networks');
      all.get('digits-mlp').onsuccess = ({ target: { result } }) => {
        result.tensors.w1.data[0] = NaN;
        all.put(result, 'digits-mlp').onsuccess = () => { database.close(); resolve(); };
      };
    };
  }));
  await again();
  assert.equal(await figure(page, 'step'), 0, 'a damaged network is none');
  assert.deepEqual(page.problems, []);
});

test('trains on WebGPU, moves at once, and keeps the page free', async (t) => {
  const page = await openDemo(t, server);
  assert.equal(await page.locator('#device-kind').textContent(), 'WebGPU');
  assert.match(await page.locator('#device').textContent(), /swiftshader/i);
  assert.match(await page.locator('#dispatches').textContent(), /\d kernels, 1 submission/);
  await page.evaluate(() => {
    globalThis.readings = new Set();
    globalThis.accuracies = [];
    const accuracy = document.getElementById('accuracy');
    new MutationObserver(() => accuracies.push(parseFloat(accuracy.textContent))).observe(accuracy, { childList: true });
    new MutationObserver(() => readings.add(document.getElementById('bars').textContent)).observe(document.getElementById('bars'), { subtree: true, characterData: true, childList: true });
  });
  const longest = await longestTask(page, async (attempt) => {
    if (attempt) await restart(page);
    await page.click('#train');
    await page.waitForFunction(() => document.getElementById('step').textContent !== '0', null, { timeout: 1000, polling: 20 });
    const shown = await page.locator('#counts').getAttribute('aria-label');
    await accuracyOf(page, 88);
    assert.equal(await page.locator('#counts').getAttribute('aria-label'), shown, 'the digit stays while it trains');
  });
  t.diagnostic(longest.text);
  assert.ok(longest.ms < 16, longest.text);
  assert.ok(await page.evaluate(() => readings.size) > 10, 'its reading is live');
  const accuracies = await page.evaluate(() => globalThis.accuracies);
  assert.ok(accuracies.length > 2 && accuracies.every((right) => right >= 5 && right <= 100), accuracies.join());
  assert.ok(await colored(page, 'loss-chart', '--loss') > 200, 'the curve of losses');
  assert.ok(await colored(page, 'accuracy-chart', '--right') > 200, 'the curve of accuracy');
  assert.ok(await inked(page, 'filters') > 1000, 'the filters');
  assert.match(await page.locator('#filters').getAttribute('aria-label'), /the 24 of 128 units that have changed most/);
  const mistakes = await page.locator('#mistakes-list li').count();
  assert.ok(mistakes > 0 && mistakes <= 22, `${mistakes} mistakes`);
  assert.ok(await figure(page, 'speed') > 0);
  const three = drawings.find(({ digit }) => digit === 3);
  await draw(page, three.strokes);
  await page.waitForFunction(() => /reads 3/.test(document.getElementById('verdict').textContent));
  await page.waitForFunction(() => document.getElementById('status').textContent === 'It reads 3.', null, { timeout: 5000 });
  await pause(page);
  const step = await figure(page, 'step');
  await page.waitForTimeout(500);
  assert.equal(await figure(page, 'step'), step, 'paused');
  await page.evaluate(() => scrollTo(0, 0));
  await page.screenshot({ path: `${shots}desktop.png`, fullPage: true });
  assert.deepEqual(await axe(page), []);
  assert.deepEqual(page.problems, []);
});

for (const [webgpu, reason] of [['absent', /WebGPU is not here/], ['no adapter', /no adapter/]]) {
  test(`trains on the CPU to 94 %, and says why, with WebGPU ${webgpu}`, async (t) => {
    const page = await openDemo(t, server, { webgpu });
    assert.equal(await page.locator('#device-kind').textContent(), 'CPU');
    assert.match(await page.locator('#device-reason').textContent(), reason);
    await page.click('#train');
    if (webgpu === 'no adapter') return stepsOf(page, 20);
    await accuracyOf(page, 94);
    assert.equal(await page.locator('#device').textContent(), 'WebAssembly, in a worker');
    assert.doesNotMatch(await page.locator('body').innerText(), /kernels|submission|CPU\s+CPU/i);
    assert.match(await page.locator('#race-note').textContent(), /^There is no GPU to race here\. WebGPU is not here/i);
    for (const id of ['race', 'race-table']) assert.ok(await page.locator(`#${id}`).isHidden(), id);
    await page.click('#show-kernels');
    await page.waitForFunction(() => /^\d+ kernels for a GPU$/.test(document.getElementById('kernels-title')?.textContent));
    assert.match(await page.locator('#kernels-text').textContent(), /Here the CPU computes/);
    await page.click('#close-kernels');
    await page.evaluate(() => scrollTo(0, 0));
    await page.screenshot({ path: `${shots}cpu.png`, fullPage: true });
    assert.deepEqual(await axe(page), []);
    assert.deepEqual(page.problems, []);
  });
}

/** Records what is written on each canvas since it was last cleared. */
function recordTexts() {
  globalThis.texts = {};
  const { clearRect, fillText } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.clearRect = function (...place) {
    texts[this.canvas.id] = [];
    return clearRect.apply(this, place);
  };
  CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
    texts[this.canvas.id]?.push(text);
    return fillText.call(this, text, ...place);
  };
}

test('works on a phone: 360 pixels, touch, dark', async (t) => {
  const page = await openDemo(t, server, { webgpu: 'absent', viewport: { width: 360, height: 740 }, touch: true, reducedMotion: true, init: [recordTexts], prepare: (one) => one.emulateMedia({ colorScheme: 'dark' }) });
  for (const [id, most] of [['pad', 500], ['bars', 500], ['train', 740]]) assert.ok(await bottomOf(page, id) <= most, `${id} ends at ${await bottomOf(page, id)}`);
  assert.match(await page.locator('#verdict').textContent(), /The digit is 3\./);
  await page.waitForTimeout(3000);
  assert.match(await page.locator('#verdict').textContent(), /The digit is 3\./, 'nothing moves where motion is not wanted');
  await page.tap('#train');
  await stepsOf(page, 60);
  const marks = await page.evaluate(() => ['loss-chart', 'accuracy-chart'].map((id) => texts[id].slice(3)));
  const [zero, ...further] = marks[0].map((text) => Number(text.replace(/\D/g, '')));
  assert.ok(zero === 0 && further.length >= 1 && /^[125]0*$/.test(further[0]) && further.every((mark, i) => mark === (i + 1) * further[0]), marks[0].join());
  assert.deepEqual(marks[0], marks[1], 'both charts have one axis');
  const wide = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
  assert.ok(wide[0] <= wide[1], `${wide[0]} pixels in ${wide[1]}`);
  await page.tap('#take');
  await page.waitForFunction(() => /reads \d\. The digit is \d\./.test(document.getElementById('verdict').textContent));
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

/** Waits until the test digits were read after more steps than these, and gives after how many. */
const lookAfter = async (page, steps) => (await page.waitForFunction((least) => {
  const at = Number(/at step (\d+)/.exec(document.getElementById('accuracy-chart').ariaLabel)?.[1] ?? 0);
  return at > least && at;
}, steps, { timeout: 60_000, polling: 50 })).jsonValue();

test('the learning rate, and a step, create nothing; the WGSL shown is the WGSL that runs', async (t) => {
  const recordShaders = () => {
    globalThis.shaders = new Set();
    const original = GPUDevice.prototype.createShaderModule;
    GPUDevice.prototype.createShaderModule = function (descriptor) {
      globalThis.shaders.add(descriptor.code);
      return original.call(this, descriptor);
    };
  };
  const page = await openDemo(t, small, { path: '/digits.html?worker=off', init: [countGPU, recordShaders] });
  await page.click('#train');
  await stepsOf(page, 6);
  for (let looks = 0, last = 0; looks < 2; looks++) last = await lookAfter(page, last); // which make room for what they read
  const { counts, live } = await page.evaluate(async () => {
    const slider = document.getElementById('rate'), before = gpuCounter.liveBuffers();
    gpuCounter.take();
    const counts = {};
    for (let i = 0; i < 20 || (counts['queue.submit'] ?? 0) <= 5 && i < 600; i++) { // on a busy machine for longer
      slider.value = -4 + i % 20 / 8;
      slider.dispatchEvent(new Event('input'));
      await new Promise((resolve) => setTimeout(resolve, 100));
      for (const [name, n] of Object.entries(gpuCounter.take())) counts[name] = (counts[name] ?? 0) + n;
    }
    return { counts, live: gpuCounter.liveBuffers() - before };
  });
  assert.equal(live, 0);
  assert.deepEqual(Object.keys(counts).filter((name) => /^device\./.test(name)), ['device.createCommandEncoder']);
  assert.ok(counts['queue.submit'] > 5);
  assert.ok(Math.abs(counts['device.createCommandEncoder'] - counts['queue.submit']) <= 1, 'one may wait for other runs');
  await page.click('#train');
  await page.click('#show-kernels');
  assert.match(await page.locator('#kernels-title').textContent(), /^\d+ kernels$/);
  const labels = await page.locator('#kernel-list').innerText();
  for (const label of [/A training step/, /Matrix product\n/, /Reading your digit/, /w1, b1/, /probabilities/, /images/]) assert.match(labels, label);
  assert.doesNotMatch(labels, /[a-z]_[a-z]|undefined|choice/, 'words, not names');
  assert.equal(labels.split('\n').filter((label) => label === 'loss').length, 2, 'an output is named where it is made: in the step, and in the evaluation');
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
  const page = await openDemo(t, server, { path: '/small.html' }); // which compiles nothing of its own
  // More steps, and the CNN, whose kernels SwiftShader takes half a minute to compile, are those of curves.test.mjs.
  const losses = await page.evaluate(async ({ rate, seed }) => {
    const [{ DigitEngine, open }, { loadDigits }] = await Promise.all([import('/digit-engine.js'), import('/digit-data.js')]);
    const { program } = await open('mlp', 'gpu'), engine = new DigitEngine(program, 'mlp', await loadDigits()), all = [];
    engine.rate = rate;
    await engine.reset(seed);
    await engine.train({ steps: 20, onLosses: (_, some) => all.push(...some) });
    engine.close();
    return all;
  }, curves);
  assert.equal(losses.length, 20);
  losses.forEach((loss, i) => assert.ok(Math.abs(loss - curves.losses.mlp[i]) < 1e-4, `step ${i}: ${loss}, not ${curves.losses.mlp[i]}`));
});

test('goes on for five seconds out of sight', async (t) => {
  const page = await openDemo(t, small, { background: true });
  await page.click('#train');
  await stepsOf(page, 5);
  await page.evaluate(() => {
    globalThis.changes = []; // the steps at which it was hidden and shown
    document.addEventListener('visibilitychange', () => changes.push(Number(document.getElementById('step').textContent.replaceAll(',', ''))));
  });
  await hide(page, 5000);
  const [from, to] = await page.evaluate(() => globalThis.changes);
  await page.waitForTimeout(1000);
  const shown = await figure(page, 'step');
  // Timers of a page out of sight fire once a second: it would make 5 or so by these.
  assert.ok(to > from + 15, `${to - from} steps out of sight`);
  assert.ok(shown > to, 'it goes on');
  assert.deepEqual(page.problems, []);
  // Without a network training goes on, a lost device included; another network cannot be fetched, and the visitor can return.
  await page.context().setOffline(true);
  await crashGPU(page);
  await page.locator('#notice').waitFor({ state: 'visible' });
  assert.match(await page.locator('#notice-text').textContent(), /^The GPU was gone for a moment\./);
  await stepsOf(page, shown + 5);
  await page.click('label:has(input[value=cnn])');
  await page.locator('#problem').waitFor({ state: 'visible' });
  assert.match(await page.locator('#problem-text').textContent(), /digits-cnn\.rlxp cannot be loaded: is the device offline\?/);
  await page.context().setOffline(false);
  await page.click('label:has(input[value=mlp])');
  await readyOf(page);
  assert.ok(await figure(page, 'step') >= shown + 5);
});

test('what one network has learned is kept while another is opened; a file that comes meanwhile comes too early', async (t) => {
  const page = await openDemo(t, server, { webgpu: 'absent' });
  await page.click('#train');
  await stepsOf(page, 20);
  // A file that comes while another network is opened comes too early.
  await page.evaluate(() => {
    const files = new DataTransfer(), load = document.getElementById('load');
    files.items.add(new File([new Uint8Array(9)], 'early.safetensors'));
    document.querySelector('input[value=cnn]').click();
    load.files = files.files;
    load.dispatchEvent(new Event('change'));
  });
  await readyOf(page);
  assert.ok(await page.locator('#notice').isHidden());
  assert.deepEqual(page.problems, []);
  assert.equal(await figure(page, 'step'), 0);
  await page.click('label:has(input[value=mlp])');
  await readyOf(page);
  const kept = await figure(page, 'step');
  assert.ok(kept >= 20, `${kept} steps`);
  assert.match(await page.locator('#loss-chart').getAttribute('aria-label'), new RegExp(`at step ${kept}$`));
});

/** The number that a pattern finds in a text. */
const numberIn = (pattern, text) => Number(pattern.exec(text)[1].replaceAll(',', ''));

test('a lost device does not end the training; the third within a minute is shown, and one goes on from what was kept', async (t) => {
  const page = await openDemo(t, small, { path: '/digits.html?worker=off', init: [() => {
    const { requestDevice } = GPUAdapter.prototype;
    globalThis.devices = [];
    GPUAdapter.prototype.requestDevice = async function (descriptor) {
      const device = await requestDevice.call(this, descriptor);
      globalThis.devices.push(device);
      return device;
    };
  }] });
  await page.click('#train');
  await stepsOf(page, 20);
  await pause(page);
  const kept = await figure(page, 'step');
  await page.reload();
  await readyOf(page);
  assert.equal(await figure(page, 'step'), kept);
  await page.click('#train');
  // Twice the network goes on by itself; after the third loss within a minute the visitor is asked. Chromium would give no
  // adapter after a second crash.
  const destroy = () => page.evaluate(() => globalThis.devices.at(-1).destroy());
  for (const lose of [crashGPU, destroy]) {
    const before = await figure(page, 'step');
    await stepsOf(page, before + 5);
    await lose(page);
    await page.locator('#notice').waitFor({ state: 'visible' });
    const text = await page.locator('#notice-text').textContent(), from = numberIn(/^The GPU was gone for a moment\. The network goes on from step ([\d,]+)\./, text);
    assert.ok(from >= kept, text);
    assert.ok(await page.locator('#problem').isHidden());
    await page.click('#close-notice');
    await stepsOf(page, before + 10);
    assert.equal(await page.locator('#device-kind').textContent(), 'WebGPU');
  }
  await destroy();
  await page.locator('#problem').waitFor({ state: 'visible' });
  assert.equal(await page.locator('#problem-kind').textContent(), 'lost:');
  assert.match(await page.locator('#problem-text').textContent(), /state at step [\d,]+ was kept; [\d,]+ steps since are gone/);
  const from = numberIn(/from step ([\d,]+)/, await page.locator('#reopen').textContent());
  assert.ok(from >= kept, `it goes on from step ${from}`);
  assert.equal(await page.locator('#anew').textContent(), 'Start again at step 0');
  for (let tries = 0; await inked(page, 'pad') < 10_000; tries++) {
    assert.ok(tries < 50, 'what the GPU took with it is drawn again');
    await page.waitForTimeout(100);
  }
  assert.match(await page.locator('#verdict').textContent(), /It reads \d/);
  assert.deepEqual(await axe(page), []);
  await page.click('#anew');
  await readyOf(page);
  assert.ok(await page.locator('#problem').isHidden());
  assert.equal(await figure(page, 'step'), 0);
});

test('history brings back the page that a visitor left, which goes on, also without the GPU that it had', async (t) => {
  // A page is kept whole unless it is not to be stored, which this server otherwise asks for.
  const kept = await serveSmall({ ...demoOptions, headers: { ...demoOptions.headers, 'cache-control': 'no-cache' } });
  t.after(() => kept.close());
  const page = await openDemo(t, kept, { begins: true });
  const away = async (meanwhile) => {
    await stepsOf(page, 5);
    const before = await figure(page, 'step');
    await page.evaluate(() => addEventListener('pageshow', ({ persisted }) => { globalThis.persisted = persisted; }, { once: true }));
    await page.goto(`${kept.origin}/small.html`);
    await meanwhile();
    await page.goBack({ waitUntil: 'commit' });
    await page.waitForFunction(() => globalThis.persisted);
    await stepsOf(page, before + 5);
    assert.equal(await page.locator('#train').textContent(), 'Pause');
    assert.ok(await page.locator('#problem').isHidden());
  };
  await away(() => page.waitForTimeout(500));
  assert.ok(await page.locator('#notice').isHidden());
  await away(() => crashGPU(page));
  assert.deepEqual(page.problems, []);
});

test('the GPU and the CPU run side by side to the same losses', async (t) => {
  const page = await openDemo(t, small);
  assert.ok(await page.locator('#race-table').isHidden(), 'no table of nothing');
  await page.click('#race');
  await page.waitForFunction(() => /\.$/.test(document.getElementById('race-text').textContent), null, { timeout: 120_000 });
  assert.match(await page.locator('#race-text').textContent(), /^Here the .PU is .* differ by less than 0\.0{3,}1\.$/);
  for (const where of ['gpu', 'cpu']) {
    const [steps, speed, loss] = (await page.locator(`#race-${where} td`).allTextContents()).map(Number);
    assert.ok(steps > 5 && speed > 0 && loss > 0 && loss < 2.6, `${where}: ${steps} ${speed} ${loss}`);
  }
  assert.deepEqual(page.problems, []);
});

test('weights are saved and loaded, by keyboard where there is one', async (t) => {
  const page = await openDemo(t, small);
  await page.focus('input[name=model]:checked');
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'train');
  await page.keyboard.press('Enter');
  await page.focus('#rate');
  await page.keyboard.press('ArrowRight');
  assert.equal(await page.locator('#rate-value').textContent(), '0.0022');
  await stepsOf(page, 30);
  const fallen = page.evaluate(() => new Promise((resolve) => {
    const step = document.getElementById('step'), steps = () => Number(step.textContent.replaceAll(',', ''));
    let last = steps();
    new MutationObserver(() => steps() < last ? resolve(steps()) : last = steps()).observe(step, { childList: true, characterData: true, subtree: true });
  }));
  await page.click('#reset');
  assert.ok(await fallen < 20);
  await stepsOf(page, 5);
  assert.equal(await page.locator('#train').textContent(), 'Pause', 'a reset does not end the training');
  await accuracyOf(page, 60);
  await pause(page);
  const learned = await figure(page, 'accuracy'), steps = await figure(page, 'step');
  const [download] = await Promise.all([page.waitForEvent('download'), page.click('#save')]);
  assert.equal(download.suggestedFilename(), 'digits-mlp.safetensors');
  const file = await download.path();
  await page.click('#reset');
  await page.waitForFunction(() => document.getElementById('step').textContent === '0' && parseFloat(document.getElementById('accuracy').textContent) < 40);
  await page.setInputFiles('#load', file);
  await page.waitForFunction((want) => parseFloat(document.getElementById('accuracy').textContent) === want, learned);
  assert.equal(await figure(page, 'step'), steps);
  await page.click('#train');
  await stepsOf(page, steps + 10);
  await pause(page);
  const first = await page.evaluate(() => document.getElementById('loss-chart').ariaLabel);
  assert.ok(Number(/step (\d+)/.exec(first)[1]) === await figure(page, 'step') && await figure(page, 'loss') < 2, `it learns on: ${first}`);
  assert.deepEqual(page.problems, []);
});

/** Invalid files of the MLP's weights, made from a valid one: the fault of each, and the page's message. */
const damaged = [
  ['empty', /cut short/], ['cut', /cut short|does not fit/], ['noise', /cut short/],
  ['without w2', /w2 is missing/], ['with another', /has no w9/], ['turned', /w1 is f32\[128,64\], not f32\[64,128\]/],
  ['not a number', /b1 has elements that are no numbers/], ['before the start', /history\/count is -5/], ['of the CNN', /weights of a CNN, and this is the MLP/],
];

function damagedFiles(whole) {
  const change = (how, metadata) => {
    const { tensors } = decodeSafetensors(whole);
    how(tensors);
    return encodeSafetensors(tensors, metadata);
  };
  return {
    empty: new Uint8Array(0),
    cut: whole.slice(0, whole.length / 2),
    noise: new Uint8Array(5000).fill(255),
    'without w2': change((tensors) => { delete tensors.w2; }),
    'with another': change((tensors) => { tensors.w9 = tensors.b1; }),
    turned: change(({ w1 }) => { w1.shape.reverse(); }),
    'not a number': change(({ b1 }) => { b1.data[3] = NaN; }),
    'before the start': change((tensors) => { tensors['history/count'].data[0] = -5; }),
    'of the CNN': change(() => {}, { model: 'cnn' }),
  };
}

test('a damaged file leaves the network in training, and its saving, untouched', async (t) => {
  const page = await openDemo(t, server, { webgpu: 'absent' });
  await page.click('#train');
  await stepsOf(page, 20);
  const [download] = await Promise.all([page.waitForEvent('download'), page.click('#save')]);
  const bytes = new Uint8Array(readFileSync(await download.path()));
  const files = damagedFiles(bytes);
  for (const [name, says] of damaged) {
    await page.setInputFiles('#load', { name: 'weights.safetensors', mimeType: '', buffer: Buffer.from(files[name]) });
    await page.waitForFunction((pattern) => new RegExp(pattern).test(document.getElementById('notice-text').textContent), says.source, { timeout: 10_000, polling: 50 });
    assert.match(await page.locator('#notice-text').textContent(), /^weights\.safetensors is not loaded, and the network is as it was: /, name);
  }
  assert.deepEqual(await axe(page), []);
  await page.click('#close-notice');
  assert.ok(await page.locator('#notice').isHidden());
  assert.equal(await page.locator('#train').textContent(), 'Pause', 'it trains on');
  await stepsOf(page, await figure(page, 'step') + 5);
  const [again] = await Promise.all([page.waitForEvent('download'), page.click('#save')]);
  assert.ok(readFileSync(await again.path()).length === bytes.length, 'it is saved as before');
  assert.deepEqual(page.problems, []);
});

test('the runtime alone trains, without WebAssembly, and reports a lost device', async (t) => {
  const short = (page) => page.route('**/small.js', async (route) => {
    const response = await route.fetch(), body = (await response.text()).replace('steps: 600', 'steps: 200');
    await route.fulfill({ response, body });
  });
  const page = await openDemo(t, small, { path: '/small.html', prepare: short }), from = small.requests.length;
  await page.click('#train');
  await page.waitForFunction(() => /% of the test digits/.test(document.getElementById('result').textContent), null, { timeout: 150_000 });
  const result = await page.locator('#result').textContent();
  assert.match(result, /after 200 steps/);
  assert.ok(parseFloat(result) >= 80, result);
  assert.deepEqual(small.requests.slice(from).filter((path) => /wasm|index\.js/.test(path)), []);
  assert.deepEqual(await axe(page), []);
  await page.click('#train');
  await page.waitForFunction(() => /^step/.test(document.getElementById('result').textContent));
  await crashGPU(page);
  await page.locator('#problem').waitFor({ state: 'visible' });
  assert.match(await page.locator('#problem').textContent(), /last saved \d+ steps ago$/);
});
