// Statistics.

import type { Value } from '../graph/builder.js';
import type { Called } from '../graph/caller-stack.js';
import { calling, type Check, full, item, narrow, wide } from './check.js';

type Axes = readonly number[];

/** A function of one float value, computed in f32 for narrower types. */
const ofFloats = (called: Called, name: string, x: Value, build: (x: Value, c: Check) => Value): Value => calling(called, `stats.${name}`, [x], undefined, '', (c) => {
  c.floats();
  return narrow(build(wide(x), c), x);
});

/** x with another number where it is NaN. */
const known = (x: Value, other: number): Value => x.isNan().select(full(x, other), x);
const count = (x: Value, axes?: Axes, keep?: boolean): Value => x.isNan().not().convert(x.dtype as 'f32').reduceSum(axes, keep);

/** The sum of the elements that are not NaN, over the given axes or all: 0 where all are (numpy.nansum). */
export function nanSum(x: Value, axes?: Axes): Value { return ofFloats(nanSum, 'nanSum', x, (x) => known(x, 0).reduceSum(axes)); }

/** The mean of the elements that are not NaN: NaN where all are (numpy.nanmean). */
export function nanMean(x: Value, axes?: Axes): Value { return ofFloats(nanMean, 'nanMean', x, (x) => known(x, 0).reduceSum(axes).div(count(x, axes))); }

/** The variance of the elements that are not NaN, divided by their number minus the correction (numpy.nanvar with ddof). */
export function nanVar(x: Value, axes?: Axes, correction = 0): Value { return ofFloats(nanVar, 'nanVar', x, (x) => variance(x, axes, correction)); }

function variance(x: Value, axes: Axes | undefined, correction: number): Value {
  const n = count(x, axes, true), mean = known(x, 0).reduceSum(axes, true).div(n.max(1)), freedom = count(x, axes).sub(correction);
  return known(x.sub(mean), 0).square().reduceSum(axes).div(freedom.gt(0).select(freedom, full(freedom, NaN)));
}

/** The square root of {@link nanVar} (numpy.nanstd). The derivative where all elements are equal is 0. */
export function nanStd(x: Value, axes?: Axes, correction = 0): Value {
  return ofFloats(nanStd, 'nanStd', x, (x) => {
    const v = variance(x, axes, correction), zero = v.eq(0);
    return zero.select(full(v, 0), zero.select(full(v, 1), v).sqrt());
  });
}

const extreme = (x: Value, y: Value, axes?: Axes): Value => x.isNan().all(axes).select(full(y, NaN), y);

/** The smallest element that is not NaN: NaN where all are (numpy.nanmin). */
export function nanMin(x: Value, axes?: Axes): Value { return ofFloats(nanMin, 'nanMin', x, (x) => extreme(x, known(x, Infinity).reduceMin(axes), axes)); }

/** The largest element that is not NaN: NaN where all are (numpy.nanmax). */
export function nanMax(x: Value, axes?: Axes): Value { return ofFloats(nanMax, 'nanMax', x, (x) => extreme(x, known(x, -Infinity).reduceMax(axes), axes)); }

/** The covariances of variables, [..., variables, observations]: sums divided by observations − correction, as torch.cov. */
export function cov(x: Value, correction = 1): Value { return ofFloats(cov, 'cov', x, (x, c) => covariances(c, x, correction)); }

function covariances(c: Check, x: Value, correction: number): Value {
  c.shape(x.shape.length >= 2, 'x must be [..., variables, observations]');
  const n = c.size(x, -1, 'x'), rank = x.shape.length;
  c.attr(Number.isInteger(correction) && correction >= 0 && correction < n, `correction is ${correction}: it must be in [0, ${n}), the number of observations`);
  const d = x.sub(x.mean([-1], true));
  return d.matmul(d.swapAxes({ axis1: rank - 1, axis2: rank - 2 })).div(n - correction);
}

/** Pearson's correlations of variables, [..., variables, observations], clamped to [−1, 1], as torch.corrcoef. */
export function corrCoef(x: Value): Value {
  return ofFloats(corrCoef, 'corrCoef', x, (x, c) => {
    const y = covariances(c, x, 0), deviation = x.std({ axes: [-1], correction: 0 });
    return y.div(deviation.expandDims(-1)).div(deviation.expandDims(-2)).clamp(-1, 1);
  });
}

/** The distances between the rows of x, [..., n, size], and y, [..., m, size]: [..., n, m], by the norm of order p (torch.cdist). */
export function cdist(x: Value, y: Value, p = 2): Value {
  return calling(cdist, 'stats.cdist', [x, y], undefined, '', (c) => {
    c.floats();
    c.attr(p >= 0, `p is ${p}: it must not be negative`);
    c.shape(x.shape.length >= 2 && y.shape.length >= 2 && x.shape.at(-1) === y.shape.at(-1), 'x and y must be [..., n, size] and [..., m, size]');
    return narrow(wide(x).expandDims(-2).sub(wide(y).expandDims(-3)).norm({ axes: [-1], order: p }), x);
  });
}

/** Indices along an axis such that element k is where a sort would put it (numpy.argpartition). NaN is the largest. */
export function argPartition(x: Value, k: number, axis = -1): Value {
  return calling(argPartition, 'stats.argPartition', [x], undefined, '', (c) => x.argsort({ axis: ranked(c, x, k, axis) }));
}

/** The element of rank k along an axis, counted from 0, and its index (torch.kthvalue with k + 1). */
export function kthSmallest(x: Value, k: number, axis = -1): [value: Value, index: Value] {
  return calling(kthSmallest, 'stats.kthSmallest', [x], undefined, '', (c) => {
    const at = ranked(c, x, k, axis), [values, index] = x.topK({ k: k + 1, axis: at, smallest: true });
    return [item(values, at, k), item(index, at, k)];
  });
}

/** An axis, of which an element of rank k exists. */
function ranked(c: Check, x: Value, k: number, axis: number): number {
  const at = c.axis(axis, x.shape.length), n = x.shape[at];
  c.attr(Number.isInteger(k) && k >= 0 && (typeof n !== 'number' || k < n), `k is ${k}: it must be in [0, ${n}), the size of axis ${at}`);
  return at;
}
