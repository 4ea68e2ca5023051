// The options of a training, and their checks.

import type { EntryInputs, EntryTypes, Inputs } from '../program/types.js';
import type { Program } from '../program/program.js';
import type { Trainer } from '../runtime/trainer.js';
import { checkCount, checkOptions, classOf, need, RlxError, unknownName } from '../values/errors.js';
import type { Files } from './files.js';
import type { Report } from './report.js';

/** The batches of an epoch: inputs by name. */
export type Epoch<I = Inputs> = Iterable<I> | AsyncIterable<I>;

/**
 * Returns the batches of an epoch, counted from 0. Equal epochs must have equal batches, so that a
 * resumed training continues with the next batch. The arrays of a batch may be reused for the next
 * one.
 */
export interface Data<I = Inputs> {
  (epoch: number): Epoch<I>;
  /** The number of batches of an epoch, if it is known. A resumed training then skips earlier epochs without their batches. */
  readonly epochSteps?: number;
  /** The batches of an epoch without the first `skip`: a resumed training continues without reading those. */
  readonly from?: (epoch: number, skip: number) => Epoch<I>;
}

/** An entry of the program that measures the model. */
export interface Evaluation<E extends EntryTypes = any, N extends string = string, V = EntryInputs<E, N>> {
  /** The name of the entry. */
  entry: N;
  /** Returns the batches to measure. */
  data: () => Epoch<V>;
  /**
   * An output of rank 0 that weights the other outputs of a batch in the mean: the number of
   * examples, for a padded last batch. A batch of weight 0 counts for nothing, also if its outputs are NaN. All batches have equal weight if not given.
   */
  weight?: string;
}

/** An evaluation by one of the entries of a program. */
export type AnyEvaluation<E extends EntryTypes> = { [N in keyof E & string]: Evaluation<E, N> }[keyof E & string];

/** Ends a training whose metric no longer improves. */
export interface EarlyStop {
  /** The number of evaluations in a row without an improvement after which the training ends, those before a checkpoint included. Never if not given. */
  patience?: number;
  /** An output or a metric of the evaluation; `loss` if not given. It also chooses the best checkpoint. */
  metric?: string;
  /** Whether larger values are better. */
  larger?: boolean;
  /** The smallest difference that is an improvement. 0 if not given. */
  minDelta?: number;
}

/** Where and when checkpoints are written, as safetensors files that Go's `Fit` reads, too. */
export interface Checkpoints {
  /**
   * A folder: a path in Node, Bun and Deno, a path in the origin's private file system in a page, or an object of your own.
   * Its files are `step-00000500.safetensors`, and `best.safetensors` for the best evaluation with its value in `best.txt`.
   */
  folder: string | Files;
  /** The number of steps between checkpoints. One at each report if not given. There is one after the last step, too. */
  every?: number;
  /** The number of checkpoints to keep, the best one aside. 1 if not given. */
  last?: number;
  /**
   * Continues from the newest checkpoint in the folder, if there is one. Without it a checkpoint of a step that the trainer has
   * not reached is an error: it is of another training.
   */
  resume?: boolean;
  /**
   * Called with the error, of kind `store`, where a checkpoint or the log cannot be written, as storage is full: training goes on, and the checkpoints
   * before stay. Without it a warning is written to the console. Only the error of the last checkpoint ends the training. It is also called with
   * an error of kind `nan` where a checkpoint is not written, as a trained parameter is NaN or infinite.
   */
  onError?: (error: RlxError) => void;
}

