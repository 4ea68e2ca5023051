// Helper threads for the kernels of a plan, where the page is isolated from other origins and so may
// share memory.

import { allSteps, type Plan } from '../plan/plan.js';
import { maxOf } from '../values/dtype.js';
import { startWorker } from '../worker/start.js';

/** The message that starts a helper thread. */
export interface Help { module: WebAssembly.Module; memory: WebAssembly.Memory; names: string[]; grid: number; own: number }

/** The number of useful helper threads of a plan. WebKit can lack shared memory in an isolated page. */
export function helpers({ entries }: Plan): number {
  if (!globalThis.crossOriginIsolated || !globalThis.SharedArrayBuffer) return 0;
  const groups = maxOf(allSteps(entries), (step) => step.kind === 'dispatch' ? step.groups[0]! : 1, 1);
  return Math.min(groups, navigator.hardwareConcurrency) - 1;
}

/**
 * The module of a plan, with a memory that threads share. It imports a memory with a maximal size, as package
 * internal/codegen/wasmsimd writes it: bit 0 of the last byte marks the maximum, bit 1 a shared memory. In Latin-1 a
 * character is a byte.
 */
export function sharing(code: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const shared = code.slice(), name = 'memory\x02\x01';
  shared[new TextDecoder('latin1').decode(code).indexOf(name) + name.length - 1]! |= 2;
  return shared;
}

/** Starts threads and waits for them: none can start while this one computes. A thread that fails costs time only, with a warning on the console. */
export function startThreads(count: number, help: Omit<Help, 'own'>, ownBytes: number): Promise<Worker[]> {
  return Promise.all(Array.from({ length: count }, (_, i) => new Promise<Worker>((done) => {
    const worker = startWorker();
    worker.onmessage = () => done(worker);
    worker.onerror = () => done((console.warn('rlx: a thread failed'), worker));
    worker.postMessage({ ...help, own: (i + 1) * ownBytes } satisfies Help);
  })));
}
