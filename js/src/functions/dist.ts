// What distributions share, and divergences: the graphs of the Go package ir/dist.

import type { Operand, Value } from '../graph/builder.js';
import type { Called } from '../graph/caller-stack.js';
import type { Dim } from '../graph/types.js';
import { RlxError, shown } from '../values/errors.js';
import { broadcast, broadcastTo, calling, type Check, epsilon, full, isValue, item, narrow, plus, scale, where, wide } from './check.js';
import { stirlingRemainder } from './special.js';

/** A batch of probability distributions, of a kind. */
export interface Distribution<K extends string = string> {
  /** The name of the function that makes it. */
  readonly kind: K;
  /** Draws numbers in the given shape, followed by that of the batch. The key is u32[2]. */
  sample(key: Value, shape?: readonly Dim[]): Value;
  /** The logarithm of the density at x, or of its probability, −∞ outside the support. x broadcasts with the parameters. */
  logProb(x: Value): Value;
  /** −E log p, in nats. */
  entropy(): Value;
  /** The expectation, NaN or ∞ where there is none. */
  mean(): Value;
  /** The expectation of the squared distance from the mean. */
  variance(): Value;
  /** The divergence from another of the kind, undefined if there is no formula. @internal */
  divergence(q: Distribution): Value | undefined;
}

/** The formulas of a distribution; those that are not given are unknown. */
export interface Formulas<D extends Distribution = Distribution> {
  sample: (key: Value, shape: readonly Dim[]) => Value;
  logProb: (x: Value) => Value;
  entropy?: () => Value;
  mean?: () => Value;
  variance?: () => Value;
  divergence?: (q: D) => Value | undefined;
}

type Parameters<P> = { readonly [N in keyof P]: Operand };

/** The parameters as values: numbers get the type of the first value. */
function valuesOf<P extends Readonly<Record<string, Value>>>(given: Parameters<P>): P {
  const list = Object.values(given) as Operand[], first = list.find(isValue);
  const value = (one: Operand): Operand => typeof one === 'number' && first ? first.builder.full(first.dtype as 'f32', [], one) : one;
  return Object.fromEntries(Object.entries(given).map(([name, one]) => [name, value(one as Operand)])) as P;
}

/** Makes a distribution of parameters of one float type. `called` is the exported function, `kind` its name, `more` what the distribution shows besides. */
export function distribution<D extends Distribution, P extends Readonly<Record<string, Value>> = Readonly<Record<string, Value>>>(
  called: Called, kind: string, given: Parameters<P>, formulas: (p: P, c: Check) => Formulas<D>, more: object = {},
): D {
  const op = `dist.${kind}`, p = valuesOf<P>(given), operands = Object.values(p) as Value[];
  return calling(called, op, operands, undefined, '', (c) => {
    c.floats();
    const f = formulas(p, c);
    const unknown = (method: string) => (): never => { throw new RlxError('unsupported', `${op} has no formula for ${method}`, { op }); };
    /** A method, whose errors begin at its caller. */
    const method = <A extends unknown[]>(name: string, formula: ((...given: A) => Value) | undefined, values: (...given: A) => Value[]): ((...given: A) => Value) => {
      const run = (...given: A): Value => calling(run, `${op}.${name}`, [...operands, ...values(...given)], undefined, '', () => (formula ?? unknown(name))(...given));
      return run;
    };
    return {
      kind, ...p, ...more,
      sample: method('sample', (key: Value, shape: readonly Dim[] = []) => {
        if (!Array.isArray(shape)) throw new RlxError('shape', `${op}.sample: the shape is ${shown(shape)}: it must be a list of sizes`, { op });
        return f.sample(key, shape);
      }, (key) => [key]),
      logProb: method('logProb', f.logProb, (x) => [x]),
      entropy: method('entropy', f.entropy, () => []),
      mean: method('mean', f.mean, () => []),
      variance: method('variance', f.variance, () => []),
      divergence: (q: Distribution) => f.divergence?.(q as D),
    } as unknown as D;
  });
}

/**
 * The Kullback–Leibler divergence E log p(x)/q(x) over x of p, in nats, for two distributions of one kind: normal, laplace,
 * uniform, exponential, gamma, beta, dirichlet, bernoulli, categorical, poisson, or binomial of the same count. Others are an
 * error of kind `unsupported`.
 */
