// Special functions of mathematics and of statistics: the graphs of the Go package ir/special.

import type { Value } from '../graph/builder.js';
import type { Called } from '../graph/caller-stack.js';
import { broadcast, calling, epsilon, full, narrow, plus, scale, where, wide } from './check.js';
import { e1Series, eiFar, eiFarthest, eiMiddle, einSeries, eiSeries, erfcxSeries, evenBernoulli, j0Near, j1Near, p0Far, p1Far, q0Far, q1Far, stirlingSeries, stirlingSlopes } from './series.gen.js';

/** Builds a function of float values, which are broadcast, in f32 for narrower types. */
export function ofFloats(called: Called, name: string, operands: readonly Value[], build: (...values: Value[]) => Value): Value {
  return calling(called, `special.${name}`, operands, undefined, '', (c) => {
    c.floats();
    return narrow(build(...broadcast(...operands).map(wide)), operands[0]!);
  });
}

/** A function f, whose derivatives by its operands are slopes. A slope of zero adds nothing, even if it is of an infinite tangent. */
export function withSlopes(operands: readonly Value[], f: (...values: Value[]) => Value, slopes: (...values: Value[]) => Value[]): Value {
  return operands[0]!.builder.customJVP(operands, (_, values) => [f(...values)], (_, values, tangents) => {
    const of = slopes(...values);
    return [of.slice(1).reduce((sum, slope, i) => sum.add(tangents[i + 1]!.mulZero(slope)), tangents[0]!.mulZero(of[0]!))];
  })[0]!;
}

/** Σ cₖ·Tₖ(t) by Clenshaw's recurrence, without terms below the precision of the element type. */
function chebyshev(t: Value, c: readonly number[]): Value {
  const largest = Math.max(...c.map(Math.abs));
  let n = c.length;
  while (n > 2 && Math.abs(c[n - 1]!) < largest * epsilon(t) / 32) n--;
  const twice = t.add(t);
  let last = full(t, c[n - 1]!), before = full(t, 0);
  for (let k = n - 2; k >= 1; k--) [last, before] = [plus(twice.mul(last).sub(before), c[k]!), last];
  return plus(t.mul(last).sub(before), c[0]!);
}

/** c[0] + c[1]·x + c[2]·x² + … */
export const horner = (x: Value, ...c: readonly number[]): Value => c.slice(0, -1).reduceRight((p, k) => plus(p.mul(x), k), full(x, c.at(-1)!));

/** The elementwise entropy −x·log x: 0 at 0, −∞ below, as scipy.special.entr. */
export function entr(x: Value): Value {
  return ofFloats(entr, 'entr', [x], (x) => {
    const negative = x.lt(full(x, 0)), safe = negative.select(full(x, 0), x);
    return negative.select(full(x, -Infinity), safe.xlogy(safe).neg());
  });
}

/** The elementwise relative entropy x·log(x/y) for x and y not negative: 0 where x is 0, ∞ otherwise, as scipy.special.rel_entr. */
export function relEntr(x: Value, y: Value): Value { return ofFloats(relEntr, 'relEntr', [x, y], relativeEntropy); }

function relativeEntropy(x: Value, y: Value): Value {
  const zero = full(x, 0), none = x.eq(zero).and(y.ge(zero)), inside = x.gt(zero).and(y.gt(zero)), known = x.isNan().or(y.isNan());
  const safeX = where(inside, x, 1), safeY = where(inside, y, 1), difference = safeX.sub(safeY);
  const near = difference.abs().lt(scale(safeY, 0.5)); // where the quotient rounds off what differs
  const log = near.select(difference.div(safeY).log1p(), safeX.log().sub(safeY.log()));
  const z = inside.select(safeX.mul(log), where(none, x.mul(full(x, 0)), Infinity));
  return known.select(x.add(y), z);
}

/**
 * x·log(x/y) − x + y for x and y not negative, which is y where x is 0, and ∞ otherwise, as scipy.special.kl_div. Its relative
 * error is small also where x and y are close, by the series of Loader, Fast and Accurate Computation of Binomial Probabilities
 * (2000).
 */
export function klDiv(x: Value, y: Value): Value { return ofFloats(klDiv, 'klDiv', [x, y], deviance); }

