// Distributions of a location and a scale: the graphs of the Go package ir/dist.

import type { Operand, Value } from '../graph/builder.js';
import type { Dim } from '../graph/types.js';
import { broadcast, full, narrow, plus, scale as times, where } from './check.js';
import { type Distribution, distribution, drawn, euler, except, keys, logTwoPi, normalNumbers, uniformNumbers, within } from './dist.js';
import { standardGamma } from './positive.js';
import { gammaEntropy, logBeta } from './special.js';

/** A distribution of a location and a scale. */
export interface Located<K extends string = string> extends Distribution<K> { readonly loc: Value; readonly scale: Value }

/** loc + scale·z, of a z of their shape. */
function place(key: Value, shape: readonly Dim[], loc: Value, by: Value, z: (key: Value, like: Value) => Value): Value {
  const [from, wide] = drawn(shape, loc, by) as [Value, Value];
  return from.add(wide.mul(narrow(z(key, wide), wide)));
}

/** (x−loc)/scale and log scale. */
export const standard = (x: Value, loc: Value, by: Value): [Value, Value] => [x.sub(loc).div(by), by.log()];

/** loc in the common shape of loc and by. */
const middle = (loc: Value, by: Value): Value => broadcast(loc, by)[0]!;

/** factor·by² in the common shape of loc and by. */
function spread(loc: Value, by: Value, factor: number): Value {
  const wide = broadcast(loc, by)[1]!;
  return times(wide.mul(wide), factor);
}

/** log by + c in the common shape. */
const logSpread = (loc: Value, by: Value, c: number): Value => plus(broadcast(loc, by)[1]!.log(), c);

export function normalDensity(x: Value, loc: Value, by: Value): Value {
  const [z, log] = standard(x, loc, by);
  return times(plus(z.mul(z), logTwoPi), -0.5).sub(log);
}

export const normalEntropy = (loc: Value, by: Value): Value => logSpread(loc, by, (1 + logTwoPi) / 2);

/** The normal distribution with mean loc and standard deviation scale. */
export function normal(loc: Operand, scale: Operand): Located<'normal'> {
  return distribution<Located<'normal'>, Parameters>(normal, 'normal', { loc, scale }, ({ loc, scale: by }) => ({
    sample: (key, shape) => place(key, shape, loc, by, normalNumbers),
    logProb: (x) => normalDensity(x, loc, by),
    entropy: () => normalEntropy(loc, by),
    mean: () => middle(loc, by),
    variance: () => spread(loc, by, 1),
    divergence: (q) => klNormal(loc, by, q),
  }));
}

type Parameters = Readonly<Record<'loc' | 'scale', Value>>;

function klNormal(loc: Value, by: Value, q: Located): Value {
  const ratio = by.div(q.scale), distance = loc.sub(q.loc).div(q.scale), square = ratio.mul(ratio);
  return times(plus(square.add(distance.mul(distance)), -1).sub(times(ratio.log(), 2)), 0.5);
}

/** The distribution with density e^(−|x−loc|/scale)/(2·scale). */
export function laplace(loc: Operand, scale: Operand): Located<'laplace'> {
  return distribution<Located<'laplace'>, Parameters>(laplace, 'laplace', { loc, scale }, ({ loc, scale: by }) => ({
    sample: (key, shape) => place(key, shape, loc, by, (key, like) => {
      const [sign, size] = keys(key), u = uniformNumbers(sign, like), heads = u.lt(full(u, 0.5)), z = uniformNumbers(size, like).log().neg();
      return heads.select(z, z.neg());
    }),
    logProb: (x) => {
      const [z, log] = standard(x, loc, by);
      return plus(z.abs().add(log).neg(), -Math.LN2);
    },
    entropy: () => logSpread(loc, by, 1.6931471805599453),
    mean: () => middle(loc, by),
    variance: () => spread(loc, by, 2),
    divergence: (q) => klLaplace(loc, by, q),
  }));
}

function klLaplace(loc: Value, by: Value, q: Located): Value {
  const apart = loc.sub(q.loc), distance = apart.lt(full(apart, 0)).select(apart.neg(), apart); // not abs, whose derivative at 0 is 0
  const y = by.mul(distance.div(by).neg().exp()).add(distance).div(q.scale);
  return plus(y.sub(by.div(q.scale).log()), -1);
}

