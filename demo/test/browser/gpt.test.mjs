// The page of the language model, end to end, in Chromium.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { axe } from '../../../js/test/rig/chromium.mjs';
import { countGPU } from '../../../js/test/rig/counter.mjs';
import { longestTask } from './tasks.mjs';
import { bottomOf, colored, figure, openDemo, pause, restart, serveDemo, serveSmall, shots, stepsOf } from './page.mjs';

let server, small;
before(async () => { [server, small] = await Promise.all([serveDemo(), serveSmall()]); });
after(() => Promise.all([server.close(), small.close()]));

const textOf = (page, id) => page.locator(`#${id}`).textContent();

/** Waits until a sample was written after the given number of steps. */
const sampleOf = (page, steps) => page.waitForFunction((least) => Number(/\d[\d,]*/.exec(document.getElementById('sample-text').textContent)?.[0].replaceAll(',', '') ?? -1) >= least, steps, { timeout: 120_000, polling: 50 });

/** Waits until the text held out was measured after the first step. */
const measured = (page, least) => page.waitForFunction((most) => parseFloat(document.getElementById('held').textContent) < most, least, { timeout: 120_000, polling: 50 });

test('learns and writes on WebGPU, goes on from a prompt, from a pause and from a file, and creates nothing; a software GPU has the tiny model only', async (t) => {
  const page = await openDemo(t, small, { path: '/gpt.html?worker=off', init: [countGPU] });
  assert.equal(await textOf(page, 'device-kind'), 'WebGPU');
  assert.match(await textOf(page, 'dispatches'), /\d kernels, 1 submission/);
  assert.equal(await page.locator('input[name=model]:checked').inputValue(), 'tiny', 'a GPU emulated by software begins with what it can train');
  for (const id of ['sample', 'train', 'doubt']) assert.ok(await bottomOf(page, id) < 800, `${id} ends at ${await bottomOf(page, id)}`);
  assert.match(await textOf(page, 'wall'), /^First Citizen:\n/);
  assert.ok(Math.abs(await figure(page, 'held') - Math.log(65)) < 0.1, 'at first all characters are about as probable');
  await sampleOf(page, 0);
  const babble = await textOf(page, 'sample');
  assert.equal(babble.length, 320);
  assert.deepEqual(await axe(page), []);

  await page.click('#train');
  await stepsOf(page, 3);
  const before = await page.evaluate(() => gpuCounter.take() && gpuCounter.liveBuffers());
  await sampleOf(page, 1);
  await measured(page, 4);
  const created = await page.evaluate(() => ({ counts: gpuCounter.take(), live: gpuCounter.liveBuffers() }));
  assert.equal(created.live, before);
  assert.deepEqual(Object.keys(created.counts).filter((name) => /^device\./.test(name)), ['device.createCommandEncoder']);
  assert.ok(Math.abs(created.counts['device.createCommandEncoder'] - created.counts['queue.submit']) <= 1, 'one may wait for other runs');
  await stepsOf(page, 45);
  assert.ok(await figure(page, 'loss') < 3.7, `a loss of ${await figure(page, 'loss')}`);
  assert.notEqual(await textOf(page, 'sample'), babble);
  assert.ok(await figure(page, 'speed') > 0);
  assert.match(await textOf(page, 'first'), /^\d+(\.\d+)? s$/);
  for (const color of ['--loss', '--right']) assert.ok(await colored(page, 'loss-chart', color) > 100, `the curve in ${color}`);

  await pause(page);
  const steps = await figure(page, 'step');
  await sampleOf(page, steps);
  await page.waitForTimeout(300);
  assert.equal(await figure(page, 'step'), steps, 'paused');
  const held = await textOf(page, 'held'), milestones = await page.locator('#milestones li').allTextContents();
  assert.ok(milestones.length >= 2 && /^step 0, held-out loss 4\.\d\d/.test(milestones[0]), milestones.join());

  await page.locator('#look').scrollIntoViewIfNeeded();
  await page.waitForFunction(() => document.getElementById('look-text').textContent);
  await page.fill('#look-prompt', 'To be');
  await page.waitForFunction(() => document.getElementById('look-text').textContent === 'To be');
  await page.focus('#look-at');
  await page.keyboard.press('End');
  await page.keyboard.press('ArrowLeft');
  assert.match(await page.locator('#look-at').getAttribute('aria-valuetext'), /^“b”, character 4 of 5\. From “b” it looks at .+ %\)\. Next the model expects .+; it is “e” \(\d.* %\)\.$/);
  await page.hover('#look-text span:nth-child(2)');
  assert.match(await textOf(page, 'look-reads'), /^From “o” it looks at “[To]” \([\d.]+ %\), “[To]” \([\d.]+ %\)\.$/, 'it reads itself and what is before');
  assert.equal(await page.locator('#look-heads input').count(), 2);
  assert.ok(await colored(page, 'look-map', '--right') > 50, 'the row is marked');

  await page.fill('#prompt', 'JULIET: 7');
  await page.press('#prompt', 'Enter');
  assert.match(await textOf(page, 'prompt-problem'), /never wrote “7”/);
  assert.equal(await page.evaluate(() => document.activeElement.id), 'prompt');
  await page.fill('#prompt', 'JULIET:');
  assert.ok(await page.locator('#prompt-problem').isHidden());
  await page.press('#prompt', 'Enter');
  await page.waitForFunction(() => document.getElementById('answer').textContent.length > 7 + 32);
  assert.match(await textOf(page, 'answer'), /^JULIET:/);
  assert.equal(await textOf(page, 'ask'), 'Stop');
  await page.click('#ask');
  await page.waitForFunction(() => document.getElementById('ask').textContent === 'Continue');
  assert.ok((await textOf(page, 'answer')).length < 400, 'it stops');

  const [download] = await Promise.all([page.waitForEvent('download'), page.click('#save')]);
  assert.equal(download.suggestedFilename(), 'gpt-tiny.safetensors');
  await page.click('#reset');
  await page.waitForFunction(() => document.getElementById('step').textContent === '0' && parseFloat(document.getElementById('held').textContent) > 4);
  await page.setInputFiles('#load', await download.path());
  await page.waitForFunction((want) => document.getElementById('held').textContent === want, held);
  assert.equal(await figure(page, 'step'), steps);
  await page.click('#train');
  await stepsOf(page, steps + 5);
  assert.ok(await figure(page, 'loss') < 3.7, 'it learns on');
  await pause(page);
  await page.click('#show-kernels');
  const labels = await page.locator('#kernel-list').innerText();
  for (const label of [/A training step/, /Writing a character/, /Block 1, sums/, /Matrix product/, /text\/tokens/]) assert.match(labels, label);
  assert.doesNotMatch(labels, /[a-z]_[a-z]|undefined|^Block\d/m, 'words, not names');
  assert.deepEqual(await axe(page), []);
  await page.click('#close-kernels');
  assert.ok(await page.locator('#model-large').isDisabled(), 'it has no code for the CPU');
  await page.click('label:has(input[value=small])');
  await page.waitForFunction(() => /emulated by software.* It runs on the CPU instead\.$/.test(document.getElementById('device-reason').textContent));
  assert.deepEqual(page.problems, []);
});