/** (x−y)·v + 2·x·(v³/3 + v⁵/5 + …) with v = (x−y)/(x+y) near x = y, since log(x/y) = 2·artanh v. */
function deviance(x: Value, y: Value): Value {
  const apart = x.sub(y), sum = x.add(y), near = apart.abs().lt(scale(sum, 1 / 8)), difference = where(near, apart, 0);
  const c = Array.from({ length: x.dtype === 'f64' ? 8 : 4 }, (_, i) => 1 / (2 * i + 3)); // the next one is below the precision
  const v = difference.div(where(near, sum, 1)), square = v.mul(v);
  const rest = scale(where(near, x, 1), 2).mul(v).mul(square.mul(horner(square, ...c)));
  return near.select(difference.mul(v).add(rest), relativeEntropy(x, y).add(y.sub(x)));
}

/** The logarithm of the beta function B(x, y) = Γ(x)·Γ(y)/Γ(x+y), for x and y positive. */
export function logBeta(x: Value, y: Value): Value {
  return ofFloats(logBeta, 'logBeta', [x, y], (x, y) => {
    const swapped = x.gt(y);
    return logOfBeta(swapped.select(y, x), swapped.select(x, y));
  });
}

/**
 * logBeta of x up to y. From 8 on the large terms of Stirling's series cancel before they are computed (DiDonato and Morris,
 * Significant Digit Computation of the Incomplete Beta Function Ratios, 1992).
 */
function logOfBeta(x: Value, y: Value): Value {
  const eight = full(x, 8), isLarge = y.ge(eight), areLarge = x.ge(eight);
  const small = where(areLarge, x, 8), large = where(isLarge, y, 8), low = isLarge.select(full(y, 1), y);
  const none = x.lgamma().add(low.lgamma()).sub(x.add(low).lgamma());

  const part = (x: Value): Value => x.div(x.add(large));
  const rest = largeRemainder(large).sub(largeRemainder(x.add(large))), start = x.sub(x.mul(x.add(large).log())).add(rest);
  const one = start.add(plus(large, -0.5).mul(part(x).neg().log1p())).add(where(areLarge.not(), x, 1).lgamma());

  const rests = largeRemainder(small).add(largeRemainder(large)).sub(largeRemainder(small.add(large)));
  const logs = plus(small, -0.5).mul(part(small).log()).add(large.mul(part(small).neg().log1p()));
  const both = logs.sub(scale(large.log(), 0.5)).add(plus(rests, halfLogTwoPi));
  return areLarge.select(both, isLarge.select(one, none));
}

/** ½·log 2π, the constant of Stirling's formula. */
const halfLogTwoPi = 0.9189385332046728;

/**
 * The remainder of Stirling's formula, log Γ(a) − (a−½)·log a + a − ½·log 2π, for a > 0: about 1/(12·a) (DLMF 5.11.1). With it
 * the terms of densities that grow with their parameters cancel before they are computed; see Loader, Fast and Accurate
 * Computation of Binomial Probabilities (2000).
 */
export function stirlingRemainder(a: Value): Value {
  return ofFloats(stirlingRemainder, 'stirlingRemainder', [a], (a) => withSlopes([a], remainder, (a) => [remainderSlope(a)]));
}

/** The derivative of {@link stirlingRemainder}, ψ(a) − log a + 1/(2·a). */
export function stirlingRemainderSlope(a: Value): Value { return ofFloats(stirlingRemainderSlope, 'stirlingRemainderSlope', [a], remainderSlope); }

/** Whether a is 2 or greater, and a where that holds and where it does not. */
function fromTwo(a: Value): [isLarge: Value, large: Value, small: Value] {
  const isLarge = a.ge(full(a, 2));
  return [isLarge, where(isLarge, a, 2), isLarge.select(full(a, 1), a)];
}

/** Adds to f(a), or to f(a+2) for a below 2, the differences f(x) − f(x+1) at a and a+1. */
function lifted(a: Value, f: (x: Value) => Value, difference: (x: Value) => Value): Value {
  const [isLarge, , small] = fromTwo(a), y = f(isLarge.select(a, plus(small, 2))), below = difference(small).add(difference(plus(small, 1)));
  const sum = y.add(isLarge.select(full(a, 0), below));
  return where(a.gt(full(a, 0)), sum, NaN);
}

