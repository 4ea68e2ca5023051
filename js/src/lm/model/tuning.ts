// Fine-tuning, whose code is loaded when it is asked for: a page that talks to a model has no use for it.

import type { ModelFile } from '../gguf.js';
import type { Tuning, TuningOptions } from './tune.js';

/**
 * The bytes that {@link openTuning} takes on its device with these options, weights, adapter, optimizer and all: by the plan
 * of the step, which is compiled, and which `openTuning` finds in the cache of plans. Of the file it reads no weights.
 */
export async function tuningMemoryOf(file: ModelFile, options?: TuningOptions): Promise<number> {
  return (await import('./tune.js')).tuningMemoryOf(file, options);
}

/**
 * Opens a model with an adapter to train: the weights are frozen and keep their storage format,
 * packed rows too, and the backward pass recomputes each block. Errors are those of `openModel`.
 */
export async function openTuning(file: ModelFile, options?: TuningOptions): Promise<Tuning> {
  return (await import('./tune.js')).openTuning(file, options);
}
