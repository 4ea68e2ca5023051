// Pooling.

import type { Value } from '../graph/builder.js';
import type { Called } from '../graph/caller-stack.js';
import { checkOptions } from '../values/errors.js';
import { builderOf, channelsLast, inside, Layer, perAxis, samePadding } from './layer.js';

/** Options of {@link maxPool} and {@link avgPool}: a number for all spatial axes, or a list with one for each. */
export interface PoolOptions {
  /** The step of the window. Its size if not given. */
  stride?: number | readonly number[];
  /** The step within the window. 1 if not given. */
  dilation?: number | readonly number[];
  /** Pads so that a stride of 1 keeps the sizes. */
  same?: boolean;
  /** The padding on both sides. 0 if not given. */
  pad?: number | readonly number[];
  /** Excludes padding from the mean of {@link avgPool}, the opposite of PyTorch's `count_include_pad`. */
  excludePad?: boolean;
  /** x is [batch, channels, spatial axes...]; if not set the channels are the last axis. */
  channelsFirst?: boolean;
}

/** The attributes of a window. */
interface WindowAttributes { sizes: readonly number[]; strides: readonly number[]; dilations: readonly number[]; padLo: readonly number[]; padHi: readonly number[] }

/** The largest element of each window of x, [batch, spatial axes..., channels]. Padding is ignored. */
export function maxPool(x: Value, size: number | readonly number[], options?: PoolOptions): Value {
  return pool(maxPool, 'max_pool', x, size, options, (x, window) => x.maxPool(window));
}

/** The mean of each window of x, [batch, spatial axes..., channels]; zeros of the padding count unless `excludePad` is set. */
export function avgPool(x: Value, size: number | readonly number[], options?: PoolOptions): Value {
  return pool(avgPool, 'avg_pool', x, size, options, (x, window) => x.avgPool({ ...window, countIncludePad: !options?.excludePad }));
}

function pool(called: Called, kind: string, x: Value, size: number | readonly number[], options: PoolOptions | undefined, build: (x: Value, window: WindowAttributes) => Value): Value {
  return inside(called, builderOf(called, x), () => {
    checkOptions(`nn.${kind}`, options, 'stride dilation same pad excludePad channelsFirst');
    const l = new Layer(x, kind), { stride, dilation, same, pad, channelsFirst } = options ?? {}, axes = x.shape.length - 2;
    l.rank(3, '[batch, spatial axes..., channels]');
    l.require(!same || pad === undefined, 'both same and pad are given');
    const sizes = perAxis(l, 'size', size, 1, 1, axes), dilations = perAxis(l, 'dilation', dilation, 1, 1, axes), zeros = perAxis(l, 'pad', pad, 0, 0, axes);
    const [padLo, padHi] = same ? samePadding(sizes, dilations) : [zeros, zeros];
    return channelsLast(x, channelsFirst, (x) => build(x, { sizes, strides: perAxis(l, 'stride', stride ?? sizes, 1, 1, axes), dilations, padLo, padHi }));
  });
}

/** The mean of x, [batch, spatial axes..., channels], over the spatial axes: [batch, channels]. */
export function globalAvgPool(x: Value): Value { return overSpace(globalAvgPool, 'global_avg_pool', x, (x, axes) => x.mean(axes)); }

/** The largest elements of x, [batch, spatial axes..., channels], over the spatial axes: [batch, channels]. */
export function globalMaxPool(x: Value): Value { return overSpace(globalMaxPool, 'global_max_pool', x, (x, axes) => x.reduceMax(axes)); }

function overSpace(called: Called, kind: string, x: Value, reduce: (x: Value, axes: number[]) => Value): Value {
  return inside(called, builderOf(called, x), () => {
    new Layer(x, kind).rank(3, '[batch, spatial axes..., channels]');
    return reduce(x, x.shape.slice(2).map((_, i) => i + 1));
  });
}
