// A text as numbers of the characters that occur in it: plays of Shakespeare, or what a visitor gives. The last tenth is held out.

import { fetchOK } from './page.js';

/** Loads shakespeare.txt.gz. Some servers have it unpacked by the browser itself. */
export async function loadText() {
  const file = new Uint8Array(await (await fetchOK('assets/shakespeare.txt.gz')).arrayBuffer()), packed = file[0] === 0x1f && file[1] === 0x8b;
  return Text.ofBytes(packed ? new Uint8Array(await new Response(new Blob([file]).stream().pipeThrough(new DecompressionStream('gzip'))).arrayBuffer()) : file);
}

/** Mixes the bits of a number: the last steps of MurmurHash3 (A. Appleby, 2011). */
function mix(n) {
  n = Math.imul(n ^ n >>> 16, 0x85ebca6b);
  n = Math.imul(n ^ n >>> 13, 0xc2b2ae35);
  return (n ^ n >>> 16) >>> 0;
}

/** A model's text must have this many times the characters that the model reads, so that some rows fit in the tenth held out. */
const leastRows = 10;

export class Text {
  /** The characters that occur, in order: number i means characters[i]. */
  characters;
  /** How a sentence begins that names characters that do not occur. */
  lacks;
  #numbers;
  #train;
  #held;

  /**
   * @param {readonly string[]} characters in order
   * @param {Uint8Array} numbers those of the text's characters
   * @param {string} lacks how a sentence begins that names characters that do not occur
   */
  constructor(characters, numbers, lacks) {
    this.characters = characters;
    this.lacks = lacks;
    this.#numbers = new Map(characters.map((character, i) => [character, i]));
    const cut = Math.floor(numbers.length * 9 / 10);
    this.#train = numbers.subarray(0, cut);
    this.#held = numbers.subarray(cut);
  }

  /** A text in ASCII. */
  static ofBytes(bytes, lacks = 'Shakespeare never wrote') {
    const seen = new Uint8Array(256), numbers = new Uint8Array(bytes.length), byCode = new Uint8Array(256);
    for (let i = 0; i < bytes.length; i++) seen[bytes[i]] = 1; // plain loops over a million bytes: calls for each would take 40 ms
    const codes = [...seen.keys()].filter((code) => seen[code]);
    codes.forEach((code, i) => { byCode[code] = i; });
    for (let i = 0; i < bytes.length; i++) numbers[i] = byCode[bytes[i]];
    return new Text(codes.map((code) => String.fromCharCode(code)), numbers, lacks);
  }

  /** The number of its characters. */
  get length() { return this.#train.length + this.#held.length; }

  /** How many characters a text must have for a model that reads `context` of them. */
  static least(context) { return leastRows * (context + 1); }

  /** A character that a text may begin with: the end of a line, if there is one. */
  get start() { return this.#numbers.has('\n') ? '\n' : this.characters[this.#train[0]]; }

  /** A few screens of what is to be learned from. */
  get beginning() { return this.decode(this.#train.subarray(0, 600)); }

  /** The numbers of a text's characters, and those of its characters that have none. */
  encode(text) {
    const unknown = [...new Set(text)].filter((character) => !this.#numbers.has(character));
    return { tokens: [...text].filter((character) => this.#numbers.has(character)).map((character) => this.#numbers.get(character)), unknown };
  }

  /** The character of a number; a dot for one that a model has and the text has not. */
  character(token) { return this.characters[token] ?? '·'; }

  decode(tokens) { return Array.from(tokens, (token) => this.character(token)).join(''); }

  /**
   * The rows of a step are at places that its number determines, the same everywhere. The arrays are
   * used again for the next step.
   * @param {number} rows @param {number} context
   */
  batches(rows, context) {
    const tokens = new Int32Array(rows * context), next = new Int32Array(rows * context), places = this.#train.length - context;
    return (step) => {
      for (let row = 0; row < rows; row++) this.#copy(this.#train, Math.floor(mix(step * rows + row) / 2 ** 32 * places), context, row, tokens, next);
      return { tokens, next };
    };
  }

  /** Batches of the text held out, the same each time, of rows as far apart as possible. The arrays are used again for the next one. */
  *held(rows, context, batches) {
    const tokens = new Int32Array(rows * context), next = new Int32Array(rows * context), apart = (this.#held.length - 1 - context) / (rows * batches);
    for (let batch = 0; batch < batches; batch++) {
      for (let row = 0; row < rows; row++) this.#copy(this.#held, Math.floor((batch * rows + row) * apart), context, row, tokens, next);
      yield { tokens, next };
    }
  }

  #copy(from, at, context, row, tokens, next) {
    tokens.set(from.subarray(at, at + context), row * context);
    next.set(from.subarray(at + 1, at + context + 1), row * context);
  }
}
