// Byte-pair encoding: the characters of a word are merged pair by pair, the pair of the lowest rank first
// (Sennrich et al., "Neural machine translation of rare words with subword units", 2016).

import { bytesOf, damaged, quoted } from './text.js';

/** Turns a word into ids. */
export interface Model {
  /** Appends the ids of a word. */
  encode(word: string, out: number[]): void;
  id(token: string): number | undefined;
}

/** The merges of pairs of ids: a hash table with a row of four numbers for each: left, right, rank, result. */
export class Merges {
  private rows = new Int32Array(64).fill(-1);
  private size = 0;

  /** The row of a pair, or the free one where it would be. */
  private row(left: number, right: number): number {
    const { rows } = this, mask = rows.length - 1;
    let at = Math.imul(Math.imul(left, 0x9e3779b1) ^ right, 0x85ebca6b);
    at = (at ^ at >>> 15) << 2 & mask;
    while (rows[at] !== -1 && (rows[at] !== left || rows[at + 1] !== right)) at = at + 4 & mask;
    return at;
  }

  /** Enters a merge. Of two merges of the same pair the last counts. */
  set(left: number, right: number, rank: number, id: number): void {
    if (this.size * 8 >= this.rows.length) {
      const old = this.rows;
      this.rows = new Int32Array(2 * old.length).fill(-1);
      this.size = 0;
      for (let i = 0; i < old.length; i += 4) if (old[i] !== -1) this.set(old[i]!, old[i + 1]!, old[i + 2]!, old[i + 3]!);
    }
    const at = this.row(left, right);
    if (this.rows[at] === -1) this.size++;
    this.rows.set([left, right, rank, id], at);
  }

  /** The rank of a pair; Infinity if it is not merged. */
  rank(left: number, right: number): number {
    const at = this.row(left, right);
    return this.rows[at] === -1 ? Infinity : this.rows[at + 2]!;
  }

  /** What a pair is merged to. */
  result(left: number, right: number): number { return this.rows[this.row(left, right) + 3]!; }
}

/** The rules of a model of byte-pair encoding. */
export interface BPEOptions {
  /** The token of characters outside the vocabulary; -1 for none. */
  unk: number;
  /** Unknown characters that follow one another are one token. */
  fuseUnk?: boolean;
  /** The ids of bytes, for characters outside the vocabulary. */
  bytes?: Int32Array | undefined;
  /** Stands before all characters of a word but the first. */
  prefix?: string;
  /** Stands after the last. */
  suffix?: string;
  /** A word of the vocabulary is not merged. */
  wholeWords?: boolean;
  /** The tokens that are no text: no word is one of them. */
  marks?: ReadonlySet<number>;
}

/** The length up to which looking through all pairs is faster than a heap. */
const shortWord = 24;
/** Ranks in the heap are multiples of this, positions are below it. */
const positions = 2 ** 31;

export class BPE implements Model {
  readonly merges = new Merges();
  /** How many pairs were looked at: the cost of encoding. */
  looks = 0;
  private readonly prefix: string;
  private readonly suffix: string;

  constructor(private readonly vocab: ReadonlyMap<string, number>, private readonly options: BPEOptions) {
    this.prefix = options.prefix ?? '';
    this.suffix = options.suffix ?? '';
  }

  id(token: string): number | undefined { return this.vocab.get(token); }

  /** Adds a merge. Its tokens and result must be in the vocabulary. */
  addMerge(left: string, right: string, rank: number): void {
    const whole = left + (right.length >= this.prefix.length ? right.slice(this.prefix.length) : right);
    const ids = [left, right, whole].map((token) => this.vocab.get(token)), lacks = ids.indexOf(undefined);
    if (lacks >= 0) throw damaged(`merge ${rank}, ${quoted(left)} and ${quoted(right)}: the vocabulary lacks ${quoted([left, right, whole][lacks])}`);
    this.merges.set(ids[0]!, ids[1]!, rank, ids[2]!);
  }

