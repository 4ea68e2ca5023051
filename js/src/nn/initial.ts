// Rules for initial values: see InitialRule.

import type { InitialRule } from '../graph/rule.js';

const rule = (name: string, ...args: number[]): InitialRule => ({ rule: name, args });

/** Sets all elements to x. */
export const constant = (x: number): InitialRule => rule('constant', x);
/** Draws from a normal distribution. */
export const normal = (mean: number, deviation: number): InitialRule => rule('normal', mean, deviation);
/** Draws from [low, high). */
export const uniform = (low: number, high: number): InitialRule => rule('uniform', low, high);
/** Draws from a normal distribution restricted to [low, high], as `torch.nn.init.trunc_normal_`. */
export const truncatedNormal = (mean: number, deviation: number, low: number, high: number): InitialRule => rule('truncated_normal', mean, deviation, low, high);
/**
 * Draws from [−a, a) with a = √(6 / (fan in + fan out)), after Glorot and Bengio 2010. Weights are [window..., in, out]:
 * the fan out is the last axis times the window, the fan in the axis before it times the window.
 */
export const glorotUniform = (): InitialRule => rule('glorot_uniform');
/** Draws from a normal distribution of variance 2 / (fan in + fan out), after Glorot and Bengio 2010. */
export const glorotNormal = (): InitialRule => rule('glorot_normal');
/** Draws from [−a, a) with a = √(6 / fan in), after He et al. 2015. */
export const heUniform = (): InitialRule => rule('he_uniform');
/** Draws from a normal distribution of variance 2 / fan in, after He et al. 2015. */
export const heNormal = (): InitialRule => rule('he_normal');
/** Draws from [−a, a) with a = √(3 / fan in), after LeCun et al. 1998, Efficient BackProp. */
export const lecunUniform = (): InitialRule => rule('lecun_uniform');
/** Draws from a normal distribution of variance 1 / fan in, after LeCun et al. 1998. */
export const lecunNormal = (): InitialRule => rule('lecun_normal');
/** Draws a matrix with orthonormal rows or columns, times gain, after Saxe et al. 2013. All axes but the last are the rows. */
export const orthogonal = (gain = 1): InitialRule => rule('orthogonal', gain, 0);