/** Its differences are (x+½)·log(1 + 1/x) − 1. */
const remainder = (a: Value): Value => lifted(a, largeRemainder, (x) => plus(plus(x, 0.5).mul(x.reciprocal().log1p()), -1));

const remainderSlope = (a: Value): Value => lifted(a, largeSlope, (x) => {
  const over = x.reciprocal();
  return over.log1p().sub(over.mul(plus(x, 0.5).div(plus(x, 1))));
});

/** stirlingRemainder for a from 2. */
export const largeRemainder = (a: Value): Value => chebyshev(besideTwo(a), stirlingSeries).div(a);

/** stirlingRemainderSlope for a from 2. */
function largeSlope(a: Value): Value {
  const over = full(a, 1).div(a);
  return over.mul(over).mul(chebyshev(besideTwo(a), stirlingSlopes)).neg();
}

/** Maps a from 2 to the interval of a Chebyshev series. */
const besideTwo = (a: Value): Value => plus(full(a, 4).div(a).neg(), 1);

/**
 * The entropy of the gamma distribution of shape a > 0 and rate 1, a + log Γ(a) + (1−a)·ψ(a). Entropies of Student's, beta and
 * Dirichlet distributions are sums of it, whose terms do not cancel for large parameters.
 */
export function gammaEntropy(a: Value): Value {
  return ofFloats(gammaEntropy, 'gammaEntropy', [a], (a) => {
    const [isLarge, large, small] = fromTwo(a), direct = small.add(small.lgamma()).add(plus(small.neg(), 1).mul(small.digamma()));
    const over = full(a, 1).div(large), y = plus(scale(large.log().sub(over), 0.5), 0.5 + halfLogTwoPi);
    const slope = plus(large.neg(), 1).mul(largeSlope(large));
    return isLarge.select(y.add(slope.add(largeRemainder(large))), direct);
  });
}

/** The scaled complementary error function e^(x²)·erfc(x). */
export function erfcx(x: Value): Value { return ofFloats(erfcx, 'erfcx', [x], scaledErfc); }

function scaledErfc(x: Value): Value {
  const negative = x.lt(full(x, 0)), a = negative.select(x.neg(), x); // not abs, whose derivative at 0 is 0
  const over = plus(a, 3), t = plus(full(x, 6).div(over).neg(), 1), y = chebyshev(t, erfcxSeries).div(over), safe = where(negative, x, 0);
  return negative.select(scale(expSquare(safe, 1), 2).sub(y), y);
}

/**
 * e^(by·x²), with the square as the exact square of x rounded to sixteenths and the rest, since an exponent's rounding
 * error is the relative error of the result.
 */
function expSquare(x: Value, by: number): Value {
  const high = scale(scale(x.clamp(full(x, -64), full(x, 64)), 16).round(), 1 / 16).stopGradient(), rest = x.sub(high).mul(x.add(high));
  return scale(high.mul(high), by).exp().mul(scale(rest, by).exp());
}

/** The logarithm of the standard normal distribution's cumulative probability of x. */
export function logNdtr(x: Value): Value { return ofFloats(logNdtr, 'logNdtr', [x], logProbability); }

function logProbability(x: Value): Value {
  return withSlopes([x], (x) => {
    const below = x.lt(full(x, -1)), low = x.min(full(x, -1)), high = x.max(full(x, -1));
    const log = scale(scaledErfc(scale(low, -Math.SQRT1_2)), 0.5).log(), finite = log.sub(scale(low.mul(low), 0.5));
    const tail = low.isInf().select(low, finite); // where it is −∞
    return below.select(tail, upperTail(high).neg().log1p());
  }, (x) => [millsInverse(x)]);
}

/** The probability of more than x, for x from −1. */
function upperTail(x: Value): Value {
  const finite = x.min(full(x, 60)); // where it is 0
  return scale(scaledErfc(scale(finite, Math.SQRT1_2)), 0.5).mul(expSquare(finite, -0.5));
}

/** √(2/π). */
const rootOfTwoOverPi = 0.7978845608028654;

