// Normalisation.

import type { Value } from '../graph/builder.js';
import { channelAxis, channelsLast, type Layer, layer, type NameOption, sharedPort } from './layer.js';
import type { Called } from '../graph/caller-stack.js';

/** Options of {@link layerNorm}, {@link rmsNorm}, {@link groupNorm} and {@link instanceNorm}. */
export interface NormOptions extends NameOption {
  /** Is added to the variance. 1e-5 if not given, 1e-6 of {@link rmsNorm}. */
  epsilon?: number;
  /** Omits the bias. {@link rmsNorm} has none. */
  noBias?: boolean;
  /** Omits weight and bias. */
  noAffine?: boolean;
  /** x is [batch, channels, spatial axes...]; if not set the channels are the last axis. */
  channelsFirst?: boolean;
}

/** Normalises the last axis of x to mean 0 and variance 1 and applies `weight` and `bias`, ones and zeros at first (Ba, Kiros and Hinton). */
export function layerNorm(x: Value, options?: NormOptions): Value {
  return norm(layerNorm, 'layer_norm', x, options, (_, x, scale, bias, epsilon) => x.layerNorm(scale, bias, { epsilon }));
}

/** Divides the last axis of x by its root mean square and multiplies it by `weight`, ones at first (Zhang and Sennrich). */
export function rmsNorm(x: Value, options?: NormOptions): Value {
  return norm(rmsNorm, 'rms_norm', x, options, (_, x, scale, __, epsilon) => x.rmsNorm(scale, { epsilon }), { epsilon: 1e-6, noBias: true });
}

/** Normalises each of `groups` groups of the channels of x, over the group and the spatial axes, and applies `weight` and `bias` (Wu and He). */
export function groupNorm(x: Value, groups: number, options?: NormOptions): Value {
  return norm(groupNorm, 'group_norm', x, options, (l, x, scale, bias, epsilon) => {
    const channels = scale.shape[0] as number;
    l.requireCount(groups, 'groups');
    l.require(channels % groups === 0, `${groups} groups do not divide ${channels} channels`);
    return x.groupNorm(scale, bias, { groups, epsilon });
  });
}

/** Normalises each channel of each example of x over the spatial axes, and applies `weight` and `bias` (Ulyanov, Vedaldi and Lempitsky). */
export function instanceNorm(x: Value, options?: NormOptions): Value {
  return norm(instanceNorm, 'instance_norm', x, options, (_, x, scale, bias, epsilon) => x.instanceNorm(scale, bias, epsilon));
}

type Normalise = (l: Layer, x: Value, scale: Value, bias: Value | undefined, epsilon: number) => Value;

/** Declares weight and bias and normalises x with its channels last. */
function norm(called: Called, kind: string, x: Value, options: NormOptions | undefined, normalise: Normalise, usual: NormOptions = {}): Value {
  return layer(called, kind, x, options, 'epsilon noBias noAffine channelsFirst', (l) => {
    const { epsilon = 1e-5, channelsFirst, ...affine } = { ...usual, ...options };
    l.require(epsilon >= 0, `epsilon is ${epsilon}, negative`);
    const [scale, bias] = scaleAndBias(l, channelsFirst, affine);
    return channelsLast(x, channelsFirst, (x) => normalise(l, x, scale, bias, epsilon));
  });
}

/** The scale and bias of the channels of x: without parameters ones and no bias. */
function scaleAndBias(l: Layer, channelsFirst: boolean | undefined, { noBias, noAffine }: NormOptions): [scale: Value, bias?: Value] {
  const shape = [l.size(channelAxis(channelsFirst))];
  if (noAffine) return [l.b.full(l.x.dtype as 'f32', shape, 1)];
  const scale = l.param('weight', undefined, 1, shape);
  return noBias ? [scale] : [scale, l.param('bias', undefined, 0, shape)];
}

/** Options of {@link batchNorm}. */
export interface BatchNormOptions extends NameOption {
  /** Is added to the variance. 1e-5 if not given. */
  epsilon?: number;
  /** The weight of a batch in the running statistics, as in PyTorch. 0.1 if not given. */
  momentum?: number;
  /** Omits weight and bias. */
  noAffine?: boolean;
  /** x is [batch, channels, spatial axes...]; if not set the channels are the last axis. */
  channelsFirst?: boolean;
}

/**
 * Normalises each channel of x, [batch, spatial axes..., channels], and applies `weight` and `bias`, [channels], ones and
 * zeros at first (Ioffe and Szegedy). In training it uses mean and variance of the batch and moves the states
 * `running_mean` and `running_var` towards them, the variance unbiased; in inference it uses these, as frozen parameters.
 */
export function batchNorm(x: Value, options?: BatchNormOptions): Value {
  return layer(batchNorm, 'batch_norm', x, options, 'epsilon momentum noAffine channelsFirst', (l) => {
    const { epsilon = 1e-5, momentum = 0.1, noAffine, channelsFirst } = options ?? {};
    l.require(epsilon >= 0 && momentum >= 0 && momentum <= 1, `epsilon is ${epsilon}, momentum ${momentum}: neither is negative and momentum at most 1`);
    l.rank(2, '[batch, ..., channels]');
    const [scale, given] = scaleAndBias(l, channelsFirst, { ...noAffine && { noAffine } }), { b } = l, channels = scale.shape as number[];
    const bias = given ?? b.full(x.dtype as 'f32', channels, 0), dtype = x.dtype as 'f32';
    return channelsLast(x, channelsFirst, (x) => {
      if (!l.training) {
        const mean = l.b.param('running_mean', dtype, channels, 0, true), variance = l.b.param('running_var', dtype, channels, 1, true);
        return x.batchNormInference(scale, bias, mean, variance, epsilon);
      }
      if (x.shape.every((n) => typeof n === 'number') && x.shape.slice(0, -1).every((n) => n === 1)) l.fail('shape', 'training needs more than one value for each channel');
      if (!sharedPort(b, 'running_mean', channels, dtype)) {
        b.state('running_mean', dtype, channels, 0);
        b.state('running_var', dtype, channels, 1);
      }
      let y!: Value;
      b.updateState('running_var', (variance) => {
        b.updateState('running_mean', (mean) => {
          [y, mean, variance] = x.batchNormTraining(scale, bias, mean, variance, { epsilon, momentum });
          return mean;
        });
        return variance;
      });
      return y;
    });
  });
}
