// Reports of a training.

import { need } from '../values/errors.js';

/** Describes a training between two steps. */
export interface Report {
  /** Steps done, those of a checkpoint included, and steps to do; 0 if that is unknown. */
  step: number;
  steps: number;
  /** Epochs done, and epochs to do; 0 if that is unknown. */
  epoch: number;
  epochs: number;
  /** The mean over the steps since the last report; NaN without one. */
  loss: number;
  /** Steps a second since the last report. */
  rate: number;
  /** Examples a second since the last report: the rows of the longest first axis of the inputs. */
  throughput: number;
  /** What the step measures (`nn.metric` and its like), over the steps since the last report. */
  metrics: Readonly<Record<string, number>>;
  /** Confusion matrices: rows by label, columns by prediction. */
  confusion: Readonly<Record<string, readonly (readonly number[])[]>>;
  /** The means of the outputs of the evaluation, if there is one, and what its entry measures, over all of its batches. */
  eval?: Readonly<Record<string, number>>;
  /** The confusion matrices of the evaluation. */
  evalConfusion?: Readonly<Record<string, readonly (readonly number[])[]>>;
  /** Whether the evaluation is the best so far. */
  best: boolean;
  /** Set in the last report. */
  done: boolean;
}

const ofAll = (n: number, all: number): string => all ? `${n}/${all}` : `${n}`;
const four = (x: number): string => `${Number(x.toPrecision(4))}`;

/** A report as a line: `step 200/1000, epoch 2, loss 0.123, accuracy 0.98, eval loss 0.15 (best), 350 steps/s`; `no steps left` instead of the loss and the rate if none was. */
export function reportLine(r: Report): string {
  need(typeof r?.rate === 'number', 'attr', 'reportLine: the report', 'that of fit', r);
  const idle = r.rate === 0 && Number.isNaN(r.loss); // as after a resume from the last step
  const sorted = (prefix: string, values: Readonly<Record<string, number>> = {}) => Object.keys(values).sort().map((name) => `${prefix}${name} ${four(values[name]!)}`);
  const parts = [`step ${ofAll(r.step, r.steps)}`, `epoch ${ofAll(r.epoch, r.epochs)}`, idle ? 'no steps left' : `loss ${four(r.loss)}`, ...sorted('', r.metrics), ...sorted('eval ', r.eval)];
  if (r.best) parts.push(`${parts.pop()} (best)`);
  if (!idle) parts.push(`${Number(r.rate.toPrecision(3))} steps/s`);
  return parts.join(', ');
}
