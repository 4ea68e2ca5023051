// Markdown as this project writes it, as HTML: headings, paragraphs, lists, tables, fenced code, and
// within a line code, strong text, emphasis and links. HTML comments are left out.

import { colored } from '../web/highlight.js';

export const escapeHTML = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

/** The anchor of a heading. */
export const slugOf = (text) => text.toLowerCase().replace(/`/g, '').replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '');

/** Text of a line as HTML. `link` maps the address of a link. */
export function inlineHTML(text, link = (href) => href) {
  const codes = [];
  const held = text.replace(/(`+)(.+?)\1/g, (_, __, code) => `\u0000${codes.push(code) - 1}\u0000`);
  return escapeHTML(held)
    .replace(/\[([^\]]+)\]\(([^)\s]+)\)/g, (_, label, href) => `<a href="${link(href)}">${label}</a>`)
    .replace(/\*\*(.+?)\*\*/g, '<strong>$1</strong>')
    .replace(/(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])/g, '<em>$1</em>')
    .replace(/\u0000(\d+)\u0000/g, (_, i) => `<code>${escapeHTML(codes[i])}</code>`);
}

/** Source with its kinds of words marked. */
export const codeHTML = (source, language) => colored(source, language)
  .map(({ text, kind }) => kind ? `<span class="${kind}">${escapeHTML(text)}</span>` : escapeHTML(text)).join('');

/** What each language of a fence is highlighted as. */
const languages = { ts: 'js', js: 'js', go: 'go' };

/** The blocks of a text: { kind, ... } in order. */
function blocksOf(text) {
  const lines = text.replace(/<!--[^]*?-->\n?/g, '').split('\n'), blocks = [];
  const take = (matches) => {
    const taken = [];
    while (lines.length && matches(lines[0])) taken.push(lines.shift());
    return taken;
  };
  while (lines.length) {
    const [line] = lines, heading = /^(#+) (.*)/.exec(line), fence = /^```(\w*)/.exec(line);
    if (fence) {
      lines.shift();
      const source = `${take((one) => !one.startsWith('```')).join('\n')}\n`;
      lines.shift();
      blocks.push({ kind: 'code', language: fence[1], source });
    } else if (heading) {
      lines.shift();
      blocks.push({ kind: 'heading', level: heading[1].length, text: heading[2] });
    } else if (line.startsWith('|')) {
      blocks.push({ kind: 'table', rows: take((one) => one.startsWith('|')).map(cellsOf) });
    } else if (/^(-|\d+\.) /.test(line)) {
      blocks.push({ kind: 'list', ordered: /^\d/.test(line), items: itemsOf(take((one) => /^(-|\d+\.) |^ +\S/.test(one))) });
    } else if (line.trim() === '') {
      lines.shift();
    } else {
      blocks.push({ kind: 'paragraph', text: take((one) => one.trim() !== '' && !/^(#|```|\||- )/.test(one)).join(' ') });
    }
  }
  return blocks;
}

/** The cells of a line of a table. */
export const cellsOf = (line) => line.replace(/^\||\|\s*$/g, '').split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'));

/** The items of a list; a line that is indented goes on with the one before. */
function itemsOf(lines) {
  const items = [];
  for (const line of lines) {
    if (/^(-|\d+\.) /.test(line)) items.push(line.replace(/^(-|\d+\.) /, ''));
    else items[items.length - 1] += ` ${line.trim()}`;
  }
  return items;
}

/** A table. Rows have anchors, by their first cells. */
function tableHTML([head, , ...rows], inline) {
  const row = (cells, tag, at = '') => `<tr${at}>${cells.map((cell) => `<${tag}>${inline(cell)}</${tag}>`).join('')}</tr>`;
  return `<div class="wide" tabindex="0"><table><thead>${row(head, 'th')}</thead><tbody>${rows.map((cells) => row(cells, 'td', ` id="${slugOf(cells[0])}"`)).join('\n')}</tbody></table></div>`;
}

/**
 * A text as HTML, in sections by its headings of the second level; the first section, of level one, has the title.
 * @param {string} text
 * @param {{link?: (href: string) => string, runnable?: (source: string) => string | undefined}} options link maps addresses; runnable
 *   gives the JavaScript of an example in TypeScript that can be run in a page
 * @returns {{title: string, slug: string, html: string, text: string, rows: string[][]}[]} text is what is searched; rows are those of tables
 */
export function sectionsOf(text, { link, runnable = () => undefined } = {}) {
  const sections = [], inline = (one) => inlineHTML(one, link);
  const add = (html, plain = '') => {
    const section = sections.at(-1);
    section.html += `${html}\n`;
    section.text += `${plain} `;
  };
  for (const block of blocksOf(text)) {
    if (block.kind === 'heading' && block.level <= 2) {
      sections.push({ title: block.text.replaceAll('`', ''), slug: slugOf(block.text), html: '', text: '', rows: [] });
    } else if (block.kind === 'heading') {
      add(`<h3 id="${slugOf(block.text)}">${inline(block.text)}</h3>`, block.text);
    } else if (block.kind === 'code') {
      const code = block.language === 'ts' ? runnable(block.source) : undefined;
      add(codeBlock(block.source, block.language, code), block.source.match(/\b[a-z]\w{3,}\b/gi)?.join(' '));
    } else if (block.kind === 'list') {
      const tag = block.ordered ? 'ol' : 'ul';
      add(`<${tag}>${block.items.map((item) => `<li>${inline(item)}</li>`).join('\n')}</${tag}>`, block.items.join(' '));
    } else if (block.kind === 'table') {
      add(tableHTML(block.rows, inline), block.rows.flat().join(' '));
      sections.at(-1).rows.push(...block.rows.slice(2));
    } else {
      add(`<p>${inline(block.text)}</p>`, block.text);
    }
  }
  return sections;
}

/** How a function is declared, in lines that break where the page ends. */
export const signatureBlock = (source, language) => `<pre class="signature"><code>${codeHTML(source, languages[language])}</code></pre>`;

/** A listing; with JavaScript that runs it, it can be run in place. */
export function codeBlock(source, language, runs) {
  const known = languages[language], shown = known ? codeHTML(source, known) : escapeHTML(source);
  const hidden = runs === undefined || runs === source ? '' : `<template>${escapeHTML(runs)}</template>`;
  return `<div class="listed"${runs === undefined ? '' : ' data-run'}><pre tabindex="0"><code>${shown}</code></pre>${hidden}</div>`;
}
