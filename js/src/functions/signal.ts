// Signals: cosine transforms, interpolation.

import type { Value } from '../graph/builder.js';
import type { Called } from '../graph/caller-stack.js';
import { part } from '../graph/part.js';
import { calling, counting, full, indices, item, narrow, numbers, wide } from './check.js';

/** Options of {@link dct} and {@link idct}. */
export interface DCTOptions {
  /** The type, 2 if not given. */
  type?: 1 | 2 | 3 | 4;
  /** Where the length of the extended signal divides: in the inverse (`'backward'`, if not given), in the transform, or both are orthogonal. */
  norm?: 'backward' | 'forward' | 'ortho';
}

/** The discrete cosine transform of f32 or f64 numbers along an axis of constant size, as scipy.fft.dct. */
export function dct(x: Value, axis = -1, options?: DCTOptions): Value { return transform(dct, 'dct', x, axis, options, false); }

/** The inverse of {@link dct} with the same options (scipy.fft.idct). */
export function idct(x: Value, axis = -1, options?: DCTOptions): Value { return transform(idct, 'idct', x, axis, options, true); }

function transform(called: Called, name: string, x: Value, axis: number, options: DCTOptions | undefined, inverse: boolean): Value {
  return calling(called, `signal.${name}`, [x], options, 'type norm', (c) => {
    const { type: given = 2 } = options ?? {}, norm = c.word('norm', options?.norm, 'backward forward ortho'), rank = x.shape.length, at = c.axis(axis, rank);
    if (!/^f(32|64)$/.test(x.dtype)) c.fail('dtype', `x is ${x.dtype}: it must be f32 or f64`);
    c.attr([1, 2, 3, 4].includes(given), `type is ${given}: it must be 1, 2, 3 or 4`);
    const n = c.size(x, at, 'x'), least = given === 1 ? 2 : 1, type = inverse && (given === 2 || given === 3) ? 5 - given : given;
    c.shape(n >= least, `axis ${at} of x must have ${least} elements or more`);
    const perm = [...counting(rank).filter((i) => i !== at), at], back = perm.map((_, i) => perm.indexOf(i));
    return scaled(x.transpose(perm), type, n, norm, inverse).transpose(back);
  });
}

/** Multiplies the elements of the last axis by factors. */
const times = (x: Value, n: number, factor: (k: number) => number): Value => {
  const list = counting(n).map(factor);
  return list.every((f) => f === 1) ? x : x.mul(numbers(x, list));
};

/** The transform of a type, normalised. */
function scaled(x: Value, type: number, n: number, norm: string, inverse: boolean): Value {
  const extended = type === 1 ? 2 * n - 2 : 2 * n, root = Math.SQRT2, end = (k: number) => k === 0 || type === 1 && k === n - 1;
  if (norm !== 'ortho') return inverse === (norm === 'backward') ? times(cosines(x, type, n), n, () => 1 / extended) : cosines(x, type, n);
  const before = type === 1 || type === 3 ? root : 1, after = type === 1 || type === 2 ? 1 / root : 1;
  return times(cosines(times(x, n, (k) => end(k) ? before : 1), type, n), n, (k) => (end(k) ? after : 1) / Math.sqrt(extended));
}

/** The transform along the last axis, without factors (Makhoul, A Fast Cosine Transform in One and Two Dimensions). */
function cosines(x: Value, type: number, n: number): Value {
  const turn = (angle: (k: number) => number) => (re: Value, im?: Value): [Value, Value] => {
    const cos = (v: Value) => times(v, n, (k) => Math.cos(angle(k))), sin = (v: Value) => times(v, n, (k) => Math.sin(angle(k)));
    return im ? [cos(re).sub(sin(im)), sin(re).add(cos(im))] : [cos(re), sin(re)];
  };
  const ordered = (v: Value, order: (i: number) => number) => v.take(indices(v.builder, counting(n).map(order)), -1, 'clip');
  if (type === 1) {
    const whole = n > 2 ? x.builder.concatenate([x, part(x, -1, 1, n - 2).reverse([-1])], -1) : x;
    return part(whole.dft()[0], -1, 0, n);
  }
  if (type === 2) {
    const [re, im] = ordered(x, (i) => 2 * i < n ? 2 * i : 2 * (n - 1 - i) + 1).dft();
    return turn((k) => -Math.PI * k / (2 * n))(re, im)[0].mul(2);
  }
  if (type === 3) {
    const mirrored = times(ordered(x, (k) => (n - k) % n), n, (k) => k === 0 ? 0 : -1), [re, im] = turn((k) => Math.PI * k / (2 * n))(x, mirrored);
    return ordered(re.dft(im, true)[0], (i) => i % 2 ? n - 1 - (i - 1) / 2 : i / 2);
  }
  const zeros = x.shape.map(() => 0), longer = (v: Value) => v.pad(0, { low: zeros, high: [...zeros.slice(1), n], interior: zeros });
  const [re, im] = turn((j) => -Math.PI * (2 * j + 1) / (4 * n))(x).map(longer) as [Value, Value], [outRe, outIm] = re.dft(im);
  return turn((k) => -Math.PI * k / (2 * n))(part(outRe, -1, 0, n), part(outIm, -1, 0, n))[0].mul(2);
}

/** Options of {@link interp}: the results below the first point and above the last, the values there if not given. */
export interface InterpOptions { left?: number; right?: number }

/** The piecewise linear function through the points (xp, fp) at x, of any shape (numpy.interp). xp increases. */
export function interp(x: Value, xp: Value, fp: Value, options?: InterpOptions): Value {
  return calling(interp, 'signal.interp', [x, xp, fp], options, 'left right', (c) => {
    c.floats();
    c.shape(xp.shape.length === 1 && fp.shape.length === 1 && xp.shape[0] === fp.shape[0], 'xp and fp must be vectors of one size');
    const n = c.size(xp, 0, 'xp'), { left, right } = options ?? {}, at = wide(x), from = wide(xp), to = wide(fp);
    c.shape(n > 0, 'xp is empty: there must be a point');
    const index = from.stopGradient().searchsorted(at.stopGradient(), true), first = index.sub(1).clamp(0, n - 1), second = index.clamp(0, n - 1);
    const x0 = from.take(first, 0, 'clip'), y0 = to.take(first, 0, 'clip'), given = from.take(second, 0, 'clip').sub(x0), run = given.eq(0).select(full(given, 1), given);
    const y = y0.add(at.sub(x0).div(run).mul(to.take(second, 0, 'clip').sub(y0)));
    const end = (number: number | undefined, i: number) => full(at, number ?? 0).add(number === undefined ? item(to, 0, i) : 0);
    const low = at.lt(item(from, 0, 0)).select(end(left, 0), y);
    return narrow(at.gt(item(from, 0, n - 1)).select(end(right, n - 1), low), x);
  });
}
