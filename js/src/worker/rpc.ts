// Calls between threads by messages.

import { asError, type ErrorKind, type ErrorPlace, RlxError } from '../values/errors.js';

/** A Worker, a worker's global scope, or a MessagePort. */
export interface Endpoint {
  postMessage(message: unknown, transfer: Transferable[]): void;
  addEventListener(type: 'message', listener: (event: MessageEvent) => void): void;
}

interface ErrorMessage { kind: ErrorKind; message: string; place: ErrorPlace }
type Answer = { id: number; value?: unknown; error?: ErrorMessage };

/** What can be called from the other thread. */
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

/** Answers calls. Results must be made for the caller: their arrays are given away. */
export function answer(endpoint: Endpoint, handlers: Handlers): void {
  endpoint.addEventListener('message', async ({ data: { id, method, args } }) => {
    const reply: Answer = { id };
    try {
      const handler = handlers[method];
      if (!handler) throw new RlxError('name', `the worker has no method ${method}`);
      reply.value = await handler(...args);
    } catch (reason) {
      reply.error = pack(reason);
    }
    endpoint.postMessage(reply, [...buffersIn(reply.value)]);
  });
}

/** Makes calls. */
export class Caller {
  readonly #open = new Map<number, { resolve(value: never): void; reject(error: RlxError): void }>();
  #next = 0;
  readonly #endpoint: Endpoint;
  #ended: RlxError | undefined;

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint;
    endpoint.addEventListener('message', ({ data: { id, value, error } }: MessageEvent<Answer>) => {
      const call = this.#open.get(id);
      this.#open.delete(id);
      if (error) call?.reject(new RlxError(error.kind, error.message, error.place));
      else call?.resolve(value as never);
    });
  }

  /** Calls a method; buffers in `transfer` move to the other thread. */
  call<T>(method: string, args: unknown[], transfer: Transferable[] = []): Promise<T> {
    if (this.#ended) return Promise.reject(this.#ended);
    return new Promise<T>((resolve, reject) => {
      this.#endpoint.postMessage({ id: this.#next, method, args }, transfer);
      this.#open.set(this.#next++, { resolve, reject });
    });
  }

  /** Rejects all calls, now and later. */
  end(error: RlxError): void {
    this.#ended ??= error;
    for (const { reject } of this.#open.values()) reject(error);
    this.#open.clear();
  }
}
