// Where the network runs: a session on the GPU, in a worker; or the CPU, with the reason told.

import { openSession, Trainer } from '/rlx/runtime.js';

/** What the page offers to train. */
export const models = {
  mlp: { title: 'MLP', filters: 'w1', units: 128, side: 8, rate: 2e-3, text: '64 → 128 → 64 → 10: 17,226 weights' },
  cnn: { title: 'CNN', filters: 'conv1', units: 16, side: 3, rate: 3e-3, text: 'two 3×3 convolutions: 71,754 weights' },
};

async function fetchOK(path) {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`${path} cannot be loaded: ${response.status}`);
  return response;
}

/** The plan file of a model, compiled ahead of time for GPUs and CPUs. */
export const planFile = async (name) => (await fetchOK(`assets/digits-${name}.rlxp`)).arrayBuffer();

/** The address with `?worker=off` keeps the session in the page's own thread, where its calls can be watched. */
const worker = new URLSearchParams(globalThis.location?.search).get('worker') !== 'off';

/** Reads under way at a time: the losses of a few steps, an evaluation, a reading of the drawing, a copy to keep. None of them waits. */
const staging = 12;

/**
 * Opens a session for a model.
 * @param {'mlp' | 'cnn'} name
 * @param {'gpu' | 'cpu' | 'best'} where 'best' is the GPU, or the CPU where there is none
 * @returns {Promise<{session: import('@rlx-go/rlx/runtime').Session, kind: 'gpu' | 'cpu', reason?: string}>}
 */
export async function open(name, where = 'best') {
  const session = await openSession(await planFile(name), { worker, staging, on: where }), reason = session.fallbackReason;
  return { kind: session.plan.target === 'wasm' ? 'cpu' : 'gpu', session, ...reason && { reason } };
}

/** The losses of the steps after `since` that a state still has: the step and the loss of each. */
export function lossesSince(tensors, since) {
  const ring = tensors['history/loss']?.data ?? [], steps = tensors['history/count']?.data[0] ?? 0, from = Math.max(since, steps - ring.length);
  return ring.length === 0 ? [] : Array.from({ length: Math.max(0, steps - from) }, (_, i) => ({ step: from + i + 1, loss: ring[(from + i) % ring.length] }));
}

/** A network in training. It tells what happens by calling the functions it is given. */
export class Engine {
  #session;
  #trainer;
  #digits;
  #stop;
  #model;
  /** How many steps its weights had behind them when the trainer took them over, and how many the trainer counted then. */
  #before = 0;
  #counted = 0;
  #looking = Promise.resolve();

  /**
   * @param {object} session an open session
   * @param {string} name its model's name
   * @param {import('./digits.js').Digits} digits
   */
  constructor(session, name, digits) {
    this.#session = session;
    this.#model = models[name];
    this.#digits = digits;
    this.#trainer = new Trainer(session);
    this.name = name;
    /** The learning rate of the next step. */
    this.rate = this.#model.rate;
  }

  get session() { return this.#session; }
  /** How many steps were made since the start. */
  get steps() { return this.#before + this.#trainer.steps - this.#counted; }
  get training() { return this.#stop !== undefined; }

  /** Makes everything new; then, if tensors are given, goes on from what `save` gave, or from what a file has of it. */
  async reset(seed, tensors) {
    await this.#session.run('init', { seed });
    await this.#session.bind('eval', this.#digits.test);
    this.#trainer = new Trainer(this.#session);
    if (tensors) await this.#trainer.load(tensors);
    this.#before = tensors?.['history/count']?.data[0] ?? 0;
    this.#counted = this.#trainer.steps;
  }

  /** The state of one moment, and after how many steps it was. Training goes on meanwhile. */
  async save() {
    const tensors = await this.#inTurn(() => this.#session.save());
    return { steps: tensors['history/count'].data[0], tensors };
  }

  /** Looks at the network after what looks at it now, so that few reads are under way at a time. */
  #inTurn(look) {
    const turn = this.#looking.then(look);
    this.#looking = turn.catch(() => {});
    return turn;
  }

  /**
   * Trains until pause is called, or for a number of steps.
   * @param {{steps?: number, onLosses: (first: number, losses: number[]) => void}} options
   *   onLosses gets the number of the first of the losses' steps, and the losses
   */
  async train({ steps = Infinity, onLosses }) {
    const stop = this.#stop = new AbortController(), batch = this.#digits.batches();
    let every = 1;
    try {
      for (let left = steps; left > 0 && !stop.signal.aborted;) {
        let reported = this.steps;
        // Losses are looked at some twenty times a second, however fast the steps are.
        const from = this.steps, begun = performance.now();
        const { steps: done } = await this.#trainer.run({
          steps: Math.min(left, 20 * every), every, signal: stop.signal,
          batches: (k) => batch(from + k),
          inputs: () => ({ lr: this.rate }),
          onProgress: ({ step, losses }) => {
            // After a load the history has losses from before it, which are not news.
            const fresh = losses.slice(Math.max(0, losses.length - (this.#before + step - this.#counted - reported)));
            if (fresh.length > 0) onLosses(reported, fresh);
            reported += fresh.length;
          },
        });
        left -= done;
        const perSecond = done / (performance.now() - begun) * 1000;
        every = Math.max(1, Math.min(100, Math.round(perSecond / 20)));
      }
    } finally {
      if (this.#stop === stop) this.#stop = undefined;
    }
  }

  /** Ends training before the next step. */
  pause() { this.#stop?.abort(); }

  /** The test digits' loss, how many are right, what each was taken for, and the first layer: one moment, one submission. */
  async evaluate() {
    const values = await this.#look('eval', {}, ['loss', 'correct', 'predicted', this.#model.filters]);
    return { loss: values.loss[0], correct: values.correct[0], predicted: values.predicted, filters: values[this.#model.filters] };
  }

  /** The probabilities of the ten digits for one picture. */
  async predict(image) {
    return (await this.#look('predict', { images: Float32Array.from(image) }, ['probabilities'])).probabilities;
  }

  #look(entry, inputs, read) {
    return this.#inTurn(async () => (await (await this.#session.run(entry, inputs, { read })).reading).values);
  }

  close() {
    this.pause();
    this.#session.close();
  }
}
