// Pictures as elements in host memory, for programs that are not on a GPU of this thread.

import type { TensorData } from '../values/dtype.js';
import type { Layout } from './layout.js';
import { type Axis, taps } from './placing.js';
import { bytesOf, type Sized } from './source.js';

/** Filters along an axis: `stride` numbers lie between its pixels, and as many at each of them are filtered alike; there are `outer` such rows. */
function filter(from: Float64Array, axis: Axis, stride: number, outer: number): Float64Array {
  const made = new Float64Array(outer * axis.to * stride);
  for (let i = 0; i < axis.to; i++) {
    taps(axis, i, (at, weight) => {
      for (let o = 0; o < outer; o++) {
        const out = (o * axis.to + i) * stride, in_ = (o * axis.from + at) * stride;
        for (let k = 0; k < stride; k++) made[out + k]! += weight * from[in_ + k]!;
      }
    });
  }
  return made;
}

/** The colours of a picture, multiplied by alpha. */
function premultiplied(bytes: Uint8Array | Uint8ClampedArray): Float64Array {
  const made = Float64Array.from(bytes);
  for (let i = 0; i < made.length; i += 4) for (let c = 0; c < 3; c++) made[i + c]! *= made[i + 3]! / 255;
  return made;
}

/** Channel c of a pixel, in 0 to 255, as the kernel computes it. */
function channel([r, g, b, a]: readonly [number, number, number, number], c: number, depth: number): number {
  if (depth === 1) return (19595 * r + 38470 * g + 7471 * b) / 65536;
  const v = [r, g, b, a][c]!;
  return depth === 3 || c === 3 ? v : a ? v * 255 / a : 0;
}

const toF16 = (f32: Float32Array): Uint16Array => Uint16Array.from(f32, halfOf);

/** The bits of a number in [0, 1] as f16, rounded to the nearest even one. */
function halfOf(x: number): number {
  if (!x) return 0;
  const exponent = Math.max(Math.floor(Math.log2(x)), -14), unit = 2 ** (exponent - 10), steps = x / unit;
  const down = Math.floor(steps), rest = steps - down, whole = down + Number(rest > 0.5 || rest === 0.5 && down % 2 === 1);
  return (exponent + 14) * 1024 + whole; // a carry goes to the exponent
}

/** The elements of pictures, as those of a device. */
export function hostPixels(layout: Layout, sources: readonly Sized[], placed: readonly [Axis, Axis][]): TensorData {
  const { op, slot, count, height, width, depth, channels, bytes } = layout, pixels = height * width, size = pixels * depth;
  const values = new Float32Array(count * size);
  sources.forEach((source, i) => {
    const [x, y] = placed[i]!, rows = filter(premultiplied(bytesOf(op, slot.name, source)), x, 4, source.height);
    const all = filter(rows, y, 4 * x.to, 1);
    for (let row = 0; row < y.to; row++) {
      for (let column = 0; column < x.to; column++) {
        const at = 4 * (row * x.to + column), p = (row + y.start) * width + column + x.start;
        const pixel = [all[at]!, all[at + 1]!, all[at + 2]!, all[at + 3]!] as const;
        for (let c = 0; c < depth; c++) values[i * size + (channels === 'first' ? c * pixels + p : p * depth + c)] = channel(pixel, c, depth);
      }
    }
  });
  if (bytes === 1) return Uint8Array.from(values, (v) => Math.min(v + 0.5, 255));
  const scaled = values.map((v) => v / 255);
  return bytes === 2 ? toF16(scaled) : scaled;
}
