import { errorAt, type Token } from './lex.js';
import { maxDepth, type Value } from './value.js';

/** A statement or an expression, with its line. */
export interface Node {
  op: Op;
  line: number;
  /** A name, an operator, text of the output. */
  text?: string;
  /** Of a literal. */
  value?: Value;
  kids: (Node | undefined)[];
  /** Targets, parameters of a macro, keywords of a call, operators of a comparison. */
  names?: string[];
  body?: Node[];
  /** The else part. */
  other?: Node[];
}

/**
 * The kinds of nodes. Children of some kinds: for: the iterable and the condition; slice: the
 * object, start, stop and step; call: the function and its arguments, the last of which are those
 * named in names; filter and test: the value and the arguments; choose: the condition, the value
 * and the other value; dict: keys and values in turn.
 */
export type Op =
  | 'text' | 'output' | 'for' | 'if' | 'set' | 'setBlock' | 'macro' | 'break' | 'continue' | 'generation' | 'filterBlock'
  | 'literal' | 'name' | 'list' | 'tuple' | 'dict' | 'attribute' | 'index' | 'slice' | 'call' | 'filter' | 'test' | 'not' | 'and' | 'or' | 'choose'
  | 'unary' | 'binary' | 'compare';

/** The name, which no template can write, of the text of a filter block. */
export const filteredName = ' filtered';

/** The names of literals. */
const constants: Readonly<Record<string, Value>> = { true: true, True: true, false: false, False: false, none: null, None: null };
const maxInt = 2n ** 63n;

export class Parser {
  private at = 0;
  private depth = 0;
  private loops = 0;

  constructor(private readonly tokens: Token[]) {}

  private get now(): Token { return this.tokens[this.at]!; }

  private get then(): Token { return this.tokens[Math.min(this.at + 1, this.tokens.length - 1)]!; }

  private next(): Token {
    const token = this.now;
    this.at = Math.min(this.at + 1, this.tokens.length - 1);
    return token;
  }

  /** Whether the next token is a sign or a name of a text. */
  private is(...texts: string[]): boolean {
    const { kind, text } = this.now;
    return (kind === 'sign' || kind === 'name') && texts.includes(text);
  }

  /** Skips a sign or a name. */
  private take(text: string): boolean {
    const is = this.is(text);
    if (is) this.next();
    return is;
  }

  private fail(reason: string): Error { return errorAt(this.now.line, 'syntax', reason); }

  private expect(text: string): void {
    if (!this.take(text)) throw this.fail(`"${text}" is expected, and there is "${this.now.text}"`);
  }

  private expectClose(): void {
    if (this.now.kind !== 'close') throw this.fail(`the tag does not end at "${this.now.text}"`);
    this.next();
  }

  private name(): string {
    if (this.now.kind !== 'name') throw this.fail(`a name is expected, and there is "${this.now.text}"`);
    return this.next().text;
  }

  private inside<T>(read: () => T): T {
    if (++this.depth > maxDepth) throw errorAt(this.now.line, 'limit', 'the template is nested too deep');
    const out = read();
    this.depth--;
    return out;
  }

  /** Reads statements up to a block with one of the given names, and stops at the name. */
  block(...ends: string[]): Node[] {
    return this.inside(() => {
      const out: Node[] = [];
      for (;;) {
        const { kind, text, line } = this.next();
        if (kind === 'end') {
          if (!ends.length) return out;
          throw this.fail(`"${ends.at(-1)}" is missing`);
        }
        if (kind === 'text') out.push({ op: 'text', line, text, kids: [] });
        else if (text === '{{') {
          out.push({ op: 'output', line, kids: [this.expressions()] });
          this.expectClose();
        } else if (this.is(...ends)) return out;
        else out.push({ ...this.statement(), line });
      }
    });
  }

  /** Reads a block and the name of its end. */
  private blockTo(end: string): Node[] {
    this.expectClose();
    const body = this.block(end);
    this.end(end);
    return body;
  }

  private end(name: string): void {
    this.expect(name);
    this.expectClose();
  }

  private statement(): Omit<Node, 'line'> {
    const name = this.name();
    switch (name) {
      case 'for': return this.forLoop();
      case 'if': return this.condition();
      case 'set': return this.set();
      case 'macro': return this.macro();
      case 'generation': return { op: 'generation', kids: [], body: this.blockTo('endgeneration') };
      case 'filter': {
        this.tokens[--this.at] = { kind: 'sign', text: '|', line: this.now.line }; // the | of the first filter
        return { op: 'filterBlock', kids: [this.filters({ op: 'name', line: this.now.line, text: filteredName, kids: [] })], body: this.blockTo('endfilter') };
      }
      case 'break': case 'continue':
        if (!this.loops) throw this.fail(`${name} is outside of a loop`);
        this.expectClose();
        return { op: name, kids: [] };
    }
    throw this.fail(`the statement "${name}" is not known here`);
  }

