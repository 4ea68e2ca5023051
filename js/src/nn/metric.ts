// What a step measures.

import type { GraphBuilder, Value } from '../graph/builder.js';
import type { Called } from '../graph/caller-stack.js';
import { classOf } from '../values/errors.js';
import { builderOf, inside, isValue, Layer } from './layer.js';

/** The number of bins of the scores of {@link auc}. */
export const aucBins = 200;

/**
 * Adds v, of rank 0 and a float or integer type, to the mean of the metric `name`, which the device keeps in the state
 * `metric/name`, f32[2]: the sum and the number of runs. `fit` reads the mean at each report and begins a new one.
 */
export function metric(v: Value, name: string): void { addMean(metric, v, 'metric', 'metric/', name); }

/** Adds the loss, the mean cross-entropy of a batch, to the metric `perplexity`: the exponential of the mean loss. */
export function perplexity(loss: Value): void { addMean(perplexity, loss, 'perplexity', 'metric/exp/', 'perplexity'); }

const isInteger = (dtype: string): boolean => /^[iu]\d/.test(dtype), isFloat = (dtype: string): boolean => /^b?f\d/.test(dtype);

function addMean(called: Called, v: Value, kind: string, prefix: string, name: string): void {
  inside(called, builderOf(called, v), () => {
    const l = new Layer(v, kind);
    checkName(l, name);
    if (v.shape.length) l.fail('shape', `metric ${name} is of rank ${v.shape.length}: it is of rank 0`);
    if (!isInteger(v.dtype) && !isFloat(v.dtype)) l.fail('dtype', `metric ${name} is ${v.dtype}: it is a number`);
    addSums(l.b, prefix + name, l.b.stack([v.convert('f32'), 1]));
  });
}

function checkName(l: Layer, name: unknown): void {
  if (typeof name !== 'string' || !name) l.fail('name', `the name is a text that is not empty, given as ${name === '' ? "''" : classOf(name)}`);
}

/** Adds f32 numbers to a state outside of all scopes. They have no derivative. */
function addSums(b: GraphBuilder, state: string, now: Value): void {
  b.unscoped(() => b.setState(state, b.state(state, 'f32', now.shape).add(now.stopGradient())));
}

/** The fraction of examples whose label, an integer [...], is the class of the highest score of logits [..., classes]: f32 of rank 0. */
export function accuracy(logits: Value, labels: Value): Value {
  return inside(accuracy, builderOf(accuracy, logits), () => {
    checkLabels(new Layer(logits, 'accuracy'), labels);
    return logits.argmax({ axis: -1 }).eq(labels.convert('i32')).convert('f32').mean();
  });
}

/**
 * The fraction of examples whose label, an integer [...], is among the classes of the k highest scores of logits
 * [..., classes]: f32 of rank 0. Classes with the score of the label count as lower.
 */
export function topKAccuracy(logits: Value, labels: Value, k: number): Value {
  return inside(topKAccuracy, builderOf(topKAccuracy, logits), () => {
    const l = new Layer(logits, 'topKAccuracy');
    checkLabels(l, labels);
    l.requireCount(k, 'k');
    const score = logits.takeAlongAxis(labels.convert('i32').expandDims(-1));
    return logits.gt(score).convert('i32').reduceSum([-1]).lt(k).convert('f32').mean();
  });
}

function checkLabels(l: Layer, labels: Value): void {
  if (!isValue(labels)) l.fail('graph', `the labels are a value of the graph, given as ${classOf(labels)}`);
  if (!isInteger(labels.dtype)) l.fail('dtype', `the labels are ${labels.dtype}[${labels.shape}]: they are integers`);
}

/**
 * Adds the examples of a batch to the confusion matrix `name`, which the device keeps in the state `metric/name`,
 * f32[classes, classes]: a row for each label and a column for each prediction, integers of one shape such as
 * `logits.argmax({ axis: -1 })` and the labels. Examples with a class outside [0, classes) are ignored. `fit` reports the
 * matrix, and the metrics `name accuracy` and `name f1`, the mean of F1 over the classes.
 */
export function confusion(predictions: Value, labels: Value, classes: number, name = 'confusion'): void {
  inside(confusion, builderOf(confusion, predictions), () => {
    const l = checkPair('confusion', predictions, labels, name);
    if (!isInteger(predictions.dtype)) l.fail('dtype', 'the predictions are integers');
    l.requireCount(classes, 'classes', 2);
    const p = predictions.convert('i32'), of = labels.convert('i32');
    const valid = p.ge(0).and(p.lt(classes)).and(of.ge(0).and(of.lt(classes)));
    const counts = valid.select(of.mul(classes).add(p), -1).bincount(classes * classes);
    addSums(l.b, `metric/${name}`, counts.convert('f32').reshape([classes, classes]));
  });
}

/**
 * Adds the examples of a batch to histograms of the scores, in [0, 1], of examples with label 0 and with another label, an
 * integer. The device keeps them in the state `metric/name`, f32[2, {@link aucBins}]; `fit` reports the area under the curve
 * of true against false positives. Two scores in one bin count as equal. Scores and labels have one shape.
 */
export function auc(scores: Value, labels: Value, name = 'auc'): void {
  inside(auc, builderOf(auc, scores), () => {
    const l = checkPair('auc', scores, labels, name);
    if (!isFloat(scores.dtype)) l.fail('dtype', 'the scores are floats');
    const x = scores.stopGradient().convert('f32'), negative = labels.eq(0);
    const count = (which: Value) => which.select(x, -1).histogram({ bins: aucBins }).convert('f32');
    addSums(l.b, `metric/${name}`, l.b.stack([count(negative), count(negative.not())]));
  });
}

/** Refuses labels that are no integers of the shape of x. */
function checkPair(kind: string, x: Value, labels: Value, name: string): Layer {
  const l = new Layer(x, kind);
  checkName(l, name);
  checkLabels(l, labels);
  if (`${labels.shape}` !== `${x.shape}`) l.fail('shape', `the labels are ${labels.dtype}[${labels.shape}]: they have the shape [${x.shape}]`);
  return l;
}
