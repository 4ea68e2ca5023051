// The methods of Python that templates call, and the functions that a template finds by their names.

import { beyond, type Call, Dict, Failure, type Func, integer, List, maxOutput, Missing, refuse, same, textOf, truth, typeName, type Value } from './value.js';

/** A method, a filter or a test: it takes a value and arguments. */
export type Method = (c: Call, v: Value) => Value;
/** A method of strings. */
type TextMethod = (c: Call, s: string) => Value;

// Python's white space: Unicode's and four ASCII separators.
const space = String.raw`[\p{White_Space}\x1c-\x1f]`;
const begins = new RegExp(`^${space}+`, 'u'), isSpaces = new RegExp(`^${space}+$`, 'u'), spaces = new RegExp(`${space}+`, 'u'), oneSpace = new RegExp(space, 'u');

/** The number of characters of a text. */
export const lengthOf = (s: string): number => {
  let n = s.length;
  for (let i = 1; i < s.length; i++) if ((s.charCodeAt(i) & 0xfc00) === 0xdc00 && (s.charCodeAt(i - 1) & 0xfc00) === 0xd800) n--;
  return n;
};

/** A text without the characters at its ends that are white space, or those of a set. */
export function stripped(s: string, left: boolean, right: boolean, set?: string): string {
  const drops = set === undefined ? (c: string) => oneSpace.test(c) : (c: string) => set.includes(c), letters = [...s];
  let from = 0, to = letters.length;
  while (left && from < to && drops(letters[from]!)) from++;
  while (right && to > from && drops(letters[to - 1]!)) to--;
  return letters.slice(from, to).join('');
}

const stripping = (left: boolean, right: boolean): TextMethod => (c, s) => {
  const set = c.arg(0, 'chars', null);
  return stripped(s, left, right, set === null ? undefined : textOf(set));
};

export const capitalize = (s: string): string => s.replace(/^[^]/u, (c) => c.toUpperCase()).replace(/(?<=^[^])[^]+/u, (rest) => rest.toLowerCase());
/** Whether a text has letters, all of which are in the case: Python's methods, and the tests `upper` and `lower`. */
export const isUpper = (s: string): boolean => s.toUpperCase() === s && s.toLowerCase() !== s, isLower = (s: string): boolean => s.toLowerCase() === s && s.toUpperCase() !== s;

