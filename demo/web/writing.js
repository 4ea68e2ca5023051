// What a language model writes: samples while it learns, and on from what a visitor began.

import { chosen, count, find, on, plain, say, Slider } from './page.js';

/** Characters of a sample, and of what is written on request. */
const sampleLength = 320, answerLength = 480;

/** What a visitor may begin with. */
const usualPrompt = 'ROMEO:';

/**
 * While training a sample is written at this interval, in milliseconds, with motion and with
 * reduced motion; and after this many steps, which take several times as long as a sample.
 */
const sampleEvery = 1000, calmlyEvery = 5000, sampleSteps = 20;

/** How often is looked whether a sample is due, in milliseconds. */
const lookEvery = 50;

/** Samples of these steps, two for each power of ten, are kept to look at; this many characters of each. */
const milestones = [0, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000], excerpt = 90;

const calm = matchMedia('(prefers-reduced-motion: reduce)');
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const span = (className = '') => Object.assign(document.createElement('span'), { className });

/** A text that is written over the one before, of which the rest stays until then. */
class Paper {
  #fresh = span();
  #old = span('old');

  /** @param {HTMLElement} element */
  constructor(element) { element.replaceChildren(this.#fresh, this.#old); }

  begin() {
    this.#old.textContent = this.#fresh.textContent + this.#old.textContent;
    this.#fresh.textContent = '';
  }

  add(text) {
    this.#fresh.append(text);
    this.#old.textContent = this.#old.textContent.slice(text.length);
  }

  /** Removes the rest of the text before. */
  end() { this.#old.textContent = ''; }
}

/** What is written in a page. */
export class Writing {
  #studio;
  #text;
  #standing;
  #temperature = new Slider('temperature', plain);
  #paper = new Paper(find('sample'));
  /** Ends the sample that is being written. */
  #sampling = new AbortController();
  /** Ends what is being written on request, if something is. */
  #asking;
  /** @type {Map<string, {step: number, standing: string, text: string}[]>} samples to look back at, of each model */
  #kept = new Map();

  /**
   * @param {import('./studio.js').Studio} studio
   * @param {() => string} standing how good the model is, in words
   */
  constructor(studio, standing) {
    this.#studio = studio;
    this.#standing = standing;
    on('prompt-form', 'submit', (event) => {
      event.preventDefault();
      return this.#asking ? this.#asking.abort() : this.#ask();
    });
    on('prompt', 'input', () => this.#refuse([]));
  }

  /** Takes the text whose characters are written, and what a visitor may begin with. */
  begin(text, prompt = usualPrompt) {
    this.#text = text;
    this.#kept.clear();
    this.#refuse([]);
    find('prompt').value = prompt;
  }

  /** Shows the text of a network that is new, or of a file, or continues from where it was kept. */
  renew(engine, goesOn) {
    this.#sampling.abort();
    if (!goesOn) this.#kept.delete(engine.name);
    this.#showKept();
    this.#sample(engine);
  }

  /** Writes samples while a network is in training, and one when it is paused. */
  async follow(engine) {
    let due = 0, from = engine.steps; // of which there is a sample
    const goesOn = () => engine.training && this.#studio.engine === engine;
    for (await pause(0); goesOn(); await pause(lookEvery)) {
      if (this.#asking || document.hidden || performance.now() < due || engine.steps < from + sampleSteps) continue;
      due = performance.now() + (calm.matches ? calmlyEvery : sampleEvery);
      await this.#sample(engine);
      from = engine.steps;
    }
    if (this.#studio.engine === engine) await this.#sample(engine);
  }

  /** Writes a sample. The random numbers are the same each time: what changes is the network. */
  async #sample(engine) {
    const { signal } = this.#sampling = new AbortController(), { steps } = engine;
    let written = '';
    const onTokens = (tokens) => {
      if (signal.aborted || this.#studio.engine !== engine) return;
      const text = this.#text.decode(tokens);
      if (!written) this.#paper.begin();
      this.#paper.add(text);
      written += text;
    };
    try {
      await engine.write(this.#text.encode(this.#text.start).tokens, { length: sampleLength, temperature: this.#temperature.value, seed: 1, signal, onTokens });
    } catch (error) {
      return this.#studio.failOf(engine, error);
    }
    if (written.length < sampleLength) return;
    this.#paper.end();
    find('sample-text').textContent = `after ${count(steps)} ${steps === 1 ? 'step' : 'steps'}`;
    this.#keep(engine, steps, written);
  }

  /** Keeps a sample if it is the first one since a milestone. */
  #keep({ name }, step, text) {
    const samples = this.#kept.get(name) ?? [], last = samples.at(-1)?.step ?? -1;
    if (!milestones.some((milestone) => last < milestone && milestone <= step)) return;
    const words = text.replace(/\s+/g, ' ').trim();
    this.#kept.set(name, [...samples, { step, standing: this.#standing(), text: words.slice(0, excerpt) }]);
    this.#showKept();
  }

  #showKept() {
    find('milestones').replaceChildren(...(this.#kept.get(chosen()) ?? []).map(({ step, standing, text }) => {
      const item = document.createElement('li'), about = span('note'), words = span('prose');
      about.textContent = `step ${count(step)}, ${standing}`;
      words.textContent = text;
      item.append(about, words);
      return item;
    }));
  }

  /** Shows which characters of a prompt the network does not have. */
  #refuse(unknown) {
    find('prompt').setAttribute('aria-invalid', String(unknown.length > 0));
    find('prompt-problem').hidden = unknown.length === 0;
    find('prompt-problem').textContent = unknown.length === 0 ? '' : `${this.#text.lacks} ${unknown.map((character) => `“${character}”`).join(' ')}, so the model cannot read it.`;
  }

  /** Writes on from what the visitor began. */
  async #ask() {
    const { engine } = this.#studio, begun = find('prompt').value || this.#text.start, { tokens, unknown } = this.#text.encode(begun);
    this.#refuse(unknown);
    if (unknown.length > 0) return find('prompt').focus();
    const { signal } = this.#asking = new AbortController(), answer = span();
    find('answer').replaceChildren(Object.assign(document.createElement('strong'), { textContent: begun }), answer);
    find('ask').textContent = 'Stop';
    this.#sampling.abort();
    try {
      const [seed] = crypto.getRandomValues(new Uint32Array(1));
      await engine.write(tokens, { length: answerLength, temperature: this.#temperature.value, seed, signal, onTokens: (more) => answer.append(this.#text.decode(more)) });
      say(signal.aborted ? 'Stopped' : 'Written');
    } catch (error) {
      this.#studio.failOf(engine, error);
    } finally {
      this.#asking = undefined;
      find('ask').textContent = 'Continue';
    }
  }
}
