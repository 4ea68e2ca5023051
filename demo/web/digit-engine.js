// The networks that read digits.

import { Engine, open as openPlan } from './engine.js';

/** What the page offers to train. */
export const models = {
  mlp: { title: 'MLP', filters: 'w1', units: 128, side: 8, rate: 2e-3, text: '64 → 128 → 64 → 10: 17,226 weights' },
  cnn: { title: 'CNN', filters: 'conv1', units: 16, side: 3, rate: 3e-3, text: 'two 3×3 convolutions: 71,754 weights' },
};

/** The name of a model's files. */
export const fileOf = (name) => `digits-${name}`;

/**
 * Opens a program for a model.
 * @param {'mlp' | 'cnn'} name
 * @param {'gpu' | 'cpu'} where
 */
export const open = (name, where) => openPlan(fileOf(name), where);

export class DigitEngine extends Engine {
  #model;
  #digits;

  /**
   * @param {object} program an open program
   * @param {string} name its model's name
   * @param {import('./digit-data.js').Digits} digits
   */
  constructor(program, name, digits) {
    super(program, { name, rate: models[name].rate, batches: () => digits.batches() });
    this.#model = models[name];
    this.#digits = digits;
  }

  async prepare() {
    await this.program.bind('eval', this.#digits.test);
    /** What the first layer's weights began as. */
    this.start = (await this.evaluate()).filters;
  }

  /** The test digits' loss, how many are right, what each was taken for, and the first layer: one moment, one submission. */
  async evaluate() {
    const values = await this.look('eval', {}, ['loss', 'correct', 'predicted', this.#model.filters]);
    return { loss: values.loss[0], correct: values.correct[0], predicted: values.predicted, filters: values[this.#model.filters] };
  }

  /** The probabilities of the ten digits for one picture. */
  async predict(image) {
    return (await this.look('predict', { images: Float32Array.from(image) }, ['probabilities'])).probabilities;
  }
}
