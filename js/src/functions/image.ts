// Images: sampling, resampling, padding, patches.

import type { Value } from '../graph/builder.js';
import { part } from '../graph/part.js';
import { calling, type Check, counting, full, indices, item, narrow, numbers, type PerAxis, wide } from './check.js';

/** What is beyond the edge: the nearest element, the image mirrored at the centres of its edge elements or at its edges, or the image again. */
export type Beyond = 'zeros' | 'edge' | 'reflect' | 'symmetric' | 'wrap';

/** The sizes of the spatial axes of an image. */
function spatial(c: Check, x: Value): number[] {
  c.floats();
  c.shape(x.shape.length >= 3, 'x must be [batch, spatial axes..., channels]');
  return x.shape.slice(1, -1).map((_, i) => {
    const n = c.size(x, i + 1, 'x');
    c.shape(n > 0, `axis ${i + 1} of x is empty`);
    return n;
  });
}

/**
 * x with low[i] elements before and high[i] after axis i, as numpy.pad. Unlike `padMode` padding may be longer than the
 * axis. x is of any type with values; padded axes are constant and not empty.
 */
export function pad(x: Value, low: readonly number[], high: readonly number[], mode: Beyond = 'zeros'): Value {
  return calling(pad, 'image.pad', [x], undefined, '', (c) => {
    const rank = x.shape.length;
    c.attr(Array.isArray(low) && Array.isArray(high), 'low and high must be lists');
    c.perAxis('low', low, 0, 0, rank);
    c.perAxis('high', high, 0, 0, rank);
    if (c.word('mode', mode, 'zeros edge reflect symmetric wrap') === 'zeros') return x.pad(0, { low, high, interior: low.map(() => 0) });
    return low.reduce((y, before, axis) => {
      const after = high[axis]!;
      if (before + after === 0) return y;
      const n = c.size(x, axis, 'x');
      c.shape(n > 0, `axis ${axis} of x is empty: it has no element to repeat`);
      return y.take(indices(c.b, counting(before + n + after).map((i) => beyond(i - before, n, mode))), axis, 'clip');
    }, x);
  });
}

const modulo = (i: number, m: number): number => ((i % m) + m) % m;

/** The element of an axis of size n that stands at position i. */
function beyond(i: number, n: number, mode: Beyond): number {
  let at = i;
  if (mode === 'wrap') return modulo(i, n);
  if (mode === 'symmetric' && (at = modulo(i, 2 * n)) >= n) at = 2 * n - 1 - at;
  if (mode === 'reflect' && (at = n === 1 ? 0 : modulo(i, 2 * n - 2)) >= n) at = 2 * n - 2 - at;
  return Math.max(0, Math.min(at, n - 1));
}

/** Options of {@link gridSample}. */
export interface GridOptions {
  /** `'linear'` if not given; `'cubic'` has a = −3/4. */
  mode?: 'linear' | 'nearest' | 'cubic';
  /** What is beyond the edge: `'zeros'` if not given. `'reflect'` mirrors at the centres of the edge elements with alignCorners, else at the edges. */
  padding?: 'zeros' | 'edge' | 'reflect';
  /** Makes −1 and 1 the centres of the first and last element of an axis; otherwise they are the edges of the image. */
  alignCorners?: boolean;
}

/**
 * The elements of x, [batch, spatial axes..., channels], at positions grid, [batch, positions..., axes]: [batch,
 * positions..., channels], as torch.nn.functional.grid_sample, which has two or three spatial axes. The last axis of grid has a
 * coordinate for each of them, from −1 to 1, that of the last axis first. It is differentiable by x and by grid; the
 * derivative by a coordinate is 0 with `'nearest'` and, but for `'cubic'`, where `'edge'` or `'reflect'` clamps it, at edge elements too.
 */
export function gridSample(x: Value, grid: Value, options?: GridOptions): Value {
  return calling(gridSample, 'image.gridSample', [x, grid], options, 'mode padding alignCorners', (c) => {
    const sizes = spatial(c, x), axes = sizes.length, s: Sampler = {
      mode: c.word('mode', options?.mode, 'linear nearest cubic'), padding: c.word('padding', options?.padding, 'zeros edge reflect'), align: options?.alignCorners === true,
    };
    c.shape(grid.shape.length >= 2 && grid.shape.at(-1) === axes && grid.shape[0] === x.shape[0], `grid must be [${x.shape[0]}, positions..., ${axes}]`);
    const from = wide(x), at = wide(grid);
    let corners: Piece[][] = [[]];
    sizes.forEach((n, i) => {
      const pieces = piecesOf(s, position(s, item(at, -1, axes - 1 - i), n), n);
      corners = corners.flatMap((corner) => pieces.map((piece) => [...corner, piece]));
    });
    return narrow(corners.map((corner) => term(from, corner)).reduce((sum, y) => sum.add(y)), x);
  });
}

