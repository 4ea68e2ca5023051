// A plan that was made ahead of time, and how its parameters begin.

import { fill } from '../graph/initial.js';
import type { Start } from '../graph/params.js';
import type { Program } from '../program/program.js';
import type { EntryTypes, PlanFile } from '../program/types.js';
import { openProgram, type ProgramOptions } from '../runtime/open.js';
import { checkCount, RlxError } from '../values/errors.js';

export interface MadeOptions extends ProgramOptions {
  /** The seed of random parameters. 0 if not given. */
  seed?: number;
}

/** A module that is compiled ahead of time, or when it is first opened. */
export interface Made<E extends EntryTypes = any> {
  /** The plan file, for {@link openProgram}. */
  plan(): Promise<PlanFile<E>>;
  /** Opens a program, as {@link openProgram} does, with parameters initialised by `initialParams`. */
  open(options?: MadeOptions): Promise<Program<E>>;
}

/** A plan file and how its parameters begin. */
export interface Content { file: PlanFile; starts: readonly Start[] }

/** The module of a plan that a function gets, once. After a failure the next call asks again. @internal */
export function madeOf(get: () => Promise<Content>): Made {
  let getting: Promise<Content> | undefined;
  const content = async () => {
    getting ??= get();
    try {
      return await getting;
    } catch (reason) {
      getting = undefined;
      throw reason;
    }
  };
  return {
    plan: async () => (await content()).file,
    async open({ seed = 0, ...options } = {}) {
      checkCount('seed', seed, 0, 2 ** 32 - 1);
      const { file, starts } = await content(), program = await openProgram(file, options);
      try {
        await program.load(Object.fromEntries(starts.map(([name, dtype, shape, initial]) => [name, { dtype, shape, data: fill(name, dtype, shape, initial, seed) }])), { allowMissing: true });
      } catch (reason) {
        program.close();
        throw reason;
      }
      return program;
    },
  };
}

/** The module of a plan file at an address, which a bundler's plug-in substitutes for {@link ahead}. */
export const fetched = (url: string | URL, starts: readonly Start[]): Made => madeOf(async () => {
  let response: Response;
  try {
    response = await fetch(url);
  } catch (cause) {
    throw new RlxError('plan', `${url} cannot be loaded: ${(cause as Error).message}`, { cause });
  }
  if (!response.ok) throw new RlxError('plan', `${url} cannot be loaded: ${response.status} ${response.statusText}`);
  return { file: new Uint8Array(await response.arrayBuffer()), starts };
});
