// TypeScript's service, in a worker that is loaded with the first call.

/** What is said where a call has no answer. */
const failed = () => new Error(`what checks types cannot be loaded${navigator.onLine ? '' : ': this device is offline'}`);

export class Types {
  #worker;
  #count = 0;
  /** The calls without an answer, by number. */
  #waiting = new Map();
  /** Whether a call has had an answer: the next does not wait for a download. */
  loaded = false;

  /** What is wrong with a program: {start, end, line, message}[]. */
  check(source) { return this.#call('check', source); }

  /** What there is to say of a place in a program: see Language.at. */
  at(source, place, typing) { return this.#call('at', source, place, typing); }

  /** The JavaScript of a program: {code, lines, wrong}. */
  transpile(source) { return this.#call('transpile', source); }

  #call(call, ...given) {
    this.#worker ??= this.#start();
    return new Promise((resolve, reject) => {
      this.#waiting.set(++this.#count, { resolve, reject });
      this.#worker.postMessage({ id: this.#count, call, given });
    });
  }

  #start() {
    const worker = new Worker(new URL('../assets/types.js', import.meta.url), { type: 'module' });
    worker.onerror = (event) => {
      event.preventDefault();
      this.#end();
    };
    worker.onmessage = ({ data: { id, result, error } }) => {
      if (error !== undefined) return this.#end();
      this.loaded = true;
      this.#waiting.get(id).resolve(result);
      this.#waiting.delete(id);
    };
    return worker;
  }

  /** Ends a worker that has failed. The next call tries again. */
  #end() {
    this.#worker.terminate();
    this.#worker = undefined;
    this.loaded = false;
    for (const { reject } of this.#waiting.values()) reject(failed());
    this.#waiting.clear();
  }
}
