// Calls between threads by messages. Each caller has a separate port, so that several callers of
// one worker do not mix.

import { asError, type ErrorKind, type ErrorPlace, RlxError, unknownName } from '../values/errors.js';

interface ErrorMessage { kind: ErrorKind; message: string; place: ErrorPlace }
interface Outcome { value?: unknown; error?: ErrorMessage | undefined }
interface Answer extends Outcome { id: number; life?: string }

/** The functions that the other thread can call. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- arguments are checked by their caller's types
export type Handlers = Record<string, (...args: any[]) => unknown>;

// A cause may be anything, and not everything can be sent.
function pack(reason: unknown): ErrorMessage {
  const { kind, message, place: { cause, ...place } } = asError(reason);
  return { kind, message, place };
}

/** The buffers of typed arrays in a value: they move instead of being copied. */
function buffersIn(value: unknown, found = new Set<Transferable>()): Set<Transferable> {
  if (ArrayBuffer.isView(value)) found.add(value.buffer as ArrayBuffer);
  else if (value && Object.getPrototypeOf(value) === Object.prototype) for (const part of Object.values(value)) buffersIn(part, found);
  return found;
}

/** Copies arrays that are parts of larger memory, all of which a message would copy: a batch of a data set, for example. */
function partsOf(value: unknown): unknown {
  if (ArrayBuffer.isView(value)) return value.byteLength < value.buffer.byteLength && 'slice' in value ? (value as Uint8Array).slice() : value;
  if (!value || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, partsOf(part)]));
}

/**
 * Answers all callers that connect to this worker, each with separate handlers. The arrays of
 * results are transferred: handlers must not keep them.
 */
export function serve(handlersFor: () => Handlers): void {
  let life: Promise<string | undefined> | undefined;
  addEventListener('message', async ({ data }: MessageEvent<{ port?: MessagePort } | null>) => {
    if (!(data?.port instanceof MessagePort)) return;
    answer(data.port, handlersFor());
    data.port.postMessage({ life: await (life ??= holdLock()) });
  });
}

/** Holds a lock for the lifetime of this thread and returns its name: another thread gets it when this one has ended. */
function holdLock(): Promise<string | undefined> {
  const name = `rlx ${Math.random()}`, locks = globalThis.navigator?.locks;
  return new Promise((resolve) => {
    const held = locks?.request(name, () => new Promise(() => resolve(name))) ?? Promise.reject();
    held.catch(() => resolve(undefined)); // not every page has locks
  });
}

function answer(port: MessagePort, handlers: Handlers): void {
  port.onmessage = async ({ data }) => {
    const { id, method, args } = Object(data);
    if (typeof id !== 'number') return; // not a call, and without a reply
    const reply: Answer = { id };
    try {
      if (!Object.hasOwn(handlers, method) || !Array.isArray(args)) throw unknownName('the worker has no method', method, Object.keys(handlers));
      reply.value = await handlers[method]!(...args);
    } catch (reason) {
      reply.error = pack(reason);
    }
    port.postMessage(reply, [...buffersIn(reply.value)]);
  };
}

/** Makes calls to a worker, until it fails or ends. */
export class Caller {
  readonly #open = new Map<number, (answer: Outcome) => void>();
  readonly #port: MessagePort;
  readonly #listening = new AbortController();
  #next = 0;
  #ended: RlxError | undefined;

  /** `failure` makes the error of all calls once the worker fails or ends; `how` is its cause. */
  constructor(worker: Worker, failure: (how: string) => RlxError) {
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    const { signal } = this.#listening;
    worker.addEventListener('error', ({ message }) => this.end(failure(`failed: ${message ?? 'it could not be loaded'}`)), { signal });
    // Node closes the port when the other thread ends, browsers do not: there its lock is released.
    const gone = () => this.end(failure('was ended'));
    port1.addEventListener('close', gone);
    port1.onmessage = ({ data }: MessageEvent<Answer>) => {
      const { id, value, error, life }: Answer = Object(data);
      if (life) navigator.locks.request(life, { signal }, gone).catch(() => {});
      this.#open.get(id)?.({ value, error });
      this.#open.delete(id);
    };
    worker.postMessage({ port: port2 }, [port2]);
  }

  /** Calls a method. */
  async call<T>(method: string, ...args: unknown[]): Promise<T> { return this.#send(method, args.map(partsOf), []); }

  /** Calls a method with a value whose arrays move, unless they are parts of larger memory. */
  async give<T>(method: string, name: string, given: unknown): Promise<T> {
    const value = partsOf(given);
    return this.#send(method, [name, value], [...buffersIn(value)]);
  }

  async #send<T>(method: string, args: unknown[], moved: Transferable[]): Promise<T> {
    if (this.#ended) throw this.#ended;
    try {
      this.#port.postMessage({ id: this.#next, method, args }, moved);
    } catch (cause) { // not everything can be sent
      throw new RlxError('dtype', `${method}: ${(cause as Error).message}`, { op: method, cause });
    }
    const { value, error } = await new Promise<Outcome>((resolve) => this.#open.set(this.#next++, resolve));
    if (error) throw new RlxError(error.kind, error.message, error.place); // made here, so that its stack shows the caller
    return value as T;
  }

  /** Rejects all calls, now and later. */
  end(error: RlxError): void {
    if (this.#ended) return;
    this.#ended = error;
    this.#port.close();
    this.#listening.abort();
    for (const answer of this.#open.values()) answer({ error });
    this.#open.clear();
  }
}
