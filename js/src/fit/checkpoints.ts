// Checkpoints of a training: the newest, the best, and the continuation from them.

import type { Program } from '../program/program.js';
import type { Trainer } from '../runtime/trainer.js';
import { decodeSafetensors, encodeSafetensors } from '../safetensors/file.js';
import { caught, type Files, files } from './files.js';
import type { Checkpoints } from './loop.js';

const bestFile = 'best.safetensors', bestValueFile = 'best.txt';

/** Metadata of a checkpoint, as of Go's `Fit`. */
const bestKey = 'fit/best', worseKey = 'fit/worse';

/** The best value so far, and the number of evaluations since. */
export interface Evaluated { readonly best: number | undefined; readonly worse: number }

/** The step in the name of a checkpoint, -1 for other files. */
const stepOf = (name: string): number => Number(/^step-(\d+)\.safetensors$/.exec(name)?.[1] ?? -1);

/** The folder of the checkpoints of a training. */
export class Folder {
  readonly files: Files;
  readonly #last: number;

  constructor(files: Files, last: number) {
    this.files = files;
    this.#last = last;
  }

  static async open({ folder, last = 1 }: Checkpoints): Promise<Folder> {
    return new Folder(typeof folder === 'string' ? await files(folder) : caught('of checkpoints', folder), last);
  }

  /** The names of the checkpoints, the oldest first. */
  async #list(): Promise<string[]> {
    return (await this.files.list()).filter((name) => stepOf(name) >= 0).sort((a, b) => stepOf(a) - stepOf(b));
  }

  /**
   * Loads the newest checkpoint, and returns the best value so far, undefined if there is none, and the number of evaluations
   * since. A checkpoint without them has the best value of the folder.
   */
  async resume(trainer: Trainer): Promise<Evaluated> {
    const newest = (await this.#list()).at(-1), bytes = newest && await this.files.read(newest);
    if (bytes) {
      const { tensors, metadata: { [bestKey]: best, [worseKey]: worse } } = decodeSafetensors(bytes);
      await trainer.load(tensors);
      trainer.steps = stepOf(newest); // a plan without a history of losses does not count
      if (worse !== undefined) return { best: best === undefined ? undefined : parseFloat(best), worse: Number(worse) };
    }
    const text = await this.files.read(bestValueFile);
    return { best: text && parseFloat(new TextDecoder().decode(text)), worse: 0 };
  }

  /** Saves the states after some steps, with the evaluations so far, and removes checkpoints that are no longer kept. */
  async write(program: Program, steps: number, { best, worse }: Evaluated): Promise<void> {
    const metadata = { ...best !== undefined && { [bestKey]: `${best}` }, ...(best !== undefined || worse) && { [worseKey]: `${worse}` } };
    await this.files.write(`step-${String(steps).padStart(8, '0')}.safetensors`, encodeSafetensors(await program.save(), metadata));
    for (const name of (await this.#list()).slice(0, -this.#last)) await this.files.remove(name);
  }

  /** Saves the states as the best ones, with the value of its metric. */
  async writeBest(program: Program, value: number): Promise<void> {
    await this.files.write(bestFile, encodeSafetensors(await program.save()));
    await this.files.write(bestValueFile, new TextEncoder().encode(`${value}\n`));
  }
}
