// Checkpoints of a training: the newest, the best, and the continuation from them.

import type { Program } from '../program/program.js';
import type { Trainer } from '../runtime/trainer.js';
import { decodeSafetensors, encodeSafetensors } from '../safetensors/file.js';
import { RlxError } from '../values/errors.js';
import type { HostTensor } from '../values/tensor.js';
import { checkChecksum, withChecksum } from './checksum.js';
import { caught, type Files, files } from './files.js';
import type { Checkpoints } from './loop.js';

const bestFile = 'best.safetensors', bestValueFile = 'best.txt';

/** Metadata of a checkpoint, as of Go's `Fit`. */
const bestKey = 'fit/best', worseKey = 'fit/worse', lossKey = 'fit/loss', stepsKey = 'fit/steps';

/** What a training continues with: the best value so far and the evaluations since, and the sum of the losses since the last report and their number. */
export interface Saved { readonly best: number | undefined; readonly worse: number; readonly sum: number; readonly count: number }

type Values = Record<string, HostTensor>;

/** The bits of the exponent of a 16-bit float, all of which are 1 in NaN and infinity. */
const exponents: Record<string, number> = { f16: 0x7c00, bf16: 0x7f80 };

function isFinite({ dtype, data }: HostTensor): boolean {
  const ones = exponents[dtype];
  if (ones) return data.every((x) => (x & ones) !== ones);
  return dtype !== 'f32' || data.every(Number.isFinite);
}

/** The first parameter that the step changes, by name, with an element that is NaN or infinite. One that is not trained may have such elements: a mask. */
export function notFinite({ entries, slots }: Program['plan'], values: Values): string | undefined {
  const { sets = [] } = entries.find(({ name }) => name === 'step') ?? {};
  return sets.map((i) => slots[i]!).filter(({ role, name }) => role === 'param' && !isFinite(values[name]!)).map(({ name }) => name).sort()[0];
}

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
   * Refuses a checkpoint of a step that a trainer has not reached: it is of another training, and as the newest it would be
   * kept in place of those of this one.
   */
  async refuseLater(steps: number): Promise<void> {
    const newest = stepOf((await this.#list()).at(-1) ?? '');
    if (newest > steps) throw new RlxError('attr', `fit: save: the folder has the checkpoint of step ${newest}, and the trainer did ${steps} steps: resume must be true, or the folder another`, { name: 'folder' });
  }

  /**
   * Loads the newest checkpoint. The best value so far is undefined if there is none; a checkpoint without evaluations has the
   * best value of the folder.
   */
  async resume(trainer: Trainer): Promise<Saved> {
    let newest: string | undefined, bytes: Uint8Array<ArrayBuffer> | undefined, sum = 0, count = 0;
    // Another tab that trains into the folder may remove the newest after the list is made, as it has a newer one then.
    for (let before; !bytes && (newest = (await this.#list()).at(-1)) && newest !== before; before = newest) bytes = await this.files.read(newest);
    if (newest && bytes) {
      const { tensors, metadata } = decodeSafetensors(bytes), { [bestKey]: best, [worseKey]: worse, [lossKey]: loss = '0', [stepsKey]: steps = '0' } = metadata;
      checkChecksum(newest, tensors, metadata);
      await trainer.load(tensors);
      trainer.steps = stepOf(newest); // a plan without a history of losses does not count
      sum = parseFloat(loss);
      count = Number(steps);
      if (worse !== undefined) return { best: best === undefined ? undefined : parseFloat(best), worse: Number(worse), sum, count };
    }
    const text = await this.files.read(bestValueFile);
    return { best: text && parseFloat(new TextDecoder().decode(text)), worse: 0, sum, count };
  }

  /** Saves the values after some steps, with the evaluations and the losses so far, and removes checkpoints that are no longer kept. */
  async write(values: Values, steps: number, { best, worse, sum, count }: Saved): Promise<void> {
    const metadata = {
      ...best !== undefined && { [bestKey]: `${best}` }, ...(best !== undefined || worse) && { [worseKey]: `${worse}` },
      ...count && { [lossKey]: `${sum}`, [stepsKey]: `${count}` },
    };
    await this.files.write(`step-${String(steps).padStart(8, '0')}.safetensors`, encodeSafetensors(values, withChecksum(values, metadata)));
    for (const name of (await this.#list()).slice(0, -this.#last)) await this.files.remove(name);
  }

  /** Saves the best values, with that of their metric. */
  async writeBest(values: Values, metric: number): Promise<void> {
    await this.files.write(bestFile, encodeSafetensors(values, withChecksum(values, {})));
    await this.files.write(bestValueFile, new TextEncoder().encode(`${metric}\n`));
  }
}
