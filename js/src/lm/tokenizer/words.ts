// Models that split words without merges: Unigram, WordPiece and WordLevel.

import type { Model } from './bpe.js';
import { bytesOf, byteTokens, uncovered } from './text.js';
import { Trie } from './trie.js';

/** By how much a character outside the vocabulary scores below the lowest token, in SentencePiece. */
const unknownPenalty = 10;

/** The tokens that text can match: a special token that stood for its own text could be forged. */
const without = (vocab: ReadonlyMap<string, number>, marks: ReadonlySet<number>): ReadonlyMap<string, number> => marks.size ? new Map([...vocab].filter(([, id]) => !marks.has(id))) : vocab;

/** The units of the character at a position. */
const sizeAt = (text: string, at: number): number => text.codePointAt(at)! > 0xffff ? 2 : 1;

/** Splits a word into the tokens with the largest sum of scores, by Viterbi's algorithm (Kudo, "Subword regularization", 2018). */
export class Unigram implements Model {
  readonly ids = new Map<string, number>();
  private readonly trie: Trie;
  private readonly lowest: number;
  private readonly bytes: Int32Array | undefined;

  /** A model of tokens in the order of their ids; those in `marks` match no text. `unk` is -1 for none. */
  constructor(tokens: readonly string[], private readonly scores: ArrayLike<number>, private readonly unk: number, byteFallback: boolean, private readonly marks: ReadonlySet<number>) {
    tokens.forEach((token, id) => this.ids.set(token, id));
    this.lowest = Array.prototype.reduce.call(scores, (a, b) => Math.min(a as number, b as number), Infinity) as number;
    this.trie = new Trie(without(this.ids, marks));
    this.bytes = byteFallback ? byteTokens((token) => this.id(token)) : undefined;
  }

  id(token: string): number | undefined { return this.ids.get(token); }

  encode(word: string, out: number[]): void {
    const n = word.length, { trie, scores } = this;
    // The best way to each end: its score, where its last token begins, or -1, and that.
    const score = new Float64Array(n + 1), start = new Int32Array(n + 1).fill(-1), ids = new Int32Array(n + 1);
    const reach = (from: number, to: number, id: number, sum: number) => {
      if (start[to]! >= 0 && sum <= score[to]!) return;
      score[to] = sum;
      start[to] = from;
      ids[to] = id;
    };
    for (let at = 0; at < n;) {
      const size = sizeAt(word, at), here = score[at]!;
      let covered = false;
      for (let i = at, node = 0; i < n && (node = trie.child(node, word.charCodeAt(i)));) {
        i++;
        const id = trie.value[node]!;
        if (id < 0) continue;
        reach(at, i, id, here + scores[id]!);
        covered ||= i - at === size;
      }
      if (!covered) {
        if (this.unk < 0) throw uncovered(word.slice(at, at + size));
        reach(at, at + size, this.unk, here + this.lowest - unknownPenalty);
      }
      at += size;
    }
    this.back(word, start, ids, out);
  }

  /** Appends the tokens of the best way, which is found from its end. Unknown tokens that follow one another are one. */
  private back(word: string, start: Int32Array, ids: Int32Array, out: number[]): void {
    const found: number[] = [];
    for (let end = word.length; end > 0;) {
      let from = start[end]!;
      if (ids[end] !== this.unk) found.push(ids[end]!);
      else {
        while (from > 0 && ids[from] === this.unk) from = start[from]!;
        this.unknown(word.slice(from, end), found);
      }
      end = from;
    }
    for (let i = found.length - 1; i >= 0; i--) out.push(found[i]!);
  }

  /** Appends the ids of text that no token covers, the last first. */
  private unknown(text: string, found: number[]): void {
    const id = this.ids.get(text);
    if (id !== undefined && !this.marks.has(id)) found.push(id);
    else if (!this.bytes) found.push(this.unk);
    else for (const b of bytesOf(text).reverse()) found.push(this.bytes[b]!);
  }
}

/**
 * Takes the longest token that a word begins with, then the longest of those with a prefix that the rest begins with, and so on. A word
 * that is not covered is one unknown token (BERT's rule).
 */
export class WordPiece implements Model {
  private readonly first: Trie;
  private readonly rest: Trie;

  /** A model with a prefix of the tokens within a word. Words of more characters than `most` are unknown, and marks match no text. `unk` is -1 for none. */
  constructor(private readonly vocab: ReadonlyMap<string, number>, prefix: string, private readonly unk: number, private readonly most: number, marks: ReadonlySet<number>) {
    const matching = without(vocab, marks);
    this.first = new Trie(matching);
    this.rest = new Trie(new Map([...matching].filter(([token]) => token.startsWith(prefix)).map(([token, id]) => [token.slice(prefix.length), id])));
  }

  id(token: string): number | undefined { return this.vocab.get(token); }

  encode(word: string, out: number[]): void {
    const begin = out.length;
    let known = word.length <= this.most || [...word].length <= this.most, trie = this.first;
    for (let at = 0; known && at < word.length; at = trie.found, trie = this.rest) {
      const id = trie.longest(word, at);
      if (known = id >= 0) out.push(id);
    }
    if (known) return;
    if (this.unk < 0) throw uncovered(word);
    out.length = begin;
    out.push(this.unk);
  }
}

/** Has a token for each word but marks. `unk` is -1 for none. */
export class WordLevel implements Model {
  constructor(private readonly vocab: ReadonlyMap<string, number>, private readonly unk: number, private readonly marks: ReadonlySet<number>) {}

  id(token: string): number | undefined { return this.vocab.get(token); }

  encode(word: string, out: number[]): void {
    const found = this.vocab.get(word) ?? this.unk, id = this.marks.has(found) ? this.unk : found;
    if (id < 0) throw uncovered(word);
    out.push(id);
  }
}