  encode(word: string, out: number[]): void {
    const whole = this.options.wholeWords ? this.vocab.get(word) : undefined;
    if (whole !== undefined && !this.options.marks?.has(whole)) {
      out.push(whole);
      return;
    }
    const ids = this.characters(word);
    if (ids.length <= shortWord) this.mergeShort(ids);
    else this.mergeLong(ids);
    for (const id of ids) out.push(id);
  }

  /** The ids of the characters of a word: of their bytes or of the unknown token where the vocabulary lacks one. */
  private characters(word: string): number[] {
    const { unk, fuseUnk, bytes } = this.options, affixes = this.prefix || this.suffix, out: number[] = [];
    let unknown = false, at = 0; // unknown: the last character was, and more are fused with it
    for (const letter of word) {
      let text = letter;
      if (affixes) text = (at ? this.prefix : '') + letter + (at + letter.length === word.length ? this.suffix : '');
      at += letter.length;
      const id = this.vocab.get(text);
      if (id !== undefined) out.push(id);
      else if (bytes && !affixes) {
        for (const b of bytesOf(letter)) out.push(bytes[b]!);
        continue;
      } else if (unk >= 0 && !(unknown && fuseUnk)) out.push(unk);
      unknown = id === undefined;
    }
    return out;
  }

  private rank(left: number, right: number): number {
    this.looks++;
    return this.merges.rank(left, right);
  }

  private mergeShort(ids: number[]): void {
    const ranks: number[] = []; // of the pair that begins at an index
    for (let i = 0; i + 1 < ids.length; i++) ranks.push(this.rank(ids[i]!, ids[i + 1]!));
    for (;;) {
      let best = 0;
      this.looks += ranks.length;
      for (let i = 1; i < ranks.length; i++) if (ranks[i]! < ranks[best]!) best = i;
      if (!((ranks[best] ?? Infinity) < Infinity)) return;
      ids.splice(best, 2, this.merges.result(ids[best]!, ids[best + 1]!));
      ranks.splice(best, 1);
      if (best < ranks.length) ranks[best] = this.rank(ids[best]!, ids[best + 1]!);
      if (best > 0) ranks[best - 1] = this.rank(ids[best - 1]!, ids[best]!);
    }
  }

  /** Merges with a heap of pairs over a linked list: n log n steps. */
  private mergeLong(ids: number[]): void {
    const n = ids.length, next = Int32Array.from(ids, (_, i) => i + 1), previous = Int32Array.from(ids, (_, i) => i - 1), heap = new Heap();
    const push = (at: number) => {
      if (at < 0 || next[at]! >= n) return;
      const rank = this.rank(ids[at]!, ids[next[at]!]!);
      if (rank < Infinity) heap.push(rank * positions + at);
    };
    for (let i = 0; i < n; i++) push(i);
    while (heap.size) {
      const key = heap.pop(), at = key % positions, right = next[at]!;
      if (ids[at]! < 0 || right >= n || this.rank(ids[at]!, ids[right]!) !== (key - at) / positions) continue; // a neighbour was merged since
      ids[at] = this.merges.result(ids[at]!, ids[right]!);
      ids[right] = -1;
      next[at] = next[right]!;
      if (next[at]! < n) previous[next[at]!] = at;
      push(previous[at]!);
      push(at);
    }
    let kept = 0;
    for (let i = 0; i < n; i = next[i]!) ids[kept++] = ids[i]!;
    ids.length = kept;
  }
}

/** A heap of numbers, the least first. */
class Heap {
  private readonly keys: number[] = [];

  get size(): number { return this.keys.length; }

  push(key: number): void {
    const { keys } = this;
    let at = keys.length;
    for (let up: number; at > 0 && keys[up = at - 1 >> 1]! > key; at = up) keys[at] = keys[up]!;
    keys[at] = key;
  }

  pop(): number {
    const { keys } = this, top = keys[0]!, last = keys.pop()!, n = keys.length;
    if (!n) return top;
    let at = 0;
    for (let kid: number; (kid = 2 * at + 1) < n; at = kid) {
      if (kid + 1 < n && keys[kid + 1]! < keys[kid]!) kid++;
      if (keys[kid]! >= last) break;
      keys[at] = keys[kid]!;
    }
    keys[at] = last;
    return top;
  }
}
