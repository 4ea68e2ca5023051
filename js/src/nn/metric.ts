// What a step measures.

import type { GraphBuilder, Value } from '../graph/builder.js';
import type { Called } from '../graph/caller-stack.js';
import type { Dim } from '../graph/types.js';
import { classOf } from '../values/errors.js';
import { builderOf, inside, isValue, Layer } from './layer.js';

/** The number of bins of the scores of {@link auc}. */
export const aucBins = 200;

/** The number of bins of the scores of {@link calibration}. */
export const calibrationBins = 10;

/**
 * Adds v, of rank 0 and a float or integer type, to the mean of the metric `name`, which the device keeps in the state
 * `metric/name`, f32[2]: the sum and the number of runs. `fit` reads the mean at each report and begins a new one. A
 * `weight`, a number of rank 0 such as the number of rows of the batch, makes the mean one of all examples where batches
 * differ in size: the state, f32[1,2], is then the sum of v times its weight and that of the weights. A batch of weight 0 counts for
 * nothing, also if v is NaN.
 */
export function metric(v: Value, name: string, weight?: Value): void { addMean(metric, v, 'metric', 'metric/', name, weight); }

/** Adds the loss, the mean cross-entropy of a batch, to the metric `perplexity`: the exponential of the mean loss. */
export function perplexity(loss: Value): void { addMean(perplexity, loss, 'perplexity', 'metric/exp/', 'perplexity'); }

const isInteger = (dtype: string): boolean => /^[iu]\d/.test(dtype), isFloat = (dtype: string): boolean => /^b?f\d/.test(dtype);

function addMean(called: Called, v: Value, kind: string, prefix: string, name: string, weight?: Value): void {
  inside(called, builderOf(called, v), () => {
    const l = new Layer(v, kind);
    checkName(l, name);
    checkNumber(l, v, `metric ${name}`);
    if (weight !== undefined) checkNumber(l, weight, `the weight of metric ${name}`);
    const sum = v.convert('f32'), n = weight?.convert('f32');
    addSums(l.b, prefix + name, n ? l.b.stack([n.ne(0).select(sum.mul(n), 0), n]).expandDims(0) : l.b.stack([sum, 1]));
  });
}

function checkNumber(l: Layer, v: Value, what: string): void {
  if (!isValue(v)) l.fail('graph', `${what} is ${classOf(v)}: it must be a value of the graph`);
  if (v.shape.length) l.fail('shape', `${what} is of rank ${v.shape.length}: it is of rank 0`);
  if (!isInteger(v.dtype) && !isFloat(v.dtype)) l.fail('dtype', `${what} is ${v.dtype}: it is a number`);
}

function checkName(l: Layer, name: unknown): void {
  if (typeof name !== 'string' || !name) l.fail('name', `the name is ${name === '' ? "''" : classOf(name)}: it must be a text that is not empty`);
}

/** Adds f32 numbers to a state outside of all scopes. They have no derivative. */
function addSums(b: GraphBuilder, state: string, now: Value): void {
  b.unscoped(() => b.setState(state, b.state(state, 'f32', now.shape).add(now.stopGradient())));
}

/** The fraction of examples whose label, an integer [...], is the class of the highest score of logits [..., classes]: f32 of rank 0. */
export function accuracy(logits: Value, labels: Value): Value {
  return inside(accuracy, builderOf(accuracy, logits), () => {
    checkLabels(new Layer(logits, 'accuracy'), labels, logits.shape.slice(0, -1));
    return logits.argmax({ axis: -1 }).eq(labels.convert('i32')).convert('f32').mean();
  });
}

/**
 * The fraction of examples whose label, an integer [...], is among the classes of the k highest scores of logits
 * [..., classes]: f32 of rank 0. Classes with the score of the label count as lower, those with a score of NaN as higher; a label that is none
 * of the classes is not among them.
 */
export function topKAccuracy(logits: Value, labels: Value, k: number): Value {
  return inside(topKAccuracy, builderOf(topKAccuracy, logits), () => {
    const l = new Layer(logits, 'topKAccuracy');
    checkLabels(l, labels, logits.shape.slice(0, -1));
    l.requireCount(k, 'k');
    l.require(!(k > (logits.shape.at(-1) as number)), `k is ${k}: there are ${logits.shape.at(-1)} classes`);
    const of = labels.convert('i32'), score = logits.takeAlongAxis(of.expandDims(-1)), higher = logits.le(score).not().convert('i32').reduceSum([-1]);
    return higher.lt(k).and(of.ge(0)).and(of.lt(l.b.dimSize({ dtype: 'i32', sizes: [logits.shape.at(-1)!] }))).convert('f32').mean();
  });
}

