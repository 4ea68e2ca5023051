// Incomplete gamma and beta functions, by series and continued fractions in loops: the graphs of the Go package ir/special.

import type { GraphBuilder, Value } from '../graph/builder.js';
import { epsilon, full, plus, scale, where } from './check.js';
import { largeRemainder, logBeta, ofFloats, withSlopes } from './special.js';

/**
 * A value with its derivatives by some parameters, all of one type. Loops carry them: to differentiate a loop would keep the
 * values of every step.
 */
class Dual {
  readonly v: Value;
  readonly d: readonly Value[];

  constructor(v: Value, d: readonly Value[]) {
    this.v = v;
    this.d = d;
  }

  /** A value that is the same for all parameters. */
  static constant(v: Value, parameters: number): Dual { return new Dual(v, Array.from({ length: parameters }, () => full(v, 0))); }

  /** The value of a parameter, the one of number i. */
  static parameter(v: Value, i: number, parameters: number): Dual {
    const { d } = Dual.constant(v, parameters), one = i < parameters && full(v, 1);
    return new Dual(v, one ? d.with(i, one) : d);
  }

  plus({ v, d }: Dual): Dual { return new Dual(this.v.add(v), this.d.map((dx, i) => dx.add(d[i]!))); }

  times({ v, d }: Dual): Dual { return new Dual(this.v.mul(v), this.d.map((dx, i) => dx.mul(v).add(this.v.mul(d[i]!)))); }

  over({ v, d }: Dual): Dual {
    const z = this.v.div(v);
    return new Dual(z, this.d.map((dx, i) => dx.sub(z.mul(d[i]!)).div(v)));
  }

  /** This plus a number that no parameter changes. */
  shifted(by: Value): Dual { return new Dual(this.v.add(by), this.d); }

  /** This times a number that no parameter changes. */
  scaled(by: Value): Dual { return new Dual(this.v.mul(by), this.d.map((dx) => dx.mul(by))); }

  /** 1 − this. */
  complement(): Dual {
    const minus = this.scaled(full(this.v, -1));
    return minus.shifted(full(this.v, 1));
  }
}

/** x where the condition holds, else y. */
const choose = (condition: Value, x: Dual, y: Dual): Dual => new Dual(condition.select(x.v, y.v), x.d.map((dx, i) => condition.select(dx, y.d[i]!)));

/** The values of duals, the derivatives of each after its value. */
const flat = (of: readonly Dual[]): Value[] => of.flatMap(({ v, d }) => [v, ...d]);

/** The inverse of {@link flat}. */
const unflat = (values: readonly Value[], parameters: number): Dual[] => values.flatMap((v, i) => i % (parameters + 1) === 0 ? [new Dual(v, values.slice(i + 1, i + 1 + parameters))] : []);

/** Whether the step from old to x changes it, or a derivative, by more than the precision. */
function moves(old: Dual, x: Dual): Value {
  const size = x.v.abs(), changed = (from: Value, to: Value, size: Value): Value => to.sub(from).abs().gt(scale(size, epsilon(x.v)));
  return x.d.reduce((any, dx, i) => any.or(changed(old.d[i]!, dx, dx.abs().add(size))), changed(old.v, x.v, size));
}

/** Bounds the number of steps of a loop. A series of x near its parameter a needs 9·√a in f64. */
const maxSteps = 2000;

/**
 * Repeats next, which gets the number of the step, from 1, until the first value of the state does not move, and returns
 * that. Constants are operands of next.
 */
function converge(constants: readonly Dual[], state: readonly Dual[], next: (constants: Dual[], state: Dual[], k: Value) => Dual[]): Dual {
  const { v, d } = state[0]!, b: GraphBuilder = v.builder, n = d.length;
  const carries: Value[] = [b.full(v.dtype as 'f32', [], 1), b.full('bool', [], 1), ...flat(state)];
  const out = b.whileLoop({ consts: flat(constants), carries, maxSteps }, (_, __, c) => c[1]!, (_, fixed, c): Value[] => {
    const old = unflat(c.slice(2), n), now = next(unflat(fixed, n), old, c[0]!), open = moves(old[0]!, now[0]!).any();
    return [plus(c[0]!, 1), open, ...flat(now)];
  });
  return unflat(out.slice(2), n)[0]!;
}

/**
 * Adds the partial quotient x/y to a state of Lentz's method for a continued fraction, by Thompson and Barnett, Coulomb and
 * Bessel Functions of Complex Arguments and Order (1986).
 */
function lentz([h, c, d]: readonly Dual[], x: Dual, y: Dual): Dual[] {
  const one = Dual.constant(full(h!.v, 1), h!.d.length), nextD = one.over(y.plus(x.times(d!))), nextC = y.plus(x.over(c!));
  return [h!.times(nextC.times(nextD)), nextC, nextD];
}

