import { nextMessage } from '../values/task.js';

/** The time slice between yields, in milliseconds. */
const slice = 8;

/**
 * Returns a function to await often: at the end of a time slice it yields to the other tasks of the
 * thread. It yields by messages, which hidden tabs do not throttle, and every eighth time by a timer, so
 * that timers and painting run too.
 */
export function yieldTask(): () => Promise<void> | undefined {
  let begun = performance.now(), yields = 0;
  return () => {
    if (performance.now() - begun < slice) return undefined;
    const byTimer = ++yields % 8 === 0 && globalThis.document?.visibilityState !== 'hidden';
    return (byTimer ? nextTimer() : nextMessage()).then(() => { begun = performance.now(); });
  };
}

const nextTimer = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));