function checkLabels(l: Layer, labels: Value, shape: readonly Dim[]): void {
  if (!isValue(labels)) l.fail('graph', `the labels are ${classOf(labels)}: they must be a value of the graph`);
  if (!isInteger(labels.dtype)) l.fail('dtype', `the labels are ${labels.dtype}[${labels.shape}]: they are integers`);
  if (`${labels.shape}` !== `${shape}`) l.fail('shape', `the labels are ${labels.dtype}[${labels.shape}]: they have the shape [${shape}]`);
}

/**
 * Adds the examples of a batch to the confusion matrix `name`, which the device keeps in the state `metric/name`,
 * f32[classes, classes]: a row for each label and a column for each prediction, integers of one shape such as
 * `logits.argmax({ axis: -1 })` and the labels. Examples with a class outside [0, classes) are ignored. `fit` reports the
 * matrix, and the metrics `name accuracy`, `name precision`, `name recall` and `name f1`, their means over the classes,
 * `name balanced accuracy`, the mean recall over the classes that labels have, and `name mcc`, Matthews' correlation coefficient
 * (Gorodkin, 2004).
 */
export function confusion(predictions: Value, labels: Value, classes: number, name = 'confusion'): void {
  inside(confusion, builderOf(confusion, predictions), () => {
    const l = new Layer(predictions, 'confusion');
    checkName(l, name);
    checkLabels(l, labels, predictions.shape);
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
 * of true against false positives. Two scores in one bin count as equal, and scores outside [0, 1] are ignored. Scores and
 * labels have one shape.
 *
 * If scores are [..., classes] and labels [...], each class is held against all others, in a state f32[classes, 2, aucBins],
 * and the metric is the mean of the areas over the classes with both kinds of examples: that of scikit-learn with
 * `multi_class='ovr'` and `average='macro'`.
 */
export function auc(scores: Value, labels: Value, name = 'auc'): void {
  inside(auc, builderOf(auc, scores), () => {
    const l = checkScores('auc', scores, labels, name), x = scores.stopGradient().convert('f32');
    if (scores.shape.length > labels.shape.length) return addAreas(l, x, labels, name);
    const negative = labels.eq(0);
    const count = (which: Value) => which.select(x, -1).histogram({ bins: aucBins }).convert('f32');
    addSums(l.b, `metric/${name}`, l.b.stack([count(negative), count(negative.not())]));
  });
}

/** Adds histograms of the scores x, [..., classes], of the examples of other classes and of each class. */
function addAreas(l: Layer, x: Value, labels: Value, name: string): void {
  const classes = l.size(-1), axis = x.shape.length - 1;
  const isOf = labels.convert('i32').oneHot({ classes: [classes], dtype: 'i32' });
  const within = x.ge(0).and(x.le(1)), bin = within.select(x, 0).mul(aucBins).convert('i32').min(aucBins - 1);
  const cell = l.b.iota({ dtype: 'i32', axis, shape: x.shape }).mul(2).add(isOf).mul(aucBins).add(bin);
  const counts = within.select(cell, -1).bincount(classes * 2 * aucBins);
  addSums(l.b, `metric/${name}`, counts.convert('f32').reshape([classes, 2, aucBins]));
}

/**
 * Adds the examples of a batch to bins of the probability that the model gives its prediction, for scores [..., classes] that are
 * probabilities, such as a softmax, and labels [...], or that it gives to a label other than 0, if scores and labels have one
 * shape. The device keeps the number of examples of each bin, their sum of probabilities and the number whose prediction is
 * right in the state `metric/calibration/name`, f32[3, {@link calibrationBins}]. `fit` reports `name ece`, the expected
 * calibration error: the mean over the examples of the distance between probability and frequency of their bin (Guo et al., On
 * Calibration of Modern Neural Networks). Bins are of one width, each with its upper end, and probabilities outside [0, 1] are
 * ignored.
 */
export function calibration(scores: Value, labels: Value, name = 'calibration'): void {
  inside(calibration, builderOf(calibration, scores), () => {
    const l = checkScores('calibration', scores, labels, name), of = labels.convert('i32');
    let p = scores.stopGradient().convert('f32'), right = of.ne(0);
    if (scores.shape.length > labels.shape.length) {
      right = p.argmax({ axis: -1 }).eq(of);
      p = p.reduceMax([-1]);
    }
    if (!p.shape.length) [p, right] = [p.expandDims(0), right.expandDims(0)]; // a single example
    const within = p.ge(0).and(p.le(1));
    p = within.select(p, 0);
    const bin = within.select(p.mul(calibrationBins).ceil().sub(1).max(0).convert('i32'), -1);
    const hot = bin.oneHot({ classes: [calibrationBins], dtype: 'f32' }), axes = p.shape.map((_, i) => i);
    const sum = (x: Value) => hot.mul(x.expandDims(-1)).reduceSum(axes);
    addSums(l.b, `metric/calibration/${name}`, l.b.stack([sum(l.b.full('f32', p.shape, 1)), sum(p), sum(right.convert('f32'))]));
  });
}

/**
 * Adds the elements of a batch to the errors of a regression, which the device keeps in the state `metric/regression/name`,
 * f32[5]: the sum of weights, the mean of the targets, the sum of their squared distances to it, and the sums of absolute and
 * squared errors. `fit` reports `name mae`, the mean absolute error, `name rmse`, the root of the mean squared error, and `name r2`,
 * the coefficient of determination: those of scikit-learn over all elements. Predictions and targets are floats of one shape.
 * `weights`, of the same shape, count an element as that many; 0 leaves it out.
 */
export function regression(predictions: Value, targets: Value, name = 'regression', weights?: Value): void {
  inside(regression, builderOf(regression, predictions), () => {
    const l = checkRegression(predictions, { predictions, targets, ...weights !== undefined && { weights } }, name), { b } = l;
    const f32 = (x: Value) => x.stopGradient().convert('f32');
    const y = f32(targets), e = f32(predictions).sub(y), w = weights ? f32(weights) : b.full('f32', y.shape, 1);
    const sum = (x: Value) => w.mul(x).reduceSum();
    const n = w.reduceSum(), mean = ratio(sum(y), n), spread = sum(y.sub(mean).square()), absolute = sum(e.abs()), squared = sum(e.square());
    b.unscoped(() => {
      const state = `metric/regression/${name}`, old = b.state(state, 'f32', [5]);
      const part = (i: number) => old.sliceAxis(0, i, 1).reshape([]);
      // The mean and the squared distances of both together (Chan, Golub and LeVeque, 1979).
      const total = part(0).add(n), apart = mean.sub(part(1)), share = ratio(n, total), between = apart.square().mul(part(0).mul(share));
      b.setState(state, b.stack([total, part(1).add(apart.mul(share)), part(2).add(spread.add(between)), part(3).add(absolute), part(4).add(squared)]));
    });
  });
}

/** x / y, and 0 where y is 0. */
function ratio(x: Value, y: Value): Value {
  const none = y.eq(0);
  return none.select(0, x.div(none.select(1, y)));
}

/** Refuses values that are no floats of the shape of x. */
function checkRegression(x: Value, values: Readonly<Record<string, Value>>, name: string): Layer {
  const l = new Layer(x, 'regression');
  checkName(l, name);
  for (const [what, v] of Object.entries(values)) {
    if (!isValue(v)) l.fail('graph', `the ${what} are ${classOf(v)}: they must be a value of the graph`);
    if (!isFloat(v.dtype)) l.fail('dtype', `the ${what} are ${v.dtype}[${v.shape}]: they are floats`);
    if (`${v.shape}` !== `${x.shape}`) l.fail('shape', `the ${what} are ${v.dtype}[${v.shape}]: they have the shape [${x.shape}]`);
  }
  return l;
}

/** Refuses scores that are no floats, and labels that are no integers of their shape, or of that without the axis of classes. */
function checkScores(kind: string, scores: Value, labels: Value, name: string): Layer {
  const l = new Layer(scores, kind), hasClasses = isValue(labels) && labels.shape.length === scores.shape.length - 1;
  checkName(l, name);
  checkLabels(l, labels, hasClasses ? scores.shape.slice(0, -1) : scores.shape);
  if (!isFloat(scores.dtype)) l.fail('dtype', 'the scores are floats');
  if (hasClasses && scores.shape.at(-1) === 1) l.fail('shape', `the scores have one class: they have two or more, or the shape [${labels.shape}] of the labels`);
  return l;
}
