// Convolutions.

import type { Value } from '../graph/builder.js';
import type { Called } from '../graph/caller-stack.js';
import type { Initial } from '../graph/initial.js';
import { shown } from '../values/errors.js';
import { channelAxis, channelsLast, fanIn, isSame, type Layer, layer, type NameOption, type Padding, perAxis, samePadding } from './layer.js';

/** A number for all spatial axes, or a list with one for each. */
type PerAxis = number | readonly number[];

/** Options of convolutions. */
export interface ConvOptions extends NameOption {
  /** The step of the window, and the step within it. 1 if not given. */
  stride?: PerAxis;
  dilation?: PerAxis;
  /** `'same'` pads so that a stride of 1 keeps the sizes, with the odd element at the end; other strides pad the same, where TensorFlow and JAX pad as little as the size needs. `'valid'`, and if not given, `pad` does. Not for transposed convolutions. */
  padding?: Padding;
  /** The number of zeros on both sides; of a transposed convolution, the elements cut off from both. 0 if not given. */
  pad?: PerAxis;
  /** What pads: zeros if not given, the image mirrored without its edge, the edge repeated, or the image again. Not for transposed convolutions. */
  paddingMode?: 'zeros' | 'reflect' | 'replicate' | 'circular';
  /** Is added at the end of a transposed convolution. 0 if not given. */
  outputPad?: PerAxis;
  /** Divides the channels into groups with one convolution each. 1 if not given; as many groups as channels are a depthwise convolution. */
  groups?: number;
  /** Omits the bias. */
  noBias?: boolean;
  /** The initial values of weight and bias: uniform in ±1/√(fan in) if not given, as in PyTorch. */
  init?: Initial;
  biasInit?: Initial;
  /** x is [batch, channels, spatial axes...]; if not set the channels are the last axis. The weight has the same axes in both. */
  channelsFirst?: boolean;
}

const known = 'stride dilation padding pad paddingMode outputPad groups noBias init biasInit channelsFirst';

/** The convolution of x, [batch, time, in]: [batch, time, out]. See {@link conv2d}. */
export function conv1d(x: Value, out: number, kernel: PerAxis, options?: ConvOptions): Value { return conv(conv1d, x, 1, out, kernel, options); }

/**
 * The convolution (cross-correlation) of images x, [batch, height, width, in]: [batch, height, width, out]. Parameters:
 * `weight` [height, width, in/groups, out] of the window, and `bias` [out]; PyTorch's weight is [out, in/groups, height,
 * width]. Errors: `attr`, `shape` for another rank, `symbol` for a symbolic in.
 */
export function conv2d(x: Value, out: number, kernel: PerAxis, options?: ConvOptions): Value { return conv(conv2d, x, 2, out, kernel, options); }

/** The convolution of x, [batch, depth, height, width, in]. See {@link conv2d}. */
export function conv3d(x: Value, out: number, kernel: PerAxis, options?: ConvOptions): Value { return conv(conv3d, x, 3, out, kernel, options); }

/** {@link convTranspose2d} of x, [batch, time, in]. */
export function convTranspose1d(x: Value, out: number, kernel: PerAxis, options?: ConvOptions): Value { return convTranspose(convTranspose1d, x, 1, out, kernel, options); }

/**
 * The transposed convolution of images x, [batch, height, width, in]. An axis of size n becomes (n − 1)·stride +
 * (kernel − 1)·dilation + 1 − 2·pad + output pad long. Parameters: `weight` [height, width, in, out/groups] of the window,
 * and `bias` [out]; PyTorch's weight is [in, out/groups, height, width]. Errors are those of {@link conv2d}.
 */
export function convTranspose2d(x: Value, out: number, kernel: PerAxis, options?: ConvOptions): Value { return convTranspose(convTranspose2d, x, 2, out, kernel, options); }

/** {@link convTranspose2d} of x, [batch, depth, height, width, in]. */
export function convTranspose3d(x: Value, out: number, kernel: PerAxis, options?: ConvOptions): Value { return convTranspose(convTranspose3d, x, 3, out, kernel, options); }

/** The options of a convolution, checked and complete. */
interface Window { same: boolean; into: number; kernel: readonly number[]; stride: readonly number[]; dilation: readonly number[]; pad: readonly number[]; groups: number }

