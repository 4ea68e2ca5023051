// What a model writes, as the page shows it: one text, or several beside each other.

import { find, on } from '../page.js';

/** An element with a class and a text. */
export const made = (tag, className, textContent = '') => Object.assign(document.createElement(tag), { className, textContent });

/** Whether the end of the log is in sight. A visitor who looks elsewhere is not moved. */
const atEnd = (log) => log.scrollHeight - log.scrollTop - log.clientHeight < 40;

/** Texts that come. */
export class Answers {
  texts;
  #group;
  #parts;

  /**
   * Adds them to the log, empty.
   * @param {number} n how many
   * @param {{kind: string, look: string, given?: string, alone?: boolean}} options the classes of each
   *   and of its text; what each begins with; whether they take the place of all that is there
   */
  constructor(n, { kind, look, given = '', alone = false }) {
    const log = find('log');
    this.texts = new Array(n).fill('');
    this.#parts = this.texts.map((_, i) => {
      const part = made('div', kind), text = made('p', `written ${look}`);
      if (given) text.append(made('span', 'given', given));
      if (n > 1) part.append(made('h3', '', `${alone ? 'Text' : 'Answer'} ${i + 1}`));
      part.append(text);
      return { part, text };
    });
    this.#group = made('div', n > 1 ? 'answers several' : 'answers');
    this.#group.append(...this.#parts.map(({ part }) => part));
    if (alone) log.replaceChildren(this.#group);
    else log.append(this.#group);
    log.scrollTop = log.scrollHeight;
  }

  /** Adds to one of them. */
  append(i, text) {
    const log = find('log'), follows = atEnd(log);
    this.texts[i] += text;
    this.#parts[i].text.append(text);
    if (follows) log.scrollTop = log.scrollHeight;
  }

  /** Adds a remark, which is not the model's. */
  note(text) {
    const log = find('log');
    log.append(made('p', 'note', text));
    log.scrollTop = log.scrollHeight;
  }

  /** Says that nothing more comes. With a function the visitor chooses one of several, whose number it gets. */
  end(choose) {
    const log = find('log'), follows = atEnd(log);
    for (const [i, { part, text }] of this.#parts.entries()) {
      if (!this.texts[i] && !text.textContent) text.textContent = '…';
      if (!choose || this.texts.length === 1 || !this.texts[i]) continue;
      const button = Object.assign(made('button', '', `Go on with answer ${i + 1}`), { type: 'button', id: `choose-${i + 1}` });
      part.append(button);
      on(button.id, 'click', () => {
        choose(i);
        this.settle(i);
        find('message').focus();
      });
    }
    if (follows) log.scrollTop = log.scrollHeight;
  }

  /** Keeps one of them, the first that has a text if the visitor chooses none. */
  settle(chosen = Math.max(0, this.texts.findIndex(Boolean))) {
    if (this.texts.length === 1) return;
    this.#group.classList.remove('several');
    this.#group.replaceChildren(this.#parts[chosen].part);
    for (const one of this.#group.querySelectorAll('h3, button')) one.remove();
    this.texts = [this.texts[chosen]];
  }
}
