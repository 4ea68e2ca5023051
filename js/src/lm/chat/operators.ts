import { beyond, type Budget, integer, iterate, List, maxOutput, number, order, refuse, same, textOf, typeName, type Value } from './value.js';

/** A comparison. */
export function relation(op: string, a: Value, b: Value): boolean {
  switch (op) {
    case '==': return same(a, b);
    case '!=': return !same(a, b);
    case 'in': return contains(b, a);
    case 'not in': return !contains(b, a);
    case '<': return order(a, b) < 0;
    case '>': return order(a, b) > 0;
    case '<=': return order(a, b) <= 0;
  }
  return order(a, b) >= 0;
}

function contains(of: Value, v: Value): boolean {
  if (typeof of !== 'string') return iterate(of).some((item) => same(item, v));
  if (typeof v !== 'string') throw refuse(`${typeName(v)} cannot be in a string`);
  return of.includes(v);
}

export function signed(sign: string, v: Value): Value {
  const n = integer(v);
  if (n === undefined && typeof v !== 'number') throw refuse(`${typeName(v)} has no sign`);
  return n === undefined ? sign === '-' ? -(v as number) : v : sign === '-' ? BigInt.asIntN(64, -n) : n;
}

/** Two texts as one. */
function join(run: Budget, a: string, b: string): string {
  run.spend(a.length + b.length >> 6);
  if (a.length + b.length > maxOutput) throw beyond(`a text has more than ${maxOutput} characters`);
  return a + b;
}

function repeat(run: Budget, s: string, times: Value): string {
  const n = integer(times);
  if (n === undefined) throw refuse(`a text is repeated ${textOf(times)} times`);
  if (n <= 0n || !s) return '';
  if (n > maxOutput / s.length) throw beyond(`a text has more than ${maxOutput} characters`);
  run.spend(Number(n) * s.length >> 6);
  return s.repeat(Number(n));
}

/** An operator of arithmetic or texts. */
export function binary(run: Budget, op: string, a: Value, b: Value): Value {
  run.pay(a, b);
  if (op === '~') return join(run, textOf(a), textOf(b));
  const m = integer(a), n = integer(b), x = number(a), y = number(b);
  if (m !== undefined && n !== undefined && op !== '/') return integers(op, m, n);
  if (x !== undefined && y !== undefined) return floats(op, x, y);
  if (op === '+' && typeof a === 'string' && typeof b === 'string') return join(run, a, b);
  if (op === '+' && a instanceof List && b instanceof List) {
    run.spend(a.items.length + b.items.length);
    return new List([...a.items, ...b.items]);
  }
  if (op === '*' && typeof a === 'string' && y !== undefined) return repeat(run, a, b);
  if (op === '*' && x !== undefined && typeof b === 'string') return repeat(run, b, a);
  throw refuse(`${op} is not defined for ${typeName(a)} and ${typeName(b)}`);
}

/** The remainder of a division, with the sign of the divisor. */
const modulo = (x: bigint, y: bigint): bigint => (x % y + y) % y;

/** An operator on integers of 64 bits. */
export function integers(op: string, x: bigint, y: bigint): Value {
  if (!y && (op === '//' || op === '%')) throw refuse('division by zero');
  switch (op) {
    case '+': return BigInt.asIntN(64, x + y);
    case '-': return BigInt.asIntN(64, x - y);
    case '*': return BigInt.asIntN(64, x * y);
    case '//': return BigInt.asIntN(64, (x - modulo(x, y)) / y);
    case '%': return modulo(x, y);
  }
  const power = Number(x) ** Number(y);
  return y < 0n || Math.abs(power) > 2 ** 53 ? power : BigInt(power);
}

function floats(op: string, x: number, y: number): Value {
  if (!y && (op === '/' || op === '//' || op === '%')) throw refuse('division by zero');
  switch (op) {
    case '+': return x + y;
    case '-': return x - y;
    case '*': return x * y;
    case '/': return x / y;
    case '//': return Math.floor(x / y);
    case '%': return x - y * Math.floor(x / y);
  }
  return x ** y;
}
