// Pre-tokenizers, which split a text into words.

import { literal, matching, type Pattern } from './pattern.js';
import { punctuation, toByteLevel } from './text.js';

/**
 * Appends the parts of a piece. `first` is whether the text begins with the piece; the result is
 * whether it begins with the first part.
 */
export type Splitter = (piece: string, first: boolean, out: string[]) => boolean;

/** What becomes of the parts of a text that match a delimiter. */
export type Behavior = 'Removed' | 'Isolated' | 'MergedWithPrevious' | 'MergedWithNext' | 'Contiguous';

/** Whether a part is one piece with the part before it, by whether each is a delimiter. */
const joins: Readonly<Record<Behavior, (previous: boolean, now: boolean) => boolean>> = {
  Removed: () => false,
  Isolated: () => false,
  MergedWithPrevious: (previous, now) => now && !previous,
  MergedWithNext: (previous, now) => previous && !now,
  Contiguous: (previous, now) => previous === now,
};

export const isBehavior = (name: unknown): name is Behavior => typeof name === 'string' && Object.hasOwn(joins, name);

/** Splits by a pattern. With `invert`, what matches is kept, and the rest delimits. */
export function delimited(pattern: Pattern, then: Behavior, invert = false): Splitter {
  const join = joins[then];
  return (piece, first, out) => {
    const found = pattern(piece), count = out.length;
    let begin = 0, end = 0, was = false, starts = false; // the piece that is being made, and whether its last part is a delimiter
    const write = () => {
      if (begin === end || then === 'Removed' && was) return;
      if (out.length === count) starts = begin === 0;
      out.push(piece.slice(begin, end));
    };
    const add = (to: number, delimiter: boolean) => {
      if (to === end) return;
      if (begin === end || !join(was, delimiter)) {
        write();
        begin = end;
      }
      end = to;
      was = delimiter;
    };
    for (let i = 0; i < found.length; i += 2) {
      add(found[i]!, invert);
      add(found[i + 1]!, !invert);
    }
    add(piece.length, invert);
    write();
    return first && starts;
  };
}

/** Splitters applied in turn: each splits the pieces of the one before. */
export function inTurn(all: readonly Splitter[]): Splitter {
  return (piece, first, out) => {
    let pieces = [piece], begins = first;
    for (const split of all) {
      const next: string[] = [];
      let starts = false;
      pieces.forEach((one, i) => { starts = split(one, begins && i === 0, next) && i === 0 || starts; });
      [pieces, begins] = [next, starts];
    }
    for (const one of pieces) out.push(one);
    return begins;
  };
}

/** Splits by the pattern of GPT-2, if there is one, and maps bytes to the alphabet unless the model does. */
export function byteLevel(prefixSpace: boolean, pattern: Pattern | undefined, keepBytes: boolean): Splitter {
  const split: Splitter = pattern ? delimited(pattern, 'Isolated') : (piece, first, out) => (out.push(piece), first);
  return (piece, first, out) => {
    const at = out.length, begins = split(prefixSpace && !piece.startsWith(' ') ? ` ${piece}` : piece, first, out);
    if (!keepBytes) for (let i = at; i < out.length; i++) out[i] = toByteLevel(out[i]!);
    return begins;
  };
}

/**
 * Writes spaces as a visible mark, as SentencePiece does, and splits before them. A mark is
 * inserted before each piece (always), before the first one (first), or nowhere (never).
 */
export function metaspace(mark: string, prepend: string, splits: boolean): Splitter {
  const split = delimited(literal(mark), 'MergedWithNext');
  return (piece, first, out) => {
    let text = piece.replaceAll(' ', () => mark);
    if (!text.startsWith(mark) && (prepend === 'always' || prepend === 'first' && first)) text = mark + text;
    if (splits) return split(text, first, out);
    out.push(text);
    return first;
  };
}

export const whitespaceSplit = (): Splitter => delimited(matching(/\p{White_Space}/gu), 'Removed');
export const bertSplit = (): Splitter => inTurn([whitespaceSplit(), delimited(matching(new RegExp(punctuation, 'gv')), 'Isolated')]);
