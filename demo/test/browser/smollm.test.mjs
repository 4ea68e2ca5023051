// The page of language models with a real one, SmolLM2 135M, as a visitor has it. `make test-lm` names the file.

import assert from 'node:assert/strict';
import { dirname } from 'node:path';
import { after, before, test } from 'node:test';
import { axe } from '../../../js/test/rig/chromium.mjs';
import { figure, openDemo, serveDemo, shots } from './page.mjs';

const { RLX_LM: file, RLX_REQUIRE = '' } = process.env;
const skip = !file && !RLX_REQUIRE.split(',').includes('lm') && '$RLX_LM names no GGUF file of SmolLM2: make test-lm does';

let server;
before(async () => { server = await serveDemo(); });
after(() => server.close());

const until = (page, test, argument) => page.waitForFunction(test, argument, { timeout: 120_000, polling: 50 });

/** Sends a message, and returns the answer and how often the page showed more of it. */
async function ask(page, text) {
  await page.fill('#message', text);
  await page.evaluate(() => {
    window.changes = 0;
    new MutationObserver(() => { window.changes++; }).observe(document.getElementById('log'), { childList: true, subtree: true });
  });
  await page.press('#message', 'Enter');
  await until(page, () => document.getElementById('log').getAttribute('aria-busy') === 'false');
  return { answer: await page.locator('#log .written').last().textContent(), changes: await page.evaluate(() => window.changes) };
}

test('a visitor opens the folder of SmolLM2, talks to it, and has it fill in a form', { skip }, async (t) => {
  assert.ok(file, 'RLX_REQUIRE asks for lm, and $RLX_LM names no file: make test-lm does');
  const page = await openDemo(t, server, { path: '/chat.html', webgpu: 'no adapter' });
  await until(page, () => document.getElementById('log').textContent.length > 60); // the tiny model
  await page.setInputFiles('#folder', dirname(file));
  await until(page, () => !document.getElementById('offer').hidden);
  assert.match(await page.textContent('#offer-about'), /^llama, 30 layers, 13\d million weights; 94 MB in files$/);
  const [, planned, unit] = /^It takes ([\d.]+) (MB|GB) of memory/.exec(await page.textContent('#offer-memory'));
  const begun = performance.now();
  await page.click('#load');
  await until(page, () => !document.getElementById('send').disabled && !document.getElementById('offer').checkVisibility() && !document.getElementById('loading').checkVisibility());
  t.diagnostic(`open after ${((performance.now() - begun) / 1000).toFixed(1)} s`);
  assert.match(await page.textContent('#model-name'), /smollm2/i);
  assert.equal(await page.textContent('#memory'), `${planned} ${unit}`);

  await page.fill('#temperature', '0');
  const { answer, changes } = await ask(page, 'What is the capital of France?');
  assert.match(answer, /Paris/);
  assert.ok(changes >= 5, `the answer came in ${changes} pieces: ${answer}`);
  const [rate, promptRate] = [await figure(page, 'rate'), await figure(page, 'prompt-rate')];
  assert.ok(rate > 0 && promptRate > 0);
  t.diagnostic(`${rate} tokens/s, prompts ${promptRate} tokens/s, ${planned} ${unit}: ${answer}`);
  assert.match(await page.textContent('#used'), /^\d+ of 1,024$/);

  await page.check('#as-json');
  await page.fill('#schema', JSON.stringify({ type: 'object', properties: { city: { type: 'string' }, country: { type: 'string' } }, required: ['city', 'country'] }));
  const form = await ask(page, 'The capital of France, please.');
  t.diagnostic(form.answer);
  assert.deepEqual(Object.keys(JSON.parse(form.answer)), ['city', 'country']);
  assert.match(form.answer, /Paris/);
  assert.deepEqual(await axe(page), []);
  await page.screenshot({ path: `${shots}chat-smollm.png`, fullPage: true });
  assert.deepEqual(page.problems, []);
});
