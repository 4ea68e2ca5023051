// A grid of workgroups on several threads: words in shared memory describe the kernel to run, and each
// thread claims workgroups one by one. The calling thread takes part, so it never waits for a
// thread that has not started.

/** The words by index: the workgroups to claim with the grid's number; the number of unfinished workgroups; whether one failed. */
const claims = 0, unfinished = 1, failed = 2, kernel = 3, count = 4, args = 5;
/** The size of the words: kernels have fewer arguments. */
export const gridBytes = 256;

const claimBits = 8, claimMask = (1 << claimBits) - 1;
/** The polls for work before a thread sleeps: most kernels follow each other closely. */
const maxSpins = 2000;

export type Kernels = readonly ((...args: number[]) => void)[];

/** Runs the workgroups that this thread claims; own is the address of its workgroup memory. */
function work(words: Int32Array, kernels: Kernels, own: number): void {
  for (;;) {
    const before = Atomics.load(words, claims), group = (before & claimMask) - 1;
    if (group < 0) return;
    // The grid number is compared too, so that a claim belongs to the current grid.
    if (Atomics.compareExchange(words, claims, before, before - 1) !== before) continue;
    try {
      kernels[words[kernel]!]!(...words.subarray(args, args + words[count]!), group, group + 1, own);
    } catch {
      Atomics.store(words, failed, 1);
    }
    Atomics.sub(words, unfinished, 1);
  }
}

/** Runs a kernel over a grid on this thread and the helpers. */
export function runGrid(words: Int32Array, kernels: Kernels, index: number, given: number[], groups: number): void {
  words.set([index, given.length, ...given], kernel);
  Atomics.store(words, unfinished, groups);
  Atomics.store(words, claims, ((words[claims]! >> claimBits) + 1) << claimBits | groups);
  Atomics.notify(words, claims);
  work(words, kernels, 0);
  while (Atomics.load(words, unfinished) > 0);
  if (words[failed]) throw new Error('thread failed');
}

/** Claims workgroups for the lifetime of the thread. */
export function help(words: Int32Array, kernels: Kernels, own: number): never {
  for (let idle = 0; ;) {
    const now = Atomics.load(words, claims);
    if (now & claimMask) {
      work(words, kernels, own);
      idle = 0;
    } else if (++idle > maxSpins) {
      Atomics.wait(words, claims, now);
    }
  }
}
