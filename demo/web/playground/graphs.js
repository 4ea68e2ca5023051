// The graphs of a program as text, in which a value shows where it is used, and a line what it belongs to.

import { linked } from './links.js';
import { lineOfLabel } from './place.js';

const parts = /(%\d+)|("[^"]*")|\b(graph|input|param|state|output|constant)\b|( : [a-z]\w*\[[^\]]*\])/g;
const classes = ['value', 'text', 'keyword', 'comment'];

/** Lines that are shown in one task, as a block that the browser lays out once it is in sight: a graph may have tens of thousands. */
const atATime = 50;

/** How many ops a graph has: lines that compute, without those that name. */
export const countOps = (text) => text.split('\n').filter((line) => /^\s+%[\d, %]+ = (?!input|param|state|constant)/.test(line)).length;

/** What a line of a graph belongs to: the line of the program that its label has, or the tensor that it names. */
export function linkOf(text) {
  const line = lineOfLabel(text), [, name] = /^\s*(?:%\d+ = (?:input|param|state) |output |state )"([^"]+)"/.exec(text) ?? [];
  return { lines: line ? [line] : [], names: name ? [name] : [] };
}

/** A graph's text, in which all places of the value that the pointer is over are marked. */
export class GraphText {
  #element;
  /** @type {Map<string, HTMLElement[]>} the places of each value */
  #places = new Map();
  /** @type {Map<HTMLElement, import('./links.js').Link>} what each row belongs to */
  #rows = new Map();
  #marked = [];
  #shown = 0;
  #links;

  /** @param {HTMLElement} element @param {import('./links.js').Links} links */
  constructor(element, links) {
    this.#element = element;
    this.#links = links;
    element.addEventListener('pointerover', ({ target }) => {
      this.#mark(target.dataset.value);
      links.over(this.#linkAt(target));
    });
    element.addEventListener('pointerleave', () => {
      this.#mark();
      links.over();
    });
    element.addEventListener('click', ({ target }) => links.pin(this.#linkAt(target)));
    links.add((link) => {
      for (const [row, own] of this.#rows) row.classList.toggle('lit', linked(link, own));
    });
  }

  /** What the value at an element belongs to, which is where it is computed; or else the row there. */
  #linkAt(element) {
    const [made = element] = this.#places.get(element.dataset.value) ?? [];
    return this.#rows.get(made.closest('.row'));
  }

  /** Shows a text in place of the one before, in tasks none of which is long. */
  async show(text) {
    const turn = ++this.#shown, lines = text.split('\n');
    this.#places.clear();
    this.#rows.clear();
    this.#marked = [];
    this.#element.replaceChildren();
    for (let at = 0; at < lines.length; at += atATime) {
      if (at > 0) await new Promise((resolve) => setTimeout(resolve, 16)); // a frame
      if (turn !== this.#shown) return;
      const block = Object.assign(document.createElement('span'), { className: 'lines' });
      block.append(...lines.slice(at, at + atATime).map((line) => this.#row(line)));
      this.#element.append(block);
    }
    this.#links.refresh();
  }

  #row(text) {
    const row = Object.assign(document.createElement('span'), { className: 'row' });
    let at = 0;
    for (const match of text.matchAll(parts)) {
      const span = document.createElement('span'), kind = classes[match.slice(1).findIndex((group) => group !== undefined)];
      span.className = kind;
      span.textContent = match[0];
      if (kind === 'value') this.#place(match[0], span);
      row.append(text.slice(at, match.index), span);
      at = match.index + match[0].length;
    }
    row.append(`${text.slice(at)}\n`);
    this.#rows.set(row, linkOf(text));
    return row;
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
