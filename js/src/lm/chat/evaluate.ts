import { named } from './filters.js';
import { errorAt } from './lex.js';
import { attribute, globals } from './methods.js';
import { binary, relation, signed } from './operators.js';
import { filteredName, type Node } from './parse.js';
import { beyond, type Budget, type Call, Dict, Failure, type Func, index, integer, iterate, List, maxDepth, maxOutput, Missing, refuse, seal, slice, textOf, truth, typeName, type Value } from './value.js';

// Bounds of a run: evaluated nodes, including items and each 64 characters of strings; and those of
// a loop's iteration, which sets variables.
const maxSteps = 1 << 22, turnSteps = 8;

/** The names of a block; those around it are seen from it. */
class Scope {
  readonly names: Map<string, Value>;
  constructor(private readonly outer?: Scope, names: Iterable<[string, Value]> = []) { this.names = new Map(names); }

  find(name: string): Value | undefined {
    for (let scope: Scope | undefined = this; scope; scope = scope.outer) if (scope.names.has(name)) return scope.names.get(name);
    return undefined;
  }
}

class Arguments implements Call {
  constructor(readonly run: Budget, readonly args: readonly Value[], readonly named: ReadonlyMap<string, Value>) {}

  arg(i: number, name: string, otherwise: Value): Value {
    if (i < this.args.length) return this.args[i]!;
    return this.named.has(name) ? this.named.get(name)! : otherwise;
  }

  text(i: number, name: string, otherwise = ''): string {
    const v = this.arg(i, name, otherwise);
    if (typeof v !== 'string') throw refuse(`argument ${i + 1} is ${typeName(v)}: it must be a string`);
    return v;
  }

  int(i: number, name: string, otherwise: number): number {
    const v = this.arg(i, name, BigInt(otherwise)), n = integer(v);
    if (n === undefined) throw refuse(`argument ${i + 1} is ${typeName(v)}: it must be an integer`);
    return Number(n);
  }

  with(args: readonly Value[]): Call { return new Arguments(this.run, args, this.named); }
}

/** The filters that do not read a value as a whole. */
const cheap = ['length', 'count', 'first', 'last', 'default', 'd'];

/** How a block ends: whether a loop continues with the next iteration. */
type Flow = 'break' | 'continue' | undefined;

class Run implements Budget {
  private out: string[] = [];
  private size = 0;
  private steps = maxSteps;
  private depth = 0;

  constructor(readonly now: Date) {}

  render(body: readonly Node[], variables: Map<string, Value>): string {
    this.block(body, new Scope(undefined, variables));
    return this.out.join('');
  }

  spend(steps: number): void {
    if ((this.steps -= steps) >= 0) return;
    this.steps = -1;
    throw beyond(`the template takes more than ${maxSteps} steps`);
  }

  pay(...values: Value[]): void { for (const v of values) this.spend(seal(v)); }

  items(v: Value): readonly Value[] {
    if (typeof v === 'string') this.spend(v.length);
    const all = iterate(v);
    this.spend(all.length);
    return all;
  }

  deeper<T>(call: () => T): T {
    if (++this.depth > 2 * maxDepth) throw beyond('calls are nested too deep');
    const out = call();
    this.depth--;
    return out;
  }

  private write(s: string): void {
    if ((this.size += s.length) > maxOutput) throw beyond(`the text has more than ${maxOutput} characters`);
    this.out.push(s);
  }

  /** Adds the line of a node to an error that has none. */
  private at<T>({ line }: Node, evaluate: () => T): T {
    try {
      return evaluate();
    } catch (reason) {
      throw reason instanceof Failure ? errorAt(line, reason.kind, reason.message) : reason;
    }
  }

  private block(body: readonly Node[], s: Scope): Flow {
    for (const n of body) {
      const flow = this.at(n, () => this.statement(n, s));
      if (flow) return flow;
    }
    return undefined;
  }

  private statement(n: Node, s: Scope): Flow {
    this.spend(1);
    const first = () => this.value(n.kids[0]!, s);
    switch (n.op) {
      case 'text': this.write(n.text!); break;
      case 'output': {
        const v = first();
        this.pay(v);
        this.write(textOf(v));
        break;
      }
      case 'for': this.loop(n, s); break;
      case 'if': return this.block(truth(first()) ? n.body! : n.other!, s);
      case 'set': this.assign(n, first(), s); break;
      case 'setBlock': this.assign(n, this.capture(n.body!, new Scope(s)), s); break;
      case 'macro': s.names.set(n.text!, this.macro(n, s)); break;
      case 'break': case 'continue': return n.op;
      case 'generation': return this.block(n.body!, s);
      case 'filterBlock': {
        const inner = new Scope(s);
        inner.names.set(filteredName, this.capture(n.body!, inner));
        this.write(textOf(this.value(n.kids[0]!, inner)));
      }
    }
    return undefined;
  }

  /** The text that a block writes. */
  private capture(body: readonly Node[], s: Scope): string {
    const { out, size } = this;
    this.out = [];
    this.size = 0;
    this.block(body, s);
    const written = this.out.join('');
    Object.assign(this, { out, size });
    return written;
  }

  /** Sets names, or an attribute of a namespace. */
  private assign(n: Node, v: Value, s: Scope): void {
    const names = n.names!;
    if (!n.text) return unpack(names, v, s);
    const space = s.find(names[0]!);
    if (!(space instanceof Dict) || !space.space) throw refuse(`${names[0]} is no namespace: its attribute ${n.text} cannot be set`);
    space.values.set(n.text, v);
  }