/**
 * The regularized lower incomplete gamma function P(a, x), the integral of tᵃ⁻¹·e⁻ᵗ/Γ(a) from 0 to x, for a > 0 and x ≥ 0. It
 * has derivatives by both operands. For a above 40,000 in f64 and 100,000 in f32 results near x = a are inexact.
 */
export function gammainc(a: Value, x: Value): Value { return ofFloats(gammainc, 'gammainc', [a, x], (a, x) => incompleteGamma(a, x, false)); }

/**
 * 1 − {@link gammainc}, the integral from x to ∞, accurate in its tail. Where x and a are below 1 it has the absolute error
 * of the precision.
 */
export function gammaincc(a: Value, x: Value): Value { return ofFloats(gammaincc, 'gammaincc', [a, x], (a, x) => incompleteGamma(a, x, true)); }

const incompleteGamma = (a: Value, x: Value, upper: boolean): Value => withSlopes([a, x], (a, x) => gammaOf(a, x, upper, 0).v, (a, x) => {
  const density = plus(a, -1).xlogy(x).sub(x).sub(a.lgamma()).exp();
  return [gammaOf(a, x, upper, 1).d[0]!, scale(density, upper ? -1 : 1)];
});

/**
 * P, or Q with upper, and with parameters 1 its derivative by a: by the series of P below x = a + 1, by the continued fraction
 * of Q above (DLMF 8.11.4 and 8.9.2).
 */
function gammaOf(a: Value, x: Value, upper: boolean, parameters: number): Dual {
  const zero = full(a, 0), one = full(a, 1), valid = a.gt(zero).and(x.ge(zero)), positive = valid.and(x.gt(zero)), inside = positive.and(x.isFinite().and(a.isFinite()));
  const safe = where(inside, a, 1), at = where(inside, x, 1), low = at.lt(safe.add(one)), front = gammaFront(safe, at, parameters);
  const series = front.times(gammaSeries(safe, where(low, at, 0), parameters)), high = low.not();
  const fraction = gammaFraction(where(high, safe, 1), where(high, at, 2), parameters), rest = front.times(Dual.parameter(safe, 0, parameters)).times(fraction);
  const p = upper ? series.complement() : series, q = upper ? rest : rest.complement();
  const lower = x.eq(zero).or(a.isInf()).select(zero, one), edge = where(valid, upper ? one.sub(lower) : lower, NaN); // P at 0 and ∞
  const known = a.isInf().and(x.isInf()).select(full(a, NaN), edge);
  return choose(inside, choose(low, p, q), Dual.constant(known, parameters));
}

/**
 * xᵃ·e⁻ˣ/Γ(a+1). From a = 8 on the large terms of the exponent cancel before they are computed: with u = x/a − 1 it is
 * a·(log(1 + u) − u) without those of Stirling's series.
 */
function gammaFront(a: Value, x: Value, parameters: number): Dual {
  const eight = full(a, 8), few = a.lt(eight), low = where(few, a, 8), many = few.select(eight, a); // a maximum's derivative at 8 is 1/2
  const direct = x.pow(low).mul(x.neg().exp()).mul(plus(low, 1).lgamma().neg().exp());
  const u = x.sub(many).div(many), near = u.abs().lt(full(a, 0.5)), log = near.select(where(near, u, 0).log1p(), x.div(many).log());
  const exponential = many.mul(log.sub(u)).sub(largeRemainder(many)).exp(), y = exponential.mul(scale(many, 2 * Math.PI).rsqrt());
  const front = Dual.constant(few.select(direct, y), parameters);
  return parameters ? new Dual(front.v, [front.v.mul(x.log().sub(plus(a, 1).digamma()))]) : front;
}

/** Σ xᵏ/((a+1)…(a+k)). */
function gammaSeries(a: Value, x: Value, parameters: number): Dual {
  const one = Dual.constant(full(a, 1), parameters);
  return converge([Dual.parameter(a, 0, parameters), Dual.constant(x, parameters)], [one, one], ([a, x], [sum, last], k) => {
    const term = last!.times(x!.over(a!.shifted(k)));
    return [sum!.plus(term), term];
  });
}

/** 1/(x+1−a − 1·(1−a)/(x+3−a − 2·(2−a)/(x+5−a − …))). */
function gammaFraction(a: Value, x: Value, parameters: number): Dual {
  const parameter = Dual.parameter(a, 0, parameters), minus = parameter.scaled(full(a, -1));
  const first = Dual.constant(full(a, 1), parameters), d = first.over(minus.shifted(plus(x, 1)));
  const start = [d, Dual.constant(full(a, 1 / epsilon(a) / epsilon(a)), parameters), d];
  return converge([minus, Dual.constant(x, parameters)], start, ([minus, x], state, k) => {
    const over = minus!.shifted(k).scaled(k.neg()), under = minus!.shifted(x!.v.add(plus(k.add(k), 1)));
    return lentz(state, over, under);
  });
}

