/** How long a thread may be kept from other tasks, in milliseconds. */
const slice = 8;

/**
 * Returns a function to await now and then: once a time slice is used up it lets the other tasks
 * of the thread run. It does so by messages, which hidden tabs do not throttle; now and then by
 * a timer, so that timers and painting come to their turn.
 */
export function yieldTask(): () => Promise<void> | undefined {
  let begun = performance.now(), turns = 0;
  return () => {
    if (performance.now() - begun < slice) return undefined;
    const byTimer = ++turns % 8 === 0 && globalThis.document?.visibilityState !== 'hidden';
    return (byTimer ? nextTimer() : nextMessage()).then(() => { begun = performance.now(); });
  };
}

const nextTimer = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));

const nextMessage = (): Promise<void> => new Promise((resolve) => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    port1.close(); // an open port would keep Node alive
    resolve();
  };
  port2.postMessage(0);
});
