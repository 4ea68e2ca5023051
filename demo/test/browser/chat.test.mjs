// The page of language models, end to end, in Chromium.

import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { decodeSafetensors } from '../../../js/dist/safetensors.js';
import { axe } from '../../../js/test/rig/chromium.mjs';
import { writeGGUF } from '../../../js/test/gguf.mjs';
import { figure, openDemo, serveDemo, shots } from './page.mjs';
import { randomModel } from './random-model.mjs';
import { longestTask } from './tasks.mjs';

let server, folder, file;

before(async () => {
  server = await serveDemo();
  folder = mkdtempSync(join(tmpdir(), 'chat-'));
  writeFileSync(file = join(folder, 'random.gguf'), randomModel());
});
after(() => {
  server.close();
  rmSync(folder, { recursive: true });
});

const textOf = (page, id) => page.locator(`#${id}`).textContent();
const until = (page, test, argument) => page.waitForFunction(test, argument, { timeout: 60_000, polling: 50 });
/** Waits until nothing is being said. */
const silent = (page) => until(page, () => document.getElementById('log').getAttribute('aria-busy') === 'false' && document.getElementById('send').textContent !== 'Stop');

test('opens a model in short tasks: its graphs are built a block at a time', async (t) => {
  const page = await openDemo(t, server, { path: '/small.html' });
  const longest = await longestTask(page, async (attempt) => {
    if (attempt) {
      await page.goto(`${server.origin}/small.html`);
      await page.evaluate(async () => { for (const { name } of await indexedDB.databases()) indexedDB.deleteDatabase(name); }); // what was kept of the attempt before
    }
    await page.goto(`${server.origin}/chat.html`);
    await until(page, () => document.getElementById('log').textContent.length > 60);
  });
  t.diagnostic(longest.text);
  assert.ok(longest.ms < 16, longest.text);
});

