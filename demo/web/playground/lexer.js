// The tokens of a program in TypeScript, one at a time.

const marks = ['>>>=', '...', '===', '!==', '**=', '<<=', '>>=', '>>>', '&&=', '||=', '??=', '=>', '==', '!=', '<=', '>=', '&&', '||', '??', '?.', '++', '--', '+=', '-=', '*=', '/=', '%=', '&=', '|=', '^=', '**', '<<', '>>'];
const white = /(?:\s+|\/\/[^\n]*|\/\*[^]*?\*\/)*/y;
const name = /#?[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*/uy;
const number = /0[xob][\da-f_]+n?|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:e[+-]?\d[\d_]*)?n?/iy;
const string = /'(?:[^'\\\n]|\\[^])*'|"(?:[^"\\\n]|\\[^])*"/y;
const regular = /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/\w*/y;
const templateText = /(?:[^`\\$]|\\[^]|\$(?!\{))*(`|\$\{)/y;

/** The text that a pattern finds at a place. */
function found(pattern, source, at) {
  pattern.lastIndex = at;
  return pattern.exec(source)?.[0];
}

/**
 * @typedef {object} Token
 * @property {'name' | 'number' | 'string' | 'template' | 'mark' | 'end'} kind that of a template is its begin alone
 * @property {string} text
 * @property {number} start
 * @property {number} end
 * @property {boolean} newline whether a line ends before it
 */

export class Lexer {
  /** @type {Token} what is read next */
  token;
  /** Where the token before it ends. */
  last = 0;

  constructor(source) {
    this.source = source;
    this.token = this.#at(found(/^#!.*/y, source, 0)?.length ?? 0);
  }

  /** The token at a place, after white space. @returns {Token} */
  #at(from) {
    const { source } = this, blank = found(white, source, from), start = from + blank.length;
    const of = (kind, text) => ({ kind, text, start, end: start + text.length, newline: blank.includes('\n') });
    if (start === source.length) return of('end', '');
    for (const [kind, pattern] of [['name', name], ['number', number], ['string', string]]) {
      const text = found(pattern, source, start);
      if (text) return of(kind, text);
    }
    if (source[start] === '`') return of('template', '`');
    const mark = marks.find((one) => source.startsWith(one, start)) ?? source[start];
    return of('mark', mark === '?.' && /\d/.test(source[start + 2]) ? '?' : mark);
  }

  is(text) { return this.token.text === text && this.token.kind !== 'string'; }

  next() {
    if (this.token.kind === 'end') this.fail();
    this.last = this.token.end;
    this.token = this.#at(this.last);
  }

  /** The token after the next, or a later one. */
  peek(n = 1) {
    let { token } = this;
    for (let i = 0; i < n; i++) token = this.#at(token.end);
    return token;
  }

  accept(text) {
    const there = this.is(text);
    if (there) this.next();
    return there;
  }

  expect(text) { if (!this.accept(text)) this.fail(`${text} expected`); }

  name() {
    if (this.token.kind !== 'name') this.fail('a name is expected');
    this.next();
  }

  /** A > that may be the begin of a longer operator. */
  closeAngle() {
    if (!this.token.text.startsWith('>')) this.fail('> expected');
    this.last = this.token.start + 1;
    this.token = this.#at(this.last);
  }

  regularExpression() {
    const text = found(regular, this.source, this.token.start) ?? this.fail();
    this.last = this.token.start + text.length;
    this.token = this.#at(this.last);
  }

  /** Reads text of a template up to an expression, or to its end: then it returns false. The token is its begin, or the end of an expression. */
  templatePart() {
    const text = found(templateText, this.source, this.token.end) ?? this.fail('a template has no end');
    this.last = this.token.end + text.length;
    this.token = this.#at(this.last);
    return text.endsWith('{');
  }

  fail(what = this.token.kind === 'end' ? 'the program ends too early' : `${this.token.text} is not expected here`) {
    const before = this.source.slice(0, this.token.start).split('\n');
    throw Object.assign(new SyntaxError(what), { place: { line: before.length, column: before.at(-1).length + 1 } });
  }
}
