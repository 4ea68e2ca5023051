// Normalizers: what rewrites a text before it is split.

import { matching, type Pattern, readPattern } from './pattern.js';
import { damaged, quoted, textOf, bytesOf, toByteLevel, unsupported } from './text.js';

/** Rewrites a text. */
export type Normalizer = (text: string) => string;

/** SentencePiece's mark for a space, U+2581. */
export const spaceMark = '▁';

/** Writes each character in lower case, without regard to its neighbours: only a sigma's lower case depends on them. */
export const lower: Normalizer = (text) => text.split('Σ').map((part) => part.toLowerCase()).join('σ');

/** Replaces the matches of a pattern by content. */
export function replace(pattern: Pattern, content: string): Normalizer {
  return (text) => {
    const found = pattern(text);
    let out = '', at = 0;
    for (let i = 0; i < found.length; i += 2) {
      out += text.slice(at, found[i]) + content;
      at = found[i + 1]!;
    }
    return at ? out + text.slice(at) : text;
  };
}

export const chain = (all: readonly Normalizer[]): Normalizer => (text) => all.reduce((rest, each) => each(rest), text);
export const removing = (what: RegExp): Normalizer => (text) => text.replace(what, '');
/** Removes white space at the ends. */
export const strip = (left: boolean, right: boolean): Normalizer => (text) => {
  const begun = left ? text.replace(/^\p{White_Space}+/u, '') : text;
  return right ? begun.slice(0, endWithoutSpace(begun)) : begun;
};
/** Where the white space at the end of a text begins: an expression with $ would look at each run of it. */
function endWithoutSpace(text: string): number {
  let end = text.length;
  while (end > 0 && /\p{White_Space}/u.test(text[end - 1]!)) end--;
  return end;
}
/** Writes spaces as marks, with one before a text that is not empty. */
export const spaceMarks = (prefix: boolean): Normalizer => (text) => (text && prefix ? spaceMark : '') + text.replaceAll(' ', spaceMark);

const controls = /(?![\t\n\r])[\0\ufffd\p{Cc}\p{Cf}\p{Co}]/gu;
/** What BERT calls a Chinese character. */
const ideographs = /[\u4e00-\u9fff\u3400-\u4dbf\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b920}-\u{2ceaf}\uf900-\ufaff\u{2f800}-\u{2fa1f}]/gu;

/** The normalizer of BERT. */
export function bert(clean: boolean, chinese: boolean, accents: boolean, lowercase: boolean): Normalizer {
  return chain([
    ...clean ? [removing(controls), (text: string) => text.replace(/\p{White_Space}/gu, ' ')] : [],
    ...chinese ? [(text: string) => text.replace(ideographs, ' $& ')] : [],
    ...accents ? [(text: string) => text.normalize('NFD'), removing(/\p{Mn}/gu)] : [],
    ...lowercase ? [lower] : [],
  ]);
}

/** SentencePiece's cleaning for translation: control characters are removed and separators are spaces. */
const nmt = chain([removing(/[\x01-\x08\x0b\x0e-\x1f\x7f\x8f\x9f]/g), (text) => text.replace(/[\t\n\f\r\u1680\u200b-\u200f\u2028\u2029\u2581\ufeff\ufffd]/g, ' ')]);

/**
 * Characters by their role in a cluster: prefixed signs (before others), controls (separate), marks
 * and joiners (extend others).
 */
const prefixed = String.raw`\u{600}-\u{605}\u{6dd}\u{70f}\u{890}\u{891}\u{8e2}\u{110bd}\u{110cd}\u{d4e}`;
const extending = String.raw`[[\p{M}\u200c\u200d\u0e33\u0eb3]--[\0-\u02ff]]`;
const breaking = String.raw`[[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]--[${extending}${prefixed}]]`;

/** The parts of a text that a charsmap replaces as a whole: grapheme clusters, by the rules of Unicode's annex 29 that matter for short ones. */
const clusters = () => new RegExp(String.raw`\r\n|[${prefixed}]*[[^${prefixed}]--${breaking}]${extending}*|[${prefixed}]+|[\s\S]`, 'gv');
/** The number of bytes from which on a cluster is looked up character by character. */
const maxCluster = 6;
/** A bound on the replacements that are remembered. */
const maxKnown = 1 << 14;

/**
 * SentencePiece's table of normalizations: a double-array trie of texts. Its values are the
 * offsets of replacements, which end with a zero byte. The data are the size of the trie in bytes,
 * its units, the replacements; little endian.
 */