test('writes by itself, opens a model from a file, talks, keeps it, tunes it and gives the adapter', async (t) => {
  const page = await openDemo(t, server, { path: '/chat.html' });
  await until(page, () => document.getElementById('log').textContent.length > 60);
  assert.match(await textOf(page, 'log'), /^ROMEO:/);
  assert.ok(await figure(page, 'rate') > 0);
  assert.equal(await textOf(page, 'device-kind'), 'CPU', 'a GPU emulated by software is slower');
  assert.deepEqual(await axe(page), []);

  await page.setInputFiles('#file', file);
  await until(page, () => !document.getElementById('offer').hidden);
  assert.match(await textOf(page, 'offer-about'), /^llama, 1 layers?, \d+ thousand weights; \d+ kB in files$/);
  assert.match(await textOf(page, 'offer-memory'), /^It takes \d+ kB of memory: \d+ kB of weights and \d+ kB for the context\.$/);
  await page.selectOption('#context', '256');
  await page.check('#keep');
  assert.deepEqual(await axe(page), []);
  await page.click('#load');
  await until(page, () => document.getElementById('model-name').textContent === 'Random' && !document.getElementById('send').disabled);

  await page.fill('#temperature', '0');
  await page.fill('#message', 'Hello <|end|>');
  await page.press('#message', 'Enter');
  await page.press('#message', 'Enter'); // does not end the answer
  await silent(page);
  const [asked, answer] = await page.locator('#log p').allTextContents();
  assert.equal(asked, 'Hello <|end|>');
  assert.ok(answer.length > 3, answer);
  assert.match(await textOf(page, 'used'), /^\d+ of 256$/);
  await page.click('#clear');
  assert.equal(await textOf(page, 'log'), '');
  await page.fill('#message', 'Hello <|end|>');
  await page.click('#send');
  await silent(page);
  assert.equal((await page.locator('#log p').allTextContents())[1], answer, 'without a temperature it says the same');
  await until(page, () => document.querySelector('#kept li')?.textContent.startsWith('random.gguf'));

  await page.fill('#tune-source', 'to be, or not to be: that is the question');
  await page.click('#tune');
  await until(page, () => /^It takes \d+ kB of memory, weights and all\.$/.test(document.getElementById('tune-memory').textContent));
  assert.ok(await page.isDisabled('#answers'), 'no other model is opened meanwhile');
  await until(page, () => Number(/^Step ([\d,]+)/.exec(document.getElementById('tune-state').textContent)?.[1].replaceAll(',', '') ?? 0) >= 30);
  for (const worker of page.workers().filter((one) => one.url().endsWith('/worker.js'))) await worker.evaluate(() => { setTimeout(() => { throw new Error('lost on purpose'); }); }).catch(() => {}); // some have ended meanwhile
  await until(page, () => /^The device was lost, and the model is open again/.test(document.getElementById('notice-text').textContent));
  const kept = Number(/from step ([\d,]+)/.exec(await textOf(page, 'notice-text'))[1].replaceAll(',', ''));
  await until(page, (least) => Number(/^Step ([\d,]+)/.exec(document.getElementById('tune-state').textContent)[1].replaceAll(',', '')) > least + 5, kept);
  await page.click('#close-notice');
  await page.click('#tune');
  await until(page, () => document.getElementById('tune').textContent === 'Tune' && document.getElementById('before').textContent && !document.getElementById('compare-go').disabled);
  assert.ok(Number(/loss (\d\.\d+)/.exec(await textOf(page, 'tune-state'))[1]) < 4, await textOf(page, 'tune-state'));
  assert.notEqual(await textOf(page, 'before'), await textOf(page, 'after'));
  assert.ok(await page.isDisabled('#answers') && await page.isVisible('#answers-note'), 'several answers would take a model without the adapter');
  const downloads = [];
  page.on('download', (one) => downloads.push(one));
  await page.click('#save-adapter');
  for (let i = 0; i < 100 && downloads.length < 2; i++) await page.waitForTimeout(50);
  const names = downloads.map((one) => one.suggestedFilename());
  assert.deepEqual(names.sort(), ['adapter_config.json', 'adapter_model.safetensors']);
  const { tensors } = decodeSafetensors(readFileSync(await downloads.find((one) => one.suggestedFilename().endsWith('safetensors')).path()));
  assert.deepEqual(tensors['base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight'].shape, [32, 8]);
  const steps = await textOf(page, 'after-steps'), after = await textOf(page, 'after');
  await page.click('#save-training');
  for (let i = 0; i < 100 && downloads.length < 3; i++) await page.waitForTimeout(50);
  const saved = join(folder, 'training.safetensors');
  await downloads[2].saveAs(saved);
  await page.click('#forget');
  await until(page, () => document.getElementById('tune-state').textContent === 'The adapter is as it began.');
  await page.setInputFiles('#load-training', saved);
  await until(page, (steps) => document.getElementById('tune-state').textContent === `The training of training.safetensors, after ${steps}: Tune goes on with it.` && !document.getElementById('compare-go').disabled && document.getElementById('after-steps').textContent === steps, steps);
  assert.equal(await textOf(page, 'after'), after, 'the adapter is that of before');
  assert.deepEqual(await axe(page), []);
  await page.screenshot({ path: `${shots}chat.png`, fullPage: true });

  await page.reload();
  await until(page, () => document.documentElement.dataset.ready);
  await page.click('#kept button');
  await page.click('#load');
  await until(page, () => document.getElementById('model-name').textContent === 'Random' && !document.getElementById('send').disabled);
  await page.click('#kept button:last-child');
  await until(page, () => document.getElementById('kept-part').hidden);
  assert.deepEqual(page.problems.filter((text) => !text.endsWith('lost on purpose')), []);
});

/** Opens the model of the file, in a page with the tiny one. */
async function openRandom(page) {
  await until(page, () => document.getElementById('log').textContent.length > 60);
  await page.setInputFiles('#file', file);
  await until(page, () => !document.getElementById('offer').hidden);
  const disabled = await page.evaluate(() => {
    document.getElementById('load').click();
    return document.getElementById('answers').disabled;
  });
  assert.ok(disabled, 'the tiny model is not opened once more');
  await until(page, () => document.getElementById('model-name').textContent === 'Random' && !document.getElementById('send').disabled);
}

