// The programs of open entries, one for each combination of sizes, of which the most recently used are kept.

import type { Program } from '../program/program.js';

/** A program for some sizes. */
export interface Bucket {
  readonly key: string;
  /** Its program, once it is compiled. */
  readonly ready: Promise<Program>;
  program?: Program;
  /** The number of calls that need it. */
  users: number;
}

/** Buckets by key, the most recently used last. */
export class Buckets {
  readonly #known = new Map<string, Bucket>();
  readonly #most: number;
  readonly #close: (program: Program) => void;

  /** Keeps up to `most` programs, besides those in use; others are closed by a function. */
  constructor(most: number, close: (program: Program) => void) {
    this.#most = most;
    this.#close = close;
  }

  /** The number of programs that are kept. */
  get size(): number { return this.#known.size; }

  /** The compiled programs. */
  get programs(): Program[] { return [...this.#known.values()].flatMap(({ program }) => program ?? []); }

  /** The bucket of a key, which is made if it is not known, for a caller that gives it back by {@link Buckets.release}. */
  acquire(key: string, make: () => Promise<Program>): Bucket {
    let bucket = this.#known.get(key);
    if (bucket) {
      this.#known.delete(key);
    } else {
      const made: Bucket = bucket = { key, users: 0, ready: make().then((program) => made.program = program) };
      made.ready.catch(() => { if (this.#known.get(key) === made) this.#known.delete(key); }); // the next call tries again
    }
    this.#known.set(key, bucket);
    bucket.users++;
    return bucket;
  }

  /** Ends a use of a bucket, and closes the least recently used ones beyond the bound. */
  release(bucket: Bucket): void {
    bucket.users--;
    for (const [key, { users, program }] of this.#known) {
      if (this.#known.size <= this.#most) return;
      if (users || !program) continue;
      this.#known.delete(key);
      this.#close(program);
    }
  }
}
