// The page around what a page of the documentation says.

import { document, header } from '../pages/layout.mjs';
import { escapeHTML } from './markdown.mjs';

/** From the folder of these pages to that of the site. */
const base = '../';

const search = `  <div id="search" class="search" role="search" hidden>
    <input id="query" type="search" role="combobox" aria-label="Search the documentation" aria-expanded="false" aria-controls="found" aria-autocomplete="list" autocomplete="off" spellcheck="false" placeholder="Search guides and ops (press /)">
    <ul id="found" role="listbox" aria-label="Results" hidden></ul>
  </div>
`;

/** The list of all pages, in which the page itself is marked. */
function contents(pages, name) {
  const groups = Map.groupBy ? Map.groupBy(pages, ({ group }) => group) : groupBy(pages);
  return [...groups].map(([group, list]) => `<h2>${group}</h2>\n<ul>\n${list.map((page) =>
    `<li><a href="${page.name}.html"${page.name === name ? ' aria-current="page"' : ''}>${escapeHTML(page.title)}</a></li>`).join('\n')}\n</ul>`).join('\n');
}

function groupBy(pages) {
  const groups = new Map();
  for (const page of pages) groups.set(page.group, [...groups.get(page.group) ?? [], page]);
  return groups;
}

/** A heading that can be linked to. */
export const heading = (level, id, html) => `<h${level} id="${id}">${html} <a class="anchor" href="#${id}" aria-label="Link to this section">#</a></h${level}>`;

/** Links to the pages before and after. */
function neighbours(pages, name) {
  const at = pages.findIndex((page) => page.name === name), link = (page, rel, word) => page ? `<a class="button" rel="${rel}" href="${page.name}.html"><small>${word}</small> ${escapeHTML(page.title)}</a>` : '<span></span>';
  return `<nav class="turn" aria-label="Previous and next page">${link(pages[at - 1], 'prev', 'Previous')}${link(pages[at + 1], 'next', 'Next')}</nav>`;
}

/**
 * A whole page.
 * @param {{name: string, title: string, group: string, lead: string, toc?: {slug: string, title: string}[], body: string}} page
 * @param {object[]} pages all pages, in order
 */
export const pageHTML = ({ name, title, lead, toc = [], body }, pages) => document({
  base, attributes: ' class="docs"',
  head: `<title>${escapeHTML(title)} — rlx</title>
<link rel="stylesheet" href="../docs.css">
<script type="module" src="../docs.js"></script>
`,
  body: `${header({ base, current: 'docs/', kind: 'true', more: search })}
<div class="columns-2">
<details class="contents">
<summary>All pages</summary>
<nav aria-label="Documentation">
${contents(pages, name)}
</nav>
</details>
<main id="main">
<h1>${escapeHTML(title)}</h1>
${lead}
${toc.length > 1 ? `<nav class="toc" aria-label="On this page"><ul>${toc.map(({ slug, title: of }) => `<li><a href="#${slug}">${escapeHTML(of)}</a></li>`).join(' ')}</ul></nav>` : ''}
${body}
${neighbours(pages, name)}
</main>
</div>`,
});
