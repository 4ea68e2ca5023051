// Where a picture goes in a result of another size, and the filter.

/** How a picture of another size is resized: until it covers the input, until it is contained in it, or without keeping its proportions. */
export type Fit = 'cover' | 'contain' | 'stretch';

/**
 * One axis of a resized picture: pixel i of the `to` pixels from `start` on is computed from the source around
 * `origin + (i + 1/2)·scale`; other pixels of the result are 0.
 */
export interface Axis { from: number; origin: number; scale: number; start: number; to: number }

/** The axes of a picture of `from` pixels, width and height, in a result of `size`. */
export function placing(from: readonly [number, number], size: readonly [number, number], fit: Fit): [Axis, Axis] {
  const ratios = from.map((n, i) => n / size[i]!), ratio = fit === 'cover' ? Math.min(...ratios) : Math.max(...ratios);
  return [0, 1].map((i): Axis => {
    const have = from[i]!, want = size[i]!;
    if (fit === 'cover') return { from: have, origin: (have - want * ratio) / 2, scale: ratio, start: 0, to: want };
    const to = fit === 'contain' ? Math.max(1, Math.round(have / ratio)) : want;
    return { from: have, origin: 0, scale: have / to, start: (want - to) >> 1, to };
  }) as [Axis, Axis];
}

/** Calls `tap` with each source pixel of pixel i along an axis and its weight: a triangle as wide as a pixel of the smaller of the two, as by Pillow. */
export function taps({ from, origin, scale }: Axis, i: number, tap: (at: number, weight: number) => void): void {
  const support = Math.max(scale, 1), centre = origin + (i + 0.5) * scale;
  const lo = Math.max(0, Math.floor(centre - support + 0.5)), hi = Math.min(from, Math.floor(centre + support + 0.5));
  const weights = Array.from({ length: hi - lo }, (_, k) => Math.max(0, 1 - Math.abs((lo + k + 0.5 - centre) / support)));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  weights.forEach((weight, k) => tap(lo + k, weight / total));
}
