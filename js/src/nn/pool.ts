// Pooling.

import type { Value } from '../graph/builder.js';
import type { Called } from '../graph/caller-stack.js';
import { checkOptions } from '../values/errors.js';
import { builderOf, channelsLast, inside, isSame, Layer, type Padding, perAxis, samePadding } from './layer.js';

/** Options of {@link maxPool} and {@link avgPool}: a number for all spatial axes, or a list with one for each. */
export interface PoolOptions {
  /** The step of the window. Its size if not given. */
  stride?: number | readonly number[];
  /** The step within the window. 1 if not given. */
  dilation?: number | readonly number[];
  /** `'same'` pads so that a stride of 1 keeps the sizes; `'valid'`, and if not given, `pad` does. */
  padding?: Padding;
  /** The padding on both sides. 0 if not given. */
  pad?: number | readonly number[];
  /** Adds a window at the end where the last would leave elements out, if it begins within x or the padding before it. The spatial axes are then constant. */
  ceilMode?: boolean;
  /** Excludes padding from the mean of {@link avgPool}, the opposite of PyTorch's `count_include_pad`. */
  excludePad?: boolean;
  /** x is [batch, channels, spatial axes...]; if not set the channels are the last axis. */
  channelsFirst?: boolean;
}

/** The attributes of a window. */
interface WindowAttributes { sizes: readonly number[]; strides: readonly number[]; dilations: readonly number[]; padLo: readonly number[]; padHi: readonly number[] }

/** The largest element of each window of x, [batch, spatial axes..., channels]. Padding is ignored. */
export function maxPool(x: Value, size: number | readonly number[], options?: PoolOptions): Value {
  return pool(maxPool, 'max_pool', x, size, options, (x, window) => {
    if (!options?.ceilMode) return x.maxPool(window);
    return longer(x, window, -Infinity).maxPool(unpadded(window));
  });
}

/** The mean of each window of x, [batch, spatial axes..., channels]; zeros of the padding count unless `excludePad` is set. */
export function avgPool(x: Value, size: number | readonly number[], options?: PoolOptions): Value {
  return pool(avgPool, 'avg_pool', x, size, options, (x, window) => {
    return options?.ceilMode ? ceilAvgPool(x, window, !options.excludePad) : x.avgPool({ ...window, countIncludePad: !options?.excludePad });
  });
}

const unpadded = (window: WindowAttributes): WindowAttributes => ({ ...window, padLo: window.padLo.map(() => 0), padHi: window.padHi.map(() => 0) });

/** x padded so that windows without padding leave nothing out but what would begin in the padding at the end. */
function longer(x: Value, { sizes, strides, dilations, padLo, padHi }: WindowAttributes, value: number): Value {
  const high = sizes.map((size, i) => {
    const n = x.shape[i + 1] as number, extent = (size - 1) * dilations[i]! + 1, stride = strides[i]!;
    let count = Math.ceil((n + padLo[i]! + padHi[i]! - extent) / stride) + 1;
    if ((count - 1) * stride >= n + padLo[i]!) count--;
    return (count - 1) * stride + extent - n - padLo[i]!;
  });
  const y = x.pad(value, { low: [0, ...padLo, 0], high: [0, ...high.map((n) => Math.max(n, 0)), 0], interior: x.shape.map(() => 0) });
  return y.slice({ start: y.shape.map(() => 0), size: y.shape.map((n, i) => (n as number) + Math.min(0, i > 0 && i <= high.length ? high[i - 1]! : 0)), stride: y.shape.map(() => 1) });
}

/** The mean over windows of which the last may reach beyond the padding: what is there does not count. */
function ceilAvgPool(x: Value, window: WindowAttributes, countPad: boolean): Value {
  const y = longer(x, window, 0).avgPool({ ...unpadded(window), countIncludePad: true });
  return window.sizes.reduce((y, size, i) => {
    const n = x.shape[i + 1] as number, low = window.padLo[i]!, first = countPad ? 0 : low, end = low + n + (countPad ? window.padHi[i]! : 0);
    const factors = Array.from({ length: y.shape[i + 1] as number }, (_, k) => {
      const at = Array.from({ length: size }, (_, j) => k * window.strides[i]! + j * window.dilations[i]!);
      return size / at.filter((p) => p >= first && p < end).length;
    });
    if (factors.every((f) => f === 1)) return y;
    const literal = y.builder.constant('f32', [factors.length], Float32Array.from(factors));
    return y.mul((y.dtype === 'f32' ? literal : literal.convert(y.dtype as 'f16')).broadcastInDim({ shape: y.shape, axes: [i + 1] }));
  }, y);
}

function pool(called: Called, kind: string, x: Value, size: number | readonly number[], options: PoolOptions | undefined, build: (x: Value, window: WindowAttributes) => Value): Value {
  return inside(called, builderOf(called, x), () => {
    checkOptions(`nn.${kind}`, options, 'stride dilation padding pad ceilMode excludePad channelsFirst');
    const l = new Layer(x, kind), { stride, dilation, pad, channelsFirst } = options ?? {}, same = isSame(l, options ?? {}), axes = x.shape.length - 2;
    l.rank(3, '[batch, spatial axes..., channels]');
    const sizes = perAxis(l, 'size', size, 1, 1, axes), dilations = perAxis(l, 'dilation', dilation, 1, 1, axes), zeros = perAxis(l, 'pad', pad, 0, 0, axes);
    const [padLo, padHi] = same ? samePadding(sizes, dilations) : [zeros, zeros];
    if (options?.ceilMode) {
      sizes.forEach((size, i) => {
        const n = x.shape[channelsFirst ? i + 2 : i + 1]!;
        if (typeof n !== 'number') return l.fail('symbol', `a spatial axis of x is ${n}: it must be a number with ceilMode`);
        const reach = (size - 1) * dilations[i]!;
        return l.require(zeros[i]! <= reach && reach < n + padLo[i]! + padHi[i]!, `a spatial axis of ${n} elements, or pad, does not fit the window`);
      });
    }
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
