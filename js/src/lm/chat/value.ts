// The values of a template: null (none), booleans, integers (bigint), floats (number), strings,
// lists, mappings, functions, and undefined values.

import { classOf, type ErrorKind } from '../../values/errors.js';

export type Value = null | boolean | bigint | number | string | List | Dict | Func | Missing;

/** A macro, a method or a global function. */
export type Func = (c: Call) => Value;

/** The size of lists and mappings is bounded, which may share and repeat one another; {@link seal} measures it. */
class Measured {
  /** The number of values within, each as often as it appears; 0 before it is measured. */
  size = 0;
  /** How deep they are nested. */
  depth = 0;
}

export class List extends Measured {
  constructor(readonly items: readonly Value[], readonly tuple = false) { super(); }
}

/** What a mapping has an item of. */
export type Key = string | bigint;

export class Dict extends Measured {
  /** A namespace, with settable attributes. */
  space = false;
  /** A namespace or the variable loop, which has no text and equals itself alone. */
  opaque = false;
  constructor(readonly values = new Map<Key, Value>()) { super(); }
  /** The item of a key; undefined if there is none. */
  item(key: Value): Value | undefined { return this.values.get(key as Key); }
}

/** What a name without a value has. */
export class Missing { constructor(readonly name: string) {} }

/** The arguments of a function. */
export interface Call {
  readonly run: Budget;
  readonly args: readonly Value[];
  readonly named: ReadonlyMap<string, Value>;
  /** An argument by its position or name, otherwise a default. */
  arg(i: number, name: string, otherwise: Value): Value;
  /** An argument that is a string. */
  text(i: number, name: string, otherwise?: string): string;
  /** An argument that is an integer. */
  int(i: number, name: string, otherwise: number): number;
  /** The same call with other arguments. */
  with(args: readonly Value[]): Call;
}

/** What a run may still do. */
export interface Budget {
  readonly now: Date;
  /** Takes steps. */
  spend(steps: number): void;
  /** Takes steps for an operation that reads values as a whole. */
  pay(...values: Value[]): void;
  /** The items of a value, for steps. */
  items(v: Value): readonly Value[];
  /** Calls a function one deeper. */
  deeper<T>(call: () => T): T;
}

/** An error without the line, which the node that is evaluated adds. */
export class Failure extends Error {
  constructor(readonly kind: ErrorKind, reason: string) { super(reason); }
}
export const refuse = (reason: string): Failure => new Failure('attr', reason);
export const beyond = (reason: string): Failure => new Failure('limit', reason);

// Bounds of a template, its values and its text.
export const maxDepth = 100, maxOutput = 16 << 20;
const maxSize = 1 << 22;

/** Measures a value that is new: the number of values in it. Those within it are measured, but for new ones. */
export function seal(v: Value): number {
  if (typeof v === 'string') return 1 + (v.length >> 6);
  if (!(v instanceof List) && !(v instanceof Dict) || v instanceof Dict && v.opaque) return 1;
  if (v.size) return v.size;
  let size = 1, depth = 0;
  const add = (kid: Value) => {
    size += seal(kid);
    if (kid instanceof Measured && !(kid instanceof Dict && kid.opaque)) depth = Math.max(depth, kid.depth + 1);
    if (size > maxSize || depth > maxDepth) throw beyond(`a value has more than ${maxSize} values in it, or they are nested more than ${maxDepth} deep`);
  };
  if (v instanceof List) v.items.forEach(add);
  else {
    for (const [key, kid] of v.values) {
      size += 1 + (String(key).length >> 6);
      add(kid);
    }
  }
  v.depth = depth;
  return v.size = size;
}

/** The name of a value's type in errors. */
export function typeName(v: Value): string {
  if (v === null) return 'none';
  if (v instanceof List) return 'a list';
  if (v instanceof Dict) return 'a mapping';
  if (v instanceof Missing) return `undefined (${v.name})`;
  return { boolean: 'a boolean', bigint: 'an integer', number: 'a float', string: 'a string' }[typeof v as string] ?? 'a function';
}

export function truth(v: Value): boolean {
  if (v instanceof List) return v.items.length > 0;
  if (v instanceof Dict) return v.opaque || v.values.size > 0;
  return !(v instanceof Missing) && !!v;
}

/** A value as an integer if it is one; booleans are 0 and 1. */
export const integer = (v: Value): bigint | undefined => typeof v === 'boolean' ? BigInt(v) : typeof v === 'bigint' ? v : undefined;

/** A value as a float if it is a number. */
export const number = (v: Value): number | undefined => typeof v === 'number' ? v : typeof v === 'boolean' || typeof v === 'bigint' ? Number(v) : undefined;

export function same(a: Value, b: Value): boolean {
  const x = number(a), y = number(b);
  if (x !== undefined || y !== undefined) return x === y;
  if (a instanceof Missing) return b instanceof Missing;
  if (a instanceof List) return b instanceof List && a.items.length === b.items.length && a.items.every((item, i) => same(item, b.items[i]!));
  if (!(a instanceof Dict) || !(b instanceof Dict) || a.opaque || b.opaque) return a === b && typeof a !== 'function';
  return a.values.size === b.values.size && [...a.values].every(([key, item]) => b.values.has(key) && same(item, b.values.get(key)!));
}

/** Compares numbers and strings: negative, 0 or positive. */
export function order(a: Value, b: Value): number {
  const x = number(a), y = number(b);
  if (x !== undefined && y !== undefined) return Number(x > y) - Number(x < y);
  if (typeof a !== 'string' || typeof b !== 'string') throw refuse(`${typeName(a)} and ${typeName(b)} have no order`);
  return orderOfTexts(a, b);
}

