/**
 * Trains from data to a model: epochs, evaluation, metrics, early stop, checkpoints that resume to the bit, logs. The words
 * are those of `Fit` of the Go package rlx. A page that does not import it does not load it.
 *
 * @module
 */

export { averages } from './fit/averages.js';
export { allInOrder, inOrder, prefetch, shuffled } from './fit/data.js';
export { type Files, files } from './fit/files.js';
export { fit } from './fit/fit.js';
export type { Checkpoints, Data, EarlyStop, Evaluation, Loop } from './fit/loop.js';
export { type Part, type SplitOptions, splitRows } from './fit/split.js';
export { type Report, reportLine } from './fit/report.js';
