// The graphs of a program as text, in which a value shows where it is used.

const parts = /(%\d+)|("[^"]*")|\b(graph|input|param|state|output|constant)\b|( : [a-z]\w*\[[^\]]*\])/g;
const classes = ['value', 'text', 'keyword', 'comment'];

/** How many ops a graph has: lines that compute, without those that name. */
export const countOps = (text) => text.split('\n').filter((line) => /^\s+%[\d, %]+ = (?!input|param|state|constant)/.test(line)).length;

/** Shows a graph's text. */
export function showGraph(element, text) {
  const made = [];
  let at = 0;
  for (const match of text.matchAll(parts)) {
    const span = document.createElement('span'), kind = classes[match.slice(1).findIndex((group) => group !== undefined)];
    span.className = kind;
    span.textContent = match[0];
    if (kind === 'value') span.dataset.value = match[0];
    made.push(text.slice(at, match.index), span);
    at = match.index + match[0].length;
  }
  element.replaceChildren(...made, text.slice(at));
}

/** Marks all places of the value that the pointer is over. */
export function linkValues(element) {
  const mark = ({ target }) => {
    for (const span of element.querySelectorAll('.linked')) span.classList.remove('linked');
    const { value } = target.dataset ?? {};
    if (value) for (const span of element.querySelectorAll(`[data-value="${value}"]`)) span.classList.add('linked');
  };
  element.addEventListener('pointerover', mark);
  element.addEventListener('pointerleave', mark);
}
