import { RlxError } from '../../values/errors.js';
import type { ErrorKind } from '../../values/errors.js';

/** The error of a template. */
export const errorAt = (line: number, kind: ErrorKind, reason: string, cause?: unknown): RlxError => new RlxError(kind, `chat template, line ${line}: ${reason}`, { cause });

/** A part of a template: text of the output, {{ or {%, }} or %}, a name, a literal without quotes and escapes, a sign. */
export interface Token {
  kind: 'end' | 'text' | 'begin' | 'close' | 'name' | 'string' | 'int' | 'float' | 'sign';
  text: string;
  line: number;
}

/** A bound on a template, in characters. */
const maxTemplate = 1 << 20;

// Tokens of an expression, at a position.
const blank = /[ \t\n\f\v]*/y, names = /[_\p{L}][_\p{L}\p{Nd}]*/uy, numbers = /\d+(?:_\d+)*(\.\d+(?:_\d+)*)?([eE][+-]?\d+(?:_\d+)*)?/y;
const signs = /\*\*|\/\/|==|!=|<=|>=|[-+*/%~<>=.,:|()[\]{}]/y, opening = /\{[{%#]/g;
const strings = /'(?:[^'\\]|\\[^])*'|"(?:[^"\\]|\\[^])*"/y;

/** The escapes of one character. */
const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', '\\': '\\', "'": "'", '"': '"', b: '\b', f: '\f', v: '\v', a: '\x07', 0: '\0', '\n': '' };

/** A string without its quotes and escapes. */
const unescaped = (literal: string): string => literal.slice(1, -1).replace(/\\(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|([^]))/g, (all, x, u, long, one) => {
  const code = parseInt(x ?? u ?? long ?? '', 16);
  if (one === undefined && code <= 0x10ffff && !(code >= 0xd800 && code < 0xe000)) return String.fromCodePoint(code);
  return one === undefined ? all : escapes[one] ?? all;
});

const endsInSpace = (text: string): string => {
  let end = text.length;
  while (end && /\p{White_Space}/u.test(text[end - 1]!)) end--;
  return text.slice(0, end);
};
const beginsInSpace = (text: string): string => text.replace(/^\p{White_Space}+/u, '');

/** Divides a template into tokens. */
class Lexer {
  readonly out: Token[] = [];
  private at = 0;
  private line = 1;

  constructor(private readonly text: string) {}

  all(): Token[] {
    const { text } = this;
    for (let trim = false; this.at < text.length;) { // trim: the text that follows begins after its white space
      opening.lastIndex = this.at;
      const end = opening.exec(text)?.index ?? text.length;
      this.addText(text.slice(this.at, end), text.slice(end, end + 3), trim);
      this.skip(end);
      if (end < text.length) trim = this.tag();
    }
    this.out.push({ kind: 'end', text: '', line: this.line });
    return this.out;
  }

  private skip(to: number): void {
    for (let i = this.at; i < to; i++) if (this.text[i] === '\n') this.line++;
    this.at = to;
  }

  /** Skips a match of an expression at this position, and returns it. */
  private take(what: RegExp): RegExpExecArray | undefined {
    what.lastIndex = this.at;
    const found = what.exec(this.text);
    if (found) this.skip(what.lastIndex);
    return found ?? undefined;
  }

  /**
   * Adds text of the output: without its white space where the tag before or after it asks for that, and without the blanks of its last line
   * before a block or a comment.
   */
  private addText(given: string, after: string, trim: boolean): void {
    let text = trim ? beginsInSpace(given) : given;
    if (after[2] === '-') text = endsInSpace(text);
    else if (after.length === 3 && after[2] !== '+' && after[1] !== '{') {
      const begin = text.lastIndexOf('\n') + 1, startsLine = begin > 0 || this.at === 0 || this.text[this.at - 1] === '\n';
      if (startsLine && !beginsInSpace(text.slice(begin))) text = text.slice(0, begin);
    }
    if (text) this.out.push({ kind: 'text', text, line: this.line });
  }

  /** Reads a comment, a block or an output, and returns whether white space after it is to be trimmed. */
  private tag(): boolean {
    const { at, line } = this, open = this.text.slice(at, at + 2);
    if (open === '{#') {
      const end = this.text.indexOf('#}', at);
      if (end < 0) throw errorAt(line, 'syntax', 'a comment is not closed');
      this.skip(end + 2);
      this.skipLineEnd();
      return end > at + 2 && this.text[end - 1] === '-';
    }
    const closing = open === '{{' ? '}}' : '%}';
    this.out.push({ kind: 'begin', text: open, line });
    this.skip(at + 2);
    if (/[-+]/.test(this.text[this.at] ?? '')) this.skip(this.at + 1);
    for (let depth = 0;;) { // of braces, within which }} closes them
      this.take(blank);
      const sign = /[-+]/.test(this.text[this.at] ?? '') ? 1 : 0, closes = this.text.startsWith(closing, this.at + sign);
      if (this.at >= this.text.length) throw errorAt(line, 'syntax', `${open} is not closed`);
      if (closes && (sign || depth === 0)) {
        const trim = this.text[this.at] === '-';
        this.out.push({ kind: 'close', text: '', line: this.line });
        this.skip(this.at + 2 + sign);
        if (!sign && closing === '%}') this.skipLineEnd();
        return trim;
      }
      const { kind, text } = this.token();
      if (kind === 'sign') depth += Number(text === '{') - Number(text === '}');
    }
  }

  /** Skips the end of line after a block or a comment. */
  private skipLineEnd(): void { if (this.text[this.at] === '\n') this.skip(this.at + 1); }

  /** Reads a token of an expression. */
  private token(): Token {
    const { line } = this, first = this.text[this.at]!;
    const add = (kind: Token['kind'], text: string): Token => {
      const token = { kind, text, line };
      this.out.push(token);
      return token;
    };
    if (first === "'" || first === '"') {
      const found = this.take(strings);
      if (!found) throw errorAt(line, 'syntax', 'a string is not closed');
      return add('string', unescaped(found[0]));
    }
    let found = this.take(numbers);
    if (found) return add(found[1] || found[2] ? 'float' : 'int', found[0].replaceAll('_', ''));
    if ((found = this.take(names))) return add('name', found[0]);
    if ((found = this.take(signs))) return add('sign', found[0]);
    throw errorAt(line, 'syntax', `the character ${String.fromCodePoint(this.text.codePointAt(this.at)!)} is not expected`);
  }
}

/** Divides a template into tokens. Throws an {@link RlxError} of kind `syntax` or `limit`. */
export function lex(source: string): Token[] {
  if (source.length > maxTemplate) throw errorAt(1, 'limit', 'the template has more than a million characters');
  return new Lexer(source.replace(/\r\n?/g, '\n').replace(/\n$/, '')).all();
}