interface Sampler { mode: 'linear' | 'nearest' | 'cubic'; padding: 'zeros' | 'edge' | 'reflect'; align: boolean }

/** An element that is read along an axis: its index, and its weight unless that is 1. */
interface Piece { index: Value; weight?: Value }

/** Coordinates in elements of an axis of size n. Cubic interpolation pads each element that it reads instead. */
function position(s: Sampler, at: Value, n: number): Value {
  const y = at.mul(s.align ? (n - 1) / 2 : n / 2).add((n - 1) / 2);
  return s.mode === 'cubic' ? y : padded(s, y, n);
}

/** Moves positions into [0, n − 1], or next to it for zeros. */
function padded({ padding, align }: Sampler, at: Value, n: number): Value {
  if (padding === 'zeros') return clamped(at, -3, n + 2);
  if (padding === 'edge') return clamped(at, 0, n - 1);
  const first = align ? 0 : -0.5, span = align ? n - 1 : n;
  if (span === 0) return at.mulZero(full(at, 0));
  const extra = at.sub(first).abs().mod(full(at, 2 * span));
  return clamped(extra.le(span).select(extra, full(at, 2 * span).sub(extra)).add(first), 0, n - 1);
}

/** Positions from low to high; the derivative at an end is 0, where that of clamp is 1/2. */
function clamped(at: Value, low: number, high: number): Value {
  const above = at.le(full(at, low)).select(full(at, low), at);
  return above.ge(full(at, high)).select(full(at, high), above);
}

/** The elements that positions along an axis of size n read; one outside the axis reads zero. */
function piecesOf(s: Sampler, at: Value, n: number): Piece[] {
  const index = (x: Value) => x.stopGradient().convert('i32');
  if (s.mode === 'nearest') return [{ index: index(at.round()) }];
  const base = at.floor().stopGradient(), rest = at.sub(base);
  if (s.mode === 'linear') {
    const left = index(base);
    return [{ index: left, weight: full(rest, 1).sub(rest) }, { index: left.add(1), weight: rest }];
  }
  return [-1, 0, 1, 2].map((k) => {
    const apart = rest.sub(k), d = k > 0 ? apart.neg() : apart, a = -0.75, polynomial = k < 0 || k > 1 ? [a, -5 * a, 8 * a, -4 * a] : [a + 2, -(a + 3), 0, 1];
    return { index: index(padded(s, base.add(k), n)), weight: polynomial.slice(1).reduce((y, f) => y.mul(d).add(f), full(d, polynomial[0]!)) };
  });
}

/** One element of each position, times its weights. */
function term(x: Value, corner: readonly Piece[]): Value {
  const y = x.gather(x.builder.stack(corner.map(({ index }) => index), corner[0]!.index.shape.length), { axes: corner.map((_, i) => i + 1), operandBatch: [0], indexBatch: [0], outside: 'fill' });
  const weights = corner.flatMap(({ weight }) => weight ?? []);
  return weights.length ? y.mul(weights.reduce((all, w) => all.mul(w)).expandDims(-1)) : y;
}

/**
 * The grid of positions of {@link gridSample} for images of the given sizes, one or more, [batch, sizes..., axes]: those of a
 * regular grid, transformed by theta, [batch, axes, axes + 1], as torch.nn.functional.affine_grid.
 */
