// The editor: a text area over its own text in colours.

import { highlight } from '../highlight.js';
import { languageOf } from './language.js';

export class Editor {
  #area;
  #colored;
  #lines;
  #marks;
  #wrong;
  #language;
  #onLanguage;

  /**
   * @param {HTMLElement} element has a textarea, a pre for the colours and one for the numbers of lines
   * @param {object} options onPlace gets the place of the cursor, or of the mouse, as either moves, and whether it is the cursor, and
   *   nothing when the mouse leaves; `complete` completes the word at a place, for the Tab key, or returns false;
   *   onNext is called for F8; onLanguage gets the language of the text, as it changes
   */
  constructor(element, { onInput, onRun, onPlace, onNext, complete, onLanguage }) {
    this.#onLanguage = onLanguage;
    this.#area = element.querySelector('textarea');
    this.#colored = element.querySelector('.colored');
    this.#lines = element.querySelector('.lines');
    this.#marks = element.querySelector('.marks');
    this.#area.addEventListener('input', () => {
      this.#wrong = undefined;
      this.#draw();
      onInput();
    });
    this.#area.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        onRun();
      } else if (event.key === 'Enter') {
        event.preventDefault();
        this.#insert(`\n${this.#indent()}`);
      } else if (event.key === 'Tab' && !event.shiftKey && !this.#leaving) {
        event.preventDefault();
        if (!complete?.(this.#area.selectionStart)) this.#insert('  ');
      } else if (event.key === 'F8') {
        event.preventDefault();
        onNext?.();
      }
      this.#leaving = event.key === 'Escape'; // after Escape, Tab goes on to the next control
    });
    if (!onPlace) return;
    for (const type of ['keyup', 'click', 'input']) {
      this.#area.addEventListener(type, ({ key }) => { if (key !== 'F8') onPlace(this.#area.selectionStart, true); });
    }
    this.#area.addEventListener('mousemove', (event) => onPlace(this.#placeAt(event), false));
    this.#area.addEventListener('mouseleave', () => onPlace(undefined, false));
  }

  /** The place in the text below the mouse: all letters are of one width. */
  #placeAt({ offsetX, offsetY }) {
    const { font, lineHeight, paddingTop, paddingLeft } = getComputedStyle(this.#area), context = this.#context ??= document.createElement('canvas').getContext('2d');
    context.font = font;
    const row = Math.floor((offsetY - parseFloat(paddingTop)) / parseFloat(lineHeight)), column = Math.floor((offsetX - parseFloat(paddingLeft)) / context.measureText('m').width);
    const lines = this.source.split('\n'), before = lines.slice(0, Math.max(row, 0)).reduce((sum, line) => sum + line.length + 1, 0);
    return before + Math.min(Math.max(column, 0), lines[row]?.length ?? 0);
  }

  #leaving = false;
  #context;

  /** Where the cursor is. */
  get place() { return this.#area.selectionStart; }

  get source() { return this.#area.value; }
  set source(text) {
    this.#area.value = text;
    this.#area.scrollTop = 0;
    this.mark(undefined);
  }

  /** Marks the line of an error, or none. */
  mark(line) {
    this.#wrong = line;
    this.#draw();
  }

  /** Underlines parts of the text, and no others. @param {{start: number, end: number}[]} parts in order */
  underline(parts) {
    const text = this.source, pieces = [];
    let at = 0;
    for (const { start, end } of parts) {
      if (start < at) continue; // within one before
      const to = Math.max(end, start + 1);
      pieces.push(text.slice(at, start), Object.assign(document.createElement('u'), { textContent: text.slice(start, to).replace(/^\n?$/, ' \n') }));
      at = to;
    }
    this.#marks?.replaceChildren(...pieces);
    this.#area.setAttribute('aria-invalid', parts.length > 0);
  }

  /** Selects a part of the text, and shows it. */
  select(start, end) {
    this.#area.focus();
    this.#area.setSelectionRange(start, end);
    const row = this.source.slice(0, start).split('\n').length - 1, scroller = this.#area.closest('.editor'), height = parseFloat(getComputedStyle(this.#area).lineHeight);
    scroller.scrollTop = Math.max(0, row * height - scroller.clientHeight / 3);
  }

  /** Makes edits of one text: the first one is where the cursor is afterwards. @param {{start: number, end: number, text: string}[]} edits */
  edit(edits) {
    const [{ start, text }] = edits, before = edits.slice(1).filter((one) => one.start <= start).reduce((sum, one) => sum + one.text.length - (one.end - one.start), 0);
    this.#area.focus();
    for (const one of [...edits].sort((a, b) => b.start - a.start)) {
      this.#area.setSelectionRange(one.start, one.end);
      this.#insert(one.text);
    }
    const at = start + before + text.length;
    this.#area.setSelectionRange(at, at);
    this.#area.dispatchEvent(new Event('keyup')); // the cursor has moved
  }

  /** Shows lines as linked with something else, and no others. */
  light(lines) {
    for (const bar of this.#area.parentElement.querySelectorAll('.lit')) bar.remove();
    this.#area.parentElement.prepend(...lines.map((line) => {
      const bar = Object.assign(document.createElement('i'), { className: 'lit' });
      bar.style.setProperty('--at', line - 1);
      return bar;
    }));
  }

  /** The white space that the line of the cursor begins with. */
  #indent() {
    const before = this.source.slice(0, this.#area.selectionStart);
    return /^[ \t]*/.exec(before.slice(before.lastIndexOf('\n') + 1))[0];
  }

  /** Types text, so that the browser can undo it. */
  #insert(text) {
    if (!document.execCommand('insertText', false, text)) {
      this.#area.setRangeText(text, this.#area.selectionStart, this.#area.selectionEnd, 'end');
      this.#area.dispatchEvent(new Event('input'));
    }
  }

  #draw() {
    const language = languageOf(this.source);
    highlight(this.#colored, `${this.source}\n`, language === 'graph' ? 'graph' : 'js');
    if (language !== this.#language) this.#onLanguage?.(language);
    this.#language = language;
    const count = this.source.split('\n').length;
    this.#lines.replaceChildren(...Array.from({ length: count }, (_, i) => {
      const number = document.createElement('span');
      number.textContent = i + 1;
      if (i + 1 === this.#wrong) number.className = 'wrong';
      return number;
    }));
  }
}
