// Distributions of positive numbers: the graphs of the Go package ir/dist.

import type { Operand, Value } from '../graph/builder.js';
import { broadcast, epsilon, full, plus, where } from './check.js';
import { type Distribution, distribution, drawn, except, inWide, keys, oneMinus, positiveRest, sumLast, total, uniformNumbers } from './dist.js';
import { gammaQuantileSlope } from './incomplete.js';
import { gammaEntropy, klDiv, stirlingRemainder, stirlingRemainderSlope } from './special.js';

/** How many times numbers of the gamma distribution can be differentiated. */
const orders = 2;

type OfTwo = (x: Value, y: Value) => Value;

/**
 * Numbers drawn with a shape, whose derivative by it is slope of the shape and the number. Of the numbers in slope it takes one
 * derivative less; those of the last order have none, and refuse it.
 */
function implicit(key: Value, shape: Value, orders: number, draw: OfTwo, slope: OfTwo): Value {
  if (orders === 0) return draw(key, shape);
  return shape.builder.customJVP([shape, key], (_, [shape, key]) => [draw(key, shape)], (_, [shape, key], [t]) => {
    const x = implicit(key, shape, orders - 1, draw, slope);
    return [t!.mul(slope(shape, x))];
  })[0];
}

/** Numbers of the gamma distribution with the given shapes and rate 1, which have implicit derivatives. */
export const standardGamma = (key: Value, shape: Value): Value => implicit(key, shape, orders, (key, shape) => shape.randomGamma(key), gammaQuantileSlope);

/** Logarithms of standardGamma's numbers, since those of small shapes underflow, for shapes of f32 or f64. */
const logGamma = (key: Value, shape: Value): Value => implicit(key, shape, orders, drawLogGamma, logSlope);

/** Draws a number of shape below 1 as one of the shape plus 1, multiplied by u^(1/shape). */
function drawLogGamma(key: Value, shape: Value): Value {
  const small = shape.lt(full(shape, 1)), [first, second] = keys(key), x = small.select(plus(shape, 1), shape).randomGamma(first).log();
  const rest = uniformNumbers(second, shape).log().div(where(small, shape, 1));
  return small.select(x.add(rest), x);
}

/** The derivative by the shape of the y with gammainc(shape, eʸ) fixed. For small eʸ that probability is e^(shape·y)/Γ(shape+1). */
function logSlope(shape: Value, y: Value): Value {
  const known = y.gt(full(y, Math.log(epsilon(y)))), x = where(known, y, 0).exp(), near = gammaQuantileSlope(shape, x).div(x);
  const far = plus(shape, 1).digamma().sub(where(known.not(), y, 0)).div(shape);
  return known.select(near, far);
}

/** {@link exponential}. */
export interface Exponential extends Distribution<'exponential'> { readonly rate: Value }

/** The distribution with density rate·e^(−rate·x). */
export function exponential(rate: Value): Exponential {
  return distribution<Exponential, Readonly<Record<'rate', Value>>>(exponential, 'exponential', { rate }, ({ rate }) => ({
    sample: (key, shape) => {
      const by = drawn(shape, rate)[0]!;
      return key.randomExponential({ dtype: by.dtype as 'f32', shape: by.shape }).div(by);
    },
    logProb: (x) => {
      const outside = x.lt(full(x, 0));
      return except(outside, rate.log().sub(rate.mul(x)));
    },
    entropy: () => oneMinus(rate.log()),
    mean: () => rate.reciprocal(),
    variance: () => rate.reciprocal().square(),
    divergence: (q) => klDiv(rate, q.rate).div(rate),
  }));
}

/** {@link gamma}. */
export interface Gamma extends Distribution<'gamma'> { readonly shape: Value; readonly rate: Value }

/** The gamma distribution, with density proportional to x^(shape−1)·e^(−rate·x). */
export function gamma(shape: Operand, rate: Operand): Gamma {
  return distribution<Gamma, Readonly<Record<'shape' | 'rate', Value>>>(gamma, 'gamma', { shape, rate }, ({ shape: a, rate }) => ({
    sample: (key, shape) => {
      const [of, by] = drawn(shape, a, rate) as [Value, Value];
      return standardGamma(key, of).div(by);
    },
    logProb: (x) => gammaDensity(a, rate, x),
    entropy: () => gammaEntropy(a).sub(rate.log()),
    mean: () => a.div(rate),
    variance: () => a.div(rate.mul(rate)),
    divergence: (q) => klGamma(a, rate, q),
  }));
}

