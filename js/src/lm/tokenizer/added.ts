// Added tokens: those that are found in a text before the model splits it.

import type { Normalizer } from './normalize.js';
import { byteOf, wordClass } from './text.js';
import { Trie } from './trie.js';

/** An added token. The names are those of tokenizer.json. */
export interface AddedToken {
  id: number;
  content: string;
  /** Matches only if no letter or digit is adjacent. */
  single_word?: boolean;
  /** Takes the white space before it. */
  lstrip?: boolean;
  /** Takes the white space after it. */
  rstrip?: boolean;
  /** Found in normalized text. */
  normalized?: boolean;
  special?: boolean;
}

/** A part of a text: an added token, or the text between two, with id -1. */
export interface Span { start: number; end: number; id: number }

const space = /\p{White_Space}/u;
const wordBefore = new RegExp(`[${wordClass}]$`, 'v'), wordAfter = new RegExp(`^[${wordClass}]`, 'v');

/** Finds tokens in a text, the longest at the first position where one begins. */
export class Finder {
  private readonly trie: Trie;
  private readonly starts: ReadonlySet<number>;

  /** Finds tokens by their texts; values are indices in the list. */
  constructor(private readonly texts: ReadonlyMap<string, number>, private readonly tokens: readonly AddedToken[]) {
    this.trie = new Trie(texts);
    this.starts = new Set([...texts.keys()].filter(Boolean).map((text) => text.charCodeAt(0)));
  }

  /**
   * The nonempty parts of a text in order. Special tokens are treated as text if requested, or if
   * the mark, if given, follows them.
   */
  find(text: string, specialAsText: boolean, mark = ''): Span[] {
    const out: Span[] = [];
    let done = 0; // the end of the last part
    for (let at = 0; at < text.length && this.texts.size;) {
      const index = this.starts.has(text.charCodeAt(at)) ? this.trie.longest(text, at) : -1;
      if (index < 0) {
        at++;
        continue;
      }
      const token = this.tokens[index]!;
      let start = at, end = at = this.trie.found;
      if (token.special && (specialAsText || mark && text[end] === mark) || token.single_word && (wordBefore.test(text.slice(Math.max(0, start - 2), start)) || wordAfter.test(text.slice(end, end + 2)))) continue;
      while (token.lstrip && start > done && space.test(text[start - 1]!)) start--;
      while (token.rstrip && end < text.length && space.test(text[end]!)) end++;
      start = Math.max(start, done);
      if (token.lstrip && start >= end) continue; // in the white space that the token before has taken
      if (done < start) out.push({ start: done, end: start, id: -1 });
      out.push({ start, end, id: token.id });
      done = end;
    }
    if (done < text.length) out.push({ start: done, end: text.length, id: -1 });
    return out;
  }
}

/** The added tokens by where they are found: in a text as it is, and in normalized text. */
export function findersOf(tokens: readonly AddedToken[], normalizer: Normalizer | undefined): { raw: Finder; normalized: Finder } {
  const raw = new Map<string, number>(), normalized = new Map<string, number>();
  tokens.forEach((token, i) => {
    const content = token.normalized && normalizer ? normalizer(token.content) : token.content, of = token.normalized ? normalized : raw;
    if (content && !of.has(content)) of.set(content, i);
  });
  return { raw: new Finder(raw, tokens), normalized: new Finder(normalized, tokens) };
}

/** The ids of the special tokens that match no text unless they are found in it: all but those for unknown text and for bytes. */
export function marksOf(tokens: readonly AddedToken[], unk: number): ReadonlySet<number> {
  return new Set(tokens.filter(({ id, content, special }) => special && id !== unk && byteOf(content) < 0).map(({ id }) => id));
}
