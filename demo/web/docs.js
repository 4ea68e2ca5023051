// A page of the documentation: search, and examples that run where they stand.

import { fetchOK, find, on } from './page.js';
import { print } from './playground/log.js';
import { Runner } from './playground/runner.js';
import { pack } from './playground/share.js';
import { entriesOf, search } from './search.js';

/** The field and its list of results: a combobox, as ARIA has it. */
class SearchBox {
  #query = find('query');
  #list = find('found');
  #entries;
  #at = 0;

  constructor() {
    on('query', 'focus', () => this.#load().catch(() => {})); // a letter says so
    on('query', 'input', () => this.#show());
    on('query', 'keydown', (event) => this.#key(event));
    on('query', 'blur', () => setTimeout(() => this.#close(), 150)); // a click on a result comes first
    document.addEventListener('keydown', (event) => {
      if (event.key !== '/' || event.target.closest('input, textarea')) return;
      event.preventDefault();
      this.#query.focus();
    });
    find('search').hidden = false;
  }

  #load() {
    this.#entries ??= fetchOK(new URL('docs/search.json', import.meta.url)).then((response) => response.json()).then(entriesOf);
    this.#entries.catch(() => { this.#entries = undefined; }); // the next letter tries again
    return this.#entries;
  }

  async #show() {
    const entries = await this.#load().catch(() => undefined), query = this.#query.value, found = entries ? search(entries, query) : [];
    this.#list.replaceChildren(...found.map(({ title, where, href, shown, text }, i) => {
      const item = document.createElement('li'), link = document.createElement('a'), name = document.createElement(shown ? 'code' : 'strong'), note = document.createElement('small');
      item.setAttribute('role', 'none');
      Object.assign(link, { id: `found-${i}`, href, tabIndex: -1 }).setAttribute('role', 'option');
      name.textContent = title;
      note.textContent = shown ? text : where;
      link.append(name, ' ', note);
      item.append(link);
      return item;
    }));
    if (!found.length && query.trim()) {
      const nothing = document.createElement('li');
      nothing.className = 'nothing';
      nothing.textContent = entries ? 'Nothing found.' : 'The index cannot be loaded: is the device offline?';
      nothing.setAttribute('role', 'option');
      this.#list.append(nothing);
    }
    const open = this.#list.childElementCount > 0;
    this.#list.hidden = !open;
    this.#query.setAttribute('aria-expanded', open);
    this.#select(0);
  }

  #select(at) {
    const items = [...this.#list.querySelectorAll('a')];
    this.#at = items.length ? (at + items.length) % items.length : 0;
    items.forEach((item, i) => item.setAttribute('aria-selected', i === this.#at));
    if (items.length) this.#query.setAttribute('aria-activedescendant', items[this.#at].id);
    else this.#query.removeAttribute('aria-activedescendant');
    items[this.#at]?.scrollIntoView({ block: 'nearest' });
  }

  #key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) this.#select(this.#at + step);
    else if (event.key === 'Enter') this.#list.querySelectorAll('a')[this.#at]?.click();
    else if (event.key === 'Escape') this.#close();
    else return;
    event.preventDefault();
  }

  #close() {
    this.#list.hidden = true;
    this.#query.setAttribute('aria-expanded', false);
  }
}

/** A listing with its buttons: to copy, and for a program to run it or to change it in the playground. */
class Listing {
  #element;
  #code;
  #log = document.createElement('pre');
  #run;
  #runner = new Runner({
    log: ({ text, level }) => print(this.#log, text, level),
    end: () => this.#stop(),
    failed: ({ message }) => {
      print(this.#log, message, 'error');
      this.#stop();
    },
  });

  constructor(element) {
    this.#element = element;
    this.#code = element.querySelector('template')?.content.textContent ?? element.querySelector('code').textContent;
    const buttons = document.createElement('div');
    buttons.className = 'tools';
    if ('run' in element.dataset) {
      this.#run = this.#button(buttons, 'Run', () => this.#toggle());
      this.#run.className = 'primary';
      this.#button(buttons, 'Change it', async () => { location.href = new URL(`playground.html#code=${await pack(this.#code)}`, import.meta.url); });
      Object.assign(this.#log, { className: 'log', tabIndex: 0 }).setAttribute('aria-label', 'What the program printed');
    }
    const copy = this.#button(buttons, 'Copy', async () => {
      await navigator.clipboard.writeText(element.querySelector('code').textContent);
      copy.textContent = 'Copied';
      setTimeout(() => { copy.textContent = 'Copy'; }, 2000);
    });
    element.prepend(buttons);
  }

  #button(place, text, act) {
    const button = document.createElement('button');
    Object.assign(button, { type: 'button', textContent: text });
    button.addEventListener('click', act);
    place.append(button);
    return button;
  }

  #toggle() {
    if (this.#runner.running) return this.#stop();
    this.#log.replaceChildren();
    this.#element.append(this.#log);
    this.#run.textContent = 'Stop';
    return this.#runner.run(this.#code);
  }

  #stop() {
    const seconds = this.#runner.stop();
    this.#run.textContent = 'Run';
    find('status').textContent = `Ended after ${seconds.toFixed(1)} seconds.`;
  }
}

new SearchBox();
for (const element of document.querySelectorAll('.listed')) new Listing(element);
// Beside the text the list of pages is open; above it, on a narrow screen, it is folded.
const wide = matchMedia('(min-width: 60.01em)'), fold = () => { document.querySelector('.contents').open = wide.matches; };
fold();
wide.addEventListener('change', fold);
document.documentElement.dataset.ready = 'true';
