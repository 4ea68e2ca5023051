// Texts, bytes and classes of characters.

import { RlxError } from '../../values/errors.js';

/** The error for a file that is no tokenizer. */
export const damaged = (reason: string): RlxError => new RlxError('syntax', `tokenizer: ${reason}`);
/** The error for a part of a kind that is not known. */
export const unsupported = (reason: string): RlxError => new RlxError('unsupported', `tokenizer: ${reason}`);
/** The error for text that no token covers. */
export const uncovered = (text: string): RlxError => new RlxError('missing', `tokenizer: ${quoted(text)} has no token, and unknown text has none`);

/** The beginning of a text in quotes, for messages. */
export const quoted = (text: unknown): string => JSON.stringify(String(text).slice(0, 50));

/** \w of patterns, whose syntax is Oniguruma's: letters, marks, digits and connectors, as the inside of a class. */
export const patternWord = String.raw`\p{Alphabetic}\p{M}\p{Nd}\p{Pc}`;
/** \w of the expressions of Rust, by which the pre-tokenizer Whitespace and single_word go: joiners are letters besides. */
export const wordClass = String.raw`${patternWord}\u200c\u200d`;
/** The punctuation of BERT: that of Unicode, and all of ASCII that is no letter, digit or space. */
export const punctuation = String.raw`[\p{P}$+<=>^\x60\|~]`;

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true }), strict = new TextDecoder('utf-8', { ignoreBOM: true, fatal: true });

/** The bytes of a text. */
export const bytesOf = (text: string): Uint8Array => encoder.encode(text);
/** The text of bytes, with U+FFFD for each maximal part that is no UTF-8, as the Unicode standard has it. */
export const textOf = (bytes: readonly number[] | Uint8Array): string => decoder.decode(Uint8Array.from(bytes));
/** The text of bytes, undefined if they are no UTF-8. */
export function exactText(bytes: readonly number[]): string | undefined {
  try {
    return strict.decode(Uint8Array.from(bytes));
  } catch {
    return undefined;
  }
}

/**
 * The alphabet of byte-level vocabularies: printable bytes of Latin-1 map to themselves, the others
 * to U+0100 and up, in order.
 */
export const byteLetters: readonly string[] = (() => {
  let next = 256;
  return Array.from({ length: 256 }, (_, b) => String.fromCharCode(b > 0x20 && b < 0x7f || b > 0xa0 && b !== 0xad ? b : next++));
})();
const letterBytes = new Map(byteLetters.map((letter, b) => [letter, b]));

const plain = /^[!-~]*$/;

/** Writes each byte of a text in the alphabet. */
export function toByteLevel(text: string): string {
  if (plain.test(text)) return text;
  let out = '';
  for (const b of bytesOf(text)) out += byteLetters[b];
  return out;
}

/** Appends the bytes of a token: the token itself if it contains a character outside the alphabet. */
export function addBytes(out: number[], token: string): void {
  const at = out.length;
  for (const letter of token) {
    const b = letterBytes.get(letter);
    if (b === undefined) {
      out.length = at;
      for (const own of bytesOf(token)) out.push(own);
      return;
    }
    out.push(b);
  }
}

/** The byte of a token as <0x0A>; -1 for other tokens. */
export const byteOf = (token: string): number => /^<0x[\da-fA-F]{2}>$/.test(token) ? parseInt(token.slice(3, 5), 16) : -1;

/** The ids of the tokens <0x00> to <0xFF>; undefined unless all are in the vocabulary. */
export function byteTokens(id: (token: string) => number | undefined): Int32Array | undefined {
  const ids = Array.from({ length: 256 }, (_, b) => id(`<0x${b.toString(16).toUpperCase().padStart(2, '0')}>`));
  return ids.includes(undefined) ? undefined : Int32Array.from(ids as number[]);
}
