// The conversation: what was said, and what is being said.

import { generate } from '../rlx/lm.js';
import { count, find, on, perSecond, plain, Slider } from '../page.js';

/** The likeliest tokens that share this much of the probability are the ones drawn from. */
const topP = 0.95;

/** What the model without a chat template begins with, by itself. */
const beginning = 'ROMEO:\n';

/** The conversation with an open model. */
export class Talk {
  #open;
  #messages = [];
  #stop;
  #temperature = new Slider('temperature', plain);

  constructor() {
    on('talk-form', 'submit', (event) => {
      event.preventDefault();
      return this.#stop ? this.stop() : this.#send();
    });
    find('message').addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      find('talk-form').requestSubmit();
    });
    on('clear', 'click', () => this.clear());
  }

  /** Whether the model was made for conversations; else it continues a text. */
  get #chats() { return this.#open?.model.template !== undefined; }

  /** What the button says that sends. */
  get #sends() { return this.#chats ? 'Send' : 'Continue'; }

  /** Begins with a model: { model, tokenizer }. Without one nothing can be sent. */
  async begin(open) {
    await this.stop();
    this.#open = open;
    await this.clear();
    for (const id of ['message', 'send', 'clear']) find(id).disabled = !open;
    if (!open) return;
    find('talk-title').textContent = this.#chats ? 'Conversation' : 'Text';
    find('message-label').textContent = this.#chats ? 'Your message' : 'A text for the model to continue';
    find('clear').textContent = this.#chats ? 'New chat' : 'Clear';
    find('send').textContent = this.#sends;
    find('message').value = this.#chats ? '' : beginning;
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
    find('log').replaceChildren();
    for (const id of ['rate', 'prompt-rate', 'used']) find(id).textContent = '–';
  }

  /** Sends what is in the box, as a click would. */
  start() { find('talk-form').requestSubmit(); }

  async #send() {
    const box = find('message'), text = box.value;
    if (!this.#open || !text.trim()) return;
    if (this.#chats) box.value = '';
    const saying = this.#say(text);
    this.#said = saying.catch(() => {});
    await saying;
  }

  async #say(text) {
    const stop = this.#stop = new AbortController(), shown = this.#chats ? this.#turn(text) : this.#page(text);
    find('send').textContent = 'Stop';
    find('log').setAttribute('aria-busy', 'true');
    let answer = '';
    try {
      const prompt = this.#chats ? [...this.#messages, { role: 'user', content: text }] : text, { model, tokenizer } = this.#open;
      const temperature = this.#temperature.value, generation = generate(model, tokenizer, prompt, { temperature, topP, signal: stop.signal });
      for await (const piece of generation) {
        answer += piece.text;
        shown.append(piece.text);
        this.#figures(generation.stats, model);
      }
      if (generation.finish === 'length') this.#note(`The context of the model is full: it stops here.${this.#chats ? ' Begin a new chat.' : ''}`);
    } catch (error) {
      if (error.kind !== 'abort') {
        if (!answer) shown.textContent = '…';
        throw error;
      }
    } finally {
      if (this.#chats && answer) this.#messages.push({ role: 'user', content: text }, { role: 'assistant', content: answer });
      this.#stop = undefined;
      find('send').textContent = this.#sends;
      find('log').setAttribute('aria-busy', 'false');
    }
  }

  /** Adds a remark, which is not the model's. */
  #note(text) {
    const log = find('log');
    log.append(Object.assign(document.createElement('p'), { className: 'note', textContent: text }));
    log.scrollTop = log.scrollHeight;
  }

  /** Adds a message and an answer to be. */
  #turn(text) {
    const log = find('log'), [asked, answer] = ['user', 'model-text'].map((kind) => Object.assign(document.createElement('p'), { className: kind }));
    asked.textContent = text;
    log.append(asked, answer);
    return this.#follow(answer);
  }

  /** Begins a text that goes on. */
  #page(text) {
    const page = Object.assign(document.createElement('p'), { className: 'sheet-text prose' }), given = Object.assign(document.createElement('span'), { className: 'given', textContent: text });
    page.append(given);
    find('log').replaceChildren(page);
    return this.#follow(page);
  }

  /** A text whose end stays in sight, unless the visitor looks elsewhere. */
  #follow(node) {
    const log = find('log');
    log.scrollTop = log.scrollHeight;
    return {
      append(text) {
        const follows = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
        node.append(text);
        if (follows) log.scrollTop = log.scrollHeight;
      },
      set textContent(text) { node.textContent = text; },
    };
  }

  #figures({ decodeRate, prefillRate, promptTokens, tokens }, { context }) {
    find('rate').textContent = decodeRate ? perSecond(decodeRate) : '–';
    find('prompt-rate').textContent = perSecond(prefillRate);
    find('used').textContent = `${count(promptTokens + tokens)} of ${count(context)}`;
  }
}