/** The density of the standard normal distribution divided by its cumulative probability. */
function millsInverse(x: Value): Value {
  const zero = full(x, 0), below = x.lt(zero), low = where(below, x, 0), high = below.select(zero, x); // a maximum's derivative at 0 is 1/2
  const tail = full(x, rootOfTwoOverPi).div(scaledErfc(scale(low, -Math.SQRT1_2)));
  const density = scale(expSquare(high.min(full(x, 60)), -0.5), 1 / Math.sqrt(2 * Math.PI)), upper = density.div(plus(upperTail(high).neg(), 1));
  return below.select(tail, upper);
}

/** The quantile of the standard normal distribution, the x of which {@link logNdtr} is log p: −∞ at 0, ∞ at 1. */
export function ndtri(p: Value): Value {
  return ofFloats(ndtri, 'ndtri', [p], (p) => withSlopes([p], quantile, (p) => {
    const x = quantile(p), edge = x.isInf(); // ndtri itself would have no end of derivatives of derivatives
    const slope = scale(expSquare(where(edge.not(), x, 0), 0.5), Math.sqrt(2 * Math.PI));
    return [edge.select(x.abs(), slope)];
  }));
}

/**
 * √2·erfinv(2p − 1) in the centre; in the tails it solves for the logarithm of p by Newton's method from the
 * approximation 26.2.23 of Abramowitz and Stegun, Handbook of Mathematical Functions.
 */
function quantile(p: Value): Value {
  const one = full(p, 1), upper = p.gt(full(p, 0.5)), tail = upper.select(one.sub(p), p);
  const isTail = tail.lt(full(p, 0.125)).and(tail.gt(full(p, 0))), goal = where(isTail, tail, 0.0625).log(), t = scale(goal, -2).sqrt();
  let x = horner(t, 2.515517, 0.802853, 0.010328).div(horner(t, 1, 1.432788, 0.189269, 0.001308)).sub(t);
  for (let i = 0; i < 3; i++) x = x.sub(logProbability(x).sub(goal).div(millsInverse(x)));
  const inner = scale(p.add(p).sub(one).erfinv(), Math.SQRT2), centre = where(p.ge(full(p, 0)), inner, NaN); // 2p − 1 is −1 just below 0
  return isTail.select(upper.select(x.neg(), x), centre);
}

/** Euler's constant. */
const euler = 0.5772156649015329;

/** The exponential integral ∫ e⁻ᵗ/t dt from x to ∞, for x > 0: ∞ at 0. */
export function e1(x: Value): Value { return ofFloats(e1, 'e1', [x], (x) => withSlopes([x], exponentialIntegral, (x) => [x.neg().exp().div(x).neg()])); }

function exponentialIntegral(x: Value): Value {
  const one = full(x, 1), isNear = x.le(one), low = x.min(one);
  const series = low.mul(chebyshev(plus(scale(low, 2), -1), einSeries)), near = plus(series, -euler).sub(low.log());
  const high = plus(x.max(one), 1), far = chebyshev(plus(full(x, 4).div(high).neg(), 1), e1Series);
  return isNear.select(near, far.mul(x.max(one).neg().exp()).div(high));
}

/** The exponential integral −∫ e⁻ᵗ/t dt from −x to ∞, as its principal value for x > 0: −∞ at 0. */
export function ei(x: Value): Value { return ofFloats(ei, 'ei', [x], (x) => withSlopes([x], principalValue, (x) => [x.exp().div(x)])); }

function principalValue(x: Value): Value {
  const positive = x.gt(full(x, 0)), y = where(positive, x, 1), low = y.min(full(x, 8));
  const series = low.mul(low.exp()).mul(chebyshev(plus(scale(low, 0.25), -1), eiSeries)), near = series.add(plus(low.log(), euler));
  const part = (from: number, to: number, by: number, minus: number, c: readonly number[]): Value => {
    const at = y.clamp(full(x, from), full(x, to));
    return chebyshev(plus(full(x, by).div(at), -minus), c);
  };
  const below = (bound: number): Value => y.lt(full(x, bound));
  const bounded = below(16).select(part(8, 16, 32, 3, eiMiddle), below(32).select(part(16, 32, 64, 3, eiFar), part(32, Infinity, 64, 1, eiFarthest)));
  const scaled = y.exp().mul(bounded.div(y)), far = y.isInf().select(y, scaled); // where it is ∞
  const right = below(8).select(near, far);
  return positive.select(right, exponentialIntegral(positive.select(full(x, -1), x).neg()).neg());
}

