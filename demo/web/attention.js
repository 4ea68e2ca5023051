// A look inside: which characters each head of attention reads, and what the model expects next.

import { find, notify, on, wordsOf } from './page.js';
import { mix, palette, whenToRedraw } from './pictures.js';

/** A text to begin with. */
const usual = 'ROMEO: But soft, what light';

/** Expected characters that are named, and characters read. */
const named = 3;

/** How a character is written in a sentence. */
const quoted = (character) => character === '\n' ? 'a new line' : character === ' ' ? 'a space' : `“${character}”`;
const percent = (p) => `${(100 * p).toFixed(p < 0.1 ? 1 : 0)} %`;

/** The places of the largest numbers, the largest first. */
const largest = (values) => Array.from(values.keys()).sort((a, b) => values[b] - values[a]).slice(0, named);

/** The card of attention. */
export class Attention {
  #engineOf;
  #text;
  /** What the network gave for the text in the box: { tokens, blocks, heads, context, vocab, weights, expected }. */
  #seen;
  #head = 0;
  /** The character that is looked at, and the one of those it reads that is pointed at. */
  #from = 0;
  #to;
  #busy;
  #again = false;
  #inSight = false;

  /** @param {() => import('./gpt-engine.js').GPTEngine | undefined} engineOf the network of this moment */
  constructor(engineOf) {
    this.#engineOf = engineOf;
    on('look-at', 'input', ({ target }) => this.#select(Number(target.value)));
    on('look-prompt', 'input', () => this.refresh());
    on('look-heads', 'change', ({ target }) => {
      this.#head = Number(target.value);
      this.#show();
    });
    for (const type of ['pointerover', 'click']) {
      on('look-text', type, ({ target }) => { if (target.dataset.at) this.#select(Number(target.dataset.at)); });
      on('look-map', type === 'click' ? type : 'pointermove', (event) => this.#point(event));
    }
    on('look-map', 'pointerleave', () => this.#select(this.#from));
    new IntersectionObserver(([{ isIntersecting }]) => {
      this.#inSight = isIntersecting;
      this.refresh();
    }, { rootMargin: '400px' }).observe(find('look'));
    whenToRedraw(() => this.#show());
  }

  /** Takes the text whose characters the network knows. */
  begin(text, prompt = usual) {
    this.#text = text;
    this.#seen = undefined;
    find('look-prompt').value = prompt;
    for (const id of ['look-text', 'look-reads', 'look-expects', 'look-heads']) find(id).replaceChildren();
    find('look-map').width = 0;
  }

  /** Asks the network again, if it can be seen. What is asked for meanwhile is asked for once, then. */
  async refresh() {
    this.#again = true;
    if (this.#busy) return;
    this.#busy = true;
    try {
      while (this.#again && this.#inSight && this.#text && this.#engineOf()) {
        this.#again = false;
        await this.#look(this.#engineOf());
      }
    } finally {
      this.#busy = false;
    }
  }

  async #look(engine) {
    const { tokens, unknown } = this.#text.encode(find('look-prompt').value), { context } = engine;
    find('look-unknown').hidden = unknown.length === 0 && tokens.length <= context;
    find('look-unknown').textContent = unknown.length > 0 ? `The model does not know ${unknown.map(quoted).join(' ')}.` : `The model reads the last ${context} characters.`;
    const read = tokens.slice(-context);
    if (read.length === 0) return;
    const seen = await engine.lookInside(read).catch((error) => {
      if (!['closed', 'lost'].includes(error.kind)) notify(wordsOf(error)); // the page shows what ended the network
    });
    if (!seen || engine !== this.#engineOf()) return;
    const same = this.#seen && this.#seen.blocks === seen.blocks && this.#seen.heads === seen.heads;
    if (!same) this.#makeHeads(seen);
    const end = this.#seen ? this.#from >= this.#seen.tokens.length - 1 : true;
    this.#seen = seen;
    this.#from = end ? read.length - 1 : Math.min(this.#from, read.length - 1);
    this.#makeLetters();
    this.#show();
  }

  /** One picture for each head, to choose it by. */
  #makeHeads({ blocks, heads }) {
    this.#head = 0;
    find('look-heads').style.setProperty('--heads', heads);
    find('look-heads').replaceChildren(...Array.from({ length: blocks * heads }, (_, i) => {
      const label = document.createElement('label'), input = Object.assign(document.createElement('input'), { type: 'radio', name: 'head', value: i, checked: i === 0 });
      const title = `Layer ${Math.floor(i / heads) + 1}, head ${i % heads + 1}`;
      input.setAttribute('aria-label', title);
      label.title = title;
      label.append(input, document.createElement('canvas'));
      return label;
    }));
  }

  #makeLetters() {
    find('look-text').replaceChildren(...this.#seen.tokens.map((token, i) => {
      const letter = document.createElement('span'), character = this.#text.character(token);
      letter.dataset.at = i;
      letter.textContent = character === '\n' ? '↵\n' : character;
      return letter;
    }));
    find('look-at').max = this.#seen.tokens.length - 1;
  }

  /** The weights of a head, from one character to those that it reads. */
  #row(head, from) {
    const { context, weights } = this.#seen, at = (head * context + from) * context;
    return weights.subarray(at, at + from + 1);
  }

  #select(from, to) {
    this.#from = from;
    this.#to = to;
    this.#mark();
  }

  /** The characters under the pointer: the row reads, the column is read. */
  #point({ offsetX, offsetY, currentTarget: { clientWidth, clientHeight } }) {
    if (!this.#seen) return;
    const n = this.#seen.tokens.length, place = (offset, size) => Math.min(n - 1, Math.max(0, Math.floor(offset / size * n)));
    const from = place(offsetY, clientHeight), to = place(offsetX, clientWidth);
    this.#select(from, to <= from ? to : undefined);
  }

  #show() {
    if (!this.#seen) return;
    const n = this.#seen.tokens.length;
    find('look-heads').querySelectorAll('canvas').forEach((canvas, head) => this.#draw(canvas, head, n));
    this.#mark();
  }

  /** Draws the weights of a head, one pixel each, as strong as the largest ones of all rows are. */
  #draw(canvas, head, n) {
    canvas.width = canvas.height = n;
    const context = canvas.getContext('2d'), image = context.createImageData(n, n), { paper, plus } = palette(canvas);
    for (let from = 0; from < n; from++) {
      const row = this.#row(head, from);
      for (let to = 0; to < n; to++) mix(image, 4 * (from * n + to), paper, plus, to <= from ? Math.sqrt(row[to]) : 0);
    }
    context.putImageData(image, 0, 0);
  }

  /** Shows the chosen character in the text, in the map and in words. */
  #mark() {
    if (!this.#seen) return;
    const { tokens, expected, vocab } = this.#seen, n = tokens.length, from = this.#from, row = this.#row(this.#head, from);
    [...find('look-text').children].forEach((letter, i) => {
      letter.style.setProperty('--read', `${i <= from ? 45 * Math.sqrt(row[i]) : 0}%`);
      letter.classList.toggle('from', i === from);
      letter.classList.toggle('to', i === this.#to);
      letter.classList.toggle('later', i > from);
    });
    this.#drawMap(n);
    const name = (token) => quoted(this.#text.character(token)), reads = this.#to === undefined ? largest(row) : [this.#to];
    const next = expected.subarray(from * vocab, (from + 1) * vocab);
    find('look-reads').textContent = `From ${name(tokens[from])} it looks at ${reads.map((i) => `${name(tokens[i])} (${percent(row[i])})`).join(', ')}.`;
    find('look-expects').textContent = `Next the model expects ${largest(next).map((i) => `${name(i)} (${percent(next[i])})`).join(', ')}${from + 1 < n ? `; it is ${name(tokens[from + 1])} (${percent(next[tokens[from + 1]])})` : ''}.`;
    find('look-at').value = from;
    find('look-at').setAttribute('aria-valuetext', `${name(tokens[from])}, character ${from + 1} of ${n}. ${find('look-reads').textContent} ${find('look-expects').textContent}`);
  }

  #drawMap(n) {
    const map = find('look-map'), side = map.clientWidth * devicePixelRatio, cell = side / n, from = this.#from;
    const small = find('look-heads').querySelectorAll('canvas')[this.#head];
    if (!side) return;
    map.width = map.height = side;
    const context = map.getContext('2d');
    context.imageSmoothingEnabled = false;
    context.drawImage(small, 0, 0, side, side);
    context.lineWidth = 2 * devicePixelRatio;
    context.strokeStyle = getComputedStyle(map).getPropertyValue('--right');
    context.strokeRect(0, from * cell, (from + 1) * cell, cell);
    if (this.#to !== undefined) context.strokeRect(this.#to * cell, from * cell, cell, cell);
    map.setAttribute('aria-label', `Weights of attention: each row is a character, each column one that it reads. ${find('look-heads').querySelector('input:checked').ariaLabel}`);
  }
}
