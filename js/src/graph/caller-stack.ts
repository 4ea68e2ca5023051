// Trims error stacks to the caller of this package, so that they begin at the line with the mistake.

import { RlxError } from '../values/errors.js';

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- whatever is called
export type Called = (...args: any[]) => unknown;
const { captureStackTrace } = Error as { captureStackTrace?(error: object, called: Called): void };

/** Whether a call from outside is in progress: nested calls are then internal. */
let inside = false;
/** Errors that begin at a caller already. */
const trimmed = new WeakSet<object>();

/** Whether {@link trimmedTo} is running. */
let trimming = false;

/** Runs a callback of the caller: its calls come from outside. */
export function callBack<T>(run: () => T): T {
  const before = { inside, trimming };
  inside = trimming = false;
  try {
    return run();
  } finally {
    ({ inside, trimming } = before);
  }
}

/** Runs a function of this package that calls methods of its classes: the stacks of errors begin at the caller of `called`. */
export function trimmedTo<T>(called: Called, run: () => T): T {
  if (trimming) return run();
  trimming = true;
  try {
    return run();
  } catch (reason) {
    trim(reason, called);
    throw reason;
  } finally {
    trimming = false;
  }
}

/** Has the stack of an error begin at the caller of a function, unless it begins at a caller already. */
function trim(reason: unknown, called: Called): void {
  if (!(reason instanceof RlxError) || reason.kind === 'internal' || trimmed.has(reason)) return;
  trimmed.add(reason);
  captureStackTrace?.(reason, called);
}

/** A function whose errors have stacks that begin at its caller. */
export function atCaller<F extends Called>(run: F): F {
  // It calls inside `try`: JavaScriptCore forgets a function that ends with a call.
  const called = function (this: unknown, ...args: unknown[]): unknown {
    if (inside) return run.apply(this, args);
    inside = true;
    try {
      return run.apply(this, args);
    } catch (reason) {
      trim(reason, called);
      throw reason;
    } finally {
      inside = false;
    }
  };
  return called as F;
}

/** {@link atCaller} for all methods of a class. */
export function methodsAtCaller({ prototype }: { prototype: object }): void {
  for (const name of Object.getOwnPropertyNames(prototype)) {
    const method: unknown = Object.getOwnPropertyDescriptor(prototype, name)!.value;
    if (name !== 'constructor' && typeof method === 'function') (prototype as Record<string, unknown>)[name] = atCaller(method as Called); // stays not enumerable
  }
}

/** {@link atCaller} for an async function, which captures the stack before its caller is gone from it. */
export async function asyncAtCaller<T>(called: Called, run: () => Promise<T>): Promise<T> {
  const error: { -readonly [K in keyof RlxError]: RlxError[K] } = new RlxError('internal', '');
  captureStackTrace?.(error, called);
  try {
    return await run();
  } catch (reason) {
    if (!(reason instanceof RlxError) || reason.kind === 'internal') throw reason;
    const { kind, message, place, cause } = reason;
    throw Object.assign(error, { kind, message, place }, cause !== undefined && { cause });
  }
}