test('learns on the CPU of a phone: 360 pixels, touch, dark', async (t) => {
  const page = await openDemo(t, server, { path: '/gpt.html', webgpu: 'absent', viewport: { width: 360, height: 740 }, touch: true, reducedMotion: true, prepare: (one) => one.emulateMedia({ colorScheme: 'dark' }) });
  assert.equal(await textOf(page, 'device-kind'), 'CPU');
  assert.match(await textOf(page, 'device-reason'), /WebGPU is not here/);
  assert.equal(await page.locator('input[name=model]:checked').inputValue(), 'small');
  const { height } = await page.locator('#sample').boundingBox();
  const longest = await longestTask(page, async (attempt) => {
    if (attempt) await restart(page);
    await page.tap('#train');
    await stepsOf(page, 40);
    assert.equal((await page.locator('#sample').boundingBox()).height, height, 'nothing moves on the page when lines are written');
    await measured(page, 3.6);
  });
  t.diagnostic(longest.text);
  assert.ok(longest.ms < 16, longest.text);
  await page.tap('#ask');
  await page.waitForFunction(() => document.getElementById('answer').textContent.length > 6 + 32);
  await pause(page);
  assert.match(await textOf(page, 'answer'), /^ROMEO:/);
  await page.fill('#own-source', 'Привет, мир! ');
  assert.match(await textOf(page, 'own-about'), /^13 characters\. The small model needs 650 or more\.$/);
  await page.fill('#own-source', 'Привет, мир! '.repeat(60));
  await page.tap('#own-learn');
  await page.waitForFunction(() => document.getElementById('train').textContent === 'Pause' && parseFloat(document.getElementById('held').textContent) < 2.5, null, { timeout: 60_000 });
  assert.match(await textOf(page, 'own-about'), /^780 characters, 10 different ones; one tenth is held out\. It is short/);
  await pause(page);
  assert.equal(await page.locator('#prompt').inputValue(), 'Привет, мир! Привет, мир');
  await page.tap('#reset');
  await page.waitForFunction(() => document.getElementById('step').textContent === '0');
  await page.tap('#own-end');
  await page.waitForFunction(() => document.getElementById('kinds').textContent === '65' && document.getElementById('train').textContent === 'Pause');
  assert.ok(await figure(page, 'step') >= 40, 'what it learned of the plays before is there again');
  await pause(page);
  const wide = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
  assert.ok(wide[0] <= wide[1], `${wide[0]} pixels in ${wide[1]}`);
  const small = await page.evaluate(() => [...document.querySelectorAll('button, .choice label, .button, #prompt')].filter((one) => one.checkVisibility() && one.getBoundingClientRect().height < 40).map((one) => one.id));
  assert.deepEqual(small, [], 'large enough for a finger');
  await page.screenshot({ path: `${shots}gpt-phone.png`, fullPage: true });
  assert.deepEqual(await axe(page), []);
  assert.deepEqual(page.problems, []);
});
