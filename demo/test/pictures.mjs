// Pictures of every page at three widths in both colour schemes, to be looked at, in build/demo/pictures; and what axe finds
// on each, and what is wider than the screen.
//
//   make demo-assets && node demo/test/pictures.mjs            all pages
//   node demo/test/pictures.mjs playground 390                 those whose name has both words

import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { axe, openChromium } from '../../js/test/rig/chromium.mjs';
import { serveDemo, shots } from './browser/page.mjs';

/** How long a page runs before its picture: networks that train have something to show. */
const seconds = 4;

/** Writes a program with two type errors, and waits for them. */
const mistake = async (page) => {
  await page.fill('#source', "import { graph } from '@rlx-go/rlx';\n\nconst a: number = 'b';\ngraph('g', (b) => b.output('y', b.input('x', 'f32', [2]).sinn()));\n");
  await page.locator('#problem-list li').nth(1).waitFor();
};

/** Has the tiny model write three texts at once. */
const several = async (page) => {
  await page.selectOption('#answers', '3');
  await page.waitForFunction(() => !document.getElementById('send').disabled);
  await page.click('#send');
  await page.waitForTimeout(1000);
};

/** Has SmolLM2 answer as JSON, twice at once. `make test-lm` downloads it. */
const form = async (page) => {
  await page.setInputFiles('#folder', dirname(process.env.RLX_LM));
  await page.selectOption('#answers', '2');
  await page.waitForFunction(() => !document.getElementById('send').disabled);
  await page.click('#load');
  await page.waitForFunction(() => /smollm/i.test(document.getElementById('model-name').textContent) && !document.getElementById('send').disabled, null, { timeout: 60_000 });
  for (const text of ['What is the capital of France?', 'How does one make tea?']) {
    if (text.startsWith('How')) await page.check('#as-json');
    await page.fill('#message', text);
    await page.click('#send');
    const silent = () => page.waitForFunction(() => document.getElementById('log').getAttribute('aria-busy') === 'false', null, { timeout: 10_000 });
    await silent().catch(async () => {
      await page.click('#send'); // which stops what takes long
      await silent();
    });
  }
};

const tab = (name) => (page) => page.click(`#${name}-tab`);

/** Pages, and what is done with each before its picture. */
const pages = {
  home: ['/'], digits: ['/digits.html'], gpt: ['/gpt.html'], chat: ['/chat.html'], benchmark: ['/benchmark.html'], small: ['/small.html'],
  'chat-several': ['/chat.html', several], ...process.env.RLX_LM && { 'chat-form': ['/chat.html', form] },
  playground: ['/playground.html'], 'playground-graph': ['/playground.html', tab('graph')], 'playground-kernels': ['/playground.html', tab('kernel')], 'playground-text': ['/playground.html#text'],
  'playground-types': ['/playground.html', mistake],
  docs: ['/docs/'], 'docs-guide': ['/docs/guide.html'], 'docs-layers': ['/docs/layers.html'], 'docs-go': ['/docs/go.html'], 'docs-pytorch': ['/docs/pytorch.html'],
};
const widths = { 390: 844, 820: 1180, 1600: 1000 }, schemes = ['light', 'dark'];
const folder = `${shots}pictures/`, wanted = process.argv.slice(2);

/** The elements that reach beyond the right edge of the screen and cannot be scrolled within another one. */
const tooWide = () => document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll('body *')]
  .filter((one) => one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.tagName + (one.id && `#${one.id}`)).slice(0, 5);

mkdirSync(folder, { recursive: true });
const server = await serveDemo();
for (const [width, height] of Object.entries(widths)) {
  const jobs = Object.entries(pages).flatMap(([name, job]) => schemes.map((scheme) => ({ title: `${name}-${width}-${scheme}`, scheme, job })));
  const some = jobs.filter(({ title }) => wanted.every((word) => title.includes(word)));
  if (!some.length) continue;
  const browser = await openChromium({ viewport: { width: Number(width), height }, touch: width === '390' });
  for (const { title, scheme, job: [path, act] } of some) {
    const page = await browser.open();
    await page.emulateMedia({ colorScheme: scheme });
    await page.goto(server.origin + path);
    await page.waitForFunction(() => document.documentElement.dataset.ready || location.pathname.startsWith('/small'), null, { timeout: 60_000 });
    await page.waitForTimeout(seconds * 1000);
    await act?.(page);
    await page.screenshot({ path: `${folder}${title}.png`, fullPage: true });
    const found = [...await page.evaluate(tooWide), ...(await axe(page)).map(({ id, impact, nodes }) => `${id} (${impact}): ${nodes.slice(0, 3).join(', ')}`), ...page.problems];
    console.log(title, found.length ? found : 'well');
    await page.close();
  }
  await browser.close();
}
server.close();
