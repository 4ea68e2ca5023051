// Source with its kinds of words marked: shaders, and the JavaScript of the examples.

const words = {
  wgsl: 'fn|var|let|const|if|else|for|loop|while|break|continue|continuing|return|struct|switch|case|default|true|false',
  js: 'import|from|export|const|let|for|of|async|await|function|return|new',
};
const classes = ['comment', 'text', 'keyword', 'attribute', 'number'];
const tokens = Object.fromEntries(Object.entries(words).map(([language, list]) => [
  language, new RegExp(`(\\/\\/.*)|('[^'\n]*'|\`[^\`]*\`)|\\b(${list})\\b|(@\\w+)|\\b(\\d[\\w.]*)\\b`, 'g'),
]));

/**
 * Puts source into an element. Its text stays as it is.
 * @param {HTMLElement} element
 * @param {string} source
 * @param {'wgsl' | 'js'} language
 */
export function highlight(element, source, language) {
  const parts = [];
  let at = 0;
  for (const match of source.matchAll(tokens[language])) {
    parts.push(source.slice(at, match.index));
    const span = document.createElement('span');
    span.className = classes[match.slice(1).findIndex((group) => group !== undefined)];
    span.textContent = match[0];
    parts.push(span);
    at = match.index + match[0].length;
  }
  element.replaceChildren(...parts, source.slice(at));
}
