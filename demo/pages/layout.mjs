// What all pages of the site share: the head, the links to each other, and what is in every page's body.

/** The pages that each page links to: their addresses from the site's folder, and their names. */
const links = [['digits.html', 'Digits'], ['gpt.html', 'Shakespeare'], ['playground.html', 'Playground'], ['chat.html', 'Chat'], ['docs/', 'Docs'], ['benchmark.html', 'Benchmark']];

/**
 * A whole page. `base` leads from its folder to the site's: nothing, or a path that ends with a slash.
 * @param {{base?: string, head: string, body: string, attributes?: string}} page head and body are HTML
 */
export const document = ({ base = '', head, body, attributes = '' }) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="${base}icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="${base}style.css">
${head}</head>
<body${attributes}>
<a class="skip" href="#main">Skip to the content</a>
${body}
<p id="status" class="hidden" role="status"></p>
</body>
</html>
`;

/**
 * The top of a page: links to the others, the one to itself marked, and what the page has there.
 * @param {{base?: string, current: string, kind?: 'page' | 'true', more: string}} header current is one of the links, or './' for the home page;
 *   kind is 'true' on a page below the one that is linked to
 */
export function header({ base = '', current, kind = 'page', more }) {
  const mark = (href) => href === current ? ` aria-current="${kind}"` : '';
  return `<header>
  <div class="top">
    <p><a class="brand" href="${base || './'}"${mark('./')}><img src="${base}icon.svg" width="28" height="28" alt=""> rlx</a></p>
    <nav aria-label="Pages">
${links.map(([href, title]) => `      <a href="${base}${href}"${mark(href)}>${title}</a>`).join('\n')}
      <a href="https://github.com/rlx-go/rlx" class="spare">Source</a>
    </nav>
  </div>
${more}</header>`;
}

/** The beginning of the main part of a page that runs something. */
const mainStart = `<main id="main">
<noscript><div class="problem"><p>This page needs JavaScript. Without it you can read the <a href="docs/index.html">documentation</a>.</p></div></noscript>
<div id="notice" class="problem notice" role="alert" hidden>
  <p id="notice-text"></p>
  <button type="button" id="close-notice">Close</button>
</div>`;

/**
 * A page of its source: what goes into the head, then <header>, <main> and what follows.
 * @param {string} name of its file
 */
export function pageOf(name, source) {
  const [, head, top, rest] = /^(.*?)\n<header>\n(.*?)<\/header>\n+<main>\n(.*)$/s.exec(source) ?? [];
  if (!rest) throw new Error(`${name}: a page has a head, <header> and <main>`);
  return document({
    head: `${head}<noscript><link rel="stylesheet" href="still.css"></noscript>\n`,
    body: `${header({ current: name === 'index.html' ? './' : name, more: top })}\n\n${mainStart}\n${rest}`,
  });
}
