// Sizes in files: polynomials in symbols, in the normal form of the Go package ir, as 1/2*n-3.

import type { Sizes } from './entry.js';

const factor = String.raw`(?:\d+(?:\/\d+)?|[A-Za-z_]\w*)`, term = String.raw`${factor}(?:\*${factor})*`;
const form = new RegExp(String.raw`^-?${term}(?:[+-]${term})*$`), terms = new RegExp(String.raw`([+-]?)(${term})`, 'g');

/** The largest value of a size. */
const maxDim = 2n ** 53n;

/** A size, or undefined for a text that is none. */
export function parseDim(text: string): { symbols: string[] } | undefined {
  return text.length < 4096 && form.test(text) ? { symbols: text.match(/[A-Za-z_]\w*/g) ?? [] } : undefined;
}

/** The value of a size for values of its symbols; undefined if it is negative, too large or no integer. */
export function bindDim(text: string, sizes: Sizes): number | undefined {
  let num = 0n, den = 1n;
  for (const [, sign, product] of text.matchAll(terms)) {
    let n = sign === '-' ? -1n : 1n, d = 1n;
    for (const one of product!.split('*')) {
      const [over, under = '1'] = one.split('/') as [string, string?];
      n *= BigInt(/^\d/.test(over) ? over : sizes[over]!);
      d *= BigInt(under);
    }
    num = num * d + n * den;
    den *= d;
  }
  return den && num >= 0n && num % den === 0n && num / den <= maxDim ? Number(num / den) : undefined;
}