  /** Reads names with commas. */
  private targets(): string[] {
    const bracket = this.take('('), names = [this.name()];
    while (this.take(',')) names.push(this.name());
    if (bracket) this.expect(')');
    return names;
  }

  private forLoop(): Omit<Node, 'line'> {
    const names = this.targets();
    this.expect('in');
    const over = this.or(), only = this.take('if') ? this.expression() : undefined; // without a choice: an if belongs to the loop
    this.expectClose();
    this.loops++;
    const body = this.block('else', 'endfor');
    this.loops--;
    const other = this.take('else') ? (this.expectClose(), this.block('endfor')) : [];
    this.end('endfor');
    return { op: 'for', names, kids: [over, only], body, other };
  }

  /** Reads the condition of an if or elif. */
  private condition(): Omit<Node, 'line'> {
    return this.inside(() => {
      const kids = [this.expressions()];
      this.expectClose();
      const body = this.block('elif', 'else', 'endif'), { line } = this.now;
      if (this.take('elif')) return { op: 'if', kids, body, other: [{ ...this.condition(), line }] };
      const other = this.take('else') ? (this.expectClose(), this.block('endif')) : [];
      this.end('endif');
      return { op: 'if', kids, body, other };
    });
  }

  private set(): Omit<Node, 'line'> {
    const names = this.targets(), text = names.length === 1 && this.take('.') ? this.name() : '';
    if (!this.take('=')) return { op: 'setBlock', names, text, kids: [], body: this.blockTo('endset') };
    const kids = [this.expressions()];
    this.expectClose();
    return { op: 'set', names, text, kids };
  }

  private macro(): Omit<Node, 'line'> {
    const text = this.name(), names: string[] = [], kids: (Node | undefined)[] = [], { loops } = this;
    this.expect('(');
    while (!this.take(')')) {
      names.push(this.name());
      kids.push(this.take('=') ? this.expression() : undefined);
      if (!this.take(',') && !this.is(')')) throw this.fail('")" is missing');
    }
    this.loops = 0;
    const body = this.blockTo('endmacro');
    this.loops = loops;
    return { op: 'macro', text, names, kids, body };
  }

  /** Reads an expression, or a tuple without parentheses. */
  private expressions(): Node {
    const first = this.expression(), kids = [first];
    if (!this.is(',')) return first;
    while (this.take(',') && this.now.kind !== 'close' && !this.is(')')) kids.push(this.expression());
    return { op: 'tuple', line: first.line, kids };
  }

  /** Reads a choice: value if condition else other. */
  private expression(): Node {
    return this.inside(() => {
      let value = this.or();
      while (this.is('if')) {
        const { line } = this.next(), condition = this.or();
        value = { op: 'choose', line, kids: [condition, value, this.take('else') ? this.expression() : undefined] };
      }
      return value;
    });
  }

  /** Reads operands of an operator that is used from the left. */
  private chain(operand: () => Node, op: Op, ...texts: string[]): Node {
    let left = operand();
    while (this.is(...texts)) {
      const { text, line } = this.next();
      left = { op, line, text, kids: [left, operand()] };
    }
    return left;
  }

  private or(): Node { return this.chain(() => this.and(), 'or', 'or'); }
  private and(): Node { return this.chain(() => this.not(), 'and', 'and'); }

  private not(): Node {
    if (!this.is('not')) return this.compare();
    return this.inside(() => ({ op: 'not', line: this.next().line, kids: [this.not()] }));
  }

  private compare(): Node {
    const first = this.sum(), kids = [first], names: string[] = [];
    for (;;) {
      let { text } = this.now;
      if (this.is('not') && this.then.text === 'in') {
        this.next();
        text = 'not in';
      } else if (!this.is('==', '!=', '<', '>', '<=', '>=', 'in')) return names.length ? { op: 'compare', line: first.line, names, kids } : first;
      this.next();
      kids.push(this.sum());
      names.push(text);
    }
  }

  private sum(): Node { return this.chain(() => this.joined(), 'binary', '+', '-'); }
  private joined(): Node { return this.chain(() => this.product(), 'binary', '~'); }
  private product(): Node { return this.chain(() => this.power(), 'binary', '*', '/', '//', '%'); }
  private power(): Node { return this.chain(() => this.unary(true), 'binary', '**'); }

  /** Reads an operand with its signs; a filter after it takes all of that. */
  private unary(filtered: boolean): Node {
    return this.inside(() => {
      const { line, text } = this.now, operand = this.is('-', '+') ? (this.next(), { op: 'unary', line, text, kids: [this.unary(false)] } as Node) : this.primary();
      const e = this.postfix(operand);
      return filtered ? this.filters(e) : e;
    });
  }

