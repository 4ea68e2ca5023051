// Initial values of parameters.

import { converted } from '../safetensors/convert.js';
import { arrayType, sizeOf, type TensorData } from '../values/dtype.js';
import { classOf, RlxError } from '../values/errors.js';
import { normalQuantile, orthonormal, truncatedQuantile } from './random.js';
import { type InitialRule, isRule, resolved, ruleOf } from './rule.js';

/**
 * The initial value of a parameter: one number, its elements, or random numbers by a rule, which depend on the
 * parameter's name and a seed alone, as in Go. `glorot` and `he` are uniform: the last axis is fan out, the one
 * before it fan in, and all others the receptive field: the bound of `glorot` is √(6 / (fan in + fan out)), of `he`
 * √(6 / fan in).
 */
export type Initial = number | TensorData | 'glorot' | 'he' | InitialRule;

/** Throws unless the value is an {@link Initial}. The compiler checks the name and the numbers of a rule. */
export function checkInitial(name: string, initial: Initial): void {
  if (typeof initial === 'number' || ArrayBuffer.isView(initial) || initial === 'glorot' || initial === 'he' || isRule(initial)) return;
  const given = typeof initial === 'string' ? initial : classOf(initial);
  throw new RlxError('attr', `parameter ${name} begins with ${given}: it must be a number, elements in a typed array, 'glorot', 'he' or a rule { rule, args }`, { name });
}

/** The elements of a parameter of constant shape. Equal names and seeds give equal elements everywhere. */
export function fill(name: string, dtype: string, shape: readonly number[], initial: Initial, seed: number): TensorData {
  if (ArrayBuffer.isView(initial)) return initial;
  if (typeof initial === 'number') return full(name, dtype, sizeOf(shape), initial);
  const { rule, args } = resolved(ruleOf(initial)!, shape), key = blocks(nameHash(name), seed, new Uint32Array(2));
  if (rule === 'key') return key;
  if (rule === 'constant') return full(name, dtype, sizeOf(shape), args[0]!);
  const bits = fractionBits[dtype];
  if (!bits) throw new RlxError('dtype', `parameter ${name} is ${dtype}: give its elements`, { name });
  const draw = draws[rule];
  if (!draw) throw new RlxError('attr', `parameter ${name} begins by the rule ${rule}, which is not known here`, { name });
  // Numbers that a narrow type computes are rounded where Go rounds them; distributions but the uniform one are computed in f32.
  const round = (x: number) => rounded(name, dtype, Float32Array.of(x)), exact = (x: number) => bits === 23 ? Math.fround(x) : converted(name, { dtype, shape: [1], data: round(x) }, 'f32')[0] as number;
  const data = draw({ shape, args, exact, uniform: (n, visit) => eachUniform(key, n, rule === 'uniform' ? bits : 23, visit) });
  return bits === 23 ? data : rounded(name, dtype, data);
}

/** What a rule draws with: `uniform` visits n numbers in [0, 1), `exact` rounds to the parameter's type. */
interface Drawing {
  shape: readonly number[];
  args: readonly number[];
  exact(x: number): number;
  uniform(n: number, visit: (u: number, i: number) => void): void;
}

/** Maps uniform numbers to the elements of a shape. */
function mapped({ shape, uniform }: Drawing, of: (u: number) => number): Float32Array {
  const data = new Float32Array(sizeOf(shape));
  uniform(data.length, (u, i) => { data[i] = of(u); });
  return data;
}

/** Numbers in [low, high). Around 0 all but the product is exact, so that Go, TypeScript and all devices agree to the bit. */
function between(d: Drawing, low: number, high: number): Float32Array {
  const top = d.exact(high), range = d.exact(high - low), from = d.exact(low);
  return low === -high ? mapped(d, (u) => (2 * u - 1) * top) : mapped(d, (u) => Math.fround(u * range) + from);
}

const draws: Record<string, (d: Drawing) => Float32Array> = {
  uniform: (d) => between(d, d.args[0]!, d.args[1]!),
  normal: (d) => {
    const [mean, deviation] = d.args as [number, number];
    return mapped(d, (u) => mean + deviation * normalQuantile(u));
  },
  truncated_normal: (d) => {
    const [mean, deviation, low, high] = d.args as [number, number, number, number];
    const quantile = truncatedQuantile((low - mean) / (deviation || 1), (high - mean) / (deviation || 1));
    return mapped(d, (u) => mean + deviation * quantile(u));
  },
  orthogonal: (d) => {
    const [gain = 1, batch = 0] = d.args, cols = d.shape.at(-1)!, count = sizeOf(d.shape.slice(0, batch)), rows = sizeOf(d.shape.slice(batch, -1));
    return orthonormal(mapped(d, normalQuantile), count, rows, cols, gain);
  },
  log_range: ({ shape }) => Float32Array.from({ length: sizeOf(shape) }, (_, i) => Math.log(1 + i % shape.at(-1)!)),
  softplus_inverse: (d) => between(d, Math.log(d.args[0]!), Math.log(d.args[1]!)).map((log) => Math.exp(log) + Math.log(-Math.expm1(-Math.exp(log)))),
};

/** Visits n uniform numbers in [0, 1) of some bits, as the op `random_uniform` draws them. */
function eachUniform(key: Uint32Array, n: number, bits: number, visit: (u: number, i: number) => void): void {
  const words = new Uint32Array(2048);
  for (let i = 0; i < n; i++) {
    const at = 2 * i % words.length;
    if (at === 0) blocks(key, i, words);
    visit(((words[at]! ^ words[at + 1]!) >>> 32 - bits) / 2 ** bits, i);
  }
}

/** One number for all elements. */
function full(name: string, dtype: string, size: number, n: number): TensorData {
  if (dtype === 'f16' || dtype === 'bf16') return rounded(name, dtype, new Float32Array(size).fill(n));
  const type = arrayType(dtype);
  return new type(new ArrayBuffer(size * type.BYTES_PER_ELEMENT), 0, size).fill(n);
}

/** The number of bits of the significand that a float stores, which is that of its random bits. */
const fractionBits: Record<string, number> = { f32: 23, f16: 10, bf16: 7 };

const rounded = (name: string, dtype: string, data: Float32Array): TensorData =>
  converted(name, { dtype: 'f32', shape: [data.length], data }, dtype, { narrow: true }) as TensorData;

/** FNV-1a of 64 bits, high word first, as in the Go package rlx. */
function nameHash(name: string): Uint32Array {
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(name)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return Uint32Array.of(Number(hash >> 32n), Number(hash & 0xffffffffn));
}

const rotations = [13, 15, 26, 6, 17, 29, 16, 24] as const;

/** Fills words, two by two, with the blocks of Threefry-2x32 with 20 rounds, as the op `random_bits` has them, for a key and counters below 2³². */
function blocks([k0, k1]: Uint32Array, counter: number, words: Uint32Array): Uint32Array {
  const keys = [k0!, k1!, k0! ^ k1! ^ 0x1bd11bda];
  for (let at = 0; at < words.length; at += 2, counter++) {
    let x = keys[0]!, y = counter + keys[1]! | 0;
    for (let round = 0; round < 20; round++) {
      const by = rotations[round & 7]!, n = round + 1 >> 2;
      x = x + y | 0;
      y = (y << by | y >>> 32 - by) ^ x;
      if ((round & 3) !== 3) continue;
      x = x + keys[n % 3]! | 0;
      y = y + keys[(n + 1) % 3]! + n | 0;
    }
    words[at] = x;
    words[at + 1] = y;
  }
  return words;
}
