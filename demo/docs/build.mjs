// Writes the documentation of the site into demo/web/docs: the guides, the reference of the ops, and the
// index that the page searches.
//
//   go run ./wasm/gen build/ops.json && node demo/docs/build.mjs

import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { transformSync } from '../../js/node_modules/esbuild/lib/main.js';
import { escapeHTML, sectionsOf, slugOf } from './markdown.mjs';
import { heading, pageHTML } from './page.mjs';
import { referencePages } from './reference.mjs';

const root = join(import.meta.dirname, '../..'), out = join(root, 'demo/web/docs');
const source = 'https://github.com/rlx-go/rlx/blob/main/';

/** The guides, in the order in which they are read. */
const guides = [
  { name: 'start', file: 'js/README.md', title: 'Start in TypeScript', group: 'TypeScript' },
  { name: 'guide', file: 'js/GUIDE.md', title: 'Guide', group: 'TypeScript' },
  { name: 'layers', file: 'js/LAYERS.md', title: 'Layers', group: 'TypeScript' },
  { name: 'pytorch', file: 'js/PYTORCH.md', title: 'From PyTorch', group: 'TypeScript', rows: true },
  { name: 'parity', file: 'js/PARITY.md', title: 'Only in Go', group: 'TypeScript' },
  { name: 'go', file: 'demo/guide/GUIDE.md', title: 'Guide in Go', group: 'Go' },
];

const pageOfFile = { ...Object.fromEntries(guides.map(({ file, name }) => [file, `${name}.html`])), 'ir/ops/OPS.md': 'index.html#ops' };

/** The address of a link of a file: of a page of the documentation where there is one. */
const linkOf = (file) => (href) => {
  if (href.startsWith('#')) return href;
  const path = href.startsWith(source) ? href.slice(source.length) : /^https?:/.test(href) ? undefined : join(file, '..', href);
  if (path === undefined) return href;
  const [name, anchor] = path.split('#');
  return pageOfFile[name] ? pageOfFile[name] + (anchor ? `#${anchor}` : '') : source + path;
};

/** A guide's text, in which a link with the name of a file as its words has the title of the page. */
const titled = (text) => text.replace(/\[[A-Z]+\.md\]\(\S*?([\w/]+\.md)\)/g, (link, path) => {
  const [file] = Object.keys(pageOfFile).filter((one) => path.endsWith(one)), guide = guides.find((one) => one.file === file);
  return file ? `[${guide?.title ?? 'Ops'}](${source}${file})` : link;
});

/** The JavaScript of an example. Comments and empty lines stay where they are. */
function javaScriptOf(example) {
  const kept = example.replace(/^(\s*)\/\/ /gm, '$1//! ').replace(/\n\n/g, '\n//!empty\n');
  const { code } = transformSync(kept, { loader: 'ts', target: 'esnext', legalComments: 'inline' });
  return code.replace(/^\s*\/\/!empty$/gm, '').replace(/\/\/! /g, '// ');
}

/** The examples that a page cannot run: what they need is not there. */
const elsewhere = /node:|\.rlx\.js/;

/** What is found of the rows of tables: names elsewhere, and what stands for them here. */
const foundRows = (page, sections) => sections.flatMap(({ rows }) => rows.map(([names, here]) => ({ title: plainOf(names), page, anchor: slugOf(names), text: plainOf(here) })));

/** A cell without its marks. */
const plainOf = (cell) => cell.replace(/\[([^\]]+)\]\([^)\s]+\)/g, '$1').replaceAll('`', '');

/** The page of a guide. Each section is found, of a page with `rows` each row of its tables instead. */
function guidePage({ file, rows, ...page }) {
  const runnable = (code) => /^import .* from '@rlx-go\/rlx'/m.test(code) && !elsewhere.test(code) ? javaScriptOf(code) : undefined;
  const [intro, ...sections] = sectionsOf(titled(readFileSync(join(root, file), 'utf8')), { link: linkOf(file), runnable });
  return {
    ...page, lead: intro.html, toc: sections,
    body: sections.map(({ slug, title, html }) => `<section>\n${heading(2, slug, escapeHTML(title))}\n${html}</section>`).join('\n'),
    found: [{ title: page.title, page: page.name, text: intro.text }, ...rows ? foundRows(page.name, sections) : sections.map(({ title, slug, text }) => ({ title, page: page.name, anchor: slug, text }))],
  };
}

/** The first page: where everything is. */
const indexPage = (pages) => ({
  name: 'index', title: 'Documentation', group: 'Overview',
  lead: '<p class="lead">Guides whose programs run where they stand, and a reference of every op.</p>',
  body: ['TypeScript', 'Go'].map((group) => `<section><h2>${group}</h2><ul class="cards">${pages.filter((page) => page.group === group).map((page) =>
    `<li><a href="${page.name}.html"><strong>${escapeHTML(page.title)}</strong> ${page.toc.slice(0, 5).map(({ title }) => escapeHTML(title)).join(' · ')}</a></li>`).join('\n')}</ul></section>`).join('\n')
    + `<section><h2 id="ops">Ops</h2>${pages.filter((page) => page.group === 'Ops').map((page) =>
      `<h3><a href="${page.name}.html">${escapeHTML(page.title)}</a></h3><p class="names">${page.toc.map(({ slug }) => `<a href="${page.name}.html#${slug}"><code>${slug}</code></a>`).join(' ')}</p>`).join('\n')}</section>`,
  found: [],
});

/** What is searched of a text: its words, each once. */
const wordsOf = (text) => [...new Set(text.replace(/https?:\S+/g, '').match(/[A-Za-z][\w-]{2,}/g)?.map((word) => word.toLowerCase()))].slice(0, 120).join(' ');

/** The index: titles, places, and words. An op has its first sentence, and a name of another library what stands for it, which are shown. */
const searchIndex = (pages) => {
  const shown = new Set(pages.filter(({ group, name }) => group === 'Ops' || guides.some((guide) => guide.rows && guide.name === name)));
  return {
    pages: pages.map((page) => ({ name: page.name, title: page.title, shown: shown.has(page) })),
    entries: pages.flatMap((page, at) => page.found.map(({ title, also = '', anchor = '', text }) => [title, also, at, anchor, shown.has(page) && anchor ? text : wordsOf(text)])),
  };
};

const entries = JSON.parse(readFileSync(join(root, 'build/ops.json'), 'utf8'));
const inside = [...guides.map(guidePage), ...referencePages(root, entries)], pages = [indexPage(inside), ...inside];
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
for (const page of pages) writeFileSync(join(out, `${page.name}.html`), pageHTML(page, pages));
writeFileSync(join(out, 'search.json'), JSON.stringify(searchIndex(pages)));
