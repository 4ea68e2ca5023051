// A library in a worker of its own, for contest.js.

import { wordsOf } from '../page.js';

/**
 * Opens a library, as bench/peers.json lists it, and notes its version there. An abort of the signal rejects what is under
 * way and ends the worker.
 */
export async function openPeer(peer, signal) {
  const worker = new Worker(new URL('worker.js', import.meta.url), { type: 'module' });
  const ask = (call, given) => new Promise((resolve, reject) => {
    const end = () => {
      worker.terminate();
      reject(signal.reason);
    };
    const done = (settle) => {
      signal.removeEventListener('abort', end);
      settle();
    };
    signal.addEventListener('abort', end, { once: true });
    worker.onmessage = ({ data }) => done(() => data.error === undefined ? resolve(data.value) : reject(new Error(wordsOf({ message: data.error }))));
    worker.onerror = ({ message }) => done(() => reject(new Error(message || 'its code cannot be loaded')));
    worker.postMessage({ call, given });
  });
  try {
    const { version } = await ask('open', { name: peer.name, wasm: peer.wasm });
    peer.version = version;
  } catch (error) {
    worker.terminate();
    throw error;
  }
  return {
    start: ({ kind, options }) => ask('start', { kind, options }), time: (steps) => ask('time', steps), end: () => ask('end'),
    close: () => worker.terminate(),
  };
}