/** The distribution with cumulative probability sigmoid((x−loc)/scale). */
export function logistic(loc: Operand, scale: Operand): Located<'logistic'> {
  return distribution<Located<'logistic'>, Parameters>(logistic, 'logistic', { loc, scale }, ({ loc, scale: by }) => ({
    sample: (key, shape) => place(key, shape, loc, by, (key, like) => uniformNumbers(key, like).logit()),
    logProb: (x) => {
      const [z, log] = standard(x, loc, by);
      return z.logSigmoid().add(z.neg().logSigmoid()).sub(log);
    },
    entropy: () => logSpread(loc, by, 2),
    mean: () => middle(loc, by),
    variance: () => spread(loc, by, 3.289868133696453), // π²/3
  }));
}

/** The distribution of maxima, with cumulative probability exp(−e^(−(x−loc)/scale)). */
export function gumbel(loc: Operand, scale: Operand): Located<'gumbel'> {
  return distribution<Located<'gumbel'>, Parameters>(gumbel, 'gumbel', { loc, scale }, ({ loc, scale: by }) => ({
    sample: (key, shape) => place(key, shape, loc, by, (key, like) => key.randomGumbel({ dtype: like.dtype as 'f32', shape: like.shape })),
    logProb: (x) => {
      const [upward, log] = standard(x, loc, by), z = upward.neg();
      return z.sub(z.exp()).sub(log);
    },
    entropy: () => logSpread(loc, by, 1.5772156649015328),
    mean: () => loc.add(times(by, euler)),
    variance: () => spread(loc, by, 1.6449340668482264), // π²/6
  }));
}

/** {@link uniform}. */
export interface Uniform extends Distribution<'uniform'> { readonly low: Value; readonly high: Value }

/** The distribution of equal density from low to high. */
export function uniform(low: Operand, high: Operand): Uniform {
  return distribution<Uniform, Readonly<Record<'low' | 'high', Value>>>(uniform, 'uniform', { low, high }, ({ low, high }) => {
    const entropy = (): Value => high.sub(low).log();
    return {
      sample: (key, shape) => place(key, shape, low, high.sub(low), (key, like) => key.randomUniform({ dtype: like.dtype as 'f32', shape: like.shape })),
      logProb: (x) => {
        const outside = x.lt(low).or(x.gt(high)), y = entropy().add(full(x, 0)).neg();
        return except(outside, where(x.isNan().not(), y, NaN));
      },
      entropy,
      mean: () => times(low.add(high), 0.5),
      variance: () => times(high.sub(low).square(), 1 / 12),
      divergence: (q) => {
        const inside = low.ge(q.low).and(high.le(q.high));
        return within(inside, entropy().sub(q.entropy())).neg();
      },
    };
  });
}

/** {@link studentT}. */
export interface StudentT extends Located<'studentT'> { readonly freedom: Value }

/** Student's distribution with freedom degrees of freedom, moved by loc and scaled by scale. */
export function studentT(freedom: Operand, loc: Operand, scale: Operand): StudentT {
  return distribution<StudentT, Readonly<Record<'freedom' | 'loc' | 'scale', Value>>>(studentT, 'studentT', { freedom, loc, scale }, ({ freedom, loc, scale: by }) => ({
    sample: (key, shape) => { // normal numbers divided by roots of gamma ones
      const [degrees, at, wide] = drawn(shape, freedom, loc, by) as [Value, Value, Value], [first, second] = keys(key), half = times(degrees, 0.5);
      const z = normalNumbers(first, half).div(standardGamma(second, half).div(half).sqrt());
      return at.add(wide.mul(z));
    },
    logProb: (x) => {
      const [z, log] = standard(x, loc, by), half = times(freedom, 0.5);
      const normalizer = logBeta(half, full(half, 0.5)).add(times(freedom.log(), 0.5)).neg();
      const tail = plus(half, 0.5).mul(z.mul(z).div(freedom).log1p());
      return normalizer.sub(tail).sub(log);
    },
    entropy: () => {
      const half = times(freedom, 0.5), upper = plus(half, 0.5), y = gammaEntropy(half).sub(gammaEntropy(upper));
      const more = y.add(upper.digamma().sub(times(half.digamma(), 1.5))).add(times(freedom.log(), 0.5));
      return more.add(logSpread(loc, by, (1 + Math.log(Math.PI)) / 2));
    },
    mean: () => {
      const [degrees, at] = broadcast(freedom, loc, by) as [Value, Value];
      return where(degrees.gt(full(degrees, 1)), at, NaN);
    },
    variance: () => {
      const [degrees, , wide] = broadcast(freedom, loc, by) as [Value, Value, Value], finite = degrees.gt(full(degrees, 2));
      const y = wide.mul(wide).mul(degrees.div(where(finite, plus(degrees, -2), 1)));
      return where(degrees.gt(full(degrees, 1)), where(finite, y, Infinity), NaN);
    },
  }));
}