export function affineGrid(theta: Value, sizes: readonly number[], alignCorners = false): Value {
  return calling(affineGrid, 'image.affineGrid', [theta], undefined, '', (c) => {
    c.floats();
    c.attr(Array.isArray(sizes) && sizes.length > 0, 'sizes must have one or more entries');
    const axes = sizes.length, [batch] = theta.shape, from = wide(theta);
    c.perAxis('sizes', sizes, 1, 1, axes);
    c.shape(theta.shape.length === 3 && theta.shape[1] === axes && theta.shape[2] === axes + 1, `theta must be [batch, ${axes}, ${axes + 1}]`);
    const columns = counting(axes + 1).map((i) => {
      const column = part(from, 2, i, 1).reshape([batch!, ...sizes.map(() => 1), axes]), axis = axes - 1 - i;
      if (i === axes) return column;
      const n = sizes[axis]!, line = counting(n).map((k) => alignCorners ? n > 1 ? 2 * k / (n - 1) - 1 : 0 : (2 * k + 1) / n - 1);
      return column.mul(numbers(from, line, [1, ...sizes.map((_, k) => k === axis ? n : 1), 1]));
    });
    return narrow(columns.reduce((sum, y) => sum.add(y)), theta);
  });
}

/** Options of {@link resize}. */
export interface ResizeOptions {
  /** `'linear'` if not given. */
  mode?: 'linear' | 'nearest' | 'cubic' | 'lanczos';
  /** Widens the filter by the factor by which an axis shrinks, as PyTorch's antialias and Pillow do. */
  antialias?: boolean;
  /** The parameter of `'cubic'`, from −1 to 0. −1/2 with antialias and −3/4 without if not given. */
  a?: number;
  /** Aligns the centres of the corner elements; by default their outer edges are aligned. Not with antialias. */
  alignCorners?: boolean;
  /** Makes `'nearest'` take element ⌊i·from/to⌋ (PyTorch's nearest), not the one whose centre is nearest (nearest-exact). */
  floor?: boolean;
}

/**
 * x, [batch, spatial axes..., channels], with spatial axes of the given sizes, up to 2²⁰ each, as
 * torch.nn.functional.interpolate, and with `'lanczos'` as Pillow. Axes that keep their size are not filtered.
 */
export function resize(x: Value, sizes: readonly number[], options?: ResizeOptions): Value {
  return calling(resize, 'image.resize', [x], options, 'mode antialias a alignCorners floor', (c) => {
    const o = { ...options, mode: c.word('mode', options?.mode, 'linear nearest cubic lanczos') }, from = spatial(c, x), { a = 0 } = o;
    c.attr(Array.isArray(sizes), 'sizes must be a list');
    c.perAxis('sizes', sizes, 0, 0, from.length);
    c.attr(sizes.every((n) => n <= 1 << 20), 'sizes has an entry above 2²⁰');
    c.attr(a >= -1 && a <= 0, `a is ${a}: it must be in [-1, 0]`);
    c.attr(!o.alignCorners || !o.antialias && o.mode !== 'lanczos', 'alignCorners is set: antialias must not be, nor mode be lanczos');
    c.attr(!o.floor || o.mode === 'nearest' && !o.alignCorners, 'floor is set: mode must be nearest, without alignCorners');
    return narrow(sizes.reduce((y, to, i) => to === from[i] ? y : resizeAxis(y, i + 1, from[i]!, to, o), wide(x)), x);
  });
}

function resizeAxis(x: Value, axis: number, from: number, to: number, o: ResizeOptions): Value {
  const position = (i: number) => !o.alignCorners ? (i + 0.5) * (from / to) - 0.5 : to === 1 ? 0 : i * (from - 1) / (to - 1);
  const inside = (i: number) => Math.max(0, Math.min(i, from - 1));
  if (o.mode === 'nearest') {
    const nearest = (i: number) => o.floor ? Math.floor(i * from / to) : Math.floor(position(i) + 0.5);
    return x.take(indices(x.builder, counting(to).map((i) => inside(nearest(i)))), axis, 'clip');
  }
  const [support, weight] = filterOf(o), scale = o.antialias ? Math.max(1, from / to) : 1;
  const count = o.antialias ? Math.min(2 * Math.ceil(support * scale) + 1, Math.max(from, 2)) : 2 * support;
  const at: number[] = [], factors: number[] = [];
  for (let i = 0; i < to; i++) {
    const center = position(i), first = o.antialias ? Math.max(0, Math.min(Math.ceil(center - support * scale), from - count)) : Math.floor(center) - support + 1;
    const row = counting(count).map((k) => o.antialias && first + k >= from ? 0 : weight(Math.abs(first + k - center) / scale));
    const sum = row.reduce((total, w) => total + w);
    row.forEach((w, k) => { at.push(inside(first + k)); factors.push(w / sum); });
  }
  const y = x.take(indices(x.builder, at, [to, count]), axis, 'clip');
  return y.mul(numbers(x, factors, [to, count]).broadcastInDim({ shape: y.shape, axes: [axis, axis + 1] })).reduceSum([axis + 1]);
}

