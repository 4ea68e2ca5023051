// The site as visitors meet it who have no mouse, hear the page, are offline, or lack room; in a folder of a server.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { openChromium } from '../../../js/test/rig/chromium.mjs';
import { serve } from '../../../js/test/rig/serve.mjs';
import { demoMounts, demoOptions } from '../../../js/serve.mjs';

const folder = '/some/folder', pages = ['', 'digits.html', 'gpt.html', 'playground.html', 'chat.html', 'benchmark.html', 'small.html', 'docs/', 'docs/start.html'];
/** Pages whose training begins by itself, or that a click starts. */
const moving = ['', 'digits.html', 'gpt.html'];

const phone = { width: 390, height: 844 };

let server, browser;
before(async () => {
  const at = (path) => folder + path.replace(/\/$/, ''), mounts = Object.fromEntries(Object.entries(demoMounts).map(([path, target]) => [at(path), target]));
  server = await serve(mounts, { ...demoOptions, policies: Object.fromEntries(Object.entries(demoOptions.policies).map(([path, policy]) => [at(path), policy])) });
  browser = await openChromium({ webgpu: 'no adapter' });
});
after(() => Promise.all([server.close(), browser?.close()]));

/** Adds up how far what a visitor sees moves by itself: the cumulative layout shift. */
function sumShifts() {
  globalThis.shifted = 0;
  new PerformanceObserver((list) => {
    for (const { value, hadRecentInput } of list.getEntries()) if (!hadRecentInput) globalThis.shifted += value;
  }).observe({ type: 'layout-shift', buffered: true });
}

/** Holds the shift to 0.05: Chromium reports 0.1 and less as good. */
async function assertStill(page, path) {
  const sum = await page.evaluate(() => globalThis.shifted);
  assert.ok(sum <= 0.05, `${path}: the layout shifts by ${sum}`);
}

/** Has no network of digits and text train by itself. */
const paused = () => sessionStorage.setItem(`rlx paused ${location.pathname}`, 'true');

/** Opens a page of the site, and waits until it can be used. */
async function visit(path, init, viewport) {
  const page = await browser.open();
  if (viewport) await page.setViewportSize(viewport);
  await page.addInitScript(sumShifts);
  if (init) await page.addInitScript(init);
  await page.goto(`${server.origin}${folder}/${path}`);
  if (!path.startsWith('small')) await page.waitForFunction(() => document.documentElement.dataset.ready, null, { timeout: 60_000 });
  return page;
}

/** How far a page is wider than a phone for a reader whose letters have twice the usual size, in pixels. */
async function beyond(page) {
  await page.setViewportSize(phone);
  const session = await page.context().newCDPSession(page);
  await session.send('Page.setFontSizes', { fontSizes: { standard: 32 } });
  return page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => resolve(document.documentElement.scrollWidth - innerWidth))));
}

const textOf = (page, id) => page.locator(`#${id}`).textContent();

test('every page works in a folder, and without any storage', async () => {
  const refuse = () => {
    const refused = () => { throw new DOMException('The operation is insecure.', 'SecurityError'); };
    for (const name of ['localStorage', 'sessionStorage', 'indexedDB', 'caches']) Object.defineProperty(globalThis, name, { get: refused });
    navigator.storage.getDirectory = async () => refused();
  };
  for (const path of pages) {
    const page = await visit(path, refuse, phone);
    if (path === 'chat.html') await page.waitForFunction(() => document.getElementById('log').textContent.length > 20);
    if (path === 'playground.html') await page.waitForFunction(() => /^Ended/.test(document.getElementById('state').textContent));
    assert.deepEqual(await page.locator('[role=alert]:visible').allTextContents(), [], path);
    assert.deepEqual(page.problems, [], path);
    await assertStill(page, path);
    assert.ok(await beyond(page) <= 0, `${path}: text of twice the size fits a phone`);
    await page.close();
  }
});

test('the keyboard skips the links, and where it is can be seen', async () => {
  for (const path of pages) {
    const page = await visit(path, paused);
    await assertStill(page, path);
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to the content', path);
    assert.ok((await page.locator('.skip').boundingBox()).height > 30 && await page.locator('.skip').evaluate((one) => getComputedStyle(one).clipPath) === 'none', `${path}: it can be seen`);
    await page.keyboard.press('Enter');
    for (let i = 0; i < 8; i++) {
      await page.keyboard.press('Tab');
      const place = await page.evaluate(() => {
        const at = document.activeElement, marked = [at, at.closest('label'), at.nextElementSibling].filter(Boolean);
        return { inMain: Boolean(at.closest('main')), name: at.outerHTML.slice(0, 80), seen: marked.some((one) => getComputedStyle(one).outlineStyle !== 'none') };
      });
      if (i === 0) assert.ok(place.inMain, `${path}: ${place.name} is next`);
      if (!place.inMain) break;
      assert.ok(place.seen, `${path}: ${place.name} has no outline`);
    }
    await page.close();
  }
});