/** Chooses how many answers come at once, and waits until the model is open again, which takes another amount of memory. */
async function choose(page, answers) {
  const memory = await textOf(page, 'memory');
  await page.focus('#answers');
  await page.selectOption('#answers', answers);
  await until(page, (before) => document.getElementById('memory').textContent !== before && !document.getElementById('send').disabled, memory);
}

test('opens a folder of safetensors', async (t) => {
  const from = new URL('../../../native/lm/testdata/llama/', import.meta.url), made = join(folder, 'Scribbler'), tokens = Array.from({ length: 64 }, (_, i) => String.fromCharCode(40 + i));
  mkdirSync(made);
  for (const name of ['config.json', 'model.safetensors']) copyFileSync(new URL(name, from), join(made, name));
  const bytes = { type: 'ByteLevel', add_prefix_space: false, use_regex: true };
  writeFileSync(join(made, 'tokenizer.json'), JSON.stringify({ added_tokens: [], pre_tokenizer: bytes, decoder: bytes, model: { type: 'BPE', vocab: Object.fromEntries(tokens.map((token, i) => [token, i])), merges: [] } }));
  const page = await openDemo(t, server, { path: '/chat.html' });
  await until(page, () => document.getElementById('log').textContent.length > 60);
  await page.setInputFiles('#folder', made);
  await until(page, () => !document.getElementById('offer').hidden);
  assert.equal(await textOf(page, 'offer-name'), 'Scribbler');
  await page.click('#load');
  await until(page, () => document.getElementById('model-name').textContent === 'Scribbler' && !document.getElementById('send').disabled);
  await page.fill('#message', 'ABC');
  await page.click('#send');
  await silent(page);
  assert.match(await textOf(page, 'log'), /^ABC.{10}/);
  assert.deepEqual(page.problems, []);
});

test('a model that is loaded while another is being loaded takes its place, or is stopped', async (t) => {
  const page = await openDemo(t, server, { path: '/chat.html' });
  const offered = async () => {
    await page.setInputFiles('#file', file);
    await until(page, () => !document.getElementById('offer').hidden);
  };
  await page.evaluate(() => {
    const { arrayBuffer } = Blob.prototype;
    window.slow = 0;
    Blob.prototype.arrayBuffer = async function (...args) {
      if (window.slow) await new Promise((resolve) => { setTimeout(resolve, window.slow); });
      return arrayBuffer.apply(this, args);
    };
  });
  // Opens the model once more, slowly, and clicks while it is being loaded.
  const meanwhile = (answers, ids, slow) => page.evaluate(([answers, ids, slow]) => new Promise((resolve) => {
    const find = (id) => document.getElementById(id);
    window.slow = slow;
    find('answers').value = answers;
    find('answers').dispatchEvent(new Event('change'));
    setTimeout(() => {
      window.slow = 0;
      for (const id of ids) find(id).click();
      resolve();
    }, 300);
  }), [answers, ids, slow]);
  await offered();
  await until(page, () => !document.getElementById('send').disabled);
  await meanwhile('2', ['load', 'stop-loading'], 1000);
  await until(page, () => document.getElementById('model-name').textContent === 'Random' && document.getElementById('loading').hidden);
  assert.equal(await textOf(page, 'model-about'), 'Loading was stopped. No model is open.');
  assert.ok(await page.isEnabled('#answers'));

  await offered();
  await meanwhile('1', ['load'], 1000);
  await until(page, () => !document.getElementById('send').disabled);
  await page.waitForTimeout(1000); // until what was slow would end
  assert.match(await textOf(page, 'model-about'), /^llama, 1 layer/);
  assert.ok(!await page.isVisible('#notice') && !await page.isVisible('#loading'));
  await page.fill('#message', 'Hello');
  await page.press('#message', 'Enter');
  await silent(page);
  assert.equal(await page.locator('#log .written').count(), 1);
  assert.deepEqual(page.problems, []);
});

