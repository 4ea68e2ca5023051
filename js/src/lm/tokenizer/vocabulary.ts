import { checkOptions, need, RlxError } from '../../values/errors.js';
import { type AddedToken, type Finder, findersOf } from './added.js';
import type { Model } from './bpe.js';
import type { Decoder } from './decode.js';
import type { Normalizer } from './normalize.js';
import { inTurn, type Splitter } from './split.js';
import { damaged, quoted, toByteLevel } from './text.js';
import { Trie } from './trie.js';
import type { DecodeOptions, EncodeOptions, TextStream, Tokenizer } from './types.js';

/** The tokens that are put before and after a text. */
export interface Template { before: readonly number[]; after: readonly number[] }

/** The parts of a tokenizer, as its file describes them. */
export interface Parts {
  model: Model;
  /** The tokens by id; undefined for an id without a token. */
  tokens: readonly (string | undefined)[];
  added: readonly AddedToken[];
  normalizer: Normalizer | undefined;
  splitters: readonly Splitter[];
  /** Words are mapped to the alphabet of bytes before the model. */
  byteLevel: boolean;
  decoders: readonly Decoder[] | undefined;
  template: Template;
  /** The token that texts begin with, put there if it is asked for; undefined for none. */
  bos: number | undefined;
  eos: readonly number[];
}

// Bounds of the cache of words: longer ones are rare, and long runs of them would fill memory.
const maxWords = 1 << 14, maxWord = 64;

/** Marks special tokens of quoted text: no character. */
const mark = '\ufdd0';

/** How many tokens a stream holds back at most: a character has up to four bytes. */
const maxHeld = 3;

export class Vocabulary implements Tokenizer {
  readonly bos?: number;
  readonly eos: number[];
  private readonly raw: Finder;
  private readonly normalized: Finder;
  private readonly ids: ReadonlyMap<string, number>;
  private readonly specials: ReadonlySet<number>;
  /** What added tokens found in normalized text decode to, by id. */
  private readonly texts = new Map<number, string>();
  private readonly split: Splitter;
  private readonly words = new Map<string, readonly number[]>();
  /** The special tokens, made when a text is quoted first. */
  private marked: Trie | undefined;

  constructor(private readonly parts: Parts) {
    ({ raw: this.raw, normalized: this.normalized } = findersOf(parts.added, parts.normalizer));
    this.ids = new Map(parts.added.map(({ content, id }) => [content, id]));
    this.specials = new Set(parts.added.filter(({ special }) => special).map(({ id }) => id));
    for (const { content, id, normalized } of parts.added) if (normalized && parts.normalizer) this.texts.set(id, parts.normalizer(content));
    this.split = inTurn(parts.splitters);
    this.eos = [...new Set(parts.eos)];
    if (parts.bos !== undefined) this.bos = parts.bos;
  }

  

  get size(): number { return this.parts.tokens.length; }

  id(token: string): number | undefined { return this.ids.get(token) ?? this.parts.model.id(token); }

  token(id: number): string | undefined { return this.parts.tokens[id]; }

  special(id: number): boolean { return this.specials.has(id); }

  encode(text: string, options: EncodeOptions = {}): Int32Array {
    checkOptions('encode', options, 'special bos template quoted');
    need(typeof text === 'string', 'attr', 'encode: the first argument', 'a text', text);
    const { template: { before, after } } = this.parts, { bos, template, quoted } = options, out: number[] = [];
    if (template || bos) for (const id of template ? before : before.slice(0, 1)) out.push(id);
    this.encodeText(text.replace(/\p{Cs}/gu, '\ufffd'), !options.special, quoted ? mark : '', out);
    if (template) for (const id of after) out.push(id);
    return Int32Array.from(out);
  }

  /** Appends the ids of a text without those of the template. */
  private encodeText(text: string, specialAsText: boolean, mark: string, out: number[]): void {
    const { normalizer } = this.parts;
    for (const { start, end, id } of this.raw.find(text, specialAsText, mark)) {
      if (id >= 0) {
        out.push(id);
        continue;
      }
      const marked = text.slice(start, end), plain = mark ? marked.replaceAll(mark, '') : marked, part = normalizer ? normalizer(plain) : plain;
      for (const span of this.normalized.find(part, specialAsText || plain !== marked)) {
        if (span.id >= 0) out.push(span.id);
        else this.encodePiece(part.slice(span.start, span.end), start === 0 && span.start === 0, out);
      }
    }
  }

  /** Appends the ids of normalized text without added tokens. */
  private encodePiece(piece: string, first: boolean, out: number[]): void {
    const words: string[] = [];
    this.split(piece, first, words);
    for (const word of words) {
      if (!word) continue;
      const known = this.words.get(word), at = out.length;
      if (known) out.push(...known);
      else this.parts.model.encode(this.parts.byteLevel ? toByteLevel(word) : word, out);
      if (known || word.length > maxWord) continue;
      if (this.words.size >= maxWords) this.words.clear();
      this.words.set(word, out.slice(at));
    }
  }