/** The options of {@link fit}. `data` and one of `epochs` and `steps` are required. */
export interface Loop<E extends EntryTypes = any, B = EntryInputs<E, 'step'>, V = AnyEvaluation<E>> {
  data: Data<B>;
  /** The number of epochs. */
  epochs?: number;
  /** The number of steps, those before a resumed training included. The training ends with whichever comes first. */
  steps?: number;
  /** The number of batches of an epoch, where `data` has no `epochSteps`. */
  epochSteps?: number;
  /** The number of steps between reports. One report at the end of each epoch if not given. There is one after the last step, too. */
  every?: number;
  /** Evaluates the model at each report. */
  eval?: V;
  stop?: EarlyStop;
  save?: Checkpoints;
  /** Called with each report, in order. `'stop'` ends the training without an error, an error ends it with that. */
  callbacks?: readonly ((report: Report) => void | 'stop' | Promise<void | 'stop'>)[];
  /** Called with each report as a line of text. */
  progress?: (line: string) => void;
  /** Where each report is appended as a line of JSON: a file in the folder of checkpoints, or a function. */
  log?: string | ((line: string) => void | Promise<void>);
  /** Ends the training before the next step, in the wait for a batch, or between batches of an evaluation, with an error of kind `abort`. */
  signal?: AbortSignal;
  /**
   * Ends the training with an error of kind `nan` once a loss, or a trained parameter at a checkpoint, is NaN or infinite. With what
   * `watch` returned for the loss, the error names the first value that was.
   */
  stopOnNaN?: boolean | { first(program: Pick<Program, 'read'>): Promise<string | undefined> };
}

const counts = { epochs: 1, steps: 1, epochSteps: 1, every: 1 };

/** Refuses a loop that is incomplete, and values outside of their domains. */
export function checkLoop(trainer: Trainer, loop: Loop): void {
  need(typeof trainer?.evaluate === 'function', 'missing', 'fit: the first argument', 'a trainer', trainer);
  checkOptions('fit', loop, 'data epochs steps epochSteps every eval stop save callbacks progress log signal stopOnNaN');
  need(typeof loop?.data === 'function', 'missing', 'fit: data', 'a function of the epoch', loop?.data);
  if (loop.epochs === undefined && loop.steps === undefined) throw new RlxError('missing', 'fit: epochs and steps are not given: one of them is required');
  for (const [name, min] of Object.entries(counts)) {
    const n = loop[name as keyof typeof counts];
    if (n !== undefined) checkCount(`fit: ${name}`, n, min);
  }
  checkEvaluation(trainer, loop);
  const { save, log, callbacks = [] } = loop;
  if (save !== undefined) checkSave(save);
  if (typeof log === 'string' ? !save : log !== undefined && typeof log !== 'function') {
    throw new RlxError('attr', `fit: log is ${typeof log === 'string' ? `the file ${log}, and save has no folder for it` : classOf(log)}: it must be a function, or a file in save.folder`, { name: 'log' });
  }
  need(Array.isArray(callbacks), 'attr', 'fit: callbacks', 'a list of functions', callbacks);
  if (loop.stopOnNaN && loop.stopOnNaN !== true) need(typeof loop.stopOnNaN.first === 'function', 'attr', 'fit: stopOnNaN', 'true, or what watch returned', loop.stopOnNaN);
  for (const call of callbacks) need(typeof call === 'function', 'attr', 'fit: a callback', 'a function', call);
}

function checkEvaluation(trainer: Trainer, { eval: evaluation, stop }: Loop): void {
  checkOptions('fit: stop', stop, 'patience metric larger minDelta');
  if (stop?.patience !== undefined) checkCount('fit: patience', stop.patience, 1);
  if (!((stop?.minDelta ?? 0) >= 0)) throw new RlxError('attr', `fit: minDelta is ${stop!.minDelta}: it is a number from 0 on`, { name: 'minDelta' });
  if (!evaluation) {
    if (stop?.patience !== undefined) throw new RlxError('missing', `fit: patience is ${stop.patience} and eval is not given: there is nothing to compare`, { name: 'eval' });
    return;
  }
  checkOptions('fit: eval', evaluation, 'entry data weight');
  need(typeof evaluation.data === 'function', 'missing', 'fit: data of eval', 'a function', evaluation.data);
  const entries = trainer.program.plan.entries.map(({ name }) => name);
  if (!entries.includes(evaluation.entry)) throw unknownName('fit: the plan has no entry', evaluation.entry, entries, 'fit');
}

function checkSave(save: Checkpoints): void {
  checkOptions('fit: save', save, 'folder every last resume onError');
  need(save.folder && (typeof save.folder === 'string' || typeof save.folder === 'object'), 'missing', 'fit: folder of save', 'a path or an object with files', save.folder);
  need(save.onError === undefined || typeof save.onError === 'function', 'attr', 'fit: onError of save', 'a function', save.onError);
  for (const name of ['every', 'last'] as const) if (save[name] !== undefined) checkCount(`fit: ${name} of save`, save[name], 1);
}