test('answers as JSON that fits a schema of the visitor', async (t) => {
  const page = await openDemo(t, server, { path: '/chat.html' }), fetched = [];
  page.on('request', (one) => fetched.push(new URL(one.url()).pathname));
  assert.ok(!await page.isVisible('#as-json'), 'the tiny model answers nothing');
  await openRandom(page);
  assert.ok(!fetched.some((path) => path.includes('grammar')), 'its code comes with the first answer');
  await page.check('#as-json');
  assert.deepEqual(await axe(page), []);
  const schema = { type: 'object', properties: { sum: { type: 'integer' }, mood: { enum: ['sunny', 'rainy'] } }, required: ['sum', 'mood'] };
  for (const temperature of ['0', '1.5']) {
    await page.fill('#temperature', temperature);
    await page.fill('#schema', JSON.stringify(schema));
    await page.fill('#message', 'How is it?');
    await page.click('#send');
    await silent(page);
    const [asked, answer] = [await page.locator('#log .user').last().textContent(), JSON.parse(await page.locator('#log .mono').last().textContent())];
    assert.equal(asked, 'How is it?', 'the schema is not shown as the visitor’s');
    assert.ok(Number.isInteger(answer.sum) && schema.properties.mood.enum.includes(answer.mood), JSON.stringify(answer));
  }
  assert.ok(fetched.some((path) => path.endsWith('/grammar.js')));
  for (const [wrong, message] of [['{"type": "object"', /JSON schema is malformed/], ['{"pattern": "a"}', /pattern/]]) {
    await page.fill('#schema', wrong);
    await page.fill('#message', 'How is it?');
    await page.click('#send');
    await until(page, () => !document.getElementById('notice').hidden);
    assert.match(await textOf(page, 'notice-text'), message);
    assert.equal(await page.inputValue('#message'), 'How is it?', 'it need not be written again');
    await page.click('#close-notice');
  }
  assert.equal(await page.locator('#log .user').count(), 2, 'what was not sent is not in the conversation');
  await page.uncheck('#as-json');
  assert.ok(!await page.isVisible('#schema'));
  assert.deepEqual(page.problems, []);
});

test('writes several answers at once, of which the visitor goes on with one', async (t) => {
  const page = await openDemo(t, server, { path: '/chat.html' });
  await until(page, () => document.getElementById('log').textContent.length > 60);
  await choose(page, '2');
  await page.click('#send');
  await silent(page);
  const sheets = await page.locator('#log .sheet-text .written').allTextContents();
  assert.equal(sheets.length, 2);
  for (const sheet of sheets) assert.match(sheet, /^ROMEO:\n.{20}/s);
  assert.notEqual(sheets[0], sheets[1]);
  assert.equal(await page.locator('#log button').count(), 0, 'a text is no conversation');

  await openRandom(page);
  assert.equal(await page.inputValue('#answers'), '2', 'as the visitor chose');
  let first, second;
  do { // an answer may end with its first token
    await page.click('#clear');
    await page.fill('#message', 'Hello');
    await page.press('#message', 'Enter');
    await until(page, () => {
      const all = [...document.querySelectorAll('#log .written')];
      return all.length === 2 && (document.getElementById('send').textContent === 'Send' || all.every(({ textContent }) => textContent.length > 5));
    });
    await page.click('#send'); // which stops them, so that the context has room for more
    await silent(page);
    [first, second] = await page.locator('#log .written').allTextContents();
  } while (first.length < 6 || second.length < 6 || first.length === second.length);
  assert.deepEqual(await axe(page), []);
  await page.screenshot({ path: `${shots}chat-several.png`, fullPage: true });

  // Answers as JSON go on with the one that is chosen while their grammar is being made.
  const schema = '{ "enum": ["sunny", "rainy"] }', turn = (role, text) => role.length + text.length + 3;
  await page.check('#as-json');
  await page.fill('#schema', schema);
  await page.fill('#message', 'So?');
  await page.evaluate(() => { for (const id of ['send', 'choose-2']) document.getElementById(id).click(); });
  await silent(page);
  const [chosen, ...forms] = await page.locator('#log .written').allTextContents();
  assert.equal(chosen, second);
  assert.equal(forms.length, 2);
  for (const form of forms) assert.ok(['sunny', 'rainy'].includes(JSON.parse(form)), form);
  const prompt = turn('user', 'Hello') + turn('assistant', second) + turn('user', `So?\n\nAnswer with JSON that fits this JSON schema:\n${schema}`) + turn('assistant', '') - 1;
  assert.equal(parseInt(await textOf(page, 'used')), prompt + Math.max(...forms.map(({ length }) => length)) + 1, 'a character is a token, as is the end');
  await page.getByRole('button', { name: 'Go on with answer 2' }).press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'message');
  assert.deepEqual(await page.locator('#log .written').allTextContents(), [second, forms[1]]);
  await page.uncheck('#as-json');
  await choose(page, '1');
  assert.deepEqual(await page.locator('#log .written').allTextContents(), [second, forms[1]], 'the conversation is kept');
  await until(page, () => document.activeElement.id === 'answers'); // for the keyboard
  await page.fill('#message', 'And?');
  await page.press('#message', 'Enter');
  await silent(page);
  assert.ok(parseInt(await textOf(page, 'used')) >= prompt + forms[1].length + 'And?'.length, 'its prompt has all turns');
  assert.equal(await page.locator('#log .written').count(), 3);
  assert.deepEqual(page.problems, []);
});

