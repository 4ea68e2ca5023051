// The reference of the ops: what their definitions say, their constructors in Go, and the table of OPS.md.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cellsOf, codeBlock, escapeHTML, inlineHTML, signatureBlock, slugOf } from './markdown.mjs';
import { heading } from './page.mjs';

/** The families of ops and the files of each, as the documentation of the Go package lists them. */
function familiesOf(doc) {
  const list = /# Files[^]*?\n((?:\/\/ {3}- [^]*?)+?)\n\/\/\n\/\/ # /.exec(doc)[1].replace(/\n?\/\/ +/g, ' ');
  return list.split(/ - /).map((one) => one.trim()).filter(Boolean).map((one) => {
    const [title, files] = one.replace(/\([^)]*\)/g, '').split(':');
    return { title: title[0].toUpperCase() + title.slice(1), files: files.split(/,| and |;|\./).map((file) => file.trim()).filter(Boolean) };
  });
}

const plainName = (name) => name.toLowerCase().replaceAll('_', '');

/** The files of the Go package: where each op is defined, and its constructors with their comments. */
function goSources(folder) {
  const files = new Map(), constructors = [];
  for (const name of readdirSync(folder).filter((one) => /^[a-z_0-9]+\.go$/.test(one) && !one.endsWith('_test.go')).sort()) {
    const source = readFileSync(join(folder, name), 'utf8');
    for (const [, constant, op] of source.matchAll(/\b(Op\w+)\s+(?:ir\.Op\s+)?= "(\w+)"/g)) files.set(op, { file: name.slice(0, -3), constant });
    for (const [, comment, declared, of, body] of source.matchAll(/((?:^\/\/.*\n)+)(func ([A-Z]\w*)\((?:[^()]|\([^()]*\))*b(?:uilder)? \*ir\.Builder[^{]*?) (?=\{)((?:\{.*\}$)|(?:\{$[^]*?^\}))/gm)) {
      constructors.push({ name: of, declared, doc: comment.replace(/^\/\/ ?/gm, '').trim(), body });
    }
  }
  return { files, constructors };
}

/** The constructors of an op: the one of its name, or else those that name it. */
function constructorsOf(op, { files, constructors }) {
  const named = constructors.filter(({ name }) => [op, op.replace(/^random_/, '')].map(plainName).includes(plainName(name)));
  const mention = new RegExp(`\\b${files.get(op)?.constant}\\b`);
  return named.length ? named : constructors.filter(({ body }) => mention.test(body)).slice(0, 2);
}

/** The rows of OPS.md by op. */
function rowsOf(table) {
  const [head, , ...rows] = table.split('\n').filter((line) => line.startsWith('|')).map(cellsOf);
  return new Map(rows.map((cells) => [/\w+/.exec(cells[0])[0], Object.fromEntries(cells.map((cell, i) => [head[i], cell]))]));
}

const rules = { rule: 'a rule of its own', body: 'that of its body' };
const devices = ['CPU', 'WebGPU', 'CUDA', 'Metal', 'CoreML'];

function factsHTML(row) {
  if (!row) return '';
  const facts = [['Derivative', rules[row.JVP] ?? row.JVP], ['Transpose', rules[row.transpose] ?? row.transpose], ['Batching', rules[row.batch] ?? row.batch], ['NaN', row.NaN],
    ...devices.map((name) => [name, row[name]])];
  return `<details class="facts"><summary>Derivative: ${escapeHTML(facts[0][1])}. More</summary><dl>${facts.slice(1).map(([term, text]) => `<div><dt>${term}</dt><dd>${inlineHTML(text)}</dd></div>`).join('')}</dl></details>`;
}

/** A number as the example's results show it. */
const shortest = (x) => typeof x === 'number' ? String(+x.toPrecision(5)) : x;

const resultsHTML = ({ results }) => `<p class="gives">${results.map(({ type, values }) => `<code>${escapeHTML(type)}</code> ${values.slice(0, 12).map(shortest).join(', ')}${values.length > 12 ? ', …' : ''}`).join('<br>')}</p>`;

const first = (text) => text.split(/\. (?=[A-Z])/)[0].replace(/\.$/, '');

function opHTML(entry, sources, rows) {
  const go = constructorsOf(entry.op, sources), row = rows.get(entry.op);
  const declared = go.map(({ declared: text }) => text).join('\n');
  const notes = go.map(({ doc }) => `<p class="go">${inlineHTML(doc.replace(/\n\n/g, ' ').replace(/\[(\w+(?:\.\w+)?)\]/g, '$1').replace(/\s+/g, ' '))}</p>`).join('');
  const rulesOf = (entry.constraints ?? []).map((one) => `<li>${inlineHTML(one.replace(/^C\d+: /, ''))}</li>`).join('');
  const example = entry.example ? `${codeBlock(entry.example.code, 'ts', entry.example.code)}\n${resultsHTML(entry.example)}` : '';
  return `<section class="op">
${heading(2, entry.op, `<code>${entry.op}</code>`)}
<p>${inlineHTML(entry.doc)}</p>
${entry.method ? `<h3>TypeScript</h3>\n${signatureBlock(entry.method, 'ts')}` : '<p>In TypeScript it is a method of the graph’s builder, which takes functions.</p>'}
${entry.defaults ? `<p>If not given, ${inlineHTML(entry.defaults.join(', '))}.</p>` : ''}
${declared ? `<h3>Go</h3>\n${signatureBlock(declared, 'go')}\n${notes}` : ''}
${rulesOf ? `<h3>Types and shapes</h3>\n<ul>${rulesOf}</ul>` : ''}
${factsHTML(row)}
${example ? `<h3>Example</h3>\n${example}` : ''}
</section>`;
}

/**
 * The pages of the ops, one for each family.
 * @param {string} root the repository
 * @param {object[]} entries what wasm/gen writes
 */
export function referencePages(root, entries) {
  const folder = join(root, 'ir/ops'), sources = goSources(folder), rows = rowsOf(readFileSync(join(folder, 'OPS.md'), 'utf8'));
  const families = familiesOf(readFileSync(join(folder, 'doc.go'), 'utf8')), placed = new Set();
  const pages = families.map(({ title, files }) => {
    const list = entries.filter(({ op }) => !placed.has(op) && files.some((file) => sources.files.get(op)?.file === file || sources.files.get(op)?.file.startsWith(`${file}_`)));
    for (const { op } of list) placed.add(op);
    return pageOf(title, list, sources, rows);
  }).filter(({ toc }) => toc.length);
  const rest = entries.filter(({ op }) => !placed.has(op));
  if (rest.length) throw new Error(`docs: no family of ir/ops/doc.go has ${rest.map(({ op }) => op).join(', ')}`);
  return pages;
}

/** The titles of families whose names in Go's package are no words that a reader looks for. */
const titles = { Moves: 'Shapes and slices', Indices: 'Gather and scatter', Products: 'Products and convolutions', Matrices: 'Linear algebra', 'Rounded numbers': 'Quantization', Devices: 'Several devices' };

function pageOf(family, list, sources, rows) {
  const name = `ops-${slugOf(family)}`;
  return {
    name, title: titles[family] ?? family, group: 'Ops',
    lead: `<p class="lead">${list.length} ops. In TypeScript an op is a method of its first operand <code>x</code>, or of the builder <code>b</code>; in Go it is a function of package <code>ops</code>. The examples run in this page.</p>`,
    toc: list.map(({ op }) => ({ slug: op, title: op })),
    body: list.map((entry) => opHTML(entry, sources, rows)).join('\n'),
    found: list.map(({ op, method, doc }) => ({ title: op, also: /\.(\w+)\(/.exec(method ?? '')?.[1] ?? '', page: name, anchor: op, text: first(doc) })),
  };
}
