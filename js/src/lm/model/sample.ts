// How the next token is chosen, in the graph: the rules and the order of the Go package ir/lm.

import type { Value } from '../../graph/builder.js';
import { need, RlxError } from '../../values/errors.js';

/** How the next token is chosen. Without options it is the most likely one. */
export interface Sampling {
  /** Divides the logits; 0, the default, takes the most likely token. */
  temperature?: number;
  /** Keeps the tokens with the greatest logits, this many; 0, the default, keeps all. */
  topK?: number;
  /** Keeps the fewest tokens whose probabilities sum to it, in (0, 1]; 1, the default, keeps all (Holtzman et al.). */
  topP?: number;
  /** Keeps the tokens with a probability of at least this fraction of the largest one. 0 if not given. */
  minP?: number;
  /** Divides the positive logits of tokens that the sequence has, prompt and all, and multiplies the negative ones (Keskar et al., CTRL). 1 if not given. */
  repetition?: number;
  /** Is subtracted once from the logit of a token that was generated. 0 if not given. */
  presence?: number;
  /** Is subtracted from the logit of a token each time that it was generated. 0 if not given. */
  frequency?: number;
}

/** The number of columns of the input of {@link sample} that holds options. */
export const samplingFields = 8;

/**
 * The options as a row for {@link sample}, with a random number in [0, 1) that selects the token.
 * Throws an error of kind `attr` for one out of range.
 */
export function samplingRow(sampling: Sampling, random: number): Float32Array {
  need(Object(sampling) === sampling, 'attr', 'samplingRow: the options', 'an object', sampling);
  need(typeof random === 'number' && random >= 0, 'attr', 'samplingRow: the random number', 'a number in [0, 1)', random);
  const { temperature = 0, topK = 0, topP = 1, minP = 0, repetition = 1, presence = 0, frequency = 0 } = sampling;
  const require = (ok: boolean, name: string, x: number, must: string) => { if (!ok) throw new RlxError('attr', `${name} is ${x}: it must be ${must}`, { name }); };
  require(temperature >= 0 && temperature < Infinity, 'temperature', temperature, 'finite and not negative');
  require(Number.isInteger(topK) && topK >= 0, 'topK', topK, 'a whole number that is not negative');
  require(topP > 0 && topP <= 1, 'topP', topP, 'in (0, 1]');
  require(minP >= 0 && minP <= 1, 'minP', minP, 'in [0, 1]');
  require(repetition > 0 && repetition < Infinity, 'repetition', repetition, 'finite and positive');
  require(isFinite(presence), 'presence', presence, 'finite');
  require(isFinite(frequency), 'frequency', frequency, 'finite');
  return Float32Array.of(temperature, topK, topP, minP, repetition, presence, frequency, Math.min(random, 1 - 2 ** -24)); // below 1 as f32
}

/** Bounds the tokens among which top-k, top-p and min-p choose: a whole vocabulary is long to sort, and a token beyond has a negligible chance. */
const maxCandidates = 256;

/**
 * A token for each row of logits, [rows, vocabulary]: i32[rows]. `by`, f32[rows, 8], has {@link samplingRow} of each row;
 * `seen`, i32[rows, vocabulary], is not 0 for tokens that are in the sequence, and `counts`, of that type, is how often each
 * was generated: never if not given. The order is that of Hugging Face: penalties, temperature, top-k, top-p, min-p; these
 * keep at most the 256 tokens with the greatest logits, and ties of the last one kept.
 */
export function sample(logits: Value, by: Value, seen: Value, counts?: Value): Value {
  for (const x of [logits, by, seen]) need(x?.builder, 'attr', 'sample: an argument', 'a Value', x);
  const x = penalized(logits, by, seen, counts), greedy = best(x);
  const [token] = logits.builder.cond(field(by, 0).gt(0).any(), [x, by, greedy], (_, [y, o, g]) => [draw(y!, o!, g!)], (_, [, , g]) => [g!]);
  return token!;
}

/** The logits, f32, with the penalties of tokens that are in the sequence. @internal */
export function penalized(logits: Value, by: Value, seen: Value, counts?: Value): Value {
  const raw = logits.dtype === 'f32' ? logits : logits.convert('f32'), factor = field(by, 4), x = seen.gt(0).select(raw.gt(0).select(raw.div(factor), raw.mul(factor)), raw);
  return counts ? x.sub(counts.gt(0).select(field(by, 5), 0).add(field(by, 6).mul(counts.convert('f32')))) : x;
}

/** The most likely tokens. @internal */
export const best = (x: Value): Value => x.argmax({ axis: -1, keepDims: false });

/** A column of the options, [rows, 1]. */
const field = (by: Value, i: number): Value => by.slice({ start: [0, i], size: [by.shape[0] as number, 1], stride: [1, 1] });

/** Random tokens, and the greedy ones in the rows without a temperature. @internal */
export function draw(logits: Value, by: Value, greedy: Value): Value {
  const [rows, size] = logits.shape as [number, number], temperature = field(by, 0), warm = temperature.gt(0);
  const x = logits.div(warm.select(temperature, 1)), kept = x.ge(threshold(x, by));
  const weights = kept.select(x.sub(x.reduceMax([-1], true)).exp(), 0), sums = weights.cumsum({ axis: -1 });
  const total = sums.slice({ start: [0, size - 1], size: [rows, 1], stride: [1, 1] });
  const token = sums.le(total.mul(field(by, 7))).convert('i32').sum([-1]); // the first token whose prefix sum exceeds the random number times the total
  return warm.reshape([rows]).and(token.lt(size)).select(token, greedy);
}

/** The least logit that top-k, top-p and min-p keep, [rows, 1]; -Infinity for all. */
function threshold(x: Value, by: Value): Value {
  const [rows, size] = x.shape as [number, number], b = x.builder, k = Math.min(maxCandidates, size);
  const [best] = x.topK({ k, axis: -1 }), topK = field(by, 1), topP = field(by, 2), minP = field(by, 3), bounded = topK.gt(0), whole = topP.ge(1);
  const inTopK = bounded.not().or(b.iota({ dtype: 'f32', axis: 1, shape: [rows, k] }).lt(topK));
  const of = bounded.select(inTopK.select(best, -Infinity).logsumexp(-1, true), x.logsumexp(-1, true));
  const before = inTopK.select(best.sub(of).exp(), 0).cumsum({ axis: -1, exclusive: true });
  const first = best.slice({ start: [0, 0], size: [rows, 1], stride: [1, 1] });
  const kept = inTopK.and(whole.or(before.lt(topP))).and(best.ge(first.add(minP.log())));
  const least = kept.select(best, Infinity).reduceMin([-1], true);
  return bounded.not().and(whole).and(minP.le(0)).select(b.full('f32', [rows, 1], -Infinity), least);
}
