// The graphs of a program as text, in which a value shows where it is used.

const parts = /(%\d+)|("[^"]*")|\b(graph|input|param|state|output|constant)\b|( : [a-z]\w*\[[^\]]*\])/g;
const classes = ['value', 'text', 'keyword', 'comment'];

/** Lines that are shown in one task: a graph may have tens of thousands. */
const atATime = 100;

/** How many ops a graph has: lines that compute, without those that name. */
export const countOps = (text) => text.split('\n').filter((line) => /^\s+%[\d, %]+ = (?!input|param|state|constant)/.test(line)).length;

/** A graph's text, in which all places of the value that the pointer is over are marked. */
export class GraphText {
  #element;
  /** @type {Map<string, HTMLElement[]>} the places of each value */
  #places = new Map();
  #marked = [];
  #shown = 0;

  /** @param {HTMLElement} element */
  constructor(element) {
    this.#element = element;
    element.addEventListener('pointerover', ({ target }) => this.#mark(target.dataset?.value));
    element.addEventListener('pointerleave', () => this.#mark());
  }

  /** Shows a text in place of the one before, in tasks none of which is long. */
  async show(text) {
    const turn = ++this.#shown, lines = text.split('\n');
    this.#places.clear();
    this.#marked = [];
    this.#element.replaceChildren();
    for (let at = 0; at < lines.length; at += atATime) {
      if (at > 0) await new Promise((resolve) => setTimeout(resolve, 16)); // a frame
      if (turn !== this.#shown) return;
      this.#element.append(this.#block(lines.slice(at, at + atATime).join('\n')));
    }
  }

  /** Lines as a block of their own, which the browser lays out once it is in sight. */
  #block(text) {
    const block = Object.assign(document.createElement('span'), { className: 'lines' });
    let at = 0;
    for (const match of text.matchAll(parts)) {
      const span = document.createElement('span'), kind = classes[match.slice(1).findIndex((group) => group !== undefined)];
      span.className = kind;
      span.textContent = match[0];
      if (kind === 'value') this.#place(match[0], span);
      block.append(text.slice(at, match.index), span);
      at = match.index + match[0].length;
    }
    block.append(text.slice(at));
    return block;
  }

  #place(value, span) {
    span.dataset.value = value;
    const places = this.#places.get(value);
    if (places) places.push(span);
    else this.#places.set(value, [span]);
  }

  #mark(value) {
    for (const span of this.#marked) span.classList.remove('linked');
    this.#marked = this.#places.get(value) ?? [];
    for (const span of this.#marked) span.classList.add('linked');
  }
}
