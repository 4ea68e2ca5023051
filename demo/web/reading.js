// The drawing, what the network gets of it, and what it reads.

import { testCount } from './digit-data.js';
import { counts } from './ink.js';
import { Pad } from './pad.js';
import { find } from './page.js';
import { drawCounts, whenToRedraw } from './pictures.js';

/** The test digits that a page shows one after the other until somebody draws, and for how long each, in milliseconds. */
const parade = [3, 1, 4, 1, 5, 9, 2, 6], paradeEvery = 2400;

/** The reading follows the training no more often than this, in milliseconds. */
const liveEvery = 100;

/** A drawing is announced when it has not changed for this long, in milliseconds. */
const settled = 700;

function makeBars() {
  find('bars').replaceChildren(...Array.from({ length: 10 }, (_, digit) => {
    const item = document.createElement('li');
    for (const name of ['digit', 'bar', 'percent']) {
      const part = document.createElement('span');
      part.className = name;
      item.append(part);
    }
    item.firstChild.textContent = digit;
    item.children[1].append(document.createElement('i'));
    return item;
  }));
}

export class Reading {
  #ask;
  #say;
  #pad;
  #digits;
  #picture;
  #truth;
  #parade;
  #busy;
  #again = false;
  #asked = 0;
  #saying;

  /**
   * @param {object} options
   * @param {(image: ArrayLike<number>) => Promise<{probabilities: Float32Array, steps: number} | undefined>} options.ask
   *   runs the network, undefined without one
   * @param {(text: string) => void} options.say announces a text to screen readers
   */
  constructor({ ask, say }) {
    this.#ask = ask;
    this.#say = say;
    makeBars();
    this.#pad = new Pad(find('pad'), (strokes) => this.#drawn(strokes));
    this.#show();
    whenToRedraw(() => this.#show());
  }

  /** Shows test digits one after the other, until something is drawn or chosen, or training begins. Where motion is not wanted the first one stays. */
  begin(digits) {
    this.#digits = digits;
    const next = (i) => this.#sample(digits.firstOf(parade[i]));
    next(0);
    if (matchMedia('(prefers-reduced-motion: reduce)').matches) return;
    let shown = 0;
    this.#parade = setInterval(() => {
      if (document.hidden) return;
      next(++shown);
      if (shown === parade.length - 1) this.stay();
    }, paradeEvery);
  }

  /** Goes on with the digit that is there. */
  stay() { clearInterval(this.#parade); }

  /** Takes any test digit. */
  take() {
    this.stay();
    this.#sample(Math.floor(Math.random() * testCount));
    this.#sayLater();
  }

  clear() { this.#pad.clear(); }

  #sample(i) {
    const { image, label } = this.#digits.testDigit(i);
    this.#pad.show(image);
    find('pad-text').textContent = 'a test digit: draw over it';
    this.#look(image, label);
  }

  #drawn(strokes) {
    this.stay();
    find('pad-text').textContent = 'yours';
    this.#look(strokes.length > 0 ? counts(strokes) : undefined);
    this.#sayLater();
  }

  #look(image, label) {
    this.#picture = image;
    this.#truth = label;
    this.#show();
    this.refresh();
  }

  /** Shows what the network gets. */
  #show() {
    const image = this.#picture, row = (r) => Array.from(image.slice(8 * r, 8 * r + 8)).join(' ');
    drawCounts(find('counts'), image ?? new Uint8Array(64));
    find('counts').setAttribute('aria-label', image ? `What the network gets, row by row: ${Array.from({ length: 8 }, (_, r) => row(r)).join('; ')}` : 'What the network gets: nothing yet');
  }

  #sayLater() {
    clearTimeout(this.#saying);
    this.#saying = setTimeout(async () => {
      await this.#busy;
      this.#say(find('verdict').textContent);
    }, settled);
  }

  /** Runs the network again while it learns, unless it ran just before. */
  live() {
    if (!this.#busy && performance.now() - this.#asked > liveEvery) this.refresh();
  }

  /** Asks the network about the picture that is there when it answers. */
  refresh() {
    if (this.#busy) {
      this.#again = true;
      return this.#busy;
    }
    return this.#busy = this.#read().finally(() => { this.#busy = undefined; });
  }

  async #read() {
    do {
      this.#again = false;
      this.#asked = performance.now();
      const image = this.#picture, answer = image && await this.#ask(image);
      if (image === this.#picture && Boolean(image) === Boolean(answer)) this.#announce(answer); // without a network, what was read last stays
    } while (this.#again);
  }

  #announce(answer) {
    const p = answer?.probabilities ?? new Float32Array(10), best = p.indexOf(Math.max(...p));
    [...find('bars').children].forEach((item, digit) => {
      item.querySelector('i').style.setProperty('width', `${p[digit] * 100}%`);
      item.lastChild.textContent = answer ? `${(p[digit] * 100).toFixed(p[digit] < 0.1 ? 1 : 0)} %` : '';
      item.classList.toggle('best', Boolean(answer) && digit === best);
    });
    const truth = this.#truth === undefined ? '' : ` The digit is ${this.#truth}.`, untrained = answer?.steps === 0 ? ' Not trained yet.' : '';
    find('guess').textContent = answer ? `It reads ${best}.` : 'Draw a digit.';
    find('truth').textContent = answer ? truth + untrained : '';
    find('guess').dataset.is = !answer || this.#truth === undefined ? '' : best === this.#truth ? 'right' : 'wrong';
  }
}
