// Translates regular expressions of tokenizer.json, in Oniguruma's syntax, to those of the engine.

import { damaged, patternWord, quoted, unsupported } from './text.js';

// Bounds of patterns, against expressions that take time without end: the engine tries all ways to match. A repetition without an
// upper bound is that of one character, or of what matches in one way.
const maxSize = 1 << 14, maxNesting = 64, maxChoices = 24, maxUnlimited = 4;

/** The code of a part, with the maximum cost of matching it. */
interface Code {
  text: string;
  /** The number of its characters and conditions, repetitions included. */
  size: number;
  /** It can match in one way only at a position. */
  fixed: boolean;
  /** It is one character of a set. */
  single: boolean;
  /** The choices of one alternative of it, and those without an upper bound. */
  choices: number;
  unlimited: number;
}

const nothing: Code = { text: '', size: 0, fixed: true, single: false, choices: 0, unlimited: 0 };
const condition = (text: string): Code => ({ ...nothing, text, size: 1 });
const character = (text: string): Code => ({ ...condition(text), single: true });

/** The escapes of characters, and of classes; in upper case they are negated. */
const letters: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', f: '\f', v: '\v', a: '\x07', e: '\x1b' };
const classes: Readonly<Record<string, string>> = { s: 'space', d: 'digit', w: 'word', h: 'xdigit' };
/** The classes of [:name:] and \p{name} by names that the engine has not, as insides of a class. */
const named: Readonly<Record<string, string>> = {
  word: patternWord, alpha: String.raw`\p{Alphabetic}`, alnum: String.raw`\p{Alphabetic}\p{Nd}`, upper: String.raw`\p{Uppercase}`, lower: String.raw`\p{Lowercase}`,
  xdigit: '0-9A-Fa-f', blank: String.raw`\t\p{Zs}`, ':punct': String.raw`\p{P}\p{S}`,
};
/** \w outside of brackets, and what \b separates: Oniguruma's table for Latin-1 has raised digits and fractions, too. */
const loneWord = `${patternWord}²³¹¼-¾`;
const edge = `(?:(?<=[${loneWord}])(?![${loneWord}])|(?<![${loneWord}])(?=[${loneWord}]))`;
/** The conditions that take no character. */
const conditions: Readonly<Record<string, string>> = {
  A: String.raw`(?<![\s\S])`, z: String.raw`(?![\s\S])`, Z: String.raw`(?=\n?(?![\s\S]))`, b: edge, B: `(?!${edge})`,
};
/** The letters that have a third form: the long s and the Kelvin sign. */
const thirds: Readonly<Record<string, string>> = { s: 'ſ', k: 'K' };

const escaped = (letter: string): string => `\\u{${letter.codePointAt(0)!.toString(16)}}`;
const works = (text: string): boolean => {
  try {
    return !!new RegExp(text, 'v');
  } catch {
    return false;
  }
};

/** Reads an expression of Oniguruma's syntax and writes it for the engine. */
class Translator {
  private at = 0;
  private depth = 0;
  private groups = 0;
  /** Letters of either case match. */
  private fold = false;
  /** A dot matches the end of a line, too. */
  private dot = false;

  constructor(private readonly text: string) {}

  whole(): string {
    const { text } = this.alternatives();
    if (this.at < this.text.length) throw this.fail('there is a ) too many');
    return text;
  }

  private fail(reason: string): Error { return unsupported(`pattern ${JSON.stringify(this.text.slice(0, 200))} at ${this.at}: ${reason}`); }

  private take(text: string): boolean {
    const is = this.text.startsWith(text, this.at);
    if (is) this.at += text.length;
    return is;
  }

  /** The next character; empty at the end. */
  private next(): string {
    const code = this.text.codePointAt(this.at), letter = code === undefined ? '' : String.fromCodePoint(code);
    this.at += letter.length;
    return letter;
  }

  private inside<T>(read: () => T): T {
    if (++this.depth > maxNesting) throw this.fail('it is nested too deep');
    const out = read();
    this.depth--;
    return out;
  }

