// What the editor says of types: errors, underlined and as a list, and what is at a place of the program.

import { find, say } from '../page.js';
import { languageOf } from './language.js';

/** Milliseconds without a change until a program is checked. */
const pause = 300;

export class Checker {
  #types;
  #editor;
  #problems = [];
  #said = '';
  #timer;
  #begun = false;
  #answer;
  /** The last question: answers to others are late. */
  #asked = 0;
  /** What the Tab key would do at the place that was asked about last: {source, at, edits}. */
  #completion;

  /** @param {import('./types.js').Types} types @param {import('./editor.js').Editor} editor */
  constructor(types, editor) {
    this.#types = types;
    this.#editor = editor;
  }

  /** Checks programs from now on. */
  begin() {
    if (this.#begun) return;
    this.#begun = true;
    this.changed();
  }

  /** Forgets the errors of another program, and checks this one soon; `aloud` says what changes to who listens. */
  changed(aloud = false) {
    clearTimeout(this.#timer);
    this.#completion = undefined;
    this.#problems = [];
    this.#editor.underline([]);
    if (this.#begun) this.#timer = setTimeout(() => this.check(aloud), pause);
  }

  /** Checks the program, and shows what is wrong with it. */
  async check(aloud = false) {
    const { source } = this.#editor, isProgram = languageOf(source) === 'program' && source.trim() !== '';
    const found = isProgram ? await this.#types.check(source).catch(() => []) : [];
    if (source !== this.#editor.source) return;
    this.#problems = found;
    this.#editor.underline(found);
    this.#list();
    const heard = found.length > 0 ? `${this.#heading()}. ${textOf(found[0])}` : '';
    if (aloud && heard !== this.#said) say(heard || 'No type errors');
    this.#said = heard;
  }

  #heading() { return this.#problems.length === 1 ? '1 type error' : `${this.#problems.length} type errors`; }

  #list() {
    find('problems').hidden = this.#problems.length === 0;
    find('problems-title').textContent = this.#problems.length > 0 ? this.#heading() : '';
    find('problem-list').replaceChildren(...this.#problems.map((problem) => {
      const item = document.createElement('li'), button = Object.assign(document.createElement('button'), { type: 'button', textContent: textOf(problem) });
      button.addEventListener('click', () => this.#goTo(problem));
      item.append(button);
      return item;
    }));
  }

  /** Selects the next error after the cursor, from the last on the first, and says it. */
  next() {
    const problem = this.#problems.find(({ start }) => start > this.#editor.place) ?? this.#problems[0];
    if (!problem) return say('No type errors');
    this.#goTo(problem);
    return say(textOf(problem));
  }

  #goTo(problem) {
    this.#editor.select(problem.start, problem.end);
    show({ text: textOf(problem) });
  }

  /** Shows what is at a place of the program; where the visitor types, also how it may go on. */
  async hint(at, typing) {
    const { source } = this.#editor, asked = ++this.#asked;
    this.#completion = undefined;
    if (languageOf(source) !== 'program') return;
    const problem = this.#problems.find(({ start, end }) => start <= at && at <= end);
    if (problem && !typing) return show({ text: textOf(problem) });
    await this.#answer; // of the questions meanwhile only the last is put
    if (asked !== this.#asked || source !== this.#editor.source) return;
    const found = await (this.#answer = this.#types.at(source, at, typing).catch(() => ({})));
    if (asked !== this.#asked || source !== this.#editor.source) return;
    const { names: [first] = [] } = found, word = first && first.edits[0].end > first.edits[0].start;
    if (typing && word) this.#completion = { source, at, edits: first.edits };
    if (found.signature || found.names) show(found, word, (edits) => this.#editor.edit(edits));
    else if (problem) show({ text: textOf(problem) });
  }

  /** Completes the word at a place, and returns whether there was one to complete. */
  complete(at) {
    const { source, at: of, edits } = this.#completion ?? {};
    if (source !== this.#editor.source || of !== at) return false;
    this.#editor.edit(edits);
    return true;
  }
}

const textOf = ({ line, message }) => `Line ${line}: ${message}`;

/** Whether names are taken by touch, not by a key. */
const touched = globalThis.matchMedia?.('(hover: none) and (pointer: coarse)').matches;

/** Shows a signature with the argument that is being written, or names to choose from. */
function show({ signature = '', active: [from, to] = [0, 0], text = '', names = [] }, completes = false, choose) {
  const argument = Object.assign(document.createElement('b'), { textContent: signature.slice(from, to) });
  find('hint-code').replaceChildren(...names.length > 0 ? names.flatMap(({ name, edits }) => {
    const button = Object.assign(document.createElement('button'), { type: 'button', textContent: name });
    button.addEventListener('click', () => choose(edits));
    return [button, ' '];
  }) : [signature.slice(0, from), ...to > from ? [argument] : [], signature.slice(to)].filter(Boolean));
  find('hint-text').textContent = names.length > 0 ? completes && !touched ? 'Tab completes the first.' : '' : text;
}
