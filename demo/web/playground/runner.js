// Runs programs, one at a time, each in a worker of its own.

import { wordsOf } from '../page.js';

export class Runner {
  #handlers;
  #worker;
  #begun = 0;
  /** The compiler's module, which all runs share. */
  #compiler;

  /** @param {Record<string, (message: object) => void>} handlers what is done with each type of message; those of `end` and `failed` call {@link stop} */
  constructor(handlers) { this.#handlers = handlers; }

  get running() { return this.#worker !== undefined; }

  /** Runs a program; the one that runs already ends. */
  async run(source) {
    this.stop();
    const worker = this.#worker = new Worker(new URL('worker.js', import.meta.url), { type: 'module' });
    const handle = (message) => { if (this.#worker === worker) this.#handlers[message.type]?.(message); };
    worker.onmessage = ({ data }) => handle(data);
    worker.onerror = ({ message }) => handle({ type: 'failed', kind: 'Error', message: message || `the program could not be started${navigator.onLine ? '' : ', as this device is offline: run it again once it is back'}` });
    this.#begun = performance.now();
    this.#compiler ??= WebAssembly.compileStreaming(fetch(new URL('../rlx/rlx.wasm', import.meta.url)));
    try {
      worker.postMessage({ source, compiler: await this.#compiler });
    } catch (error) {
      this.#compiler = undefined;
      handle({ type: 'failed', kind: 'Error', message: wordsOf(error) });
    }
  }

  /** Ends the program that runs, and returns how many seconds it ran. */
  stop() {
    this.#worker?.terminate();
    this.#worker = undefined;
    return (performance.now() - this.#begun) / 1000;
  }
}