test('says what is wrong with a file, on a phone, in the dark', async (t) => {
  const page = await openDemo(t, server, { path: '/chat.html', webgpu: 'absent', viewport: { width: 360, height: 740 }, touch: true, prepare: (one) => one.emulateMedia({ colorScheme: 'dark' }) });
  assert.match(await textOf(page, 'device-reason'), /WebGPU is not here/);
  const wrong = join(folder, 'wrong.gguf');
  writeFileSync(wrong, writeGGUF({ 'general.architecture': 'parrot', 'tokenizer.ggml.model': 'gpt2', 'tokenizer.ggml.pre': 'gpt-2', 'tokenizer.ggml.tokens': ['a', 'b'] }, {}));
  const cut = join(folder, 'cut.gguf');
  writeFileSync(cut, readFileSync(wrong).subarray(0, 40));
  for (const [given, message] of [[wrong, /parrot.*llama/], [cut, /^cut\.gguf cannot be read: .*Download it again\. \(GGUF: /], [import.meta.filename, /no model in it/]]) {
    await page.setInputFiles('#file', given);
    await until(page, () => !document.getElementById('notice').hidden);
    assert.match(await textOf(page, 'notice-text'), message);
    await page.tap('#close-notice');
  }
  for (const [path, message] of [['none.gguf', /no file at this address: .* answers 404/], ['chat.html', /does not send parts of a file/], ['romeo:', /must begin with https/]]) {
    await page.fill('#address', new URL(path, page.url()).href);
    await page.press('#address', 'Enter');
    await until(page, () => !document.getElementById('notice').hidden);
    assert.match(await textOf(page, 'notice-text'), message);
    await page.tap('#close-notice');
  }
  const wide = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
  assert.ok(wide[0] <= wide[1], `${wide[0]} pixels in ${wide[1]}`);
  const small = await page.evaluate(() => [...document.querySelectorAll('button, .button, input:not([type=range]):not([type=checkbox]):not([type=file]), textarea, select, summary')].filter((one) => one.checkVisibility() && one.getBoundingClientRect().height < 40).map((one) => one.id));
  assert.deepEqual(small, [], 'large enough for a finger');
  assert.deepEqual(await axe(page), []);
  await page.screenshot({ path: `${shots}chat-phone.png`, fullPage: true });
  assert.deepEqual(page.problems.filter((text) => !text.includes('none.gguf')), []);
});
