/** Resolves in another task of this thread, which a hidden tab does not throttle. */
export const nextMessage = (): Promise<void> => new Promise((resolve) => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    port1.close(); // an open port would keep Node alive
    resolve();
  };
  port2.postMessage(0);
});

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