function windowOf(l: Layer, axes: number, out: number, kernel: PerAxis, o: ConvOptions): Window {
  if (l.x.shape.length !== axes + 2) l.fail('shape', `x has a batch axis, ${axes} spatial axes and channels`);
  const into = l.size(channelAxis(o.channelsFirst)), groups = o.groups ?? 1;
  const same = isSame(l, o);
  l.requireCount(groups, 'groups');
  l.requireCount(out, 'out');
  l.require(into % groups === 0 && out % groups === 0, `${groups} groups do not divide ${into} input and ${out} output channels`);
  return {
    same, into, groups, kernel: perAxis(l, 'kernel', kernel, 1, 1, axes), stride: perAxis(l, 'stride', o.stride, 1, 1, axes),
    dilation: perAxis(l, 'dilation', o.dilation, 1, 1, axes), pad: perAxis(l, 'pad', o.pad, 0, 0, axes),
  };
}

/** Declares a weight [window..., rows, cols] and a bias; fan is the number of channels of PyTorch's fan in. */
function weights(l: Layer, o: ConvOptions, kernel: readonly number[], rows: number, cols: number, out: number, fan: number): [weight: Value, bias?: Value] {
  const usual = fanIn(kernel.reduce((n, k) => n * k, fan)), weight = l.param('weight', o.init, usual, [...kernel, rows, cols]);
  return o.noBias ? [weight] : [weight, l.param('bias', o.biasInit, usual, [out])];
}

function conv(called: Called, x: Value, axes: number, out: number, size: PerAxis, options: ConvOptions | undefined): Value {
  return layer(called, 'conv', x, options, known, (l) => {
    const o = options ?? {}, { same, into, kernel, stride, dilation, pad, groups } = windowOf(l, axes, out, size, o);
    l.require(o.outputPad === undefined, 'outputPad is for transposed convolutions');
    const [low, high] = same ? samePadding(kernel, dilation) : [pad, pad], none = pad.map(() => 0);
    const padded = padMode(l, o, low, high), [padLo, padHi] = padded === x ? [low, high] : [none, none];
    const [weight, bias] = weights(l, o, kernel, into / groups, out, out, into / groups);
    if (axes === 2 && !o.channelsFirst) return padded.conv2d(weight, bias, { strides: stride, dilations: dilation, padLo, padHi, groups });
    const space = kernel.map((_, i) => i), first = o.channelsFirst ? 2 : 1;
    const layout = [0, first > 1 ? 1 : axes + 1, ...space.map((i) => first + i)];
    kernel.forEach((size, i) => { // conv2d refuses it, and the result of convGeneral would be empty
      const n = padded.shape[first + i] as number, low = padLo[i]!, high = padHi[i]!, window = (size - 1) * dilation[i]! + 1;
      if (n && n + low + high < window) l.fail('shape', `a window of ${window} is longer than ${n} elements padded by ${low} and ${high}`);
    });
    const y = padded.convGeneral(weight, {
      strides: stride, padLo, padHi, rhsDilation: dilation, lhs: layout, rhs: [axes + 1, axes, ...space], out: layout, featureGroups: [groups],
    });
    return bias ? y.add(bias.broadcastInDim({ shape: y.shape, axes: [layout[1]!] })) : y;
  });
}

/** x padded by elements of its own, or x itself where zeros pad. */
function padMode(l: Layer, { paddingMode = 'zeros', channelsFirst }: ConvOptions, low: readonly number[], high: readonly number[]): Value {
  const mode = { zeros: '', reflect: 'reflect', replicate: 'edge', circular: 'wrap' }[paddingMode];
  l.require(mode !== undefined, `paddingMode is ${shown(paddingMode)}, not one of zeros, reflect, replicate, circular`);
  const around = (list: readonly number[]) => channelsFirst ? [0, 0, ...list] : [0, ...list, 0];
  return mode ? l.x.padMode({ low: around(low), high: around(high), mode }) : l.x;
}

function convTranspose(called: Called, x: Value, axes: number, out: number, size: PerAxis, options: ConvOptions | undefined): Value {
  return layer(called, 'conv_transpose', x, options, known, (l) => {
    const o = options ?? {}, { into, kernel, stride, dilation, pad, groups } = windowOf(l, axes, out, size, o);
    l.require(o.paddingMode === undefined, 'paddingMode is not for transposed convolutions');
    l.require(o.padding === undefined, 'a transposed convolution has no padding that keeps the sizes: set pad');
    const outputPadding = perAxis(l, 'outputPad', o.outputPad, 0, 0, axes), [weight, bias] = weights(l, o, kernel, into, out / groups, out, out / groups);
    const attributes = { strides: stride, dilations: dilation, padLo: pad, padHi: pad, outputPadding, groups };
    const y = channelsLast(x, o.channelsFirst, (x) => x.convTranspose(weight, bias, attributes));
    y.shape.forEach((n, i) => l.require(n !== 0 || x.shape[i] === 0, `pad cuts off all elements of axis ${i} of the result`));
    return y;
  });
}