/** The distance from which on a weight is 0, and the weight of an element at a distance. */
function filterOf({ mode, antialias, a }: ResizeOptions): [support: number, weight: (d: number) => number] {
  const sinc = (x: number) => x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x), k = a || (antialias ? -0.5 : -0.75);
  if (mode === 'lanczos') return [3, (d) => d < 3 ? sinc(d) * sinc(d / 3) : 0];
  if (mode === 'cubic') return [2, (d) => d < 1 ? ((k + 2) * d - (k + 3)) * d * d + 1 : d < 2 ? ((k * d - 5 * k) * d + 8 * k) * d - 4 * k : 0];
  return [1, (d) => Math.max(0, 1 - d)];
}

/** Options of {@link unfold} and {@link fold}: a number for all spatial axes, or a list with one for each. */
export interface PatchOptions {
  /** The step of the window, and the step within it. 1 if not given. */
  stride?: PerAxis;
  dilation?: PerAxis;
  /** The number of zeros on both sides. 0 if not given. */
  pad?: PerAxis;
}

/**
 * The patches of x, [batch, spatial axes..., channels], below each position of a window: [batch, positions,
 * channels·elements of the window], as torch.nn.functional.unfold with the last two axes exchanged.
 */
export function unfold(x: Value, window: PerAxis, options?: PatchOptions): Value {
  return calling(unfold, 'image.unfold', [x], options, 'stride dilation pad', (c) => {
    const p = patchesOf(c, spatial(c, x), window, options), around = [0, ...p.pad, 0];
    const w = x.pad(0, { low: around, high: around, interior: around.map(() => 0) }).windows({ axes: p.axes, sizes: p.window, strides: p.stride, dilations: p.dilation });
    return w.reshape([x.shape[0]!, p.positions, c.size(x, -1, 'x') * p.elements]);
  });
}

/**
 * Adds up patches, [batch, positions, channels·elements of the window], where {@link unfold} takes them from: [batch, sizes...,
 * channels], as torch.nn.functional.fold with the patches' last two axes exchanged.
 */
export function fold(x: Value, sizes: readonly number[], window: PerAxis, options?: PatchOptions): Value {
  return calling(fold, 'image.fold', [x], options, 'stride dilation pad', (c) => {
    c.floats();
    c.attr(Array.isArray(sizes) && sizes.length > 0, 'sizes must be a list');
    c.perAxis('sizes', sizes, 1, 1, sizes.length);
    const p = patchesOf(c, sizes, window, options), channels = c.size(x, -1, 'x') / p.elements;
    c.shape(x.shape.length === 3 && x.shape[1] === p.positions && Number.isInteger(channels), `x must be [batch, ${p.positions}, channels·${p.elements}]`);
    const y = x.reshape([x.shape[0]!, ...p.counts, channels, ...p.window]).overlapAdd({ axes: p.axes, strides: p.stride, dilations: p.dilation, dims: sizes.map((n, i) => n + 2 * p.pad[i]!) });
    return sizes.reduce((y, n, i) => part(y, i + 1, p.pad[i]!, n), y);
  });
}

interface Patches { axes: number[]; window: readonly number[]; stride: readonly number[]; dilation: readonly number[]; pad: readonly number[]; counts: number[]; positions: number; elements: number }

/** The windows over axes of the given sizes. */
function patchesOf(c: Check, sizes: readonly number[], size: PerAxis, o: PatchOptions = {}): Patches {
  const n = sizes.length, window = c.perAxis('window', size, 1, 1, n), stride = c.perAxis('stride', o.stride, 1, 1, n), dilation = c.perAxis('dilation', o.dilation, 1, 1, n), pad = c.perAxis('pad', o.pad, 0, 0, n);
  const counts = sizes.map((size, i) => {
    const rest = size + 2 * pad[i]! - (window[i]! - 1) * dilation[i]! - 1;
    c.shape(rest >= 0, `the window is longer than axis ${i + 1} of ${size} elements`);
    return Math.floor(rest / stride[i]!) + 1;
  });
  const product = (list: readonly number[]) => list.reduce((all, k) => all * k, 1);
  return { axes: counting(n).map((i) => i + 1), window, stride, dilation, pad, counts, positions: product(counts), elements: product(window) };
}
