import { binary, integers, relation } from './operators.js';
import { type JsonForm, jsonOf } from './json.js';
import { attribute, capitalize, isLower, isUpper, joined, lengthOf, type Method, pairs, replaceText, stripped, title, wholeOf } from './methods.js';
import { type Call, Dict, Failure, index, integer, itemsOf, iterate, List, Missing, number, order, refuse, same, textOf, truth, typeName, type Value } from './value.js';

const ofText = (f: (s: string) => string): Method => (c, v) => {
  const s = textOf(v);
  c.run.spend(s.length >> 6);
  return f(s);
};
/** A filter of the items of a value. */
const ofItems = (f: (items: readonly Value[], c: Call, v: Value) => Value): Method => (c, v) => f(c.run.items(v), c, v);
/** The items of a value; none has no items. */
const itemsOrNone = (c: Call, v: Value): readonly Value[] => v === null ? [] : c.run.items(v);

const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', "'": '&#39;', '"': '&#34;' };
const escape = ofText((s) => s.replace(/[&<>'"]/g, (c) => escapes[c]!));

/** A bound on the spaces before a line. */
const maxIndent = 1024;

const toJSON: Method = (c, v) => {
  const given = c.arg(0, 'indent', null), width = given === null ? undefined : Number(integer(given) ?? -1n), separators = c.named.get('separators');
  if (width !== undefined && !(width >= 0 && width <= maxIndent)) throw refuse(`indent is ${textOf(given)}: it must be from 0 to ${maxIndent}`);
  const [item, key] = separators instanceof List && separators.items.length === 2 ? separators.items.map((one) => textOf(one)) : [width === undefined ? ', ' : ',', ': '];
  const is = (name: string) => truth(c.named.get(name) ?? false), form: JsonForm = { indent: width === undefined ? undefined : ' '.repeat(width), item: item!, key: key!, sorted: is('sort_keys'), ascii: is('ensure_ascii') };
  const out = jsonOf(v, form);
  c.run.spend(out.length >> 6);
  return out;
};

const length: Method = (_, v) => {
  if (typeof v === 'string') return BigInt(lengthOf(v));
  if (v instanceof Dict) return BigInt(v.values.size);
  const items = itemsOf(v);
  if (!items) throw refuse(`${typeName(v)} has no length`);
  return BigInt(items.length);
};

const byDefault: Method = (c, v) => v instanceof Missing || truth(c.arg(1, 'boolean', false)) && !truth(v) ? c.arg(0, 'default_value', '') : v;

/** The first item, or the last. */
const end = (i: bigint): Method => (_, v) => {
  iterate(v);
  return index(v instanceof Dict ? new List(iterate(v)) : v instanceof Missing ? new List([]) : v, i);
};

const parsed = (s: string): number => /^[+-]?(\d+(_\d+)*\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(s) ? Number(s.replaceAll('_', '')) : NaN;
const fits = (x: number): bigint | undefined => Math.abs(x) < 2 ** 62 ? BigInt(Math.trunc(x)) : undefined;

const toInt: Method = (c, v) => {
  const text = typeof v === 'string' ? stripped(v, true, true) : '';
  const n = typeof v === 'number' ? fits(v) : typeof v !== 'string' ? integer(v) : /^[+-]?\d+$/.test(text) ? BigInt(text.replace('+', '')) : fits(parsed(text));
  return n !== undefined && BigInt.asIntN(64, n) === n ? n : c.arg(0, 'default', 0n);
};

const toFloat: Method = (c, v) => {
  const x = typeof v === 'string' ? parsed(stripped(v, true, true)) : number(v);
  return x === undefined || Number.isNaN(x) ? c.arg(0, 'default', 0) : x;
};

const absolute: Method = (_, v) => {
  const n = integer(v);
  if (n === undefined && typeof v !== 'number') throw refuse(`${typeName(v)} has no absolute value`);
  return n === undefined ? Math.abs(v as number) : n < 0n ? -n : n;
};

/** Rounds to the nearest integer, of two equally near to the even one. */
const toEven = (x: number): number => Math.abs(x % 1) === 0.5 ? 2 * Math.round(x / 2) : Math.round(x);
const roundings: Readonly<Record<string, (x: number) => number>> = { common: toEven, ceil: Math.ceil, floor: Math.floor };

const round: Method = (c, v) => {
  const x = number(v), digits = c.int(0, 'precision', 0), how = textOf(c.arg(1, 'method', 'common'));
  if (x === undefined || digits < 0 || digits > 15 || !Object.hasOwn(roundings, how)) throw refuse(`${typeName(v)} cannot be rounded: ${how}, ${digits}`);
  return (how === 'common' ? integer(v) : undefined) ?? roundings[how]!(x * 10 ** digits) / 10 ** digits;
};

/** Items, or an attribute of each where an argument names one. */
const byAttribute = (items: readonly Value[], name: Value): readonly Value[] => name === null ? items : items.map((item) => attributePath(item, name));

const sum = ofItems((items, c) => byAttribute(items, c.arg(0, 'attribute', null)).reduce((total, item) => binary(c.run, '+', total, item), c.arg(1, 'start', 0n)));

/** min or max, by the sign. */
const extreme = (sign: number) => ofItems((items) => items.length ? items.reduce((best, item) => order(item, best) * sign > 0 ? item : best) : new Missing('an item of an empty list'));

/** Sorts items by keys; letters of either case are equal. */
function sorted(items: readonly Value[], keys: readonly Value[], descending: boolean): List {
  const lowered = keys.map((key) => typeof key === 'string' ? key.toLowerCase() : key), sign = descending ? -1 : 1;
  return new List([...items.keys()].sort((i, j) => sign * order(lowered[i]!, lowered[j]!)).map((i) => items[i]!));
}

const sort = ofItems((items, c) => sorted(items, byAttribute(items, c.arg(2, 'attribute', null)), truth(c.arg(0, 'reverse', false))));

const dictSort: Method = (c, v) => {
  const { items } = pairs(c, v), by = textOf(c.arg(1, 'by', 'key')) === 'value' ? 1 : 0;
  return sorted(items, items.map((pair) => (pair as List).items[by]!), truth(c.arg(2, 'reverse', false)));
};

const unique = ofItems((items, c) => {
  const out: Value[] = [];
  for (const item of items) {
    c.run.spend(out.length);
    if (!out.some((other) => same(item, other))) out.push(item);
  }
  return new List(out);
});

const reverse = ofItems((items, _, v) => {
  const out = [...items].reverse();
  return typeof v === 'string' ? out.join('') : new List(out);
});

const indent: Method = (c, v) => {
  const width = c.int(0, 'width', 4), lines = textOf(v).split('\n'), first = truth(c.arg(1, 'first', false)), blank = truth(c.arg(2, 'blank', false));
  if (width < 0 || width > maxIndent) throw refuse(`the width of indent must be from 0 to ${maxIndent}`);
  c.run.spend(lines.length * (1 + (width >> 6)));
  return lines.map((line, i) => (i ? line || blank : first) ? ' '.repeat(width) + line : line).join('\n');
};

/** The value a.b of an item by "a.b", or an item of a list by its number. */
function attributePath(v: Value, name: Value): Value {
  if (integer(name) !== undefined) return index(v, name);
  return textOf(name).split('.').reduce((of, part) => /^-?\d+$/.test(part) ? index(of, BigInt(part)) : of instanceof Dict ? index(of, part) : attribute(of, part), v);
}

/** Calls the filter or test that the first of some arguments names, with the others. */
function applied(of: ReadonlyMap<string, Method>, kind: string, c: Call, [name, ...args]: readonly Value[], v: Value): Value {
  if (name === undefined) throw refuse(`the name of a ${kind} is missing`);
  const method = of.get(textOf(name));
  if (!method) throw refuse(`the ${kind} "${textOf(name)}" is not known`);
  return c.run.deeper(() => method(c.with(args), v));
}

/** Applies a filter to each item, or takes an attribute of each. */
const map: Method = (c, v) => new List(itemsOrNone(c, v).map((item) => {
  const name = c.named.get('attribute');
  if (name === undefined) return applied(filters, 'filter', c, c.args, item);
  const found = attributePath(item, name);
  return found instanceof Missing && c.named.has('default') ? c.named.get('default')! : found;
}));

/** Keeps the items, or those with the attribute that the first argument names, for which a test holds or does not. */
const selecting = (keep: boolean, attributes: boolean): Method => (c, v) => {
  const items = itemsOrNone(c, v), args = attributes ? c.args.slice(1) : c.args;
  if (attributes && !c.args.length) throw refuse('the name of an attribute is missing');
  return new List(items.filter((item) => {
    const held = attributes ? attributePath(item, c.args[0]!) : item;
    return truth(args.length ? applied(tests, 'test', c, args, held) : held) === keep;
  }));
};

const remainder = (of: bigint, by: bigint): Method => (_, v) => ((wholeOf(v) % by) + by) % by === of;
/** A test by a comparison. */
const related = (op: string): Method => (c, v) => {
  if (c.args.length !== 1) throw refuse(`the test takes one argument, and ${c.args.length} are given`);
  return relation(op, v, c.args[0]!);
};
const trim: Method = (c, v) => {
  const set = c.arg(0, 'chars', null);
  return stripped(textOf(v), true, true, set === null ? undefined : textOf(set));
};
const list = ofItems((items) => new List(items)), lower = ofText((s) => s.toLowerCase()), upper = ofText((s) => s.toUpperCase());

/** The filters by their names. */
function filterTable(): ReadonlyMap<string, Method> {
  return new Map(Object.entries<Method>({
    trim, strip: trim, tojson: toJSON, length, count: length, list, upper, lower, capitalize: ofText(capitalize), title: ofText(title), string: (_, v) => textOf(v), safe: (_, v) => v,
    join: ofItems((items, c) => joined(c, byAttribute(items, c.arg(1, 'attribute', null)), textOf(c.arg(0, 'd', '')))),
    default: byDefault, d: byDefault, first: end(0n), last: end(-1n), replace: replaceText, int: toInt, float: toFloat, abs: absolute, round, sum,
    min: extreme(-1), max: extreme(1), sort, unique, reverse, items: pairs, dictsort: dictSort, indent, map,
    select: selecting(true, false), reject: selecting(false, false), selectattr: selecting(true, true), rejectattr: selecting(false, true),
    attr: (c, v) => attribute(v, c.text(0, 'name')), e: escape, escape,
  }));
}

const is = (test: (v: Value) => boolean): Method => (_, v) => test(v);
const iterable = is((v) => itemsOf(v) !== undefined);

/** The tests by their names. */
function testTable(): ReadonlyMap<string, Method> {
  return new Map(Object.entries<Method>({
    defined: is((v) => !(v instanceof Missing)), undefined: is((v) => v instanceof Missing), none: is((v) => v === null), string: is((v) => typeof v === 'string'),
    boolean: is((v) => typeof v === 'boolean'), integer: is((v) => typeof v === 'bigint'), float: is((v) => typeof v === 'number'), mapping: is((v) => v instanceof Dict),
    callable: is((v) => typeof v === 'function'), number: is((v) => number(v) !== undefined), true: is((v) => v === true), false: is((v) => v === false),
    iterable, sequence: iterable, odd: remainder(1n, 2n), even: remainder(0n, 2n),
    divisibleby: (c, v) => integers('%', wholeOf(v), BigInt(c.int(0, 'num', 0))) === 0n,
    lower: is((v) => isLower(textOf(v))), upper: is((v) => isUpper(textOf(v))),
    in: related('in'), eq: related('=='), equalto: related('=='), '==': related('=='), ne: related('!='), '!=': related('!='),
    lt: related('<'), le: related('<='), gt: related('>'), ge: related('>='), lessthan: related('<'), greaterthan: related('>'),
  }));
}

const filters = filterTable(), tests = testTable();

/** The filter or test of a name. One that is not known is an error where it is reached, as in jinja2: templates ask before they use what not all have. */
export function named(kind: 'filter' | 'test', name: string): Method {
  const found = (kind === 'filter' ? filters : tests).get(name);
  if (!found) throw new Failure('syntax', `the ${kind} "${name}" is not known`);
  return found;
}
