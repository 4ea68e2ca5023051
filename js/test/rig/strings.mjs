// The random strings of ir/format/tokenizer/suite/make.py, to the bit.

const words = [
  'the', 'and', ' of', ' to', 'ing', 'tion', "'s", "'LL", " don't", '<s>', '</s>', '<|end|>', '[MASK]', 'ſ', 'İ', 'ß', 'ŉ',
  'ﬁ', '½', 'é', '##', '▁', '<0x0A>', '👩‍👩‍👧', '中文', '한국어', '\r\n', '   ', '\n\n', ' 12345', 'Ａ', "'ſ",
];
const spaces = ['\t', '\n', '\r\n', '\u00a0', '\u2003', '\u3000', '\u2028', '\x0b', '\x0c', '\u0085', '  '];
const ranges = [
  [0x61, 0x7a], [0x61, 0x7a], [0x61, 0x7a], [0x41, 0x5a], [0x20, 0x20], [0x20, 0x20], [0x20, 0x20], [0x30, 0x39], [0x20, 0x7e],
  [0xa1, 0x17f], [0x300, 0x36f], [0x3a3, 0x3ff], [0x400, 0x4ff], [0x4e00, 0x9fa5], [0xac00, 0xd7a3], [0x3041, 0x3096],
  [0x621, 0x64a], [0x905, 0x94d], [0xe01, 0xe3a], [0x1f600, 0x1f64f], [0x2010, 0x2027], [0xff01, 0xff5e], [0x1100, 0x11ff],
  [0, 0x1f], [0xe000, 0xe0ff], [0x1e00, 0x1eff], [0x2150, 0x218b], [0x1d400, 0x1d454], [0xfe0e, 0xfe0f], [0x20000, 0x2a6d6],
];

/** Marsaglia's xorshift of 32 bits. */
class Random {
  constructor(seed) { this.x = (Math.imul(seed, 2654435761) + 1) >>> 0 || 1; }

  below(n) {
    this.x ^= this.x << 13;
    this.x ^= this.x >>> 17;
    this.x ^= this.x << 5;
    return (this.x >>> 0) % n;
  }
}

/** The string of a number. */
export function randomString(i) {
  const r = new Random(i), count = r.below(40) + 1;
  let out = '';
  for (let k = 0; k < count; k++) {
    const kind = r.below(ranges.length + 4);
    if (kind > ranges.length) out += words[r.below(words.length)];
    else if (kind === ranges.length) out += spaces[r.below(spaces.length)];
    else {
      const [low, high] = ranges[kind];
      out += String.fromCodePoint(low + r.below(high - low + 1));
    }
  }
  return out;
}

/** Ids below a size, for the string of a number. */
export function randomIds(i, size) {
  const r = new Random(i + 10000), count = r.below(12) + 1;
  return Array.from({ length: count }, () => r.below(size));
}