  quote(text: string): string {
    need(typeof text === 'string', 'attr', 'quote: the first argument', 'a text', text);
    const trie = this.marked ??= new Trie(new Map(this.parts.added.filter(({ special }) => special).map(({ content, id }) => [content, id])));
    const plain = text.replaceAll(mark, '\ufffd'), longest = Math.max(0, ...this.parts.added.map(({ content }) => content.length));
    let out = '', done = 0;
    for (let at = 0; at < plain.length; at++) {
      if (!trie.child(0, plain.charCodeAt(at)) || trie.longest(plain, at) < 0) continue;
      const after = at + (plain.codePointAt(at)! > 0xffff ? 2 : 1); // the mark divides the token
      out += plain.slice(done, after) + mark;
      done = after;
    }
    out += plain.slice(done);
    return this.endsInToken(plain, trie, longest) || this.hasNormalized(plain) ? out + mark : out;
  }

  /** Whether the end of a text is the beginning of a special token, which text after it could complete. */
  private endsInToken(text: string, trie: Trie, longest: number): boolean {
    for (let begin = Math.max(0, text.length - longest); begin < text.length; begin++) {
      let node = 0, at = begin;
      while (at < text.length && (node = trie.child(node, text.charCodeAt(at)))) at++;
      if (at === text.length) return true;
    }
    return false;
  }

  /** Whether a text contains a special token after normalization. */
  private hasNormalized(text: string): boolean {
    const { normalizer } = this.parts;
    return this.normalized.find(normalizer ? normalizer(text) : text, false).some(({ id }) => this.specials.has(id));
  }

  decode(ids: ArrayLike<number>, options: DecodeOptions = {}): string {
    checkOptions('decode', options, 'special');
    const tokens: string[] = [];
    for (let i = 0; i < ids.length; i++) {
      const token = this.tokenOf(ids[i]!);
      if (options.special || !this.isMark(ids[i]!)) tokens.push(token);
    }
    return this.join(tokens);
  }

  /** Whether a token is special, or has the text of one that is: a vocabulary may have a token twice. */
  private isMark(id: number): boolean { return this.specials.has(id) || this.specials.has(this.ids.get(this.parts.tokens[id]!) ?? -1); }

  private tokenOf(id: number): string {
    const token = this.parts.tokens[id];
    if (token === undefined) throw new RlxError('index', `no token has the id ${id}: ids are below ${this.size}`);
    return this.texts.get(id) ?? token;
  }

  /** The text of tokens by the decoders; without any, tokens are joined by spaces. */
  private join(tokens: string[]): string {
    const { decoders } = this.parts;
    return decoders ? decoders.reduce((texts, decode) => decode(texts), tokens).join('') : tokens.join(' ');
  }

  stream(options: DecodeOptions = {}): TextStream {
    checkOptions('stream', options, 'special');
    // The window of recent tokens: those of the last written text, on which the decoding of the
    // next may depend, then those of incomplete text; the number of the former, and the length of
    // the text written from the latter.
    let window: string[] = [], written = 0, sent = 0;
    const write = (hold: boolean): string => {
      const before = this.join(window.slice(0, written));
      let now = this.join(window);
      if (!now.startsWith(before)) now = before + this.join(window.slice(written)); // the written text ended in invalid UTF-8, now U+FFFD
      const whole = hold ? now.replace(/\ufffd{1,8}$/, '') : now, text = whole.slice(before.length + sent);
      if (hold && (whole.length < now.length || now.length <= before.length)) { // the next tokens may need those of the window
        sent += text.length;
        return text;
      }
      window = window.slice(written);
      written = window.length;
      sent = 0;
      return text;
    };
    return {
      push: (id) => {
        const token = this.tokenOf(id);
        if (!options.special && this.isMark(id)) return '';
        window.push(token);
        return write(window.length - written <= maxHeld);
      },
      end: () => written < window.length ? write(false) : '',
    };
  }
}

/**
 * The table of tokens by id: the model's and the added ones. Ids are bounded by the number of tokens, so that the table is no larger than
 * a multiple of the file. A list may have a token twice, of which the last is in the vocabulary.
 */
export function tokenTable(vocab: ReadonlyMap<string, number>, added: readonly AddedToken[], list: readonly string[] = []): (string | undefined)[] {
  const bound = 4 * (vocab.size + added.length) + (1 << 16), out: (string | undefined)[] = [];
  const put = (token: string, id: number) => {
    if (!(Number.isInteger(id) && id >= 0 && id < bound)) throw damaged(`token ${quoted(token)} has the id ${id}: it must be from 0 to ${bound - 1}`);
    while (out.length < id) out.push(undefined);
    out[id] = token;
  };
  for (const [token, id] of vocab) {
    if (out[id] !== undefined) throw damaged(`tokens ${quoted(out[id])} and ${quoted(token)} have the same id ${id}`);
    put(token, id);
  }
  list.forEach(put);
  for (const { content, id } of added) put(content, id);
  return out;
}