  /** Reads a|b|c up to a parenthesis or the end. Options set inside end with them. */
  private alternatives(): Code {
    return this.inside(() => {
      const { fold, dot } = this, all = [this.sequence()];
      while (this.take('|')) all.push(this.sequence());
      Object.assign(this, { fold, dot });
      if (all.length === 1) return all[0]!;
      const most = (of: (code: Code) => number) => Math.max(...all.map(of));
      return {
        text: all.map(({ text }) => text).join('|'), size: all.reduce((sum, { size }) => sum + size, 0), fixed: false, single: false,
        choices: 1 + most(({ choices }) => choices), unlimited: most(({ unlimited }) => unlimited),
      };
    });
  }

  private sequence(): Code {
    const terms: Code[] = [];
    while (this.at < this.text.length && !/[|)]/.test(this.text[this.at]!)) {
      let term = this.term();
      for (let times; (times = this.repetition());) term = this.repeated(term, ...times);
      terms.push(term);
    }
    const sum = (of: (code: Code) => number) => terms.reduce((total, code) => total + of(code), 0);
    const out = {
      text: terms.map(({ text }) => text).join(''), size: sum(({ size }) => size), fixed: terms.every(({ fixed }) => fixed), single: terms.length === 1 && terms[0]!.single,
      choices: sum(({ choices }) => choices), unlimited: sum(({ unlimited }) => unlimited),
    };
    if (out.size > maxSize) throw this.fail('it has too many instructions');
    if (out.choices > maxChoices || out.unlimited > maxUnlimited) throw this.fail('it may match in too many ways');
    return out;
  }

  /** Reads *, +, ? or {m,n}: the least and the most. */
  private repetition(): [number, number] | undefined {
    if (this.take('*')) return [0, Infinity];
    if (this.take('+')) return [1, Infinity];
    if (this.take('?')) return [0, 1];
    const found = /^\{(?:(\d+)(,?)(\d*)|,(\d+))\}/.exec(this.text.slice(this.at, this.at + 40));
    if (!found) return undefined;
    const [all, from = '0', comma, to, upTo] = found, low = Number(from), high = upTo ?? (to || (comma ? Infinity : low));
    if (Number(high) < low) return undefined;
    this.at += all.length;
    return [low, Number(high)];
  }

  /** A part repeated: greedy unless ? follows, not given back if + follows. */
  private repeated(term: Code, low: number, high: number): Code {
    const lazy = this.take('?'), possessive = !lazy && this.take('+'), copies = high === Infinity ? low + 1 : high;
    if (copies * (term.size + 2) > maxSize) throw this.fail('it has too many instructions');
    if (high === Infinity && !term.fixed) throw this.fail('what varies is repeated without an upper bound');
    const inner = term.single ? term.text : `(?:${term.text})`, times = high === 1 && low === 0 ? '?' : high === Infinity ? `{${low},}` : `{${low},${high}}`;
    const out: Code = {
      text: `${inner}${times}${lazy ? '?' : ''}`, size: copies * term.size, fixed: term.fixed && low === high, single: false,
      choices: term.choices * copies + Number(low < high), unlimited: high === Infinity ? 1 : term.unlimited * copies,
    };
    return possessive ? this.atomic(out) : out;
  }

  /** The first match of a part, and no other: what lookahead captures is not tried again. */
  private atomic(code: Code): Code {
    const name = `a${this.groups++}`;
    return { ...code, text: `(?:(?=(?<${name}>${code.text}))\\k<${name}>)`, fixed: true, single: false };
  }

  /** Reads a character, a class, a condition or a group. */
  private term(): Code {
    if (this.take('(')) return this.group();
    if (this.take('[')) return character(`[${this.class()}]`);
    if (this.take('.')) return character(this.dot ? String.raw`[\s\S]` : String.raw`[^\n]`);
    if (this.take('^')) return condition(String.raw`(?<![^\n])`);
    if (this.take('$')) return condition(String.raw`(?![^\n])`);
    if (!this.take('\\')) {
      if (/[*+?]/.test(this.text[this.at]!)) throw this.fail('there is nothing to repeat');
      return character(`[${this.letter(this.next())}]`);
    }
    const known = conditions[this.text[this.at] ?? ''];
    if (!known) return character(`[${this.escape(true).inside}]`);
    this.at++;
    return condition(known);
  }

  /** A character as the inside of a class, with its other forms if case does not matter. */
  private letter(letter: string): string {
    if (!this.fold) return escaped(letter);
    const upper = letter.toUpperCase(), low = upper.toLowerCase(), forms = new Set([letter, letter.toLowerCase(), upper, low, thirds[low] ?? letter]);
    return [...forms].filter((form) => form.length === letter.length).map(escaped).join('');
  }

  /** Reads an escape: the contents of a class, and the character if it is one. Outside of brackets the case of a class matters. */
  private escape(lone = false): { inside: string; one?: string } {
    const letter = this.next(), low = letter.toLowerCase();
    if (!letter) throw this.fail('it ends with a backslash');
    const name = low === 'p' ? this.next() : classes[low];
    if (name !== undefined) return { inside: this.property(name, letter !== low, lone) };
    const one = letter === 'x' || letter === 'u' ? this.hex(letter) : letters[letter] ?? letter;
    if (one === letter && /[\da-z]/i.test(letter)) throw this.fail(`the escape \\${letter} is not known`);
    return { inside: this.letter(one), one };
  }

  /** A class by its name, the rest of {name} and {^name} included. */
  private property(name: string, negate: boolean, lone = false): string {
    if (name === '{') {
      const end = this.text.indexOf('}', this.at);
      if (end < 0) throw this.fail('a } is missing');
      name = this.text.slice(this.at, end);
      this.at = end + 1;
      if (name[0] === '^') [name, negate] = [name.slice(1), !negate];
    }
    const low = name.toLowerCase(), tries = [name, `Script=${name}`, low].map((of) => `\\p{${of}}`);
    const inside = lone && low === 'word' ? loneWord : named[low] ?? tries.find(works);
    if (!inside) throw this.fail(`the property ${quoted(name)} is not known`);
    const cased = this.fold && !lone && /^\\p\{(?:L[ult]|Upper|Lower)/.test(inside) ? String.raw`\p{Lu}\p{Ll}\p{Lt}` : inside;
    return `[${negate ? '^' : ''}${cased}]`;
  }

  /** Reads 41, {1F600} or, after \u, 0041. */
  private hex(kind: string): string {
    const found = (kind === 'u' ? /^(?:\{([\da-f]{1,6})\}|([\da-f]{4}))/i : /^(?:\{([\da-f]{1,6})\}|([\da-f]{1,2}))/i).exec(this.text.slice(this.at, this.at + 10));
    const code = parseInt(found?.[1] ?? found?.[2] ?? '', 16);
    if (!(code <= 0x10ffff)) throw this.fail('a hexadecimal number is expected');
    this.at += found![0].length;
    return String.fromCodePoint(code);
  }

  /** Reads a group after its opening parenthesis. */
  private group(): Code {
    const { fold, dot } = this;
    for (const open of ['?=', '?!', '?<=', '?<!']) if (this.take(open)) return { ...this.closed(), text: `(${open}${this.last})`, fixed: true, single: false };
    if (this.take('?>')) return this.atomic(this.closed());
    if (this.take('?') && !this.take(':')) {
      for (let on = true, letter; (letter = this.next()) !== ':';) {
        if (letter === 'i') this.fold = on;
        else if (letter === 'm' || letter === 's') this.dot = on;
        else if (letter === '-') on = false;
        else if (letter === ')') return nothing; // for the rest of the group around
        else throw this.fail('this group is not known');
      }
    }
    const inner = this.closed();
    Object.assign(this, { fold, dot });
    return { ...inner, text: `(?:${inner.text})`, single: false };
  }

  /** The text of the alternatives read last. */
  private last = '';

  /** Reads alternatives and the parenthesis that closes them. */
  private closed(): Code {
    const code = this.alternatives();
    if (!this.take(')')) throw this.fail('a ) is missing');
    this.last = code.text;
    return code;
  }

  /** Reads a class after its opening bracket, up to the closing one. */
  private class(): string {
    return this.inside(() => {
      const negate = this.take('^') ? '^' : '', sets = [''];
      for (let first = true; first || !this.take(']'); first = false) {
        if (this.at >= this.text.length) throw this.fail('a ] is missing');
        if (this.take('[:')) sets.push(`${sets.pop()}${this.posix()}`);
        else if (this.take('[')) sets.push(`${sets.pop()}[${this.class()}]`);
        else if (this.take('&&')) sets.push('');
        else sets.push(`${sets.pop()}${this.range()}`);
      }
      return negate + (sets.length === 1 ? sets[0] : sets.map((set) => `[${set}]`).join('&&'));
    });
  }

  /** The rest of [:name:], whose punctuation has symbols, unlike \p{punct}. */
  private posix(): string {
    const [all, not, name] = /^(\^?)(\w+):\]/.exec(this.text.slice(this.at)) ?? ['', '', ''];
    this.at += all.length;
    return this.property(name === 'punct' ? ':punct' : name!, !!not);
  }

  /** Reads a character, an escape or a range of a class. */
  private range(): string {
    const first = this.classLetter();
    if (first.one === undefined || this.text[this.at] !== '-' || (this.text[this.at + 1] ?? ']') === ']') return first.inside;
    this.at++;
    const last = this.classLetter(), [low, high] = [first.one, last.one].map((one) => one?.codePointAt(0) ?? -1) as [number, number];
    if (high < low) throw this.fail('this range is empty');
    if (!this.fold) return `${escaped(first.one)}-${escaped(last.one!)}`;
    if (high > 0x7f) throw this.fail('a range beyond ASCII has no cases here');
    return Array.from({ length: high - low + 1 }, (_, i) => this.letter(String.fromCharCode(low + i))).join('');
  }

  private classLetter(): { inside: string; one?: string } {
    if (this.take('\\b')) return { inside: '\\x08', one: '\b' };
    if (this.take('\\')) return this.escape();
    const one = this.next();
    return { inside: this.letter(one), one };
  }
}