  private loop(n: Node, s: Scope): void {
    const [over, only] = n.kids, all = this.items(this.value(over!, s)), items = only ? all.filter((item) => this.holds(n, item, s)) : all;
    if (!items.length) this.block(n.other!, new Scope(s));
    for (let i = 0; i < items.length; i++) {
      this.spend(turnSteps);
      const inner = new Scope(s, [['loop', loopAt(items, i)]]);
      unpack(n.names!, items[i]!, inner);
      if (this.block(n.body!, inner) === 'break') break;
    }
  }

  /** Whether the condition of a loop holds for an item. */
  private holds(n: Node, item: Value, s: Scope): boolean {
    const inner = new Scope(s);
    unpack(n.names!, item, inner);
    return truth(this.value(n.kids[1]!, inner));
  }

  private macro(n: Node, s: Scope): Func {
    return (c) => this.deeper(() => {
      const names = n.names!, inner = new Scope(s);
      if (c.args.length > names.length) throw refuse(`macro ${n.text} takes ${names.length} arguments, and ${c.args.length} are given`);
      names.forEach((name, i) => {
        const v = c.arg(i, name, new Missing(name)), byDefault = n.kids[i];
        inner.names.set(name, v instanceof Missing && byDefault ? this.value(byDefault, inner) : v);
      });
      return this.capture(n.body!, inner);
    });
  }

  /** Evaluates an expression. */
  private value(n: Node, s: Scope): Value {
    return this.at(n, () => {
      this.spend(1);
      const v = this.evaluate(n, s);
      seal(v);
      return v;
    });
  }

  private evaluate(n: Node, s: Scope): Value {
    const { text = '' } = n;
    switch (n.op) {
      case 'literal': return n.value!;
      case 'name': {
        const v = s.find(text);
        return v !== undefined ? v : Object.hasOwn(globals, text) ? globals[text]! : new Missing(text);
      }
      case 'and': case 'or': case 'choose': return this.choose(n, s);
      case 'filter': case 'test': return this.apply(n.op, n, s);
      case 'compare': return this.compare(n, s);
    }
    const kids = n.kids.map((kid) => kid && this.value(kid, s)), [a, b] = kids as Value[];
    switch (n.op) {
      case 'list': case 'tuple': return new List(kids as Value[], n.op === 'tuple');
      case 'dict': return dictOf(kids as Value[]);
      case 'attribute': return attribute(a!, text);
      case 'index':
        if (typeof a === 'string') this.spend(a.length);
        return index(a!, b!);
      case 'slice':
        this.pay(a!);
        return slice(a!, kids.slice(1));
      case 'not': return !truth(a!);
      case 'unary': return signed(text, a!);
      case 'call':
        if (typeof a !== 'function') throw refuse(`${typeName(a!)} cannot be called`);
        this.pay(...kids.slice(1) as Value[]);
        return a(this.arguments(n, kids.slice(1) as Value[]));
    }
    return binary(this, text, a!, b!);
  }

  /** Evaluates what evaluates only a part of its operands. */
  private choose({ op, kids: [one, two, three] }: Node, s: Scope): Value {
    const first = this.value(one!, s), is = truth(first);
    if (op === 'and' && !is || op === 'or' && is) return first;
    if (op !== 'choose' || is) return this.value(two!, s);
    return three ? this.value(three, s) : new Missing('the value without else');
  }

  private compare(n: Node, s: Scope): Value {
    let left = this.value(n.kids[0]!, s);
    for (const [i, op] of n.names!.entries()) {
      const right = this.value(n.kids[i + 1]!, s);
      this.pay(left, right);
      if (!relation(op, left, right)) return false;
      left = right;
    }
    return true;
  }

  /** Divides values into those by position and those by name. */
  private arguments({ names = [] }: Node, values: readonly Value[]): Call {
    const plain = values.length - names.length;
    return new Arguments(this, values.slice(0, plain), new Map(names.map((name, i) => [name, values[plain + i]!])));
  }

  private apply(kind: 'filter' | 'test', n: Node, s: Scope): Value {
    const method = named(kind, n.text!), kids = n.kids.map((kid) => this.value(kid!, s));
    if (kids.length > 1 || kind === 'filter' && !cheap.includes(n.text!)) this.pay(...kids);
    return method(this.arguments(n, kids.slice(1)), kids[0]!);
  }
}

/** Sets a name, or several to the items of a list. */
function unpack(names: readonly string[], v: Value, s: Scope): void {
  const items = names.length === 1 ? [v] : iterate(v);
  if (items.length !== names.length) throw refuse(`${items.length} values are given for ${names.length} names`);
  names.forEach((name, i) => s.names.set(name, items[i]!));
}

/** The variable loop. */
function loopAt(items: readonly Value[], i: number): Dict {
  const n = items.length, cycle: Func = (c) => {
    if (!c.args.length) throw refuse('cycle takes one argument or more');
    return c.args[i % c.args.length]!;
  };
  const loop = new Dict(new Map<string, Value>([
    ['index', BigInt(i + 1)], ['index0', BigInt(i)], ['revindex', BigInt(n - i)], ['revindex0', BigInt(n - i - 1)], ['first', i === 0], ['last', i === n - 1], ['length', BigInt(n)], ['cycle', cycle],
  ]));
  if (i > 0) loop.values.set('previtem', items[i - 1]!);
  if (i + 1 < n) loop.values.set('nextitem', items[i + 1]!);
  loop.opaque = true;
  return loop;
}

function dictOf(kids: readonly Value[]): Dict {
  const d = new Dict();
  for (let i = 0; i < kids.length; i += 2) {
    const key = kids[i]!;
    if (typeof key !== 'string' && typeof key !== 'bigint') throw refuse(`a key is ${typeName(key)}: it must be a string or an integer`);
    d.values.set(key, kids[i + 1]!);
  }
  return d;
}

/** Runs a template. */
export const render = (body: readonly Node[], variables: Map<string, Value>, now: Date): string => new Run(now).render(body, variables);
