// Losses.

import type { Value } from '../graph/builder.js';
import type { Called } from '../graph/caller-stack.js';
import { calling, type Check, full, narrow, wide } from './check.js';

/** How the losses of elements or examples are combined: `'mean'` if not given. */
export type Reduction = 'mean' | 'sum' | 'none';

interface ReductionOption { reduction?: Reduction }

/** Builds a loss of float operands, which are computed in f32 where they are narrower, and reduces it. */
function loss(called: Called, name: string, operands: readonly Value[], options: { reduction?: string } | undefined, known: string, build: (values: Value[], c: Check) => Value, more = ''): Value {
  return calling(called, `losses.${name}`, operands, options, `reduction ${known}`.trim(), (c) => {
    c.floats();
    const reduction = c.word('reduction', options?.reduction, `mean sum none${more}`), y = build(operands.map(wide), c), [first] = operands as [Value];
    if (reduction === 'batchmean') {
      c.shape(y.shape.length > 0, 'the operands have no axes: batchmean needs one');
      return narrow(y.reduceSum().div(y.builder.dimSize({ dtype: y.dtype as 'f32', sizes: [y.shape[0]!] })), first);
    }
    return narrow(reduction === 'mean' ? y.mean() : reduction === 'sum' ? y.reduceSum() : y, first);
  });
}

/** Options of {@link tripletMargin}: a margin of 1, the norm of order 2, 1e−6 that is added to differences; swap uses the distance of the positive from the negative example where that is smaller. */
export interface TripletOptions extends ReductionOption { margin?: number; p?: number; epsilon?: number; swap?: boolean }

/** max(0, d(anchor, positive) − d(anchor, negative) + margin), with distances along the last axis (triplet_margin_loss). */
export function tripletMargin(anchor: Value, positive: Value, negative: Value, options?: TripletOptions): Value {
  return loss(tripletMargin, 'tripletMargin', [anchor, positive, negative], options, 'margin p epsilon swap', ([a, near, far], c) => {
    const { margin = 1, p = 2, epsilon = 1e-6, swap } = options ?? {}, distance = (x: Value, y: Value) => x.sub(y).add(epsilon).norm({ axes: [-1], order: p });
    c.attr(margin > 0 && p > 0 && epsilon > 0, `margin is ${margin}, p ${p} and epsilon ${epsilon}: each must be positive`);
    c.shape(a!.shape.length > 0, 'the operands must be [..., size]');
    const away = distance(a!, far!);
    return distance(a!, near!).sub(swap ? away.min(distance(near!, far!)) : away).add(margin).relu();
  });
}

/** Options of {@link marginRanking}, {@link hingeEmbedding} and {@link cosineEmbedding}: a margin of 0, and of hingeEmbedding 1. */
export interface MarginOptions extends ReductionOption { margin?: number }

/** max(0, −target·(x − y) + margin), for targets of 1 where x should be the larger and −1 where y should (margin_ranking_loss). */
export function marginRanking(x: Value, y: Value, target: Value, options?: MarginOptions): Value {
  return loss(marginRanking, 'marginRanking', [x, y, target], options, 'margin', ([x, y, t]) => t!.neg().mul(x!.sub(y!)).add(options?.margin ?? 0).relu());
}

/** x for targets of 1, and max(0, margin − x) for targets of −1 (hinge_embedding_loss). */
export function hingeEmbedding(x: Value, target: Value, options?: MarginOptions): Value {
  return loss(hingeEmbedding, 'hingeEmbedding', [x, target], options, 'margin', ([x, t]) => t!.gt(0).select(x!, x!.neg().add(options?.margin ?? 1).relu()));
}

/** 1 − cos(x, y) for targets of 1, and max(0, cos(x, y) − margin) for −1, of vectors along the last axis; target is [...] (cosine_embedding_loss). */
export function cosineEmbedding(x: Value, y: Value, target: Value, options?: MarginOptions): Value {
  return loss(cosineEmbedding, 'cosineEmbedding', [x, y, target], options, 'margin', ([x, y, t], c) => {
    const { margin = 0 } = options ?? {}, squares = (v: Value) => v.square().reduceSum([-1]).add(1e-12);
    c.attr(margin >= -1 && margin <= 1, `margin is ${margin}: it must be in [-1, 1]`);
    const cos = x!.mul(y!).reduceSum([-1]).div(squares(x!).mul(squares(y!)).sqrt());
    return t!.gt(0).select(cos.neg().add(1), cos.sub(margin).relu());
  });
}

/** log(1 + e^(−target·x)), for targets of 1 and −1 (soft_margin_loss). */
export function softMargin(x: Value, target: Value, options?: ReductionOption): Value {
  return loss(softMargin, 'softMargin', [x, target], options, '', ([x, t]) => x!.mul(t!).neg().softplus());
}

/** Options of {@link gaussianNLL}: full adds log(2π)/2; epsilon is the least variance, 1e−6 if not given. */
export interface GaussianOptions extends ReductionOption { full?: boolean; epsilon?: number }

/** (log v + (x − target)²/v)/2, of normal distributions of means x and variances v (gaussian_nll_loss). */
export function gaussianNLL(x: Value, target: Value, variance: Value, options?: GaussianOptions): Value {
  return loss(gaussianNLL, 'gaussianNLL', [x, target, variance], options, 'full epsilon', ([x, t, given], c) => {
    const { full: whole, epsilon = 1e-6 } = options ?? {};
    c.attr(epsilon > 0, `epsilon is ${epsilon}: it must be positive`);
    const v = given!.add(given!.neg().add(epsilon).relu().stopGradient()), y = v.log().add(x!.sub(t!).square().div(v)).mul(0.5);
    return whole ? y.add(Math.log(2 * Math.PI) / 2) : y;
  });
}

/** Options of {@link poissonNLL}: rates is for x that are rates, not logarithms; full adds Stirling's approximation; epsilon, 1e−8, is added to rates. */
export interface PoissonOptions extends ReductionOption { rates?: boolean; full?: boolean; epsilon?: number }

/** e^x − target·x, of Poisson distributions of rates e^x, or x − target·log(x + ε) of rates x (poisson_nll_loss). */
export function poissonNLL(x: Value, target: Value, options?: PoissonOptions): Value {
  return loss(poissonNLL, 'poissonNLL', [x, target], options, 'rates full epsilon', ([x, given]) => {
    const { rates, full: whole, epsilon = 1e-8 } = options ?? {};
    const y = (rates ? x! : x!.exp()).sub(given!.mul(rates ? x!.add(epsilon).log() : x!));
    if (!whole) return y;
    const t = given!.max(1), stirling = t.mul(t.log()).sub(t).add(t.mul(2 * Math.PI).log().mul(0.5));
    return y.add(given!.gt(1).select(stirling, full(stirling, 0)));
  });
}

/** Options of {@link klDiv}: logTarget is for targets that are logarithms; `'batchmean'` divides the sum by the size of the first axis. */
export interface KLOptions { logTarget?: boolean; reduction?: Reduction | 'batchmean' }

/** target·(log target − x), of log-probabilities x, 0 where the target is 0 (kl_div). */
export function klDiv(x: Value, target: Value, options?: KLOptions): Value {
  return loss(klDiv, 'klDiv', [x, target], options, 'logTarget', ([x, t]) => options?.logTarget ? t!.exp().mulZero(t!.sub(x!)) : t!.xlogy(t!).sub(t!.mulZero(x!)), ' batchmean');
}