/**
 * The regularized incomplete beta function, the integral of t^(a−1)·(1−t)^(c−1)/B(a, c) from 0 to x, for a > 0, c > 0 and x in
 * [0, 1]. It has derivatives by all operands.
 */
export function betainc(a: Value, c: Value, x: Value): Value {
  return ofFloats(betainc, 'betainc', [a, c, x], (a, c, x) => withSlopes([a, c, x], (a, c, x) => betaOf(a, c, x, 0).v, (a, c, x) => {
    const exponent = plus(a, -1).xlogy(x).add(plus(c, -1).xlog1py(x.neg())), by = betaOf(a, c, x, 2);
    return [...by.d, exponent.sub(logBeta(a, c)).exp()];
  }));
}

/**
 * {@link betainc}, and with parameters 2 its derivatives by a and c: by the continued fraction of DLMF 8.17.22 on the side of
 * the mean where that converges fast.
 */
function betaOf(givenA: Value, givenC: Value, x: Value, parameters: number): Dual {
  const zero = full(givenA, 0), one = full(givenA, 1), valid = givenA.gt(zero).and(givenC.gt(zero)).and(x.ge(zero).and(x.le(one)));
  const between = valid.and(x.gt(zero).and(x.lt(one))), inside = between.and(givenA.add(givenC).isFinite());
  const certain = x.eq(one).or(givenC.isInf().and(x.gt(zero))), known = valid.and(givenA.isInf().and(givenC.isInf()).not());
  const edge = where(known, certain.select(one, zero), NaN);
  const a = where(inside, givenA, 1), c = where(inside, givenC, 1), at = where(inside, x, 0.5), rest = one.sub(at);
  const turned = at.mul(plus(a.add(c), 2)).gt(plus(a, 1)), swap = (x: Value, y: Value): [Value, Value] => [turned.select(y, x), turned.select(x, y)];
  const [p, q] = swap(a, c), [low, high] = swap(at, rest), logLow = low.log(), logOfHigh = high.log(), logHigh = turned.select(logOfHigh, low.neg().log1p());
  const front = Dual.constant(p.mul(logLow).add(q.mul(logHigh)).sub(logBeta(p, q)).exp(), parameters);
  const slope = (log: Value, of: Value): Value => front.v.mul(log.add(p.add(q).digamma()).sub(of.digamma()));
  const steep = parameters ? new Dual(front.v, [slope(logLow, p), slope(logHigh, q)]) : front;
  const y = steep.over(Dual.parameter(p, 0, parameters)).times(betaFraction(p, q, low, parameters)), complement = y.complement();
  const other = new Dual(complement.v, complement.d.toReversed());
  return choose(inside, choose(turned, other, y), Dual.constant(edge, parameters));
}

/** The continued fraction 1/(1 + d₁/(1 + d₂/(1 + …))). */
function betaFraction(p: Value, q: Value, x: Value, parameters: number): Dual {
  const one = Dual.constant(full(x, 1), parameters), constants = [Dual.parameter(p, 0, parameters), Dual.parameter(q, 1, parameters), Dual.constant(x, parameters)] as const;
  const first = constants[0].plus(constants[1]).times(constants[2]).over(constants[0].shifted(one.v)).scaled(full(x, -1)), d = one.over(first.plus(one));
  return converge(constants, [d, one, d], ([p, q, x], state, k) => {
    const one = Dual.constant(full(x!.v, 1), parameters), twice = k.add(k), middle = p!.shifted(twice); // p + 2k
    const even = q!.shifted(k.neg()).times(x!).scaled(k).over(middle.times(middle.shifted(full(k, -1))));
    const product = p!.shifted(k).times(p!.plus(q!).shifted(k)).times(x!).scaled(full(k, -1)), odd = product.over(middle.times(middle.shifted(full(k, 1))));
    return lentz(lentz(state, even, one), odd, one);
  });
}

/**
 * The derivative by a of the x at which {@link gammainc} has a fixed value. It is that of a number of the gamma distribution by
 * its shape, after Figurnov, Mohamed and Mnih, Implicit Reparameterization Gradients (2018). It is 0 where x is 0.
 */
export function gammaQuantileSlope(a: Value, x: Value): Value {
  return ofFloats(gammaQuantileSlope, 'gammaQuantileSlope', [a, x], (a, given) => {
    const positive = given.gt(full(given, 0)), x = where(positive, given, 1), density = gammaFront(a, x, 0).v.mul(a).div(x);
    return where(positive, gammaOf(a, x, false, 1).d[0]!.div(density).neg(), 0);
  });
}
