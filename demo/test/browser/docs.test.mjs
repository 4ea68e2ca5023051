// The documentation in Chromium: search by keyboard, examples that run where they stand, a phone.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { axe } from '../../../js/test/rig/chromium.mjs';
import { openDemo, serveDemo, shots } from './page.mjs';

let server;
before(async () => { server = await serveDemo(); });
after(() => server.close());

/** Runs the example of a section and gives what it printed. */
async function printed(page, id, pattern) {
  const listing = page.locator(`section:has(> h2#${id}) .listed[data-run]`).first();
  await listing.getByRole('button', { name: 'Run' }).click();
  await page.waitForFunction(([of, text]) => new RegExp(text).test(document.querySelector(`section:has(> h2#${of}) pre.log`)?.textContent), [id, pattern], { timeout: 60_000, polling: 50 });
  await listing.getByRole('button', { name: 'Run' }).waitFor();
  return listing.locator('pre.log').textContent();
}

test('an op is found by the keyboard, its example runs, and so does one of the guide', async (t) => {
  const page = await openDemo(t, server, { path: '/docs/' });
  await page.keyboard.press('/');
  await page.keyboard.type('logSoftmax');
  await page.waitForFunction(() => document.querySelector('#found [aria-selected=true] code')?.textContent === 'log_softmax', null, { timeout: 5000, polling: 50 });
  assert.equal(await page.getAttribute('#query', 'aria-activedescendant'), 'found-0');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowUp');
  assert.deepEqual(await axe(page), []);
  await page.keyboard.press('Enter');
  await page.waitForURL(/ops-reductions-scans-and-orders\.html#log_softmax$/);
  await page.waitForFunction(() => document.documentElement.dataset.ready);
  const shown = await page.locator('section:has(> h2#log_softmax) .gives').textContent();
  const [first] = /-?\d\.\d+/.exec(shown.slice(shown.indexOf(']'))), text = await printed(page, 'log_softmax', '\\d');
  assert.ok(Math.abs(Number(/-?\d\.\d+/.exec(text)[0]) - Number(first)) < 1e-4, `${text} beside ${shown}`);
  assert.deepEqual(await axe(page), []);

  await page.goto(`${server.origin}/docs/guide.html`);
  await page.waitForFunction(() => document.documentElement.dataset.ready);
  assert.equal(await printed(page, 'sizes', 'norm'), 'one row 7\nthree rows 7,14,17\nnorm 1.414\n');
  await page.screenshot({ path: `${shots}docs.png` });
  assert.deepEqual(await axe(page), []);
  assert.deepEqual(page.problems, []);
});

test('the documentation fits a phone in the dark, and is there without JavaScript', async (t) => {
  const page = await openDemo(t, server, { path: '/docs/ops-products.html', viewport: { width: 360, height: 740 }, touch: true, prepare: (one) => one.emulateMedia({ colorScheme: 'dark' }) });
  for (const path of ['ops-products', 'guide', 'go', 'index']) {
    await page.goto(`${server.origin}/docs/${path}.html`);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `nothing of ${path} is wider than the screen`);
  }
  assert.deepEqual(await axe(page), []);
  assert.deepEqual(page.problems, []);
  await page.context().setOffline(true);
  await page.fill('#query', 'softmax');
  await page.getByText('The index cannot be loaded: is the device offline?').waitFor();
  await page.context().setOffline(false);
  await page.fill('#query', 'softmax ');
  await page.locator('#found a').first().waitFor();
  const plain = await page.context().browser().newContext({ javaScriptEnabled: false }), still = await plain.newPage();
  await still.goto(`${server.origin}/docs/ops-products.html#einsum`);
  assert.match(await still.locator('section:has(> h2#einsum)').textContent(), /Einsum\(b \*ir\.Builder/);
  assert.ok(await still.locator('#search').isHidden());
  for (const path of ['index', 'digits', 'gpt', 'playground', 'chat', 'benchmark']) {
    await still.goto(`${server.origin}/${path}.html`);
    const notice = still.locator('noscript .problem');
    assert.match(await notice.textContent(), /^This page needs JavaScript\. Without it you can read the documentation\.$/, path);
    const [{ width }, page] = [await notice.boundingBox(), await still.locator('main').boundingBox()];
    assert.ok(width > 0.8 * page.width, `the notice of ${path} is ${width} wide, of ${page.width}`);
  }
});
