// TypeScript without its types: white space stands in their place, so that lines and columns stay.
//
// A parser by recursive descent reads statements and expressions without the precedence of operators, which does not matter
// here, and notes what is a type. Where one token is not enough to decide, it tries, and goes back: to the parameters of an arrow
// function, to arguments that are types.

import { Lexer } from './lexer.js';

/** What TypeScript has that is more than a type. */
const kept = { enum: 'an enum', namespace: 'a namespace', module: 'a namespace' };
const modifiers = new Set(['public', 'private', 'protected', 'readonly', 'override', 'abstract', 'declare']);
const prefixes = new Set(['+', '-', '!', '~', '++', '--', 'typeof', 'void', 'delete', 'await', '...']);
const assignments = new Set(['=', '+=', '-=', '*=', '/=', '%=', '**=', '<<=', '>>=', '>>>=', '&=', '|=', '^=', '&&=', '||=', '??=']);
const binaries = new Set(['+', '-', '*', '/', '%', '**', '<<', '>>', '>>>', '&', '|', '^', '&&', '||', '??', '<', '>', '<=', '>=', '==', '!=', '===', '!==', 'instanceof', 'in']);
/** What may follow arguments that are types: of a call, or of a function that is none. */
const afterTypes = new Set(['(', ')', ']', '}', ':', ';', ',', '.', '?.', '==', '===', '!=', '!==', '&&', '||', '??', '']);

class Eraser extends Lexer {
  /** @type {{from: number, to: number, by?: string}[]} what is erased; `by` stands at its begin */
  cuts = [];
  /** The names that values have, and the imports, of which those that are no values go. */
  #used = new Set();
  #imports = [];
  #noIn = false;

  /** @returns {string} the program without types */
  erased() {
    while (this.token.kind !== 'end') this.#statement();
    for (const { name, from, to } of this.#imports) if (!this.#used.has(name)) this.cuts.push({ from, to });
    return this.cuts.sort((a, b) => a.from - b.from).reduceRight((text, { from, to, by = '' }) =>
      text.slice(0, from) + by + text.slice(from + by.length, to).replace(/[^\n]/g, ' ') + text.slice(to), this.source);
  }

  /** Erases what a function reads. */
  #cut(read, by) {
    const from = this.token.start;
    read();
    this.cuts.push({ from, to: this.last, by });
  }

