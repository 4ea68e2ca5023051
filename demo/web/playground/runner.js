// Runs programs, one at a time, each in a worker of its own.

import { wordsOf } from '../page.js';
import { languageOf } from './language.js';

export class Runner {
  #handlers;
  #worker;
  #begun = 0;
  /** The compiler's module, which all runs share. */
  #compiler;
  #types;

  /**
   * @param {Record<string, (message: object) => void>} handlers what is done with each type of message; those of `end` and `failed` call {@link stop},
   *   and `types` is a program that waits for TypeScript
   * @param {import('./types.js').Types} [types] makes JavaScript of programs; one of its own if not given. Until it is loaded a program runs as it
   *   is, unless it is no JavaScript.
   */
  constructor(handlers, types) {
    this.#handlers = handlers;
    this.#types = types;
  }

  get running() { return this.#worker !== undefined; }

  /** Runs a program; the one that runs already ends. */
  async run(source) {
    this.stop();
    const worker = this.#worker = new Worker(new URL('worker.js', import.meta.url), { type: 'module' });
    const handle = (message) => { if (this.#worker === worker) this.#handlers[message.type]?.(message); };
    const start = (script, compiler) => {
      if (script?.wrong) handle({ type: 'failed', kind: 'SyntaxError', message: script.wrong.message.replace(/\.$/, ''), place: script.wrong });
      else worker.postMessage({ source, script, compiler });
    };
    worker.onmessage = async ({ data }) => {
      if (data.type !== 'unread') return handle(data);
      handle({ type: 'types' });
      const script = await this.#transpile(source).catch(({ message }) => ({ wrong: { message: `${data.message}; should it be TypeScript, ${message}` } }));
      return start(script, await this.#compiler);
    };
    worker.onerror = ({ message }) => handle({ type: 'failed', kind: 'Error', message: message || `the program could not be started${navigator.onLine ? '' : ', as this device is offline: run it again once it is back'}` });
    this.#begun = performance.now();
    this.#compiler ??= WebAssembly.compileStreaming(fetch(new URL('../rlx/rlx.wasm', import.meta.url)));
    try {
      const isProgram = languageOf(source) === 'program', script = isProgram && this.#types?.loaded ? await this.#types.transpile(source).catch(() => undefined) : undefined;
      start(script, await this.#compiler);
    } catch (error) {
      this.#compiler = undefined;
      handle({ type: 'failed', kind: 'Error', message: wordsOf(error) });
    }
  }

  async #transpile(source) {
    this.#types ??= new (await import('./types.js')).Types();
    return this.#types.transpile(source);
  }

  /** Ends the program that runs, and returns how many seconds it ran. */
  stop() {
    this.#worker?.terminate();
    this.#worker = undefined;
    return (performance.now() - this.#begun) / 1000;
  }
}
