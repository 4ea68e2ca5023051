// Distributions of counts and classes, and mixtures: the graphs of the Go package ir/dist.

import type { Value } from '../graph/builder.js';
import { broadcastTo, type Check, full, narrow, plus, scale, where, wide } from './check.js';
import { type Distribution, distribution, drawn, inWide, keys, oneMinus, positiveRest, sumLast, uniformNumbers, within } from './dist.js';
import { klDiv } from './special.js';

/** {@link bernoulli}. */
export interface Bernoulli extends Distribution<'bernoulli'> { readonly logit: Value }

/** The distribution of 1 with probability sigmoid(logit), and otherwise 0. Numbers have the type of logit. */
export function bernoulli(logit: Value): Bernoulli {
  return distribution<Bernoulli, Readonly<Record<'logit', Value>>>(bernoulli, 'bernoulli', { logit }, ({ logit }) => ({
    sample: (key, shape) => inWide(drawn(shape, logit.stopGradient()), (p) => uniformNumbers(key, p!).lt(p!.sigmoid()).convert(p!.dtype as 'f32')),
    logProb: (x) => {
      const zero = full(x, 0), one = full(x, 1), y = x.eq(one).select(logit.logSigmoid(), logit.neg().logSigmoid());
      return within(x.eq(zero).or(x.eq(one)), y);
    },
    entropy: () => {
      // Of |logit|, since the terms then do not cancel; not by abs, whose derivative at 0 is 0.
      const l = logit.lt(full(logit, 0)).select(logit.neg(), logit), away = l.neg();
      return away.softplus().add(l.mulZero(away.sigmoid()));
    },
    mean: () => logit.sigmoid(),
    variance: () => logit.sigmoid().mul(logit.neg().sigmoid()),
    divergence: (q) => klOfOne(logit, q.logit).add(klOfOne(logit.neg(), q.logit.neg())),
  }));
}

/** p·log(p/q), of the probabilities p and q of 1, by logits. It is 0 where p is, also for infinite logits. */
const klOfOne = (logit: Value, other: Value): Value => logit.sigmoid().mulZero(logit.logSigmoid().sub(other.logSigmoid()));

/** {@link categorical}. */
export interface Categorical extends Distribution<'categorical'> { readonly logits: Value }

/** The sum of −p·log p along the last axis. */
const entropyOf = (log: Value): Value => sumLast(log.exp().mulZero(log)).neg();

/** The distribution of classes, i32, with probabilities softmax(logits) along the last axis. It has no mean and no variance. */
export function categorical(logits: Value): Categorical {
  return distribution<Categorical, Readonly<Record<'logits', Value>>>(categorical, 'categorical', { logits }, ({ logits }, c) => {
    checkClasses(c, logits);
    return {
      sample: (key, shape) => drawn(shape, logits)[0]!.randomCategorical(key, -1),
      logProb: (x) => {
        const at = /^[iu](8|16)$/.test(x.dtype) ? x.convert('i32') : x; // 8 and 16 bits may not have all classes
        const here = at.expandDims(-1).eq(at.builder.iota({ dtype: at.dtype as 'i32', axis: 0, shape: logits.shape.slice(-1) })), log = logits.logSoftmax(-1);
        return within(here, log).reduceMax([-1]);
      },
      entropy: () => entropyOf(logits.logSoftmax(-1)),
      divergence: (q) => {
        const log = logits.logSoftmax(-1);
        return sumLast(log.exp().mulZero(log.sub(q.logits.logSoftmax(-1))));
      },
    };
  });
}

const checkClasses = (c: Check, logits: Value): void => c.shape(logits.shape.length > 0, 'logits must have an axis of classes');

/** {@link poisson}. */
export interface Poisson extends Distribution<'poisson'> { readonly rate: Value }

/** Counts in the type of a parameter, 0 outside of [0, limit], and whether they are inside. */
function counted(x: Value, like: Value, limit: number): [k: Value, inside: Value] {
  const k = narrow(x, like), inside = k.ge(full(k, 0)).and(k.le(full(k, limit)));
  return [where(inside, k, 0), inside];
}

/**
 * log k! − k·log k + k for k ≥ 0. The logarithms of probabilities of counts are sums of it and of klDiv of counts and their means,
 * of which no two are large and cancel (Loader, Fast and Accurate Computation of Binomial Probabilities, 2000).
 */
function factorialRest(k: Value): Value {
  const positive = k.gt(full(k, 0));
  return where(positive, positiveRest(where(positive, k, 1)), 0);
}

/** The distribution of i32 counts with mean rate. It has no entropy. */
export function poisson(rate: Value): Poisson {
  return distribution<Poisson, Readonly<Record<'rate', Value>>>(poisson, 'poisson', { rate }, ({ rate }) => ({
    sample: (key, shape) => drawn(shape, rate)[0]!.stopGradient().randomPoisson(key),
    logProb: (x) => {
      const [k, inside] = counted(x, rate, Infinity);
      return within(inside, klDiv(k, rate).add(factorialRest(k)).neg());
    },
    mean: () => rate,
    variance: () => rate,
    divergence: (q) => klDiv(rate, q.rate),
  }));
}

/** Adds up count values of draw, i32, each with its own key. */
function repeat(count: number, key: Value, parameter: Value, draw: (key: Value, parameter: Value) => Value): Value {
  const b = parameter.builder, { shape } = draw(key, parameter);
  return b.scan({ consts: [key, parameter], carries: [b.full('u32', [], 0), b.full('i32', shape, 0)], length: count }, (_, [key, parameter], [i, sum]) => {
    const x = draw(key.foldIn(i), parameter);
    return { carries: [plus(i, 1), sum.add(x)] };
  }).carries[1];
}