export function charsmap(data: Uint8Array): Normalizer {
  const view = new DataView(data.buffer, data.byteOffset, data.length), size = data.length < 4 ? 0 : view.getUint32(0, true);
  if (size % 4 || !size || size > data.length - 4) throw damaged(`precompiled_charsmap has a trie of ${size} bytes in ${data.length}`);
  const count = size / 4, texts = data.subarray(4 + size), unitAt = (i: number) => view.getUint32(4 + 4 * i, true);
  const offset = (unit: number) => (unit >>> 10) << (unit & 0x200 ? 8 : 0) >>> 0;
  /** The replacement of the shortest text of the table that bytes begin with. */
  const find = (bytes: Uint8Array): string | undefined => {
    let at = offset(unitAt(0));
    for (const b of bytes) {
      at = (at ^ b) >>> 0;
      if (!b || at >= count) return undefined;
      const unit = unitAt(at);
      if ((unit & 0x800000ff) >>> 0 !== b) return undefined;
      at = (at ^ offset(unit)) >>> 0;
      if (at >= count) return undefined;
      if (!(unit & 0x100)) continue;
      const start = unitAt(at) & 0x7fffffff, end = texts.indexOf(0, start);
      return start > texts.length ? undefined : textOf(texts.subarray(start, end < 0 ? undefined : end));
    }
    return undefined;
  };
  const known = new Map<string, string>();
  const normalized = (cluster: string): string => {
    const bytes = bytesOf(cluster), found = bytes.length < maxCluster ? find(bytes) : undefined;
    return found ?? Array.from(cluster, (letter) => find(bytesOf(letter)) ?? letter).join('');
  };
  return (text) => text.replace(clusters(), (cluster) => {
    if (cluster.length > 4) return normalized(cluster);
    let out = known.get(cluster);
    if (out === undefined) {
      if (known.size >= maxKnown) known.clear();
      known.set(cluster, out = normalized(cluster));
    }
    return out;
  });
}

/** The fields of all kinds of normalizers. */
interface NormalizerPart {
  type?: unknown; normalizers?: unknown; strip_left?: unknown; strip_right?: unknown; prepend?: unknown; pattern?: unknown; content?: unknown;
  precompiled_charsmap?: unknown; clean_text?: unknown; handle_chinese_chars?: unknown; strip_accents?: unknown; lowercase?: unknown;
}

/** Bounds how deep sequences of parts are nested. */
export const maxParts = 16;

/** The list of parts of a sequence. */
export function partsOf(part: string, list: unknown, depth: number): unknown[] {
  if (depth >= maxParts) throw damaged(`${part}: sequences are nested more than ${maxParts} deep`);
  if (!Array.isArray(list)) throw damaged(`${part}: a sequence has no list of parts`);
  return list;
}

/** A field that is a text. */
export function textIn(part: string, value: unknown, otherwise = ''): string {
  if (value !== undefined && value !== null && typeof value !== 'string') throw damaged(`${part} has ${quoted(value)} where there must be a text`);
  return value ?? otherwise;
}

function bytesIn(base64: string): Uint8Array {
  try {
    return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  } catch {
    throw damaged('normalizer: precompiled_charsmap is no base 64');
  }
}

/** Reads the normalizer of a tokenizer.json; undefined for none. */
export function readNormalizer(given: unknown, depth = 0): Normalizer | undefined {
  if (given === undefined || given === null) return undefined;
  const p = Object(given) as NormalizerPart;
  switch (p.type) {
    case 'Sequence': return chain(partsOf('normalizer', p.normalizers, depth).map((each) => readNormalizer(each, depth + 1)).filter((each) => !!each));
    case 'NFC': case 'NFD': case 'NFKC': case 'NFKD': return (text) => text.normalize(p.type as string);
    case 'Lowercase': return lower;
    case 'StripAccents': return removing(/\p{M}/gu);
    case 'Nmt': return nmt;
    case 'ByteLevel': return toByteLevel;
    case 'Strip': return strip(!!p.strip_left, !!p.strip_right);
    case 'Prepend': {
      const prefix = textIn('normalizer', p.prepend);
      return (text) => text && prefix + text;
    }
    case 'Replace': return replace(readPattern('normalizer', p.pattern), textIn('normalizer', p.content));
    case 'Precompiled': {
      const data = textIn('normalizer', p.precompiled_charsmap);
      return data ? charsmap(bytesIn(data)) : undefined;
    }
    case 'BertNormalizer': return bert(p.clean_text !== false, p.handle_chinese_chars !== false, (p.strip_accents ?? p.lowercase) !== false, p.lowercase !== false);
  }
  throw unsupported(`normalizer of type ${quoted(p.type)}`);
}

/** Writes two or more spaces as one, and none at the ends. */
export const withoutExtraSpaces = (): Normalizer => chain([strip(true, true), replace(matching(/ {2,}/g), ' ')]);