export function kl<D extends Distribution>(p: D, q: D): Value {
  for (const d of [p, q]) if (typeof d?.logProb !== 'function') throw new RlxError('missing', `dist.kl: an operand is ${shown(d)}: it must be a distribution`, { op: 'dist.kl' });
  const operands = [p, q].flatMap((d) => Object.values(d).filter(isValue));
  return calling(kl, 'dist.kl', operands, undefined, '', (c) => {
    const y = p.kind === q.kind ? p.divergence(q) : undefined;
    return y ?? c.fail('unsupported', `dist.${p.kind} has no formula for the divergence from dist.${q.kind}`);
  });
}

/**
 * i32 numbers of equal probability from low to high − 1, in the given shape, as jax.random.randint with the same keys. Where
 * the numbers are n, probabilities differ by less than n·2⁻³² of themselves.
 */
export function randInt(key: Value, low: number, high: number, shape: readonly Dim[] = []): Value {
  return calling(randInt, 'dist.randInt', [key], undefined, '', (c) => {
    for (const n of [low, high]) c.attr((n | 0) === n, `a bound is ${n}: it must be a whole number of 32 bits`);
    c.attr(high > low, `high is ${high}: it must be above low, ${low}`);
    const span = high - low, half = 2 ** 16 % span, weight = (half * half >>> 0) % span; // of the upper word; 0 above 2¹⁶, by 32 bits as in JAX
    const pair = key.randomBits(undefined, { shape: [2], pairs: true }), bits = (i: number): Value => item(pair, 0, i).randomBits(undefined, { shape });
    const rest = (x: Value): Value => x.rem(full(x, span)), upper = scale(rest(bits(0)), weight), x = rest(upper.add(rest(bits(1))));
    return plus(x, low >>> 0).convert('i32');
  });
}

export const logTwoPi = Math.log(2 * Math.PI);

/** Euler's constant. */
export const euler = 0.5772156649015329;

export const oneMinus = (x: Value): Value => plus(x.neg(), 1);

/** log k! − k·log k + k, by Stirling's formula, for k > 0. */
export const positiveRest = (k: Value): Value => scale(plus(k.log(), logTwoPi), 0.5).add(stirlingRemainder(k));

/** The sum along the last axis. */
export const sumLast = (x: Value): Value => x.reduceSum([-1]);

/** The sum along the last axis, which stays with size 1. */
export const total = (x: Value): Value => x.reduceSum([-1], true);

/** x where the condition holds, the logarithm of probability 0 elsewhere. */
export const within = (condition: Value, x: Value): Value => where(condition, x, -Infinity);

/** x but where the condition holds the logarithm of probability 0. Of a NaN no comparison holds, so that it stays one. */
export const except = (outside: Value, x: Value): Value => within(outside.not(), x);

/** The parameters in the shape of numbers: the given one, followed by theirs. */
export const drawn = (shape: readonly Dim[], ...parameters: readonly Value[]): Value[] => broadcast(...parameters).map((p) => broadcastTo(p, [...shape, ...p.shape]));

/** Computes numbers of the parameters in at least f32 and rounds them to the type of these. */
export const inWide = (parameters: readonly Value[], f: (...parameters: Value[]) => Value): Value => narrow(f(...parameters.map(wide)), parameters[0]!);

/** Numbers in (0, 1) in the shape of a value, of f64 for f64 and else f32: there are 128 in bf16. */
export function uniformNumbers(key: Value, like: Value): Value {
  const dtype = like.dtype === 'f64' ? like.dtype as 'f32' : 'f32';
  return key.randomUniform({ dtype, shape: like.shape }).max(like.builder.full(dtype, [], epsilon(like) / 4));
}

export const normalNumbers = (key: Value, like: Value): Value => key.randomNormal({ dtype: like.dtype as 'f32', shape: like.shape });

/** Splits a key into two. */
export function keys(key: Value): [Value, Value] {
  const part = (i: number): Value => key.foldIn(key.builder.full('u32', [], i));
  return [part(0), part(1)];
}