const checkCount = (c: Check, count: number): void => c.attr(Number.isInteger(count) && count >= 0, `count is ${count}: it must be a whole number, 0 or greater`);

/** {@link binomial}. */
export interface Binomial extends Distribution<'binomial'> { readonly count: number; readonly p: Value }

function binomialDensity(count: number, p: Value, x: Value): Value {
  const [k, inside] = counted(x, p, count), rest = plus(k.neg(), count);
  const away = klDiv(k, scale(p, count)).add(klDiv(rest, scale(oneMinus(p), count)));
  const ways = factorialRest(full(k, count)).sub(factorialRest(k).add(factorialRest(rest)));
  return within(inside, ways.sub(away));
}

/** The distribution of the number of successes, i32, of count trials with probability p each. Drawing takes time proportional to count. */
export function binomial(count: number, p: Value): Binomial {
  return distribution<Binomial, Readonly<Record<'p', Value>>>(binomial, 'binomial', { p }, ({ p }, c) => {
    checkCount(c, count);
    const mean = (): Value => scale(p, count);
    return {
      sample: (key, shape) => repeat(count, key, wide(drawn(shape, p.stopGradient())[0]!), (key, p) => uniformNumbers(key, p).lt(p).convert('i32')),
      logProb: (x) => binomialDensity(count, p, x),
      entropy: () => {
        const all = p.builder.iota({ dtype: 'i32', axis: 0, shape: [count + 1] });
        return entropyOf(binomialDensity(count, p.expandDims(-1), all));
      },
      mean,
      variance: () => mean().mul(oneMinus(p)),
      divergence: (q) => q.count === count ? scale(klDiv(p, q.p).add(klDiv(oneMinus(p), oneMinus(q.p))), count) : undefined,
    };
  }, { count });
}

/** klDiv of counts and their means, by logarithms for probabilities that might be rounded to 0. */
function multinomialDeviance(count: number, logits: Value, k: Value): Value {
  const p = logits.softmax(-1), isLikely = p.gt(full(p, 1e-6)), near = klDiv(k, scale(where(isLikely, p, 1), count));
  const far = k.xlogy(scale(k, 1 / Math.max(count, 1))).sub(k.mulZero(logits.logSoftmax(-1)));
  return isLikely.select(near, far.add(scale(p, count).sub(k)));
}

/** {@link multinomial}. */
export interface Multinomial extends Distribution<'multinomial'> { readonly count: number; readonly logits: Value }

/**
 * The distribution of how often each class, along the last axis, is drawn, i32, of count draws with probabilities
 * softmax(logits). Drawing takes time proportional to count. It has no entropy.
 */
export function multinomial(count: number, logits: Value): Multinomial {
  return distribution<Multinomial, Readonly<Record<'logits', Value>>>(multinomial, 'multinomial', { logits }, ({ logits }, c) => {
    checkCount(c, count);
    checkClasses(c, logits);
    const mean = (): Value => scale(logits.softmax(-1), count);
    return {
      sample: (key, shape) => repeat(count, key, drawn(shape, logits.stopGradient())[0]!, (key, logits) =>
        logits.randomCategorical(key, -1).oneHot({ classes: logits.shape.slice(-1), axis: -1, dtype: 'i32' })),
      logProb: (x) => {
        const [k, inside] = counted(x, logits, count), y = multinomialDeviance(count, logits, k).add(factorialRest(k)), sum = sumLast(k);
        const valid = inside.all([-1]).and(sum.eq(full(sum, count)));
        return within(valid, factorialRest(full(sum, count)).sub(sumLast(y)));
      },
      mean,
      variance: () => mean().mul(oneMinus(logits.softmax(-1))),
    };
  }, { count });
}

/** {@link mixture}. */
export interface Mixture extends Distribution<'mixture'> { readonly logits: Value; readonly components: Distribution }

/**
 * The distribution of numbers of one of several components, with probabilities softmax(logits) along the last axis. `components`
 * is one distribution, of numbers, with a last axis of that size for its components. It has no entropy; its numbers have no
 * derivatives.
 */
export function mixture(logits: Value, components: Distribution): Mixture {
  return distribution<Mixture, Readonly<Record<'logits', Value>>>(mixture, 'mixture', { logits }, ({ logits }, c) => {
    checkClasses(c, logits);
    if (typeof components?.logProb !== 'function') c.fail('missing', 'components must be a distribution');
    const weighted = (x: Value): Value => sumLast(logits.softmax(-1).mul(x));
    return {
      sample: (key, shape) => { // one of each component, then that of a drawn component
        const [first, second] = keys(key), all = components.sample(second, shape).stopGradient();
        const drawnClass = broadcastTo(logits, all.shape).randomCategorical(first, -1);
        return all.takeAlongAxis(drawnClass.expandDims(-1), -1).squeeze([-1]);
      },
      logProb: (x) => components.logProb(x.expandDims(-1)).add(logits.logSoftmax(-1)).logsumexp(-1),
      mean: () => weighted(components.mean()),
      variance: () => {
        const mean = components.mean(), away = mean.sub(weighted(mean).expandDims(-1));
        return weighted(components.variance().add(away.mul(away)));
      },
    };
  }, { components });
}
