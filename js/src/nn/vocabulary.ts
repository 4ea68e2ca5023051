// The loss of a linear layer with many classes, without all of its logits.

import type { Value } from '../graph/builder.js';
import { part } from '../graph/part.js';
import { need } from '../values/errors.js';
import { builderOf, inside, isValue, type Layer, layer } from './layer.js';
import { linearOptions, linearParams, type LinearOptions, lowRank } from './linear.js';
import { times, type Weight } from './storage.js';

/** Options of {@link linearCrossEntropy}. */
export interface LinearCrossEntropyOptions extends LinearOptions {
  /** If not 0, replaces logits s by softcap·tanh(s/softcap). */
  softcap?: number;
  /** Labels that do not count. */
  ignored?: readonly number[];
  /** The weight of the uniform distribution, in [0, 1]. 0 if not given. */
  labelSmoothing?: number;
  /** `mean` if not given: over the labels that count. */
  reduction?: 'mean' | 'sum' | 'none';
  /** The maximum number of rows whose logits exist at a time: if not given, as many as have 2²³ logits, 32 MiB in f32. */
  rows?: number;
}

/** The number of logits that exist at a time by default. */
const logitsAtOnce = 2 ** 23;

/**
 * The cross entropy of labels [...], integers, for the logits of a linear layer, x·weight + bias [..., classes], of x [..., in].
 * Logits are computed some rows at a time, and again in the backward pass: memory does not grow with rows·classes (Wijmans
 * et al., Cut Your Losses). Parameters and errors are those of `linear`; `symbol` if the number of rows is not constant.
 */
export function linearCrossEntropy(x: Value, labels: Value, classes: number, options?: LinearCrossEntropyOptions): Value {
  return layer(linearCrossEntropy, 'linear', x, options, `${linearOptions} softcap ignored labelSmoothing reduction rows`, (l) => {
    const { softcap = 0, rows = Math.max(1, Math.floor(logitsAtOnce / classes)), reduction = 'mean', ignored = [] } = options ?? {}, shape = x.shape.slice(0, -1);
    l.requireCount(rows, 'rows');
    l.require(Number.isFinite(softcap) && softcap >= 0, `softcap is ${softcap}: it must be finite, and not negative`);
    l.require(['mean', 'sum', 'none'].includes(reduction), `reduction is ${reduction}: it must be mean, sum or none`);
    l.rank(1, '[..., in]');
    if (!isValue(labels) || `${labels.shape}` !== `${shape}`) l.fail('shape', `labels are [${labels?.shape}]: they must be [${shape}], x without its last axis`);
    if (!shape.every((n): n is number => typeof n === 'number')) l.fail('symbol', 'the number of rows of x must be constant');
    const count = (shape as number[]).reduce((n, d) => n * d, 1), [weight, bias] = linearParams(l, classes, options), { up, list } = rowsOf(l, labels, count, classes);
    const losses = inParts(list, count, rows, (part) => lossesOf(part, weight, up, bias, { ...options, softcap }));
    if (reduction === 'none') return losses.reshape(shape);
    const { dtype } = losses, sum = (v: Value) => v.convert((dtype === 'f64' ? dtype : 'f32') as 'f32').sum(); // losses of f16 add up beyond its range
    if (reduction === 'sum') return sum(losses).convert(dtype as 'f32');
    const counts = ignored.map((label) => list[0]!.ne(label)).reduce((all, one) => all.and(one), list[0]!.eq(list[0]!));
    return sum(losses).div(sum(counts)).convert(dtype as 'f32');
  });
}

/** The labels, the rows of x, and their products with lora_A if there is one; `up` is then lora_B. */
function rowsOf(l: Layer, labels: Value, count: number, out: number): { up?: Value; list: Value[] } {
  const into = l.size(-1), low = lowRank(l, into, out), flat = (v: Value, columns: number) => v.reshape([count, columns]), list = [labels.reshape([count]), flat(l.x, into)];
  if (!low) return { list };
  const { down, up, dropout, alpha, rank } = low;
  return { up, list: [...list, flat(l.drop(l.x, dropout).matmul(down).mul(alpha / rank), rank)] };
}

/** The losses of at most `limit` rows at a time, each part recomputed in the backward pass. */
function inParts(list: readonly Value[], count: number, limit: number, losses: (list: readonly Value[]) => Value): Value {
  if (count <= limit) return losses(list);
  const parts = Math.ceil(count / limit), size = Math.floor(count / parts), rest = count - parts * size, { builder: b } = list[0]!;
  const window = (from: number, n: number) => list.map((v) => part(v, 0, from, n));
  const xs = window(0, parts * size).map((v) => v.reshape([parts, size, ...v.shape.slice(1)]));
  const { ys } = b.scan({ xs }, (body, _, carries, slices) => ({ carries, ys: body.checkpoint([...slices], (__, part) => [losses(part)]) }));
  const all = ys[0]!.reshape([parts * size]);
  return rest ? b.concatenate([all, ...b.checkpoint(window(parts * size, rest), (_, part) => [losses(part)])], 0) : all;
}

/** c·tanh(x/c), by which scores stay within ±c, as of Gemma 2; x for a c of 0. */
export function softcap(x: Value, c: number): Value {
  return inside(softcap, builderOf(softcap, x), () => {
    need(typeof c === 'number', 'attr', 'nn.softcap: c', 'a number', c);
    return c ? x.mul(1 / c).tanh().mul(c) : x;
  });
}

/** The loss of each of some rows. */
function lossesOf([labels, x, low]: readonly Value[], weight: Weight, up: Value | undefined, bias: Value | undefined, { softcap: cap = 0, ignored, labelSmoothing }: LinearCrossEntropyOptions): Value {
  let y = times(weight, x!);
  if (up) y = y.add(low!.matmul(up));
  if (bias) y = y.add(bias);
  return softcap(y, cap).crossEntropyLoss(labels!, undefined, { reduction: 'none', ...ignored && { ignored }, ...labelSmoothing && { labelSmoothing } });
}