/** The logarithm of the density of the gamma distribution. */
function gammaDensity(shape: Value, by: Value, at: Value): Value {
  const [a, rate, x] = broadcast(shape, by, at) as [Value, Value, Value];
  const y = a.mul(rate.log()).add(plus(a, -1).xlogy(x)).sub(rate.mul(x)).sub(a.lgamma());

  // From shape 2 on it is the density of poisson at shape − 1, whose terms do not cancel, times rate.
  const count = plus(a, -1), product = rate.mul(x), isLarge = count.ge(full(count, 1)).and(product.gt(full(product, 0)));
  const k = where(isLarge, count, 1), mean = where(isLarge, product, 1);
  const large = rate.log().sub(klDiv(k, mean).add(positiveRest(k)));
  return except(x.lt(full(x, 0)), isLarge.select(large, y));
}

/**
 * log Γ(y) − log Γ(x) + (x−y)·ψ(x) without its largest term, klDiv(y, x), for positive x and y. By Stirling's formula the large
 * parts of log Γ cancel before they are computed.
 */
function klRest(x: Value, y: Value): Value {
  const half = klDiv(x, y).div(x.add(x)), rest = stirlingRemainder(y).sub(stirlingRemainder(x));
  return half.add(rest.add(x.sub(y).mul(stirlingRemainderSlope(x))));
}

function klGamma(a: Value, rate: Value, q: Gamma): Value {
  const mean = a.mul(q.rate.div(rate)); // of q.rate·x
  return klDiv(q.shape, mean).add(klRest(a, q.shape));
}

/** {@link beta}. */
export interface Beta extends Distribution<'beta'> { readonly a: Value; readonly b: Value }

/** The beta distribution, with density proportional to x^(a−1)·(1−x)^(b−1). */
export function beta(a: Operand, b: Operand): Beta {
  return distribution<Beta, Readonly<Record<'a' | 'b', Value>>>(beta, 'beta', { a, b }, ({ a, b }) => ({
    sample: (key, shape) => {
      const p = drawn(shape, a, b), [first, second] = keys(key);
      return inWide(p, (a, b) => logGamma(first, a!).sub(logGamma(second, b!)).sigmoid());
    },
    logProb: (given) => {
      const [first, second, x] = broadcast(a, b, given) as [Value, Value, Value], sum = first.add(second);
      const y = gammaDensity(first, sum, x).add(gammaDensity(second, sum, oneMinus(x))), outside = x.lt(full(x, 0)).or(x.gt(full(x, 1)));
      return except(outside, y.sub(gammaDensity(sum, sum, full(sum, 1))));
    },
    entropy: () => {
      const sum = a.add(b);
      return gammaEntropy(a).add(gammaEntropy(b)).sub(gammaEntropy(sum).add(sum.digamma()));
    },
    mean: () => a.div(a.add(b)),
    variance: () => {
      const sum = a.add(b);
      return a.mul(b).div(sum.mul(sum).mul(plus(sum, 1)));
    },
    divergence: (q) => {
      const join = (a: Value, b: Value): Value => a.builder.stack(broadcast(a, b), -1), p = join(a, b);
      return klDirichlet(p, join(q.a, q.b));
    },
  }));
}

/** {@link dirichlet}. */
export interface Dirichlet extends Distribution<'dirichlet'> { readonly concentration: Value }

/**
 * The distribution of vectors of positive numbers with sum 1, along the last axis, with density proportional to the product of
 * xᵢ^(concentrationᵢ−1).
 */
export function dirichlet(concentration: Value): Dirichlet {
  return distribution<Dirichlet, Readonly<Record<'concentration', Value>>>(dirichlet, 'dirichlet', { concentration }, ({ concentration: a }) => {
    const mean = (): Value => a.div(total(a));
    return {
      sample: (key, shape) => inWide(drawn(shape, a), (a) => logGamma(key, a!).softmax(-1)),
      logProb: (x) => { // that of independent numbers of gamma given their sum: see the Go package
        const rate = total(a), sum = sumLast(a), y = sumLast(gammaDensity(a, rate, x));
        return y.sub(gammaDensity(sum, sum, full(sum, 1)));
      },
      entropy: () => {
        const sum = total(a), parts = gammaEntropy(a).sub(sum.digamma());
        return sumLast(parts).sub(sumLast(gammaEntropy(sum).sub(sum.digamma())));
      },
      mean,
      variance: () => {
        const m = mean();
        return m.mul(oneMinus(m)).div(plus(total(a), 1));
      },
      divergence: (q) => klDirichlet(a, q.concentration),
    };
  });
}

function klDirichlet(a: Value, other: Value): Value {
  const ratio = total(other).div(total(a)), means = klDiv(other, a.mul(ratio)), y = sumLast(means.add(klRest(a, other)));
  return y.sub(klRest(sumLast(a), sumLast(other)));
}