/** Capitals where an expression matches a letter. */
const titled = (at: RegExp) => (s: string): string => s.toLowerCase().replace(at, (letter) => letter.toUpperCase());
export const title = titled(/(?<=^|[\p{White_Space}([{<-])[^]/gu);
/** str.title of Python, to which all but letters separate words. */
const words = titled(/(?<!\p{Cased})\p{Cased}/gu);

/** startswith or endswith, of a string or one of a tuple. */
const affix = (has: (s: string, t: string) => boolean): TextMethod => (c, s) => {
  const given = c.arg(0, '', null);
  return given instanceof List ? given.items.some((t) => has(s, textOf(t))) : has(s, c.text(0, ''));
};

const withText = (f: (s: string, t: string) => Value): TextMethod => (c, s) => f(s, c.text(0, ''));
/** An index of the text as one in characters; -1 stays. */
const position = (s: string, i: number): bigint => BigInt(i < 0 ? -1 : lengthOf(s.slice(0, i)));
/** How often a text is in another. */
function count(s: string, t: string): number {
  if (!t) return lengthOf(s) + 1;
  let n = 0;
  for (let at = 0; (at = s.indexOf(t, at)) >= 0; at += t.length) n++;
  return n;
}
const every = (class_: string): TextMethod => (_, s) => new RegExp(`^${class_}+$`, 'u').test(s);

/** Divides a string at a separator or at white space, at most maxsplit times, from the right for rsplit. */
const splitting = (right: boolean): TextMethod => (c, s) => {
  const most = c.int(1, 'maxsplit', -1), separator = c.arg(0, 'sep', null);
  if (separator !== null && typeof separator !== 'string') throw refuse(`the separator of split is ${typeName(separator)}: it must be a string`);
  if (separator === '') throw refuse('the separator of split is empty');
  const parts = separator === null ? fields(s, most, right) : separated(s, separator, most, right);
  c.run.spend(parts.length);
  return new List(parts);
};

function separated(s: string, separator: string, most: number, right: boolean): string[] {
  const parts = s.split(separator), extra = parts.length - 1 - most;
  if (most < 0 || extra <= 0) return parts;
  return right ? [parts.slice(0, extra + 1).join(separator), ...parts.slice(extra + 1)] : [...parts.slice(0, most), parts.slice(most).join(separator)];
}

/** Divides at white space, at most `most` times, from the right for rsplit. */
function fields(s: string, most: number, right: boolean): string[] {
  if (most < 0) return s.split(spaces).filter(Boolean);
  const parts: string[] = [];
  for (let rest = stripped(s, !right, right); rest;) {
    const at = parts.length === most ? -1 : right ? lastSpace(rest) : rest.search(spaces);
    if (at < 0) {
      parts.push(rest);
      break;
    }
    parts.push(right ? rest.slice(at + 1) : rest.slice(0, at));
    rest = right ? stripped(rest.slice(0, at), false, true) : rest.slice(at).replace(begins, '');
  }
  return right ? parts.reverse() : parts;
}

function lastSpace(s: string): number {
  let at = s.length - 1;
  while (at >= 0 && !oneSpace.test(s[at]!)) at--;
  return at;
}

/** Fills {} and {0} with arguments, {name} with those of a name. */
const format: TextMethod = (c, s) => {
  let next = 0, size = 0;
  const out = s.replace(/\{\{|\}\}|\{([^{}]*)\}|[{}]/g, (all, field?: string) => {
    if (all === '{{' || all === '}}') return all[0]!;
    if (field === undefined) throw refuse('a brace of format stands alone');
    const v = c.arg(field === '' ? next++ : /^\d+$/.test(field) ? Number(field) : c.args.length, field, new Missing(field));
    if (v instanceof Missing) throw refuse(`format has no value for {${field}}`);
    const text = textOf(v);
    if ((size += text.length) > maxOutput) throw beyond(`a text has more than ${maxOutput} characters`);
    return text;
  });
  c.run.spend(out.length >> 6);
  return out;
};

const splitLines: TextMethod = (c, s) => {
  const keep = truth(c.arg(0, 'keepends', false)), lines = s.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  c.run.spend(lines.length);
  return new List(keep ? lines : lines.map((line) => line.replace(/\r?\n$/, '')));
};

/** Writes another text for each place of one, or for the first of them. */
export function replaceText(c: Call, v: Value): Value {
  if (c.args.length < 2) throw refuse(`replace takes two arguments, and ${c.args.length} are given`);
  const most = c.int(2, 'count', -1), s = textOf(v), from = textOf(c.args[0]!), to = textOf(c.args[1]!);
  const places = count(s, from), grown = places * Math.max(0, to.length - from.length);
  if (grown > maxOutput) throw beyond(`a text has more than ${maxOutput} characters`);
  c.run.spend((s.length + grown >> 6) + places);
  if (most < 0) return from ? s.split(from).join(to) : to + Array.from(s, (letter) => letter + to).join('');
  const parts = from ? s.split(from) : ['', ...s], kept = Math.min(most, from ? parts.length - 1 : parts.length);
  return parts.map((part, i) => part + (i < kept ? to : i < parts.length - 1 ? from : '')).join('');
}

/** The items of a value joined by a text. */
export function joined(c: Call, items: readonly Value[], between: string): string {
  const texts = items.map((item) => textOf(item)), size = texts.reduce((sum, { length }) => sum + length + between.length, 0);
  if (size > maxOutput) throw beyond(`a text has more than ${maxOutput} characters`);
  c.run.spend(size >> 6);
  return texts.join(between);
}

const textMethods: Readonly<Record<string, TextMethod>> = {
  strip: stripping(true, true), lstrip: stripping(true, false), rstrip: stripping(false, true),
  upper: (_, s) => s.toUpperCase(), lower: (_, s) => s.toLowerCase(), title: (_, s) => words(s), capitalize: (_, s) => capitalize(s),
  startswith: affix((s, t) => s.startsWith(t)), endswith: affix((s, t) => s.endsWith(t)),
  removeprefix: withText((s, t) => s.startsWith(t) ? s.slice(t.length) : s), removesuffix: withText((s, t) => t && s.endsWith(t) ? s.slice(0, -t.length) : s),
  count: withText((s, t) => BigInt(count(s, t))), find: withText((s, t) => position(s, s.indexOf(t))), rfind: withText((s, t) => position(s, s.lastIndexOf(t))),
  replace: replaceText, split: splitting(false), rsplit: splitting(true), splitlines: splitLines, format,
  join: (c, s) => joined(c, c.run.items(c.arg(0, 'iterable', null)), s),
  isdigit: every(String.raw`\p{Nd}`), isalpha: every(String.raw`\p{L}`), isspace: (_, s) => isSpaces.test(s),
  isupper: (_, s) => isUpper(s), islower: (_, s) => isLower(s),
};

const listMethods: Readonly<Record<string, Method>> = {
  index: (c, v) => {
    const i = (v as List).items.findIndex((item) => same(item, c.arg(0, '', null)));
    if (i < 0) throw refuse('the list has no such item');
    return BigInt(i);
  },
  count: (c, v) => BigInt((v as List).items.filter((item) => same(item, c.arg(0, '', null))).length),
};

/** The pairs of a mapping. */
export function pairs(c: Call, v: Value): List {
  if (v instanceof Missing) return new List([]);
  if (!(v instanceof Dict)) throw refuse(`${typeName(v)} has no items`);
  c.run.spend(v.values.size);
  return new List(Array.from(v.values, (pair) => new List(pair, true)));
}

const dictMethods: Readonly<Record<string, Method>> = {
  items: pairs, keys: (c, v) => new List(c.run.items(v)), values: (_, v) => new List([...(v as Dict).values.values()]),
  get: (c, v) => {
    const found = (v as Dict).item(c.arg(0, 'key', ''));
    return found === undefined ? c.arg(1, 'default', null) : found;
  },
};

/** The value v.name: a method, or an item of a mapping. */
export function attribute(v: Value, name: string): Value {
  if (v instanceof Missing) throw refuse(`${v.name} is not defined: it has no attribute ${name}`);
  if (v instanceof Dict) {
    if (Object.hasOwn(dictMethods, name) && !v.space) return bind(dictMethods[name]!, v);
    return v.values.has(name) ? v.values.get(name)! : new Missing(name);
  }
  if (typeof v === 'string' && Object.hasOwn(textMethods, name)) return bind((c) => textMethods[name]!(c, v), v);
  if (v instanceof List && Object.hasOwn(listMethods, name)) return bind(listMethods[name]!, v);
  return new Missing(name);
}

const bind = (method: Method, v: Value): Func => (c) => {
  c.run.pay(v);
  return method(c, v);
};

/** A bound on the numbers of a range, as jinja2's sandbox has it. */
const maxRange = 100000;

const range: Func = (c) => {
  const { length } = c.args;
  if (length < 1 || length > 3) throw refuse(`range takes one to three arguments, and ${length} are given`);
  const [first, second, step = 1] = c.args.map((_, i) => c.int(i, '', 0)), [start, stop] = second === undefined ? [0, first!] : [first!, second], out: bigint[] = [];
  if (!step) throw refuse('the step of range is 0');
  for (let i = start; step > 0 ? i < stop : i > stop; i += step) {
    if (out.length === maxRange) throw beyond(`a range has more than ${maxRange} numbers`);
    out.push(BigInt(i));
  }
  c.run.spend(out.length);
  return new List(out);
};

/** A mapping of the arguments with names, and of those of another mapping. */
const mapping = (space: boolean): Func => (c) => {
  const of = c.arg(0, '', null), d = new Dict(new Map([...of instanceof Dict ? of.values : [], ...c.named]));
  d.space = d.opaque = space;
  return d;
};

const pad = (n: number, digits = 2): string => String(n).padStart(digits, '0');
const english = (now: Date, options: Intl.DateTimeFormatOptions): string => now.toLocaleString('en-US', options);

/** The directives of strftime. */
const dates: Readonly<Record<string, (now: Date) => string>> = {
  d: (t) => pad(t.getDate()), m: (t) => pad(t.getMonth() + 1), Y: (t) => pad(t.getFullYear(), 4), y: (t) => pad(t.getFullYear() % 100),
  B: (t) => english(t, { month: 'long' }), b: (t) => english(t, { month: 'short' }), A: (t) => english(t, { weekday: 'long' }), a: (t) => english(t, { weekday: 'short' }),
  H: (t) => pad(t.getHours()), I: (t) => pad((t.getHours() + 11) % 12 + 1), M: (t) => pad(t.getMinutes()), S: (t) => pad(t.getSeconds()), p: (t) => t.getHours() < 12 ? 'AM' : 'PM',
  j: (t) => pad(Math.round((Date.UTC(t.getFullYear(), t.getMonth(), t.getDate()) - Date.UTC(t.getFullYear(), 0, 0)) / 864e5), 3),
  Z: (t) => english(t, { timeZoneName: 'short' }).split(' ').at(-1)!,
  z: (t) => (t.getTimezoneOffset() > 0 ? '-' : '+') + pad(Math.abs(Math.trunc(t.getTimezoneOffset() / 60))) + pad(Math.abs(t.getTimezoneOffset() % 60)),
};

const strftime: Func = (c) => c.text(0, 'format').replace(/%(-?)([^])/gu, (_, plain: string, directive: string) => {
  if (directive === '%') return '%';
  if (!Object.hasOwn(dates, directive)) throw refuse(`the directive %${directive} of strftime_now is not known`);
  const text = dates[directive]!(c.run.now);
  return plain ? text.replace(/^0+(?=.)/, '') : text;
});

/** The functions that a template finds by their names. */
export const globals: Readonly<Record<string, Func>> = {
  range, namespace: mapping(true), dict: mapping(false), strftime_now: strftime,
  raise_exception: (c) => { throw new Failure('rule', textOf(c.arg(0, 'message', ''))); },
};

/** A number of an argument as an integer, for filters. */
export const wholeOf = (v: Value): bigint => {
  const n = integer(v);
  if (n === undefined) throw refuse(`${typeName(v)} is no integer`);
  return n;
};
