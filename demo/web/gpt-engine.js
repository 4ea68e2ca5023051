// Language models of characters, which learn, and write meanwhile.

import { Engine, gpu, openFitting } from './engine.js';
import { Text } from './text.js';

/**
 * What the page offers to train. Rates of 5e-3 and 8e-3 had the least loss on the held-out text after
 * 600 steps of the tiny and of the small model, 1.6e-3 a tenth of a nat more; the others' rates are
 * those of demo/gpt.
 */
export const models = {
  tiny: { title: 'tiny model', context: 32, rate: 5e-3, text: '1 block of width 32, reads 32 characters back: 15,488 weights' },
  small: { title: 'small model', context: 64, rate: 5e-3, text: '2 blocks of width 64, reads 64 characters back: 106,880 weights' },
  medium: { title: 'medium model', context: 128, rate: 2e-3, text: '4 blocks of width 128, reads 128 characters back: 812,288 weights' },
  large: { title: 'large model', context: 256, rate: 1e-3, text: '6 blocks of width 384, reads 256 characters back: 10,745,088 weights. For a large GPU' },
};

/** How many characters the models tell apart. */
export const vocab = 65;

/** The name of a model's files. */
export const fileOf = (name) => `gpt-${name}`;

/** The model to begin with: one that learns in a minute or two on this GPU, on a software GPU, or on the CPU. */
export const fitting = async () => ({ none: 'small', software: 'tiny', hardware: 'medium' })[await gpu()];

/** For how many steps the learning rate rises. */
const warmUp = 100;

/** Characters of the text held out that are measured, at least: their losses deviate by some 1.5 nats, their mean by 0.047. */
const measured = 1024;

/** Runs that write under way at a time: the next is handed to the device, between steps of training, before what the last one wrote is here. */
const ahead = 3;

export class GPTEngine extends Engine {
  #text;
  #rows;
  #context;
  #writing = Promise.resolve();

  /**
   * @param {object} program an open program
   * @param {string} name its model's name
   * @param {import('./text.js').Text} text
   */
  constructor(program, name, text) {
    const { plan } = program, { inputs } = plan.entries.find((entry) => entry.name === 'step');
    const { shape: [rows, context] } = plan.slots[inputs.find((i) => plan.slots[i].name === 'tokens')];
    super(program, { name, rate: models[name].rate, batches: () => text.batches(rows, context) });
    this.#text = text;
    this.#rows = rows;
    this.#context = context;
  }

  static async open(name, text, recover) {
    if (text.length < Text.least(models[name].context)) throw new Error(`your text has ${text.length} characters, and the ${models[name].title} needs ${Text.least(models[name].context)} or more. Choose a smaller model, or a longer text.`);
    const { program, kind, reason } = await openFitting(fileOf(name), name === 'tiny', recover);
    return { engine: new GPTEngine(program, name, text), kind, reason };
  }

  /**
   * How many characters one submission writes: each takes what the way forward of one row takes, and
   * this many together no more than a training step. They fit the context, from which they are read,
   * and 64 the program.
   */
  get #atATime() { return Math.min(3 * this.#rows, this.#context, 64); }

  /** How many characters the network reads at most. */
  get context() { return this.#context; }

  /**
   * What happens inside for a text: how much each head of attention reads of each character, f32[blocks,heads,context,context], and
   * the probabilities of the character after each, f32[context,vocab].
   * @param {number[]} tokens no more than the context
   */
  async lookInside(tokens) {
    const { plan } = this.program, window = new Int32Array(this.#context), { outputs } = plan.entries.find(({ name }) => name === 'look');
    window.set(tokens);
    const [blocks, heads] = plan.slots[outputs.find((i) => plan.slots[i].name === 'weights')].shape;
    return { tokens, blocks, heads, context: this.#context, vocab, ...await this.look('look', { tokens: window }, ['weights', 'expected']) };
  }

  /** How many characters a step learns from. */
  get perStep() { return this.#rows * this.#context; }

  rateAt(step) { return this.rate * Math.min(1, (step + 1) / warmUp); }

  /** The loss on the text held out, in nats a character. */
  evaluate() {
    return this.inTurn(async () => {
      const readings = [];
      for (const inputs of this.#text.held(this.#rows, this.#context, Math.ceil(measured / this.perStep))) {
        readings.push((await this.program.run('eval', inputs, { read: ['loss'] })).reading);
      }
      return (await Promise.all(readings)).reduce((sum, { values }) => sum + values.loss[0], 0) / readings.length;
    });
  }

  /**
   * Writes on from a text, after what is being written now.
   * @param {number[]} tokens the text's, at least one; the last ones count, up to the length of the context
   * @param {{length: number, temperature: number, seed: number, signal: AbortSignal, onTokens: (tokens: Int32Array) => void}} options
   *   length is how many are written, onTokens gets some of them at a time; the same seed draws the same random numbers
   */
  write(tokens, options) {
    const turn = this.#writing.then(() => this.#write(tokens, options));
    this.#writing = turn.catch(() => {});
    return turn;
  }

  async #write(tokens, { length, temperature, seed, signal, onTokens }) {
    if (signal.aborted) return;
    const last = tokens.slice(-this.#context), window = new Int32Array(this.#context), runs = [];
    window.set(last);
    const take = async () => {
      const { steps, reading } = runs.shift(), { values } = await reading, [end] = values['text/length'];
      onTokens(values['text/tokens'].subarray(end - steps, end));
    };
    await this.program.run('prompt', { tokens: window, length: last.length, seed });
    for (let left = length; left > 0 && !signal.aborted; left -= this.#atATime) {
      if (runs.length === ahead) await take();
      const steps = Math.min(left, this.#atATime), { reading } = await this.program.run('write', { temperature }, { steps, read: ['text/tokens', 'text/length'] });
      reading.catch(() => {}); // it is thrown where it is taken, unless one before it was
      runs.push({ steps, reading });
    }
    while (runs.length > 0) await take();
  }
}