/** The Bessel function of the first kind and order 0. */
export function j0(x: Value): Value { return ofFloats(j0, 'j0', [x], (x) => withSlopes([x], bessel0, (x) => [bessel1(x).neg()])); }

/** The Bessel function of the first kind and order 1. */
export function j1(x: Value): Value { return ofFloats(j1, 'j1', [x], (x) => withSlopes([x], bessel1, (x) => [bessel0(x).sub(bessel1Over(x))])); }

function bessel0(x: Value): Value {
  const a = x.abs();
  return bessel(a, chebyshev(fromSquare(x), j0Near), (away) => {
    const [p, q] = hankel(away, p0Far, q0Far), sin = away.sin(), cos = away.cos(); // of w + π/4
    return p.mul(cos.add(sin)).sub(q.mul(sin.sub(cos)));
  });
}

function bessel1(x: Value): Value {
  return bessel(x.abs(), upTo8(x).mul(chebyshev(fromSquare(x), j1Near)), (away) => {
    const sign = x.sign(), [p, q] = hankel(away, p1Far, q1Far), sin = away.sin(), cos = away.cos(); // of w + 3π/4
    return sign.mul(p.mul(sin.sub(cos)).add(q.mul(sin.add(cos))));
  });
}

/** J₁(x)/x, 1/2 at 0. */
function bessel1Over(x: Value): Value {
  const far = x.abs().gt(full(x, 8)), away = where(far, x, 8);
  return far.select(bessel1(away).div(away), chebyshev(fromSquare(x), j1Near));
}

/** x for |x| up to 8, else 8. Its derivative at 8 is 1, where a minimum's is 1/2. */
const upTo8 = (x: Value): Value => where(x.abs().le(full(x, 8)), x, 8);

/** x²/32 − 1 for |x| up to 8, of x itself, as |x| has a kink at 0. */
function fromSquare(x: Value): Value {
  const low = upTo8(x);
  return plus(scale(low.mul(low), 1 / 32), -1);
}

/** P and Q of Hankel's form J = √(2/(πx))·(P·cos w − Q·sin w) for x from 8. */
function hankel(x: Value, p: readonly number[], q: readonly number[]): [Value, Value] {
  const over = full(x, 8).div(x), t = plus(scale(over.mul(over), 2), -1);
  return [chebyshev(t, p), chebyshev(t, q).div(x)];
}

/** Near up to 8, and then far/√(πx), which is 0 at ∞. */
function bessel(a: Value, near: Value, far: (away: Value) => Value): Value {
  const isNear = a.le(full(a, 8)), infinite = a.isInf(), away = where(isNear.or(infinite).not(), a, 8);
  const y = far(away).mul(scale(away, Math.PI).rsqrt());
  return isNear.select(near, infinite.select(full(a, 0), y));
}

/**
 * Hurwitz's zeta function Σ (q + k)⁻ˢ over k from 0, for finite s > 1 and q > 0; with q = 1 it is Riemann's. It is ∞
 * where s is 1. It has derivatives by both operands.
 */
export function zeta(s: Value, q: Value): Value { return ofFloats(zeta, 'zeta', [s, q], hurwitz); }

/** Sums twelve terms and the rest by the Euler–Maclaurin formula. */
function hurwitz(givenS: Value, givenQ: Value): Value {
  const terms = 12, one = full(givenS, 1), zero = full(givenS, 0);
  const valid = givenS.gt(one).and(givenS.isFinite()).and(givenQ.gt(zero)), pole = givenS.eq(one).and(givenQ.gt(zero));
  const s = where(valid, givenS, 2), q = where(valid, givenQ, 1), power = (x: Value): Value => x.pow(s.neg());
  const z = plus(q, terms), base = power(z), above = s.sub(one);
  let sum = z.pow(above.neg()).div(above).add(scale(base, 0.5)), last = s.mul(base).div(z);
  evenBernoulli.forEach((bernoulli, j) => {
    sum = sum.add(scale(last, bernoulli));
    const next = plus(s, 2 * j + 1).mul(plus(s, 2 * j + 2));
    last = last.mul(next).div(z.mul(z));
  });
  for (let k = terms - 1; k >= 0; k--) sum = sum.add(power(plus(q, k)));
  return valid.select(sum, where(pole.not(), full(s, NaN), Infinity));
}
