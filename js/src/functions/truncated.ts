// The normal distribution between bounds: the graphs of the Go package ir/dist.

import type { Operand, Value } from '../graph/builder.js';
import { broadcast, broadcastTo, full, plus, scale as times, where } from './check.js';
import { distribution, drawn, except, inWide, oneMinus, uniformNumbers } from './dist.js';
import { type Located, normalDensity, normalEntropy, standard } from './location.js';
import { logNdtr, ndtri } from './special.js';

/** {@link truncatedNormal}. */
export interface TruncatedNormal extends Located<'truncatedNormal'> { readonly low: Value; readonly high: Value }

/** The positive nodes and their weights of the rule of Gauss and Legendre with eight nodes (DLMF 3.5.v). */
const gauss = [
  [0.18343464249564981, 0.362683783378361983], [0.525532409916328986, 0.313706645877887287],
  [0.79666647741362674, 0.222381034453374471], [0.960289856497536232, 0.101228536290376259],
] as const;

/** The interval in units of the normal distribution. */
class Interval {
  readonly loc: Value;
  readonly by: Value;
  readonly least: Value;
  readonly most: Value;
  readonly low: Value;
  readonly high: Value;
  /**
   * Where numbers are those of the distribution on [−1, 1] with density proportional to e^(−slope·x − (half·x)²/2), times
   * half, plus middle: differences of cumulative probabilities cancel there. Elsewhere half and slope are constants, as low
   * and high are where it holds.
   */
  readonly isNarrow: Value;
  readonly middle: Value;
  readonly half: Value;
  readonly slope: Value;

  constructor(loc: Value, by: Value, least: Value, most: Value) {
    [this.loc, this.by, this.least, this.most] = [loc, by, least, most];
    const [low] = standard(least, loc, by), [high] = standard(most, loc, by), [middle] = standard(this.center(), loc, by);
    const half = this.width().div(by), slope = middle.mul(half);
    this.isNarrow = half.le(full(half, 0.5)).and(slope.abs().le(full(slope, 1)));
    const isWide = this.isNarrow.not();
    this.low = where(isWide, low, -1);
    this.high = where(isWide, high, 1);
    this.middle = middle;
    this.half = where(this.isNarrow, half, 0.5);
    this.slope = where(this.isNarrow, slope, 0);
  }

  /** Half the width. */
  width(): Value { return times(this.most.sub(this.least), 0.5); }

  center(): Value { return this.least.add(this.width()); }

  /**
   * Whether the middle is above the mean: such bounds are mirrored, so that the difference of cumulative probabilities is one
   * of small numbers.
   */
  mirrored(): [mirrored: Value, from: Value, to: Value] {
    const mirrored = this.low.add(this.high).gt(full(this.low, 0));
    return [mirrored, mirrored.select(this.high.neg(), this.low), mirrored.select(this.low.neg(), this.high)];
  }

  /** The logarithm of the probability between the bounds. */
  logMass(): Value {
    const [, from, to] = this.mirrored(), upper = logNdtr(to);
    return upper.add(logNdtr(from).sub(upper).exp().neg().log1p());
  }

  /** e^(−slope·x − (half·x)²/2). */
  density(x: Value): Value {
    const y = x.mul(this.half);
    return this.slope.mul(x).add(times(y.mul(y), 0.5)).neg().exp();
  }

  /** The integral of the density times xᵏ from −1 to end. */
  integral(end: Value, k = 0): Value {
    const half = times(plus(end, 1), 0.5);
    let sum: Value | undefined;
    for (const [node, weight] of gauss) {
      for (const sign of [-1, 1]) {
        const x = plus(times(half, 1 + sign * node), -1);
        let y = times(this.density(x), weight);
        for (let i = 0; i < k; i++) y = y.mul(x);
        sum = sum ? sum.add(y) : y;
      }
    }
    return half.mul(sum!);
  }

  /** The integral of the density over [−1, 1], and the means of x and x². */
  moments(): [mass: Value, first: Value, second: Value] {
    const one = full(this.half, 1), mass = this.integral(one);
    return [mass, this.integral(one, 1).div(mass), this.integral(one, 2).div(mass)];
  }

