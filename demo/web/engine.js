// A network in training: a program on the GPU, in a worker; or on the CPU, with the reason.

import { openProgram, Trainer } from './rlx/runtime.js';
import { fetchOK, isSoftware } from './page.js';

/** A plan file, compiled ahead of time for GPUs and CPUs. */
export const planFile = async (name) => (await fetchOK(`assets/${name}.rlxp`)).arrayBuffer();

/** The address with `?worker=off` keeps the program in the page's own thread, where its calls can be watched. */
const worker = new URLSearchParams(globalThis.location?.search).get('worker') !== 'off';

/** Reads under way at a time: the losses of a few steps, an evaluation, what is read or written meanwhile, a copy to keep. None of them waits. */
const staging = 12;

/**
 * Opens a program for a plan.
 * @param {string} name of the plan file
 * @param {'gpu' | 'cpu' | 'best'} where 'best' is the GPU, or the CPU where there is none
 * @param {import('@rlx-go/rlx/runtime').RecoverOptions} [recover] what is done when the GPU is lost; nothing if not given
 * @returns {Promise<{program: import('@rlx-go/rlx/runtime').Program, kind: 'gpu' | 'cpu', reason?: string}>}
 */
export async function open(name, where = 'best', recover = false) {
  const program = await openProgram(await planFile(name), { worker, staging, on: where, recover }), reason = program.fallbackReason;
  return { kind: kindOf(program), program, ...reason && { reason } };
}

let found;

/** The GPU that the page had at first: 'none', 'software' or 'hardware'. */
export const gpu = () => found ??= Promise.resolve(navigator.gpu?.requestAdapter()).then((adapter) => !adapter ? 'none' : isSoftware(adapter) ? 'software' : 'hardware', () => 'none');

/**
 * Opens a program for a network to train on the GPU, or on the CPU where there is none. A software GPU trains small ones only: a step
 * of others takes it seconds. Chromium ends a program's GPU context once its last step is done, and meanwhile no page gets an adapter,
 * for which its main thread waits.
 * @param {string} name of the plan file
 * @param {boolean} small
 * @param {import('@rlx-go/rlx/runtime').RecoverOptions} [recover]
 */
export async function openFitting(name, small, recover) {
  if (small || await gpu() !== 'software') return open(name, 'best', recover);
  return { ...await open(name, 'cpu', recover), reason: 'the GPU is emulated by software, which takes seconds for a step' };
}

/** Where a program runs. */
export const kindOf = ({ device }) => device.name === 'cpu' ? 'cpu' : 'gpu';

/** The losses of the steps after `since` that a state still has: the step and the loss of each. */
export function lossesSince(tensors, since) {
  const ring = tensors['history/loss']?.data ?? [], steps = tensors['history/count']?.data[0] ?? 0, from = Math.max(since, steps - ring.length);
  return ring.length === 0 ? [] : Array.from({ length: Math.max(0, steps - from) }, (_, i) => ({ step: from + i + 1, loss: ring[(from + i) % ring.length] }));
}

/** A network in training. It reports events by calling the functions it is given. */
export class Engine {
  #program;
  #trainer;
  #batches;
  #stop;
  /** How many steps its weights had behind them when the trainer took them over, and how many the trainer counted then. */
  #before = 0;
  #counted = 0;
  #looking = Promise.resolve();

  /**
   * @param {object} program an open program
   * @param {{name: string, rate: number, batches: () => (step: number) => object}} options the model's
   *   name and learning rate; batches gives a function that gives the inputs of a step
   */
  constructor(program, { name, rate, batches }) {
    this.#program = program;
    this.#batches = batches;
    this.#trainer = new Trainer(program);
    this.name = name;
    /** The learning rate of the next step. */
    this.rate = rate;
    /** Whether a later visit may go on from it: what it learns from is there then, too. */
    this.lasting = true;
  }

  get program() { return this.#program; }
  /** How many steps were made since the start. */
  get steps() { return this.#before + this.#trainer.steps - this.#counted; }
  get training() { return this.#stop !== undefined; }

  /** Makes everything new; then, if tensors are given, continues from those of `save`, or from those in a file. */
  async reset(seed, tensors) {
    await this.#program.run('init', { seed });
    await this.prepare();
    this.#trainer = new Trainer(this.#program);
    if (tensors) await this.#trainer.load(tensors);
    this.#before = tensors?.['history/count']?.data[0] ?? 0;
    this.#counted = this.#trainer.steps;
  }

  /** What is to be done with a new network. */
  async prepare() {}

  /** The learning rate of a step. */
  rateAt() { return this.rate; }

  /** The state at one moment, and the number of steps before it. Training continues meanwhile. */
  async save() {
    const tensors = await this.inTurn(() => this.#program.save());
    return { steps: tensors['history/count'].data[0], tensors };
  }

  /** Looks at the network after what looks at it now, so that few reads are under way at a time. */
  inTurn(look) {
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
    const stop = this.#stop = new AbortController(), batch = this.#batches();
    let every = 1;
    try {
      for (let left = steps; left > 0 && !stop.signal.aborted;) {
        let reported = this.steps;
        // Losses are looked at some twenty times a second, however fast the steps are.
        const begun = performance.now();
        const { steps: done } = await this.#trainer.run({
          steps: Math.min(left, 20 * every), every, signal: stop.signal,
          batches: () => batch(this.steps), // which is less after a lost GPU
          inputs: () => ({ lr: this.rateAt(this.steps) }),
          onProgress: ({ step, losses }) => {
            // After a load the history has losses from before it, which are not news; nor are those of steps that are made again.
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

  /** Runs an entry, in its turn, and reads its results: one moment, one submission. */
  look(entry, inputs, read) {
    return this.inTurn(async () => (await (await this.#program.run(entry, inputs, { read })).reading).values);
  }

  close() {
    this.pause();
    this.#program.close();
  }
}
