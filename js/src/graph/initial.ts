// Initial values of parameters.

import { converted } from '../safetensors/convert.js';
import { arrayType, sizeOf, type TensorData } from '../values/dtype.js';
import { classOf, RlxError } from '../values/errors.js';

/**
 * The initial value of a parameter: one number, its elements, or uniform random numbers from the parameter's name
 * and a seed, the same as in Go. The last axis is fan out, the one before it fan in, and all others the receptive
 * field: the bound of `glorot` is √(6 / (fan in + fan out)), of `he` √(6 / fan in).
 */
export type Initial = number | TensorData | 'glorot' | 'he';

/** Throws unless the value is an {@link Initial}. */
export function checkInitial(name: string, initial: Initial): void {
  if (typeof initial === 'number' || ArrayBuffer.isView(initial) || initial === 'glorot' || initial === 'he') return;
  const given = typeof initial === 'string' ? initial : classOf(initial);
  throw new RlxError('attr', `parameter ${name} begins with a number, its elements in a typed array, 'glorot' or 'he', not with ${given}`, { name });
}

/** The elements of a parameter of constant shape. Equal names and seeds give equal elements everywhere. */
export function fill(name: string, dtype: string, shape: readonly number[], initial: Initial, seed: number): TensorData {
  if (typeof initial === 'object') return initial;
  const size = sizeOf(shape), narrow = dtype === 'f16' || dtype === 'bf16';
  if (typeof initial === 'number') {
    if (narrow) return rounded(name, dtype, new Float32Array(size).fill(initial));
    const type = arrayType(dtype);
    return new type(new ArrayBuffer(size * type.BYTES_PER_ELEMENT), 0, size).fill(initial);
  }
  const bits = fractionBits[dtype];
  if (!bits) throw new RlxError('dtype', `parameter ${name} is ${dtype}: give its elements`, { name });
  const out = shape.at(-1) ?? 1, into = shape.at(-2) ?? out, field = sizeOf(shape.slice(0, -2));
  const bound = Float32Array.of(Math.sqrt(6 / (field * (initial === 'he' ? into : into + out))));
  const exact = narrow ? converted(name, { dtype, shape: [1], data: rounded(name, dtype, bound) }, 'f32')[0] as number : bound[0]!;
  const key = blocks(nameHash(name), seed, new Uint32Array(2)), data = new Float32Array(size), words = new Uint32Array(2048);
  for (let i = 0; i < size; i++) {
    const at = 2 * i % words.length;
    if (at === 0) blocks(key, i, words);
    data[i] = (2 * ((words[at]! ^ words[at + 1]!) >>> 32 - bits) / 2 ** bits - 1) * exact; // all but the product is exact
  }
  return narrow ? rounded(name, dtype, data) : data;
}

/** How many bits the significand of a float stores, which is how many random bits it takes. */
const fractionBits: Record<string, number> = { f32: 23, f16: 10, bf16: 7 };

const rounded = (name: string, dtype: string, data: Float32Array): TensorData =>
  converted(name, { dtype: 'f32', shape: [data.length], data }, dtype, { narrow: true }) as TensorData;

/** FNV-1a of 64 bits, high word first, as in the Go package rlx. */
function nameHash(name: string): Uint32Array {
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(name)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return Uint32Array.of(Number(hash >> 32n), Number(hash & 0xffffffffn));
}

const rotations = [[13, 15, 26, 6], [17, 29, 16, 24]] as const;

/** Fills words, two by two, with the blocks of Threefry-2x32 with 20 rounds, as the op `random_bits` has them, for a key and counters below 2³². */
function blocks([k0, k1]: Uint32Array, counter: number, words: Uint32Array): Uint32Array {
  const keys = [k0!, k1!, k0! ^ k1! ^ 0x1bd11bda];
  for (let at = 0; at < words.length; at += 2, counter++) {
    let x = keys[0]!, y = counter + keys[1]! | 0;
    for (let n = 1; n <= 5; n++) {
      for (const by of rotations[(n + 1) % 2]!) {
        x = x + y | 0;
        y = (y << by | y >>> 32 - by) ^ x;
      }
      x = x + keys[n % 3]! | 0;
      y = y + keys[(n + 1) % 3]! + n | 0;
    }
    words[at] = x;
    words[at + 1] = y;
  }
  return words;
}