/** Compares by code points. */
export function orderOfTexts(a: string, b: string): number {
  let i = 0;
  while (i < a.length && a[i] === b[i]) i++;
  if (i > 0 && /[\udc00-\udfff]/.test((a[i] ?? '') + (b[i] ?? ''))) i--; // within a character
  return (a.codePointAt(i) ?? -1) - (b.codePointAt(i) ?? -1);
}

/** The text of a float as Python writes it: the shortest that is read back, with a point or an exponent. */
export function floatText(x: number): string {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? 'nan' : x > 0 ? 'inf' : '-inf';
  const size = Math.abs(x);
  if (size && (size < 1e-4 || size >= 1e16)) return x.toExponential().replace(/([+-])(\d)$/, '$10$2');
  const digits = Object.is(x, -0) ? '-0' : String(x);
  return digits.includes('.') ? digits : `${digits}.0`;
}

const escapes: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** The text of a string as Python's repr writes it. */
function repr(s: string): string {
  const quote = s.includes("'") && !s.includes('"') ? '"' : "'";
  return quote + s.replace(/[\0-\x1f\x7f\\'"]/g, (c) => c === '\\' || c === quote ? `\\${c}` : c >= ' ' && c !== '\x7f' ? c : escapes[c] ?? `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`) + quote;
}

/** The text of a value, as Python's str writes it; with quotes, as repr does. */
export function textOf(v: Value, quotes = false): string {
  if (typeof v === 'string') return quotes ? repr(v) : v;
  if (v === null) return 'None';
  if (typeof v === 'boolean') return v ? 'True' : 'False';
  if (typeof v === 'bigint') return String(v);
  if (typeof v === 'number') return floatText(v);
  if (v instanceof List) {
    const items = v.items.map((item) => textOf(item, true)).join(', ');
    return v.tuple ? `(${items}${v.items.length === 1 ? ',' : ''})` : `[${items}]`;
  }
  if (v instanceof Dict) return v.opaque ? '<namespace>' : `{${[...v.values].map(([key, item]) => `${textOf(key, true)}: ${textOf(item, true)}`).join(', ')}}`;
  return '';
}

/** The items of a list, the keys of a mapping or the characters of a string; undefined for other values. */
export function itemsOf(v: Value): readonly Value[] | undefined {
  if (v instanceof List) return v.items;
  if (v instanceof Dict) return [...v.values.keys()];
  if (v instanceof Missing) return [];
  return typeof v === 'string' ? [...v] : undefined;
}

export function iterate(v: Value): readonly Value[] {
  const items = itemsOf(v);
  if (!items) throw refuse(`${typeName(v)} has no items`);
  return items;
}

/** The value v[i]. */
export function index(v: Value, i: Value): Value {
  if (v instanceof Missing) throw refuse(`${v.name} is not defined: it has no items`);
  if (v instanceof Dict) {
    const item = v.item(i);
    return item === undefined ? new Missing(textOf(i)) : item;
  }
  const at = integer(i);
  return (at === undefined ? undefined : itemsOf(v)?.at(Number(at))) ?? missingOrNull(v, at, i);
}

/** None for a position in a list, undefined elsewhere. */
function missingOrNull(v: Value, at: bigint | undefined, i: Value): Value {
  return v instanceof List && at !== undefined && v.items.at(Number(at)) === null ? null : new Missing(textOf(i));
}

/** The value v[start:stop:step]; bounds that are not given are undefined. */
export function slice(v: Value, [from, to, by]: readonly (Value | undefined)[]): Value {
  const items = v instanceof Dict ? undefined : itemsOf(v);
  if (!items) throw refuse(`${typeName(v)} has no slices`);
  const n = items.length, step = by === undefined || by === null ? 1 : Number(integer(by) ?? 0n);
  if (!step) throw refuse(`the step of a slice is ${textOf(by!)}: it must be an integer other than 0`);
  const low = step < 0 ? -1 : 0, high = step < 0 ? n - 1 : n;
  const bound = (given: Value | undefined, otherwise: number) => {
    if (given === undefined || given === null) return otherwise;
    const at = integer(given);
    if (at === undefined) throw refuse(`a bound of a slice is ${typeName(given)}: it must be an integer`);
    return Math.min(Math.max(Number(at) + (at < 0n ? n : 0), low), high);
  };
  const start = bound(from, step < 0 ? high : low), stop = bound(to, step < 0 ? low : high), out: Value[] = [];
  for (let i = start; step > 0 ? i < stop : i > stop; i += step) out.push(items[i]!);
  return typeof v === 'string' ? out.join('') : new List(out);
}

/**
 * Converts a value of the page to one of a template: objects are mappings, whole numbers integers.
 * `quote` rewrites strings within lists and mappings.
 */
export function fromPage(v: unknown, quote: (text: string) => string, depth = 0): Value {
  if (depth > maxDepth) throw beyond(`a value is nested more than ${maxDepth} deep`);
  const text = (s: string) => depth > 1 ? quote(s) : s, inner = (item: unknown) => fromPage(item, quote, depth + 1);
  if (v === null || typeof v === 'boolean') return v;
  if (typeof v === 'string') return text(v);
  if (typeof v === 'bigint') return BigInt.asIntN(64, v);
  if (typeof v === 'number') return Number.isSafeInteger(v) && !Object.is(v, -0) ? BigInt(v) : v;
  if (Array.isArray(v) || ArrayBuffer.isView(v)) return new List(Array.from(v as unknown as ArrayLike<unknown>, inner));
  if (typeof v !== 'object' || classOf(v) !== 'Object' && !(v instanceof Map)) throw refuse(`a value of the class ${classOf(v)}`);
  const d = new Dict();
  for (const [key, item] of v instanceof Map ? v : Object.entries(v)) if (item !== undefined) d.values.set(depth ? quote(String(key)) : String(key), inner(item));
  return d;
}
