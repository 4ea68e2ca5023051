// Workers on this package's scripts.

import { RlxError } from '../values/errors.js';

/** Starts a worker on a script of this package. */
export function startScript(url: URL, name: string): Worker {
  if (typeof Worker !== 'function') throw new RlxError('device', `no workers here to run ${name}`);
  const start = (at: string | URL) => new Worker(at, { type: 'module', name });
  try {
    return start(url);
  } catch { // from another origin: a worker of ours may still import it
    return start(URL.createObjectURL(new Blob([`import ${JSON.stringify(url.href)}`], { type: 'text/javascript' })));
  }
}

let workerURL: string | undefined;

/** Sets the address of `worker.js`: bundlers rename the file and do not see computed addresses. */
export function setWorkerURL(url: string | undefined): void { workerURL = url; }

/** Starts a worker on this package's `worker.js`, which holds programs or is a helper thread of one. */
export const startWorker = (): Worker => startScript(workerURL ? new URL(workerURL) : new URL('./worker.js', import.meta.url), 'rlx');