  /**
   * The x up to which the integral of the density is u of that over [−1, 1], by Newton's method from the first terms of its
   * series in the slope.
   */
  quantile(u: Value): Value {
    const one = full(u, 1), goal = u.mul(this.integral(one)), bend = this.slope.mul(u.mul(oneMinus(u)));
    let x = plus(times(u.sub(bend), 2), -1);
    for (let i = 0; i < 3; i++) x = x.sub(this.integral(x).sub(goal).div(this.density(x)));
    return x;
  }

  /**
   * The difference of the densities of the standard normal distribution at the bounds, divided by the probability between
   * them, and that of those times the bounds.
   */
  edges(): [difference: Value, weighted: Value, logMass: Value] {
    const logMass = this.logMass(), zero = full(this.low, 0), one = full(this.low, 1), at = (z: Value): Value => normalDensity(z, zero, one).sub(logMass).exp();
    return [at(this.low).sub(at(this.high)), at(this.low).mulZero(this.low).sub(at(this.high).mulZero(this.high)), logMass];
  }
}

/** Selects between values in the shape of the first two. */
function either(condition: Value, x: Value, y: Value): Value {
  const [near, far] = broadcast(x, y) as [Value, Value];
  return broadcastTo(condition, near.shape).select(near, far);
}

/**
 * {@link normal} given that numbers are between low and high. Numbers are quantiles of uniform numbers: bounds more than some
 * ten standard deviations from the mean need more than the precision of a probability, unless they are close to each other.
 */
export function truncatedNormal(loc: Operand, scale: Operand, low: Operand, high: Operand): TruncatedNormal {
  return distribution<TruncatedNormal, Readonly<Record<'loc' | 'scale' | 'low' | 'high', Value>>>(truncatedNormal, 'truncatedNormal', { loc, scale, low, high }, ({ loc, scale: by, low: least, high: most }) => {
    const of = (): Interval => new Interval(loc, by, least, most);
    return {
      sample: (key, shape) => inWide(drawn(shape, loc, by, least, most), (...p) => {
        const i = new Interval(...p as [Value, Value, Value, Value]), u = uniformNumbers(key, p[0]!);
        const [mirrored, from] = i.mirrored(), at = logNdtr(from).exp().add(i.logMass().exp().mul(u)), z = ndtri(at);
        const far = mirrored.select(z.neg(), z).clamp(i.low, i.high), x = i.quantile(u).clamp(full(u, -1), full(u, 1));
        const near = i.center().add(i.width().mul(x));
        return i.isNarrow.select(near, i.loc.add(i.by.mul(far)));
      }),
      logProb: (x) => {
        const i = of(), [away] = standard(x, i.center(), by), mass = i.width().mul(i.integral(full(i.half, 1))).log();
        const near = times(away.mul(away.add(times(i.middle, 2))), -0.5).sub(mass), far = normalDensity(x, loc, by).sub(i.logMass());
        const outside = x.lt(least).or(x.gt(most));
        return except(outside, either(i.isNarrow, near, far));
      },
      entropy: () => {
        const i = of(), [, weighted, logMass] = i.edges(), [mass, first, second] = i.moments();
        const rest = i.slope.mul(first).add(times(i.half.mul(i.half).mul(second), 0.5)), near = rest.add(i.width().mul(mass).log());
        const far = normalEntropy(loc, by).add(logMass).add(times(weighted, 0.5));
        return i.isNarrow.select(near, far);
      },
      mean: () => {
        const i = of(), [difference] = i.edges(), [, first] = i.moments(), near = i.center().add(i.width().mul(first));
        return i.isNarrow.select(near, loc.add(by.mul(difference)));
      },
      variance: () => {
        const i = of(), [difference, weighted] = i.edges(), [, first, second] = i.moments();
        const near = i.width().square().mul(second.sub(first.mul(first))), far = plus(weighted, 1).sub(difference.mul(difference));
        return i.isNarrow.select(near, by.mul(by).mul(far));
      },
    };
  });
}
