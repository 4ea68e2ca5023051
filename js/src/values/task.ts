/** Resolves in another task of this thread, which a hidden tab does not throttle. */
export const nextMessage = (): Promise<void> => new Promise((resolve) => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    port1.close(); // an open port would keep Node alive
    resolve();
  };
  port2.postMessage(0);
});
