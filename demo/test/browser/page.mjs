// The demo's page in Chromium, as the tests open it.

import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { after } from 'node:test';
import { closeShared, plainHost, shareChromium } from '../../../js/test/rig/chromium.mjs';
import { serve } from '../../../js/test/rig/serve.mjs';
import { demoMounts, demoOptions } from '../../../js/serve.mjs';

/** The folder in which tests save screenshots. */
export const shots = new URL('../../../build/demo/', import.meta.url).pathname;
mkdirSync(shots, { recursive: true });

/** Serves the demo as `make demo` does. */
export const serveDemo = () => serve(demoMounts, { ...demoOptions, hosts: [plainHost] });

/**
 * Serves the demo with networks of smaller batches, of which demo/build writes the plans: for tests of what a page does while
 * one is trained, not of what it has learned.
 */
export function serveSmall(options = demoOptions) {
  const read = (path) => readFileSync(new URL(path, import.meta.url), 'utf8'), at = (path) => new URL(`../../../build/small/${path}`, import.meta.url).pathname;
  const data = read('../../web/digit-data.js').replace('testCount = 360', 'testCount = 40').replace('batchSize = 128', 'batchSize = 32');
  const plans = Object.fromEntries(['digits-mlp', 'gpt-tiny'].map((name) => [`/assets/${name}.rlxp`, at(`${name}.rlxp`)]));
  for (const file of Object.values(plans)) if (!existsSync(file)) throw new Error(`${file} is not here: run 'make demo-assets'`);
  return serve({ ...demoMounts, ...plans, '/digit-data.js': { body: data, type: 'text/javascript' } }, { ...options, hosts: [plainHost] });
}

after(closeShared);

/**
 * Opens a page of the demo in storage of its own: in a browser that the tests of a file share.
 * @param {{path?: string, init?: (() => void)[], prepare?: (page) => unknown}} options and those of
 *   shareChromium; init are scripts that run before the page's own, prepare may do more before it opens; begins says
 *   whether networks train by themselves, as they do until a visitor pauses one
 */
export async function openDemo(t, server, { path = '/digits.html', init = [], begins = false, prepare, ...options } = {}) {
  const browser = await shareChromium(options);
  t.after(() => browser.close());
  const page = await browser.open();
  if (!begins) await page.addInitScript(() => sessionStorage.setItem(`rlx paused ${location.pathname}`, 'true'));
  for (const script of init) await page.addInitScript(script);
  await prepare?.(page);
  const origin = options.webgpu === 'absent' ? server.origin.replace('127.0.0.1', plainHost) : server.origin;
  await page.goto(origin + path);
  if (path.startsWith('/small')) return page;
  await page.waitForFunction(() => document.documentElement.dataset.ready, null, { timeout: 60_000 });
  return page;
}

/** Where an element ends below the top of the first screen, before anything is scrolled. */
export const bottomOf = async (page, id) => {
  const { y, height } = await page.locator(`#${id}`).boundingBox();
  return y + height;
};

/** A figure of the page, as a number. */
export const figure = async (page, id) => Number((await page.locator(`#${id}`).textContent()).replace(/[^\d.]/g, '') || NaN);

/** Waits until the test digits are read as well as this, in percent. */
export const accuracyOf = (page, percent, timeout = 150_000) => page.waitForFunction((least) => parseFloat(document.getElementById('accuracy').textContent) >= least, percent, { timeout, polling: 200 });

/** Waits until that many steps were made. */
export const stepsOf = (page, steps, timeout = 60_000) => page.waitForFunction((least) => Number(document.getElementById('step').textContent.replaceAll(',', '')) >= least, steps, { timeout, polling: 100 });

/** Presses the button that pauses, and waits until it has. */
export async function pause(page) {
  await page.click('#train');
  await page.waitForFunction(() => document.getElementById('train').textContent === 'Train');
}

/** Pauses the training and begins again, from new parameters. */
export async function restart(page) {
  await pause(page);
  await page.click('#reset');
  await page.waitForFunction(() => document.getElementById('step').textContent === '0');
}

/** Waits until a network can be trained. */
export const readyOf = (page) => page.waitForFunction(() => !document.getElementById('train').disabled, null, { timeout: 60_000 });

/** Draws strokes of a recorded drawing into the pad with the mouse, or by touch. */
export async function draw(page, strokes) {
  const pad = page.locator('#pad');
  await pad.scrollIntoViewIfNeeded();
  const { x, y, width, height } = await pad.boundingBox();
  const place = ([px, py]) => [x + (0.1 + 0.8 * px / 100) * width, y + (0.1 + 0.8 * py / 100) * height];
  for (const stroke of strokes) {
    await page.mouse.move(...place(stroke[0]));
    await page.mouse.down();
    for (const point of stroke.slice(1)) await page.mouse.move(...place(point));
    await page.mouse.up();
  }
}

/** How many pixels of a canvas have another colour than its corner: 0 for a blank one. */
export const inkOf = (locator) => locator.evaluate((canvas) => {
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let different = 0;
  for (let i = 0; i < data.length; i += 4) different += [0, 1, 2, 3].some((c) => Math.abs(data[i + c] - data[c]) > 24);
  return different;
});
export const inked = (page, id) => inkOf(page.locator(`#${id}`));

/** How many pixels of a canvas are close to a colour of the style sheet. */
export const colored = (page, id, property) => page.evaluate(([name, variable]) => {
  const canvas = document.getElementById(name), { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const hex = getComputedStyle(canvas).getPropertyValue(variable).trim(), want = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  let count = 0;
  for (let i = 0; i < data.length; i += 4) count += data[i + 3] > 200 && want.every((v, c) => Math.abs(data[i + c] - v) < 16);
  return count;
}, [id, property]);