/** Finds delimiters in a text: start and end of each in turn. An empty one is not at the end of the one before. */
export type Pattern = (text: string) => number[];

/** The matches of an expression of the engine. */
export function matching(expression: RegExp): Pattern {
  return (text) => {
    const found: number[] = [];
    for (const { 0: { length }, index } of text.matchAll(expression)) if (length || found.at(-1) !== index) found.push(index, index + length);
    return found;
  };
}

/**
 * Compiles an expression in Oniguruma's syntax. Throws an RlxError of kind `unsupported` for
 * unknown syntax, or beyond the bounds.
 */
export function compilePattern(text: string): Pattern {
  const translated = new Translator(text).whole();
  try {
    return matching(new RegExp(translated, 'gv'));
  } catch (cause) {
    throw unsupported(`pattern ${JSON.stringify(text.slice(0, 200))}: ${(cause as Error).message}`);
  }
}

/** The places of a text. */
export function literal(part: string): Pattern {
  return (text) => {
    const found: number[] = [];
    for (let at = 0; part && (at = text.indexOf(part, at)) >= 0; at += part.length) found.push(at, at + part.length);
    return found;
  };
}

/** Reads {"Regex": ...} or {"String": ...}. */
export function readPattern(part: string, given: unknown): Pattern {
  const { Regex: regex, String: text } = Object(given) as { Regex?: unknown; String?: unknown };
  if (typeof regex === 'string') return compilePattern(regex);
  if (typeof text === 'string') return literal(text);
  throw damaged(`${part}.pattern has no Regex and no String`);
}
