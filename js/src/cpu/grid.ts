// A grid of workgroups that threads share: words in shared memory describe the kernel to run, and each
// thread claims one workgroup after another. The calling thread takes part, so it never waits for a
// thread that has not started.

/** The words by index: the remaining grid with its number; the number of unfinished workgroups; whether one failed. */
const left = 0, open = 1, failed = 2, kernel = 3, count = 4, args = 5;
/** The size of the words: kernels have fewer arguments. */
export const gridBytes = 256;

const leftBits = 8, leftMask = (1 << leftBits) - 1;
/** How often a thread looks for work before it sleeps: kernels mostly follow each other closely. */
const looks = 2000;

export type Kernels = readonly ((...args: number[]) => void)[];

/** Runs the workgroups that this thread can get hold of; own is the address of its workgroup memory. */
function work(words: Int32Array, kernels: Kernels, own: number): void {
  for (;;) {
    const before = Atomics.load(words, left), group = (before & leftMask) - 1;
    if (group < 0) return;
    // The grid number is compared too, so that a claim belongs to the current grid.
    if (Atomics.compareExchange(words, left, before, before - 1) !== before) continue;
    try {
      kernels[words[kernel]!]!(...words.subarray(args, args + words[count]!), group, group + 1, own);
    } catch {
      Atomics.store(words, failed, 1);
    }
    Atomics.sub(words, open, 1);
  }
}

/** Runs a kernel over a grid, together with the threads that help. */
export function runGrid(words: Int32Array, kernels: Kernels, index: number, given: number[], groups: number): void {
  words.set([index, given.length, ...given], kernel);
  Atomics.store(words, open, groups);
  Atomics.store(words, left, ((words[left]! >> leftBits) + 1) << leftBits | groups);
  Atomics.notify(words, left);
  work(words, kernels, 0);
  while (Atomics.load(words, open) > 0);
  if (words[failed]) throw new Error('thread failed');
}

/** Helps for as long as the thread lives. */
export function help(words: Int32Array, kernels: Kernels, own: number): never {
  for (let idle = 0; ;) {
    const now = Atomics.load(words, left);
    if (now & leftMask) {
      work(words, kernels, own);
      idle = 0;
    } else if (++idle > looks) {
      Atomics.wait(words, left, now);
    }
  }
}
