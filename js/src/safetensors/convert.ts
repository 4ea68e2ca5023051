// Making a tensor of another element type.

import { arrayType, arrayTypes, type StoredData } from '../values/dtype.js';
import { RlxError } from '../values/errors.js';
import type { StoredTensor } from '../values/tensor.js';

/** How a type is converted that is narrower than a float, or an integer, of JavaScript. */
export interface ConvertOptions {
  /**
   * Also makes types that hold less: floats are rounded to the nearest value, of two the even one, and
   * may become infinite. An integer that does not fit is an error.
   */
  narrow?: boolean;
  /** Elements of 64 bits and more are their bytes, as a program has them. */
  bytes?: boolean;
}

/** The bits of a float: its exponent, its fraction, and whether it has no infinity. */
interface Format { exponent: number; fraction: number; finite?: boolean }

const formats: Record<string, Format> = {
  f8e4m3fn: { exponent: 4, fraction: 3, finite: true }, f8e5m2: { exponent: 5, fraction: 2 },
  f16: { exponent: 5, fraction: 10 }, bf16: { exponent: 8, fraction: 7 },
  f32: { exponent: 8, fraction: 23 }, f64: { exponent: 11, fraction: 52 },
};

const integers = /^([iu])(\d+)$/;

/** Whether each value of a type is one of another type. */
function widens(from: string, to: string): boolean {
  const a = formats[from], b = formats[to], [, sign, bits] = integers.exec(from) ?? [], [, toSign, toBits] = integers.exec(to) ?? [];
  if (a && b) return a.exponent <= b.exponent && a.fraction <= b.fraction;
  if (sign && b) return Number(bits) <= b.fraction + 1 && 2 ** (b.exponent - 1) > Number(bits);
  return !!sign && !!toSign && (sign === toSign ? Number(bits) <= Number(toBits) : sign === 'u' && Number(bits) < Number(toBits));
}

/** Whether a type may be rounded, or checked, to become another. */
const narrows = (from: string, to: string): boolean =>
  integers.test(from) ? integers.test(to) || to in formats : from in formats && /^(b?f16|f32|f64)$/.test(to);

/** The value of a narrow float. */
function valueOf(bits: number, { exponent, fraction, finite }: Format): number {
  const maxExponent = 2 ** exponent - 1, e = bits >> fraction & maxExponent, f = (bits & 2 ** fraction - 1) / 2 ** fraction;
  const sign = bits >> exponent + fraction ? -1 : 1, bias = 2 ** (exponent - 1) - 1;
  if (e === maxExponent && (!finite || f === 1 - 2 ** -fraction)) return f ? NaN : sign * Infinity;
  return sign * (e ? 1 + f : f) * 2 ** (Math.max(e, 1) - bias);
}

/** The bits of a narrow float that is nearest to a value; of two that are, those of the even one. */
function bitsOf(x: number, { exponent, fraction }: Format): number {
  const bias = 2 ** (exponent - 1) - 1, infinity = 2 ** exponent - 1 << fraction, sign = x < 0 || Object.is(x, -0) ? 1 << exponent + fraction : 0;
  if (Number.isNaN(x)) return infinity | 1 << fraction - 1;
  const size = Math.abs(x);
  let e = Math.min(Math.max(Math.floor(Math.log2(size)), 1 - bias), bias);
  if (e > 1 - bias && 2 ** e > size) e--; // the logarithm was rounded
  const scaled = size / 2 ** (e - fraction), floor = Math.floor(scaled), rest = scaled - floor;
  const rounded = rest > 0.5 || rest === 0.5 && floor % 2 ? floor + 1 : floor;
  return sign | Math.min((e + bias - 1) * 2 ** fraction + rounded, infinity);
}

/** The values of all bits of a narrow float, made once. */
const tables: Record<string, Float32Array> = {};

function tableOf(dtype: string): Float32Array {
  const format = formats[dtype]!;
  return tables[dtype] ??= Float32Array.from({ length: 2 ** (1 + format.exponent + format.fraction) }, (_, bits) => valueOf(bits, format));
}

/** The class of typed array that holds the elements of a type in a file. */
export const arrayOf = (dtype: string) => ({ f64: Float64Array, i64: BigInt64Array, u64: BigUint64Array, c64: Float32Array })[dtype] ?? arrayType(dtype);

/**
 * A tensor's elements as another type. Throws an {@link RlxError} of kind `dtype` if that could
 * change a value and `narrow` is not set, or if there is no conversion, and `index` for an integer
 * out of range.
 */
export function converted(name: string, { dtype: from, data }: StoredTensor, to: string, { narrow = false }: ConvertOptions = {}): StoredData {
  if (from === to) return data;
  if (!widens(from, to) && !(narrow && narrows(from, to))) {
    const remedy = narrows(from, to) ? `as('${to}', { narrow: true }) rounds` : 'there is no conversion';
    throw new RlxError('dtype', `${name} is ${from}, wanted as ${to}: ${remedy}`, { name });
  }
  const table = from in formats && from in arrayTypes && from !== 'f32' ? tableOf(from) : undefined;
  const size = data.length, out = new (arrayOf(to) as { new (size: number): StoredData })(size);
  const bits = to === 'f16' || to === 'bf16' ? formats[to] : undefined, big = /64$/.test(to) && integers.test(to);
  for (let i = 0; i < size; i++) {
    const given = data[i]!, value = table ? table[given as number]! : given;
    out[i] = bits ? bitsOf(Number(value), bits) : big ? BigInt(value) : Number(value);
    if (integers.test(to) && BigInt(out[i]!) !== BigInt(given)) throw new RlxError('index', `${name} has ${given} as element ${i}, which is no ${to}`, { name });
  }
  return out;
}
