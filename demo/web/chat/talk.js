// The conversation: what was said, and what is being said.

import { generate } from '../rlx/lm.js';
import { count, find, on, perSecond, plain, Slider } from '../page.js';
import { Answers, made } from './answers.js';
import { JSONForm } from './json.js';

/** The likeliest tokens that share this much of the probability are the ones drawn from. */
const topP = 0.95;

/** What the model without a chat template begins with, by itself. */
const beginning = 'ROMEO:\n';

/** The conversation with an open model. */
export class Talk {
  #open;
  #messages = [];
  #stop;
  /** The answers to the last message, of which one is in #messages. */
  #last;
  #temperature = new Slider('temperature', plain);
  #json = new JSONForm();

  constructor() {
    on('talk-form', 'submit', (event) => {
      event.preventDefault();
      return this.#stop ? this.stop() : this.#send();
    });
    find('message').addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      if (!this.#stop) find('talk-form').requestSubmit(); // which would stop what is being said
    });
    on('clear', 'click', () => this.clear());
  }

  /** Whether the model was made for conversations; else it continues a text. */
  get #chats() { return this.#open?.model.template !== undefined; }

  /** What the button says that sends. */
  get #sends() { return this.#chats ? 'Send' : 'Continue'; }

  /**
   * Begins with a model: { model, tokenizer, answers }, the last being how many it writes at once. Without one nothing
   * can be sent. What was said is kept if it is the same model, opened once more.
   */
  async begin(open, same = false) {
    await this.stop();
    this.#open = open;
    if (!same) await this.clear();
    for (const id of ['message', 'send', 'clear']) find(id).disabled = !open;
    if (!open) return;
    find('talk-title').textContent = this.#chats ? 'Conversation' : 'Text';
    find('message-label').textContent = this.#chats ? 'Your message' : 'A text for the model to continue';
    find('answers-label').textContent = this.#chats ? 'Answers at once' : 'Texts at once';
    find('clear').textContent = this.#chats ? 'New chat' : 'Clear';
    find('send').textContent = this.#sends;
    if (!same) find('message').value = this.#chats ? '' : beginning;
    this.#json.possible = this.#chats;
  }

  /** Ends what is being said. */
  async stop() {
    this.#stop?.abort();
    await this.#said;
  }

  #said = Promise.resolve();

  async clear() {
    await this.stop();
    this.#messages = [];
    this.#last = undefined;
    find('log').replaceChildren();
    for (const id of ['rate', 'prompt-rate', 'used']) find(id).textContent = '–';
  }

  /** Sends what is in the box, as a click would. */
  start() { find('talk-form').requestSubmit(); }

  async #send() {
    const text = find('message').value;
    if (!this.#open || !text.trim()) return;
    const saying = this.#say(text);
    this.#said = saying.catch(() => {});
    await saying;
  }

  async #say(text) {
    const stop = this.#stop = new AbortController(), { model, tokenizer, answers } = this.#open, content = this.#chats ? this.#json.message(text) : text;
    const prompt = this.#chats ? [...this.#messages, { role: 'user', content }] : content, json = this.#json.chosen;
    find('send').textContent = 'Stop';
    find('log').setAttribute('aria-busy', 'true');
    let shown;
    try {
      const grammar = await this.#json.grammar(tokenizer), options = { temperature: this.#temperature.value, topP, signal: stop.signal };
      shown = this.#last = this.#show(text, answers, json);
      const generations = shown.texts.map(() => generate(model, tokenizer, prompt, { ...options, allow: grammar?.allow() }));
      await together(stop, generations.map(async (generation, i) => {
        for await (const piece of generation) {
          shown.append(i, piece.text);
          this.#figures(generations.map(({ stats }) => stats), model);
        }
      }));
      if (generations.some(({ finish }) => finish === 'length')) shown.note(`The context of the model is full: it stops here.${this.#chats ? ' Begin a new chat.' : ''}`);
      if (answers > 1 && options.temperature === 0) shown.note('At temperature 0 all of them are the same: raise it to compare.');
    } finally {
      const answer = shown?.texts.find(Boolean);
      if (this.#chats && answer) this.#messages.push({ role: 'user', content }, { role: 'assistant', content: answer });
      shown?.end(this.#chats && ((i) => { this.#messages.at(-1).content = shown.texts[i]; }));
      this.#stop = undefined;
      find('send').textContent = this.#sends;
      find('log').setAttribute('aria-busy', 'false');
    }
  }

  /** Shows a message, and where its answers come; or a text that goes on. */
  #show(text, answers, json) {
    if (!this.#chats) return new Answers(answers, { kind: 'sheet-text', look: 'prose', given: text, alone: true });
    find('message').value = '';
    this.#last?.settle();
    find('log').append(made('p', 'user', text));
    return new Answers(answers, { kind: 'model-text', look: json ? 'mono' : '' });
  }

  /** The figures of texts that are written at once: tokens per second are those of all. */
  #figures(all, { context }) {
    const rate = all.reduce((sum, { decodeRate }) => sum + decodeRate, 0);
    find('rate').textContent = rate ? perSecond(rate) : '–';
    find('prompt-rate').textContent = perSecond(all[0].prefillRate);
    find('used').textContent = `${count(Math.max(...all.map(({ promptTokens, tokens }) => promptTokens + tokens)))} of ${count(context)}`;
  }
}

/** Waits for texts that are written at once: if one fails, the others end, too. That the visitor ends them is no error. */
async function together(stop, writing) {
  try {
    await Promise.all(writing);
  } catch (error) {
    stop.abort();
    await Promise.allSettled(writing);
    if (error.kind !== 'abort') throw error;
  }
}