  /** Erases what was read from a place on, in place of smaller parts of it. */
  #cutFrom(from) {
    this.cuts = [...this.cuts.filter((cut) => cut.to <= from), { from, to: this.last, by: ';' }];
  }

  /** Reads on, or goes back to where it is if that fails. */
  #attempt(read) {
    const { token, last } = this, count = this.cuts.length, noIn = this.#noIn;
    try {
      if (read() !== false) return true;
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
    }
    Object.assign(this, { token, last });
    this.cuts.length = count;
    this.#noIn = noIn;
    return false;
  }

  /** Reads between brackets, where `in` is an operator. */
  #inside(open, close, read) {
    const noIn = this.#noIn;
    this.#noIn = false;
    this.expect(open);
    while (!this.is(close)) {
      read();
      if (!this.is(close)) this.expect(',');
    }
    this.expect(close);
    this.#noIn = noIn;
  }

  // Statements.

  #semicolon() {
    if (!this.accept(';') && !this.is('}') && this.token.kind !== 'end' && !this.token.newline) this.fail();
  }

  #block() {
    this.expect('{');
    while (!this.is('}')) this.#statement();
    this.expect('}');
  }

  #condition() {
    this.expect('(');
    this.#expression();
    this.expect(')');
  }

  #statement() {
    const word = this.token.kind === 'name' ? this.token.text : undefined, read = this.#statements[word];
    if (this.is('{')) return this.#block();
    if (this.accept(';')) return undefined;
    if (this.is('@')) return this.fail('decorators cannot be used here');
    if (read) return read();
    if (this.#isDeclaration()) return undefined;
    const next = this.peek();
    if (word && next.text === ':') {
      this.next();
      this.next();
      return this.#statement();
    }
    this.#expression();
    return this.#semicolon();
  }

  #statements = Object.assign(Object.create(null), {
    var: () => this.#variables(),
    let: () => this.#variables(),
    const: () => this.#variables(),
    function: () => this.#function(true),
    class: () => this.#class(),
    import: () => this.#import(),
    export: () => this.#export(),
    for: () => this.#for(),
    if: () => {
      this.next();
      this.#condition();
      this.#statement();
      if (this.accept('else')) this.#statement();
    },
    while: () => {
      this.next();
      this.#condition();
      this.#statement();
    },
    do: () => {
      this.next();
      this.#statement();
      this.expect('while');
      this.#condition();
      this.accept(';');
    },
    return: () => {
      this.next();
      if (!this.token.newline && !this.is(';') && !this.is('}') && this.token.kind !== 'end') this.#expression();
      this.#semicolon();
    },
    throw: () => {
      this.next();
      this.#expression();
      this.#semicolon();
    },
    break: () => this.#jump(),
    continue: () => this.#jump(),
    switch: () => {
      this.next();
      this.#condition();
      this.expect('{');
      while (!this.accept('}')) {
        if (!this.accept('default')) {
          this.expect('case');
          this.#expression();
        }
        this.expect(':');
        while (!['case', 'default', '}'].includes(this.token.text)) this.#statement();
      }
    },
    try: () => {
      this.next();
      this.#block();
      if (this.accept('catch')) {
        if (this.accept('(')) {
          this.#binding();
          this.#annotation();
          this.expect(')');
        }
        this.#block();
      }
      if (this.accept('finally')) this.#block();
    },
  });

  #jump() {
    this.next();
    if (this.token.kind === 'name' && !this.token.newline) this.next();
    this.#semicolon();
  }

  /** Reads a declaration that begins with a word that may be a name, too. */
  #isDeclaration() {
    const { text } = this.token, next = this.peek();
    if (this.token.kind !== 'name' || next.kind !== 'name' || next.newline) return false;
    if (text === 'async' && next.text === 'function') {
      this.next();
      this.#function(true);
    } else if (text === 'abstract' && next.text === 'class') {
      this.#cut(() => this.next());
      this.#class();
    } else if (text === 'type') {
      this.#cut(() => this.#alias(), ';');
    } else if (text === 'interface') {
      this.#cut(() => this.#interface(), ';');
    } else if (text === 'declare') {
      const from = this.token.start;
      this.next();
      if (kept[this.token.text] || this.is('global')) while (!this.is('{')) this.next();
      if (this.is('{')) this.#balanced(); else this.#statement();
      this.#cutFrom(from);
    } else if (kept[text]) {
      this.fail(`${kept[text]} is more than a type, and cannot be used here`);
    } else {
      return false;
    }
    return true;
  }

  #alias() {
    this.next();
    this.name();
    this.#typeParameters();
    this.expect('=');
    this.#type();
    this.#semicolon();
  }

  #interface() {
    this.next();
    this.name();
    this.#typeParameters();
    while (!this.is('{')) this.next();
    this.#balanced();
  }

  /** Declarations of variables; in the head of a loop without its end. */
  #variables(inHead = false) {
    this.next();
    if (this.is('enum')) this.fail(`${kept.enum} is more than a type, and cannot be used here`);
    do {
      this.#binding();
      if (this.is('!')) this.#cut(() => this.next());
      this.#annotation();
      if (this.accept('=')) this.#assign();
    } while (this.accept(','));
    if (!inHead) this.#semicolon();
  }

  #for() {
    this.next();
    this.accept('await');
    this.expect('(');
    this.#noIn = true;
    if (['var', 'let', 'const'].includes(this.token.text)) this.#variables(true);
    else if (!this.is(';')) this.#expression();
    this.#noIn = false;
    if (this.accept('of') || this.accept('in')) {
      this.#expression();
    } else {
      this.expect(';');
      if (!this.is(';')) this.#expression();
      this.expect(';');
      if (!this.is(')')) this.#expression();
    }
    this.expect(')');
    this.#statement();
  }

  /** `type` where a name follows it that is imported or exported as a type. */
  #isTypeOnly() {
    const next = this.peek();
    return this.is('type') && (next.text === '{' || next.text === '*' || next.kind === 'name' && next.text !== 'from' && next.text !== 'as');
  }

  /** The names between the braces of an import or an export. */
  #specifiers(note) {
    this.expect('{');
    while (!this.is('}')) {
      const from = this.token.start, type = this.#isTypeOnly();
      if (type) this.next();
      let { text } = this.token;
      this.next();
      if (this.accept('as')) {
        ({ text } = this.token);
        this.next();
      }
      if (!this.is('}')) this.expect(',');
      if (type) this.cuts.push({ from, to: this.last });
      else note?.({ name: text, from, to: this.last });
    }
    this.expect('}');
  }

  #from() {
    this.expect('from');
    this.next();
    if (this.accept('with')) this.#balanced();
    this.#semicolon();
  }

  #import() {
    const from = this.token.start, { text } = this.peek();
    if (text === '(' || text === '.') {
      this.#expression();
      return this.#semicolon();
    }
    this.next();
    if (this.#isTypeOnly()) {
      while (!this.is('from')) this.next();
      this.#from();
      return this.#cutFrom(from);
    }
    if (this.token.kind === 'string') {
      this.next();
      return this.#semicolon();
    }
    if (this.token.kind === 'name') {
      this.next();
      this.accept(',');
    }
    if (this.accept('*')) {
      this.expect('as');
      this.name();
    } else if (this.is('{')) {
      this.#specifiers((specifier) => this.#imports.push(specifier));
    }
    return this.#from();
  }

  #export() {
    const from = this.token.start;
    this.next();
    if (this.accept('*')) {
      if (this.accept('as')) this.next();
      return this.#from();
    }
    if (this.is('{')) {
      const names = [];
      this.#specifiers(({ name }) => names.push(name));
      if (this.is('from')) return this.#from();
      for (const name of names) this.#used.add(name);
      return this.#semicolon();
    }
    if (this.is('=')) this.fail('write export default');
    if (this.is('type') && ['{', '*'].includes(this.peek().text)) {
      while (this.token.kind !== 'string' && !this.is('}')) this.next();
      this.next();
      if (this.is('from')) this.#from(); else this.#semicolon();
      return this.#cutFrom(from);
    }
    if (this.accept('default')) {
      if (this.is('function') || this.is('async') && this.peek().text === 'function' || this.is('class') || this.is('abstract')) return this.#statement();
      if (!this.is('interface')) {
        this.#assign();
        return this.#semicolon();
      }
    }
    const erased = ['type', 'interface', 'declare'].includes(this.token.text);
    this.#statement();
    return erased && this.#cutFrom(from);
  }

  // Functions and classes.

  /** A function from its keyword on; a declaration without a body goes. */
  #function(declared = false) {
    const from = this.token.start;
    this.expect('function');
    this.accept('*');
    if (this.token.kind === 'name') this.next();
    this.#signature();
    if (this.is('{')) return this.#block();
    if (!declared) this.fail();
    this.#semicolon();
    return this.#cutFrom(/\basync\s+$/.exec(this.source.slice(0, from))?.index ?? from);
  }

  /** The parameters of a function and the type of its results. */
  #signature() {
    this.#typeParameters();
    this.#parameters();
    if (this.is(':')) this.#cut(() => this.#resultType());
  }

  #parameters() {
    this.#inside('(', ')', () => {
      if (this.is('this')) {
        this.#cut(() => {
          this.next();
          this.next();
          this.#type();
          if (!this.is(')')) this.expect(',');
        });
        if (this.is(')')) return;
      }
      if (modifiers.has(this.token.text) && this.peek().kind === 'name') this.fail('a parameter that declares a field is more than a type, and cannot be used here');
      this.accept('...');
      this.#binding();
      if (this.is('?')) this.#cut(() => this.next());
      this.#annotation();
      if (this.accept('=')) this.#assign();
    });
  }

  /** A name, or a pattern of names. */
  #binding() {
    if (this.is('[')) {
      return this.#inside('[', ']', () => {
        if (this.is(',')) return;
        this.accept('...');
        this.#binding();
        if (this.accept('=')) this.#assign();
      });
    }
    if (!this.is('{')) return this.name();
    return this.#inside('{', '}', () => {
      if (this.accept('...')) return this.#binding();
      this.#key();
      if (this.accept(':')) this.#binding();
      return this.accept('=') && this.#assign();
    });
  }

  /** The name of a property. */
  #key() {
    if (this.is('[')) {
      this.next();
      this.#assign();
      return this.expect(']');
    }
    if (!['name', 'string', 'number'].includes(this.token.kind)) this.fail();
    return this.next();
  }

  #class() {
    this.expect('class');
    if (this.token.kind === 'name' && !this.is('extends') && !this.is('implements')) this.next();
    this.#typeParameters();
    if (this.accept('extends')) {
      this.#operand();
      if (this.is('<')) this.#cut(() => this.#typeArguments());
    }
    if (this.is('implements')) {
      this.#cut(() => {
        do {
          this.next();
          this.#type();
        } while (this.is(','));
      });
    }
    this.expect('{');
    while (!this.accept('}')) if (!this.accept(';')) this.#member();
  }

  /** Whether the word here modifies the property after it: where none follows it is its name. */
  #modifies = () => !['(', '=', ';', '}', ':', '?', '!', '<', ',', ''].includes(this.peek().text);

  #member() {
    const from = this.token.start;
    let abstract = false;
    while (['static', 'async', 'get', 'set', 'accessor'].includes(this.token.text) && this.#modifies() || modifiers.has(this.token.text) && this.#modifies() || this.is('*')) {
      abstract ||= this.is('abstract') || this.is('declare');
      if (this.is('static') && this.peek().text === '{') {
        this.next();
        return this.#block();
      }
      if (modifiers.has(this.token.text)) this.#cut(() => this.next()); else this.next();
    }
    const index = this.is('[') && this.#attempt(() => {
      this.next();
      this.name();
      if (!this.is(':')) this.fail();
      this.next();
      this.#type();
      this.expect(']');
      this.#annotation();
      this.#semicolon();
    });
    if (index) return this.#cutFrom(from);
    this.#key();
    if (this.is('?') || this.is('!')) this.#cut(() => this.next());
    if (this.is('(') || this.is('<')) {
      this.#signature();
      if (this.is('{')) return this.#block();
      this.#semicolon();
      return this.#cutFrom(from);
    }
    this.#annotation();
    if (this.accept('=')) this.#assign();
    this.#semicolon();
    return abstract && this.#cutFrom(from);
  }

  // Expressions.

  #expression() {
    do this.#assign(); while (this.accept(','));
  }

  /** An expression without commas. In the middle of a conditional one a colon has to follow it. */
  #assign(inCondition = false) {
    if (this.#isArrow(inCondition)) return;
    if (this.is('yield') && !['.', '(', ')', '=', '[', ';', ','].includes(this.peek().text)) {
      this.next();
      if (this.token.newline) return;
      this.accept('*');
      this.#assign();
      return;
    }
    this.#binary();
    if (this.accept('?')) {
      const noIn = this.#noIn;
      this.#noIn = false;
      this.#assign(true);
      this.#noIn = noIn;
      this.expect(':');
      this.#assign(inCondition);
    } else if (this.token.kind === 'mark' && assignments.has(this.token.text)) {
      this.next();
      this.#assign(inCondition);
    }
  }

  /** Reads an arrow function if there is one. */
  #isArrow(inCondition) {
    const next = this.token.kind === 'name' && this.peek();
    if (next && next.text === '=>') return this.#attempt(() => this.name()) && this.#arrowBody();
    const async = next && this.is('async') && !next.newline;
    if (async && next.kind === 'name' && next.text !== 'function') {
      return this.#attempt(() => {
        this.next();
        this.name();
        if (!this.is('=>')) this.fail();
      }) && this.#arrowBody();
    }
    if (!this.is('(') && !this.is('<') && !(async && (next.text === '(' || next.text === '<'))) return false;
    let typed = false;
    const head = () => {
      if (async) this.next();
      this.#typeParameters();
      this.#parameters();
      typed = this.is(':');
      if (typed) this.#arrowType();
      if (!this.is('=>') || this.token.newline) this.fail();
    };
    return this.#attempt(() => {
      head();
      if (!typed || !inCondition) return;
      this.#arrowBody(); // a ? (b) : c => d is no function with a type
      if (!this.is(':')) this.fail();
    }) && (typed && inCondition || this.#arrowBody());
  }

  /** Erases the type of results of an arrow function. The parenthesis before it goes to its end: no line may end before =>. */
  #arrowType() {
    const parenthesis = this.last - 1, from = this.token.start;
    this.#resultType();
    if (!/\n/.test(this.source.slice(from, this.token.start))) {
      this.cuts.push({ from, to: this.last });
      return;
    }
    this.cuts.push({ from: parenthesis, to: parenthesis + 1 }, { from, to: this.token.start - 1 }, { from: this.token.start - 1, to: this.token.start, by: ')' });
    this.token = { ...this.token, newline: false };
  }

  #arrowBody() {
    this.expect('=>');
    if (!this.is('{')) {
      this.#assign();
      return true;
    }
    const noIn = this.#noIn;
    this.#noIn = false;
    this.#block();
    this.#noIn = noIn;
    return true;
  }

  /** Operands and operators between them, in any order of precedence. */
  #binary() {
    for (;;) {
      this.#unary();
      while (!this.token.newline && (this.is('as') || this.is('satisfies'))) {
        this.#cut(() => {
          this.next();
          this.#type();
        });
      }
      if (!['mark', 'name'].includes(this.token.kind) || !binaries.has(this.token.text) || this.is('in') && this.#noIn) return;
      this.next();
    }
  }

  #unary() {
    while (prefixes.has(this.token.text) && ['mark', 'name'].includes(this.token.kind)) this.next();
    if (this.is('<')) {
      this.#cut(() => this.#typeArguments());
      return this.#unary();
    }
    this.#operand();
    if (!this.token.newline && (this.is('++') || this.is('--'))) this.next();
    return undefined;
  }

  /** What a value is, and what is taken of it: properties, elements, results of calls. */
  #operand() {
    this.#primary();
    for (;;) {
      if (this.accept('.') || this.accept('?.')) {
        if (this.token.kind === 'name') this.next();
      } else if (this.is('[')) {
        this.#inside('[', ']', () => this.#expression());
      } else if (this.is('(')) {
        this.#inside('(', ')', () => this.#spread());
      } else if (this.token.kind === 'template') {
        this.#template();
      } else if (this.is('!') && !this.token.newline) {
        this.#cut(() => this.next());
      } else if (!this.is('<') || !this.#attempt(() => this.#cutArguments())) {
        return;
      }
    }
  }

  #cutArguments() {
    this.#cut(() => this.#typeArguments());
    return afterTypes.has(this.token.text) || this.token.kind === 'template' || this.token.newline;
  }

  #spread() {
    this.accept('...');
    this.#assign();
  }

  #primary() {
    const { kind, text } = this.token;
    if (kind === 'template') return this.#template();
    if (kind === 'number' || kind === 'string') return this.next();
    if (text === '/' || text === '/=') return this.regularExpression();
    if (text === '(') {
      const noIn = this.#noIn;
      this.#noIn = false;
      this.#condition();
      this.#noIn = noIn;
      return undefined;
    }
    if (text === '[') return this.#inside('[', ']', () => this.is(',') || this.#spread());
    if (text === '{') return this.#inside('{', '}', () => this.#property());
    if (kind !== 'name') return this.fail();
    if (text === 'function') return this.#function();
    if (text === 'class') return this.#class();
    if (text === 'async' && this.peek().text === 'function' && !this.peek().newline) {
      this.next();
      return this.#function();
    }
    this.next();
    if (text === 'new') return this.accept('.') ? this.next() : this.#unary();
    this.#used.add(text);
    return undefined;
  }

  /** A property of an object. */
  #property() {
    if (this.accept('...')) return this.#assign();
    while (['async', 'get', 'set'].includes(this.token.text) && this.#modifies() || this.is('*')) this.next();
    if (this.token.kind === 'name') this.#used.add(this.token.text); // it may be a shorthand
    this.#key();
    if (this.is('(') || this.is('<')) {
      this.#signature();
      return this.#block();
    }
    return (this.accept(':') || this.accept('=')) && this.#assign();
  }

  #template(read = () => this.#expression()) {
    while (this.templatePart()) read();
  }

  // Types, all of which are erased: what is in brackets is not looked at.

  /** Reads brackets and what they hold. */
  #balanced() {
    const close = { '{': '}', '(': ')', '[': ']' }[this.token.text] ?? this.fail();
    this.next();
    while (!this.is(close)) {
      if (['{', '(', '['].includes(this.token.text)) this.#balanced();
      else if (this.token.kind === 'template') this.#template(() => { while (!this.is('}')) this.next(); });
      else if (this.token.kind === 'end' || [')', ']', '}'].includes(this.token.text)) this.fail();
      else this.next();
    }
    this.next();
  }

  #annotation() {
    if (!this.is(':')) return;
    this.#cut(() => {
      this.next();
      this.#type();
    });
  }

  #typeParameters() {
    if (!this.is('<')) return;
    this.#cut(() => {
      this.next();
      while (!this.is('>')) {
        while (['const', 'in', 'out'].includes(this.token.text) && this.peek().kind === 'name') this.next();
        this.name();
        if (this.accept('extends')) this.#type();
        if (this.accept('=')) this.#type();
        if (this.token.text.startsWith('>')) break; // it may be the begin of another operator
        this.expect(',');
      }
      this.closeAngle();
    });
  }

  #typeArguments() {
    this.expect('<');
    do this.#type(); while (this.accept(','));
    this.closeAngle();
  }

  /** The type of results, from its colon. */
  #resultType() {
    this.expect(':');
    this.#found();
  }

  /** A type, or what a function finds of a parameter. */
  #found() {
    if (this.is('asserts') && this.peek().kind === 'name' && !this.peek().newline) this.next();
    if (this.token.kind === 'name' && this.peek().text === 'is') {
      this.next();
      this.next();
    }
    this.#type();
  }

  #type() {
    if (this.is('abstract') && this.peek().text === 'new') this.next();
    if (this.is('new') || this.is('<')) {
      this.accept('new');
      this.#typeParameters();
      this.#balanced();
      this.expect('=>');
      return this.#found();
    }
    this.#union();
    if (this.accept('extends')) {
      this.#union();
      this.expect('?');
      this.#type();
      this.expect(':');
      this.#type();
    }
    return undefined;
  }

  #union() {
    if (!this.accept('|')) this.accept('&');
    do this.#operatorType(); while (this.accept('|') || this.accept('&'));
  }

  #operatorType() {
    while (['keyof', 'unique', 'readonly', 'infer'].includes(this.token.text) && ![',', '>', '|', '&', ')', ';', '=', ']', '.', '?', ':', ''].includes(this.peek().text)) this.next();
    this.#primaryType();
    while (this.is('[') && !this.token.newline) this.#balanced();
  }

  #primaryType() {
    const { kind, text } = this.token;
    if (text === '(') {
      const isFunction = this.#beginsParameters();
      this.#balanced();
      if (isFunction && this.accept('=>')) this.#found();
      return undefined;
    }
    if (text === '{' || text === '[') return this.#balanced();
    if (kind === 'template') return this.#template(() => { while (!this.is('}')) this.next(); });
    if (text === '-') this.next();
    if (!['name', 'string', 'number'].includes(this.token.kind)) return this.fail();
    this.next();
    if (text === 'typeof') {
      if (!this.is('import')) this.name();
      else this.next();
    }
    if (this.is('(') && (text === 'import' || text === 'typeof')) this.#balanced();
    while (this.accept('.')) this.name();
    if (this.is('<') && !this.token.newline) this.#typeArguments();
    return undefined;
  }

  /** Whether the parenthesis here begins parameters, and no type in parentheses. */
  #beginsParameters() {
    const first = this.peek(), second = this.peek(2);
    return first.kind !== 'name' ? [')', '...', '{', '['].includes(first.text) : [':', ',', '?', '='].includes(second.text) || second.text === ')' && this.peek(3).text === '=>';
  }
}

/**
 * The JavaScript of a program in TypeScript: what is no part of JavaScript is white space, and so are imports that are types.
 * @param {string} source
 * @returns {string}
 * @throws {SyntaxError} with the `place` of what cannot be read
 */
export const erased = (source) => new Eraser(source).erased();
