// Distributions of random numbers, and orthonormal matrices.

/** Coefficients of the polynomials of PPND7 (Wichura 1988, algorithm AS 241), numerator and denominator, lowest first. */
const centre = [[3.3871327179, 50.434271938, 159.29113202, 59.109374720], [1, 17.895169469, 78.757757664, 67.187563600]] as const;
const middle = [[1.4234372777, 2.7568153900, 1.3067284816, 0.17023821103], [1, 0.73700164250, 0.12021132975]] as const;
const tail = [[6.6579051150, 3.0812263860, 0.42868294337, 0.017337203997], [1, 0.24197894225, 0.012258202635]] as const;

const ratio = (x: number, [above, below]: readonly [readonly number[], readonly number[]]): number => {
  const value = (list: readonly number[]) => list.reduceRight((sum, c) => sum * x + c, 0);
  return value(above) / value(below);
};

/** The quantile of the standard normal distribution at p in (0, 1), to seven digits. */
function quantile(p: number): number {
  const q = p - 0.5;
  if (Math.abs(q) <= 0.425) return q * ratio(0.180625 - q * q, centre);
  const r = Math.sqrt(-Math.log(Math.min(p, 1 - p)));
  return Math.sign(q) * (r <= 5 ? ratio(r - 1.6, middle) : ratio(r - 5, tail));
}

/**
 * √2·erfinv(from + (to − from)·u), as the random ops compute it: the argument is rounded to f32, and −1 is replaced by the
 * next number, where erfinv is finite.
 */
function normalBetween(u: number, from: number, to: number): number {
  const low = Math.fround(Math.max(from, 2 ** -24 - 1)), x = Math.fround(Math.fround(u * Math.fround(to - low)) + low);
  return quantile(Math.min((1 + x) / 2, 1 - 2 ** -25));
}

/** The normal number for u in [0, 1). */
export const normalQuantile = (u: number): number => normalBetween(u, -1, 1);

/** The normal numbers within [low, high] for u in [0, 1). */
export function truncatedQuantile(low: number, high: number): (u: number) => number {
  const from = 2 * probability(low) - 1, to = 2 * probability(high) - 1;
  return (u) => Math.min(Math.max(normalBetween(u, from, to), low), high);
}

/** The probability of a normal number below x: the inverse of the quantile, by bisection. */
function probability(x: number): number {
  let low = 0, high = 1;
  for (let i = 0; i < 60; i++) {
    const p = (low + high) / 2;
    if (quantile(p) < x) low = p;
    else high = p;
  }
  return low;
}

/**
 * Makes matrices of normal numbers orthonormal, times gain: the columns, or of a wide matrix the rows, by Gram and
 * Schmidt, which is the QR factorisation with positive diagonal. The numbers of a wide matrix are those of its
 * transpose.
 */
export function orthonormal(data: Float32Array, count: number, rows: number, cols: number, gain: number): Float32Array {
  const n = Math.max(rows, cols), m = Math.min(rows, cols), out = new Float32Array(data.length);
  for (let k = 0; k < count; k++) {
    const columns = Array.from({ length: m }, (_, j) => Float64Array.from({ length: n }, (_, i) => data[k * n * m + i * m + j]!));
    columns.forEach((column, j) => {
      for (let pass = 0; pass < 2; pass++) for (const before of columns.slice(0, j)) subtract(column, before);
      const norm = Math.sqrt(dot(column, column));
      column.forEach((x, i) => { column[i] = x / norm; });
      column.forEach((x, i) => { out[k * n * m + (rows < cols ? j * n + i : i * m + j)] = x * gain; });
    });
  }
  return out;
}

const dot = (a: Float64Array, b: Float64Array): number => a.reduce((sum, x, i) => sum + x * b[i]!, 0);

/** Subtracts the projection of a on a vector of length 1. */
function subtract(a: Float64Array, unit: Float64Array): void {
  const along = dot(a, unit);
  a.forEach((x, i) => { a[i] = x - along * unit[i]!; });
}