  private primary(): Node {
    const { kind, text, line } = this.next(), literal = (value: Value): Node => ({ op: 'literal', line, value, kids: [] });
    switch (kind) {
      case 'string': {
        let all = text;
        while (this.now.kind === 'string') all += this.next().text;
        return literal(all);
      }
      case 'int': {
        const n = BigInt(text);
        if (n >= maxInt) throw this.fail(`the number ${text.slice(0, 50)} is too large`);
        return literal(n);
      }
      case 'float': {
        const x = Number(text);
        if (x === Infinity) throw this.fail(`the number ${text.slice(0, 50)} is too large`);
        return literal(x);
      }
      case 'name': return Object.hasOwn(constants, text) ? literal(constants[text]!) : { op: 'name', line, text, kids: [] };
    }
    if (kind === 'sign' && text === '(') return this.parenthesis(line);
    if (kind === 'sign' && text === '[') return this.items({ op: 'list', line, kids: [] }, ']');
    if (kind === 'sign' && text === '{') return this.items({ op: 'dict', line, kids: [] }, '}');
    throw errorAt(line, 'syntax', `an expression is expected, and there is "${text}"`);
  }

  private parenthesis(line: number): Node {
    if (this.take(')')) return { op: 'tuple', line, kids: [] };
    const e = this.expressions();
    this.expect(')');
    return e;
  }

  /** Reads those of a list or a mapping. */
  private items(n: Node, end: string): Node {
    while (!this.take(end)) {
      n.kids.push(this.expression());
      if (n.op === 'dict') {
        this.expect(':');
        n.kids.push(this.expression());
      }
      if (!this.take(',') && !this.is(end)) throw this.fail(`"${end}" is missing`);
    }
    return n;
  }

  /** Reads attributes, indices and calls. */
  private postfix(operand: Node): Node {
    for (let e = operand;;) {
      const { line } = this.now;
      if (this.take('.')) {
        const { kind, text } = this.now;
        if (kind !== 'name' && kind !== 'int') throw this.fail('an attribute is expected');
        this.next();
        e = kind === 'name' ? { op: 'attribute', line, text, kids: [e] } : { op: 'index', line, kids: [e, { op: 'literal', line, value: BigInt.asIntN(64, BigInt(text)), kids: [] }] };
      } else if (this.take('[')) e = this.index(e, line);
      else if (this.is('(')) e = this.arguments({ op: 'call', line, kids: [e] });
      else return e;
    }
  }

  /** Reads i] or start:stop:step]. */
  private index(object: Node, line: number): Node {
    const kids: (Node | undefined)[] = [object, undefined, undefined, undefined];
    for (let part = 1; ; part++) {
      if (!this.is(':', ']')) kids[part] = this.expressions();
      if (this.take(']')) {
        if (part > 1) return { op: 'slice', line, kids };
        if (!kids[1]) throw this.fail('an index is missing');
        return { op: 'index', line, kids: [object, kids[1]] };
      }
      if (part === 3) throw this.fail('"]" is missing');
      this.expect(':');
    }
  }

  /** Reads those of a call, with their parentheses. */
  private arguments(n: Node): Node {
    const names: string[] = [];
    this.expect('(');
    while (!this.take(')')) {
      if (this.now.kind === 'name' && this.then.text === '=') {
        names.push(this.next().text);
        this.next();
      } else if (names.length) throw this.fail('an argument without a name follows one with a name');
      n.kids.push(this.expression());
      if (!this.take(',') && !this.is(')')) throw this.fail('")" is missing');
    }
    return { ...n, names };
  }

  /** Reads filters and tests. */
  private filters(operand: Node): Node {
    for (let e = operand;;) {
      const { line } = this.now;
      if (this.take('|')) {
        const n: Node = { op: 'filter', line, text: this.name(), kids: [e] };
        e = this.is('(') ? this.arguments(n) : n;
      } else if (this.take('is')) {
        const negate = this.take('not'), n = this.test({ op: 'test', line, kids: [e] });
        e = negate ? { op: 'not', line, kids: [n] } : n;
      } else return e;
    }
  }

  /** Reads the name of a test, and its argument, which needs no parentheses. */
  private test(given: Node): Node {
    const n = { ...given, text: this.next().text }, { kind } = this.now;
    if (this.is('(')) return this.arguments(n);
    const operand = kind === 'string' || kind === 'int' || kind === 'float' || this.is('[', '{') || kind === 'name' && !this.is('and', 'or', 'not', 'else', 'if', 'is', 'in');
    if (operand) n.kids.push(this.postfix(this.primary()));
    return n;
  }
}
