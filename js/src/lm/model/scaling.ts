// Rotary positions of models whose context was extended, by the formulas of transformers' modeling_rope_utils.py.

import { RlxError } from '../../values/errors.js';
import { angle, badConfig, type Rope } from './config.js';

/** `rope_scaling` or `rope_parameters` of config.json. Numbers that are not given are undefined. */
export interface Scaling {
  kind?: string;
  factor?: number | undefined;
  lowFrequency?: number | undefined;
  highFrequency?: number | undefined;
  attention?: number | undefined;
  betaFast?: number | undefined;
  betaSlow?: number | undefined;
  truncate?: boolean | undefined;
  mscale?: number | undefined;
  mscaleAll?: number | undefined;
  short?: readonly number[] | undefined;
  long?: readonly number[] | undefined;
}

/** A rotation with the divisors and the amplitude of a scaling, of a model with a context that was trained with `original` positions. */
export function scaled(r: Rope, s: Scaling, context: number, original: number): Rope {
  const { kind = 'default', factor = NaN } = s;
  if (kind === 'default') return r;
  if (kind === 'longrope' || kind === 'su') return longRope(r, s, context, original);
  if (!(factor >= 1 && factor < Infinity)) throw badConfig(`rope_scaling has factor ${factor}: it must be 1 or more`, 'rope_scaling');
  switch (kind) {
    case 'linear': return divided(r, () => factor);
    case 'llama3': return llama3(r, s, factor, original);
    case 'yarn': return yarn(r, s, factor, original);
    default: throw new RlxError('unsupported', `rope_type is ${kind}: there are default, linear, llama3, yarn, longrope`, { name: kind });
  }
}

/** A rotation with a divisor for each pair, by its number and angle. */
const divided = (r: Rope, by: (i: number, angle: number) => number): Rope =>
  ({ ...r, divisors: Array.from({ length: r.size / 2 }, (_, i) => by(i, angle(r.base, i, r.size))) });

/** Divides the angles of long waves by the factor, none of short ones, and in between by a mean. */
function llama3(r: Rope, { lowFrequency: low = 0, highFrequency: high = 0 }: Scaling, factor: number, original: number): Rope {
  if (!(low > 0 && high > low && original >= 1)) {
    throw badConfig(`rope_scaling has low_freq_factor ${low}, high_freq_factor ${high} and original_max_position_embeddings ${original}: the first must be positive and less than the second, the last 1 or more`, 'rope_scaling');
  }
  return divided(r, (_, angle) => {
    const wave = 2 * Math.PI / angle, smooth = (original / wave - low) / (high - low);
    if (wave > original / low) return factor;
    return wave < original / high ? 1 : 1 / ((1 - smooth) / factor + smooth);
  });
}

/** Divides the angles by a ramp over the pairs (Peng et al., YaRN). */
function yarn(r: Rope, s: Scaling, factor: number, original: number): Rope {
  const pair = (turns: number) => r.size * Math.log(original / (turns * 2 * Math.PI)) / (2 * Math.log(r.base));
  let low = pair(s.betaFast ?? 32), high = pair(s.betaSlow ?? 1);
  if (s.truncate ?? true) [low, high] = [Math.floor(low), Math.ceil(high)];
  [low, high] = [Math.max(low, 0), Math.min(high, r.size - 1)];
  if (low === high) high += 0.001;
  const grown = (m: number) => factor <= 1 ? 1 : 0.1 * m * Math.log(factor) + 1;
  const usual = s.mscale && s.mscaleAll ? grown(s.mscale) / grown(s.mscaleAll) : grown(1);
  return {
    ...divided(r, (i) => {
      const ramp = Math.min(Math.max((i - low) / (high - low), 0), 1);
      return 1 / (ramp / factor + 1 - ramp);
    }),
    amplitude: s.attention ?? usual,
  };
}

/** Divides each angle by its own factor, from one of two lists (Ding et al., LongRoPE). */
function longRope(r: Rope, { short = [], long, attention }: Scaling, context: number, original: number): Rope {
  const factor = context / original, grown = factor > 1 && original > 1 ? Math.sqrt(1 + Math.log(factor) / Math.log(original)) : 1;
  return { ...r, divisors: short, ...long && { longDivisors: long }, original, amplitude: attention ?? grown };
}