test('a digit is drawn by keyboard, and read', async () => {
  const page = await visit('digits.html', paused);
  await page.focus('#pad');
  assert.ok(await page.locator('#pad-keys').isHidden() || await page.locator('#pad-text').isHidden(), 'one line below the pad');
  const { y } = await page.evaluate(() => ({ y: scrollY }));
  for (let i = 0; i < 10; i++) await page.keyboard.press('ArrowUp');
  await page.keyboard.press('Space');
  assert.equal(await textOf(page, 'status'), 'The pen is down.');
  for (let i = 0; i < 20; i++) await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Space');
  for (let i = 0; i < 5; i++) await page.keyboard.press('ArrowRight'); // the pen is up
  assert.equal(await page.evaluate(() => scrollY), y, 'the page stays where it is');
  assert.equal(await textOf(page, 'pad-text'), 'yours');
  const label = await page.getAttribute('#counts', 'aria-label'), rows = label.replace(/.*: /, '').split('; ').map((row) => row.split(' ').map(Number));
  assert.ok(rows.every((row) => row[3] + row[4] > 8), label);
  assert.ok(rows.every((row) => row[0] + row[7] === 0), label);
  await page.waitForFunction(() => /^It reads \d\./.test(document.getElementById('guess').textContent));
  await page.click('#clear');
  await page.focus('#pad');
  await page.keyboard.press('ArrowLeft');
  assert.equal(await textOf(page, 'guess'), 'Draw a digit.');
  assert.deepEqual(page.problems, []);
  await page.close();
});

test('tabs are chosen by arrows, Home and End', async () => {
  const page = await visit('playground.html');
  await page.focus('#result-tab');
  for (const [key, tab] of [['End', 'kernel'], ['ArrowRight', 'result'], ['ArrowLeft', 'kernel'], ['Home', 'result'], ['ArrowRight', 'graph']]) {
    await page.keyboard.press(key);
    assert.equal(await page.evaluate(() => document.activeElement.id), `${tab}-tab`, key);
    assert.ok(await page.locator(`#${tab}-panel`).isVisible(), key);
  }
  await page.close();
});

test('who hears a page that trains hears no more than a few words', async () => {
  for (const path of moving) {
    const page = await visit(path, () => {
      globalThis.heard = [];
      document.addEventListener('DOMContentLoaded', () => {
        for (const one of document.querySelectorAll('[role=status], [role=alert], [role=log], [aria-live]')) {
          new MutationObserver(() => heard.push(`${one.id}: ${one.textContent}`)).observe(one, { childList: true, characterData: true, subtree: true });
        }
      });
    });
    await page.waitForTimeout(2500);
    const heard = await page.evaluate(() => globalThis.heard);
    assert.ok(heard.length <= 4, `${path}: ${heard.join('\n')}`);
    await page.close();
  }
});

test('offline a page says so, and goes on once the device is back', async () => {
  const page = await visit('docs/start.html'), { context } = browser;
  await context.setOffline(true);
  try {
    await page.fill('#query', 'matmul');
    await page.waitForFunction(() => /offline/.test(document.getElementById('found').textContent));
  } finally {
    await context.setOffline(false);
  }
  await page.fill('#query', 'matmul ');
  await page.waitForFunction(() => /matmul/.test(document.querySelector('#found a')?.textContent));
  assert.deepEqual(page.problems.filter((text) => !/ERR_INTERNET_DISCONNECTED/.test(text)), []);
  await page.close();
});

test('a model is kept as a whole or not at all, by several tabs', async () => {
  const place = await mkdtemp(join(tmpdir(), 'visit-')), file = join(place, 'mine.gguf');
  try {
    const page = await visit('chat.html'), bytes = await page.evaluate(async () => [...new Uint8Array(await (await fetch('tiny.gguf')).arrayBuffer())]);
    writeFileSync(file, Buffer.from(bytes));
    await page.evaluate(async () => { // what a tab left that was closed
      const models = await (await navigator.storage.getDirectory()).getDirectoryHandle('models', { create: true });
      await (await models.getDirectoryHandle('half.gguf', { create: true })).getFileHandle('half.gguf', { create: true });
    });
    const keep = async (one) => {
      await one.setInputFiles('#file', file);
      await one.waitForFunction(() => !document.getElementById('offer').hidden);
      await one.check('#keep');
      await one.click('#load');
    };
    const kept = (one) => one.waitForFunction(() => /^mine\.gguf/.test(document.querySelector('#kept li')?.textContent));
    const session = await page.context().newCDPSession(page), origin = new URL(page.url()).origin;
    await session.send('Storage.overrideQuotaForOrigin', { origin, quotaSize: 10_000 });
    await keep(page);
    await page.waitForFunction(() => /^The browser has .*room.*it is open, but not kept\.$/.test(document.getElementById('notice-text').textContent));
    assert.ok(await page.locator('#send').isEnabled(), 'the model is open');
    await session.send('Storage.overrideQuotaForOrigin', { origin });
    const other = await visit('chat.html');
    await Promise.all([page, other].map(async (one) => {
      await keep(one);
      await kept(one);
    }));
    for (const one of [page, other]) assert.equal(await one.locator('#kept li').count(), 1, 'nothing is left of what was not complete');
    await other.reload();
    await kept(other);
    await other.click('#kept button');
    await other.waitForFunction(() => !document.getElementById('offer').hidden);
    for (const one of [page, other]) {
      assert.deepEqual(one.problems, []);
      await one.close();
    }
  } finally {
    await rm(place, { recursive: true });
  }
});
