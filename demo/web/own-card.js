// The card that takes a text of the visitor.

import { models, vocab } from './gpt-engine.js';
import { mostBytes, readOwn } from './own-text.js';
import { chosen, count, find, on, say } from './page.js';
import { Text } from './text.js';

const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;

/** What is said of a text before it is read. */
function describe(characters) {
  const { context, title } = models[chosen()], least = Text.least(context);
  if (characters === 0) return '';
  return `${count(characters)} characters.${characters < least ? ` The ${title} needs ${count(least)} or more.` : ''}`;
}

/** Calls `learn` with a text of the visitor, or with nothing to go back to the usual one. */
export class OwnCard {
  #learn;

  /** @param {(own?: {text: Text, about: string}) => Promise<void>} learn */
  constructor(learn) {
    this.#learn = learn;
    const source = find('own-source');
    on('own-source', 'input', () => this.#given(describe(source.value.length)));
    on('own-file', 'change', async ({ target }) => {
      const [file] = target.files;
      if (file) await this.#read(file);
      target.value = ''; // the same file may be chosen again
    });
    on('own-learn', 'click', () => this.#begin(source.value));
    on('own-end', 'click', async () => {
      find('own-end').hidden = true;
      this.#given(describe(source.value.length));
      await this.#learn();
    });
  }

  #given(about) {
    find('own-about').textContent = about;
    find('own-learn').disabled = find('own-source').value.trim() === '';
  }

  async #read(file) {
    if (file.size === 0) throw new Error(`${file.name} is empty. Choose a file that has text.`);
    const text = await file.slice(0, mostBytes).text();
    if (text.includes('\0')) throw new Error(`${file.name} is not plain text. Save it as plain text (.txt) first.`);
    find('own-source').value = text;
    this.#given(`${describe(text.length)}${file.size > mostBytes ? ` ${file.name} has ${megabytes(file.size)}, of which these are the first ${megabytes(mostBytes)}.` : ''}`);
  }

  async #begin(string) {
    find('own-learn').disabled = true;
    try {
      const own = await readOwn(string, vocab, Text.least(models[chosen()].context));
      find('own-about').textContent = own.about;
      find('own-end').hidden = false;
      say(own.about);
      await this.#learn(own);
    } finally {
      find('own-learn').disabled = false;
    }
  }
}
