// The grammar of the values that a JSON schema describes: that of the Go package native/lm/generate.

import { classOf, RlxError, shown } from '../../values/errors.js';
import { Machine, type Rule } from './machine.js';

/** A JSON schema: an object or a boolean. */
export type Schema = boolean | { readonly [key: string]: unknown };

// Bounds of a schema: of its symbols, its depth, minItems and maxItems; the digits of a number, and the spaces of an indent.
const maxSymbols = 1 << 15, maxDepth = 200, maxItems = 1024, maxDigits = 16, maxIndent = 16;

/** Keywords that restrict values, and those that restrict nothing. */
const known = ['type', 'properties', 'required', 'additionalProperties', 'items', 'minItems', 'maxItems', 'enum', 'const', 'anyOf', 'oneOf', '$ref'];
/** Those beside which only a type may be: a conjunction is not computed. */
const alone = ['$ref', 'const', 'enum', 'anyOf', 'oneOf'];
const ignored = ['title', 'description', 'default', 'examples', '$schema', '$id', '$comment', '$defs', 'definitions'];

const isObject = (x: unknown): x is { readonly [key: string]: unknown } => Object(x) === x && !Array.isArray(x);
const isNames = (x: unknown): x is string[] => Array.isArray(x) && x.every((name) => typeof name === 'string');

/** An error for a schema. */
const refused = (text: string): RlxError => new RlxError('attr', `the JSON schema ${text}`);

/** A schema as it is given: as an object, a boolean, or the text of one. */
export function readSchema(given: Schema | string): unknown {
  if (typeof given !== 'string') return given;
  try {
    return JSON.parse(given);
  } catch (cause) {
    throw new RlxError('attr', `the JSON schema is malformed: ${(cause as Error).message}`, { cause });
  }
}

/** The grammar of the values that a schema describes; undefined describes objects. */
export function jsonGrammar(schema: unknown): Rule {
  const c = new SchemaCompiler(schema), of = schema === undefined ? c.value.parts[0]! : c.schema(schema);
  if (!new Machine(of).first) throw refused('allows no value: it refers to itself alone');
  return c.sequence(c.space, of);
}

/** Makes the symbols of a grammar. */
export class SchemaCompiler {
  readonly space: Rule;
  /** Any value. */
  readonly value: Rule;
  readonly #root: unknown;
  readonly #refs = new Map<string, Rule>();
  #symbols = 0;
  #depth = 0;

  /** A compiler of a schema, to which its $ref refer. */
  constructor(root?: unknown) {
    this.#root = root;
    this.space = this.choice(this.sequence(), this.text(' '), this.sequence(this.text('\n'), this.#times(this.text(' '), 0, maxIndent)));
    this.value = this.choice();
    this.value.parts = [this.#anyObject(this.value), this.#array(this.value, 0), this.#string(), this.#number(), this.text('true'), this.text('false'), this.text('null')];
  }

  #add(kind: Rule['kind'], parts: Rule[], bytes = new Uint8Array()): Rule {
    if (++this.#symbols > maxSymbols) throw refused(`has more than ${maxSymbols} symbols`);
    return { kind, parts, bytes, free: false };
  }

  sequence(...parts: Rule[]): Rule { return this.#add('sequence', parts); }

  choice(...parts: Rule[]): Rule { return this.#add('choice', parts); }

  many(x: Rule): Rule { return this.#add('repeated', [x]); }

  /** A byte of a range for each pair of its ends. */
  oneOf(...ends: number[]): Rule {
    const bytes = new Uint8Array(256);
    for (let i = 0; i < ends.length; i += 2) bytes.fill(1, ends[i]!, ends[i + 1]! + 1);
    return this.#add('byte', [], bytes);
  }

  /** A byte of a range of characters for each pair of its ends. */
  #range(ends: string): Rule { return this.oneOf(...Array.from(ends, (c) => c.charCodeAt(0))); }

  text(text: string): Rule { return this.sequence(...Array.from(new TextEncoder().encode(text), (byte) => this.oneOf(byte, byte))); }

  /** x from least to most times. */
  #times(x: Rule, least: number, most: number): Rule {
    let s = this.sequence();
    for (let i = 0; i < most; i++) {
      s = this.sequence(x, s);
      if (i < most - least) s = this.choice(this.sequence(), s);
    }
    return s;
  }

  #perhaps(x: Rule): Rule { return this.choice(this.sequence(), x); }

  #string(): Rule {
    const hex = this.#range('09afAF'), escape = this.sequence(this.text('\\'), this.choice(this.#range('""\\\\//bbffnnrrtt'), this.sequence(this.text('u'), hex, hex, hex, hex)));
    return this.sequence(this.text('"'), this.many(this.choice(this.#range(' !#[]\xff'), escape)), this.text('"'));
  }

  #integer(): Rule {
    return this.sequence(this.#perhaps(this.text('-')), this.choice(this.text('0'), this.sequence(this.#range('19'), this.#times(this.#range('09'), 0, maxDigits - 1))));
  }

  #number(): Rule {
    const digit = this.#range('09'), fraction = this.sequence(this.text('.'), this.#times(digit, 1, maxDigits));
    const exponent = this.sequence(this.#range('eeEE'), this.#perhaps(this.#range('++--')), this.#times(digit, 1, 2));
    return this.sequence(this.#integer(), this.#perhaps(fraction), this.#perhaps(exponent));
  }

  /** Items between brackets, separated by commas: from least to most of them. */
  #list(open: string, close: string, item: Rule, least: number, most = Infinity): Rule {
    const next = this.sequence(this.text(','), this.space, item), first = this.sequence(this.space, item), rest = Math.max(least - 1, 0);
    let items = this.sequence();
    if (most === Infinity) items = this.sequence(first, this.#times(next, rest, rest), this.many(next));
    else if (most > 0) items = this.sequence(first, this.#times(next, rest, most - 1));
    return this.sequence(this.text(open), least === 0 ? this.#perhaps(items) : items, this.space, this.text(close));
  }

  #array(item: Rule, least: number, most?: number): Rule { return this.#list('[', ']', item, least, most); }

  #anyObject(value: Rule): Rule { return this.#list('{', '}', this.sequence(this.#string(), this.text(':'), this.space, value), 0); }

  /** The values of a schema. */
  schema(given: unknown): Rule {
    if (given === true) return this.value;
    if (given === false) throw refused('has a false, which allows no value');
    if (!isObject(given)) throw refused(`has ${shown(given).slice(0, 40)}: it must be an object or a boolean`);
    for (const name of Object.keys(given)) {
      if (!ignored.includes(name) && !known.includes(name)) throw refused(`has "${name}": supported are ${known.join(', ')}`);
    }
    const first = alone.find((name) => Object.hasOwn(given, name)), other = first && known.find((name) => name !== first && name !== 'type' && given[name] !== undefined);
    if (other) throw refused(`has "${other}" beside "${first}": only type may be beside it`);
    if (++this.#depth > maxDepth) throw refused(`is deeper than ${maxDepth} schemas`);
    const out = this.#of(given);
    this.#depth--;
    return out;
  }

  #of(k: { readonly [key: string]: unknown }): Rule {
    const listed = k.anyOf === undefined ? k.oneOf : k.anyOf;
    if (k.$ref !== undefined) return this.#ref(k.$ref);
    if ('const' in k) return this.#literals([k.const]);
    if (k.enum !== undefined) return this.#literals(k.enum);
    if (listed !== undefined) {
      if (!Array.isArray(listed)) throw refused('is malformed: anyOf and oneOf are lists');
      if (listed.length === 0) throw refused('has an empty anyOf or oneOf');
      return this.choice(...listed.map((each) => this.schema(each)));
    }
    const types = typeof k.type === 'string' ? [k.type] : k.type;
    if (types !== undefined && !(isNames(types) && types.length > 0)) throw refused(`has the type ${shown(k.type)}: it must be a name or a list of names`);
    const has = (...of: string[]) => of.some((name) => k[name] !== undefined);
    const names = types ?? (has('properties', 'required', 'additionalProperties') ? ['object'] : has('items', 'minItems', 'maxItems') ? ['array'] : []);
    this.#bounds(k);
    return names.length > 0 ? this.choice(...names.map((name) => this.#typed(name, k))) : this.value;
  }

  /** The values of a type. */
  #typed(name: string, k: { readonly [key: string]: unknown }): Rule {
    switch (name) {
      case 'string': return this.#string();
      case 'number': return this.#number();
      case 'integer': return this.#integer();
      case 'boolean': return this.choice(this.text('true'), this.text('false'));
      case 'null': return this.text('null');
      case 'array': return this.#array(k.items === undefined ? this.value : this.schema(k.items), ...this.#bounds(k));
      case 'object': return this.#object(k);
    }
    throw refused(`has the type "${name}": it must be string, number, integer, boolean, null, array or object`);
  }

  /** The least and the most items of an array. */
  #bounds({ minItems: least = 0, maxItems: most }: { readonly [key: string]: unknown }): [least: number, most?: number] {
    for (const n of [least, most === undefined ? 0 : most]) if (!Number.isInteger(n)) throw refused(`is malformed: minItems and maxItems are whole numbers, not ${shown(n)}`);
    const min = least as number, max = most as number | undefined;
    if (min < 0 || Math.max(min, max ?? 0) > maxItems || (max ?? min) < min) throw refused(`has minItems ${min} and maxItems ${max}: they must be in order and in [0, ${maxItems}]`);
    return max === undefined ? [min] : [min, max];
  }

  /** Objects with the properties of a schema, in its order. */
  #object({ properties, required = [], additionalProperties: more }: { readonly [key: string]: unknown }): Rule {
    if (properties !== undefined && !isObject(properties)) throw refused('has properties that are no object');
    if (!isNames(required)) throw refused(`is malformed: required is ${classOf(required)}, not a list of names`);
    const missing = required.find((name) => !Object.hasOwn(properties ?? {}, name));
    if (missing !== undefined) throw refused(`requires "${missing}", which is not among its properties`);
    if (!properties) return more === false ? this.text('{}') : this.#anyObject(more === undefined ? this.value : this.schema(more));
    // What follows before and after the first property that there is.
    let first = this.sequence(), later = this.sequence();
    for (const [name, each] of Object.entries(properties).reverse()) {
      const member = this.sequence(this.space, this.text(JSON.stringify(name)), this.text(':'), this.space, this.schema(each), later), next = this.sequence(this.text(','), member);
      if (required.includes(name)) [first, later] = [member, next];
      else [first, later] = [this.choice(member, first), this.choice(next, later)];
    }
    return this.sequence(this.text('{'), first, this.space, this.text('}'));
  }

  /** One of some values. */
  #literals(values: unknown): Rule {
    if (!Array.isArray(values)) throw refused('is malformed: enum is a list');
    if (values.length === 0) throw refused('has an empty enum');
    return this.choice(...values.map((value) => {
      let text: string | undefined;
      try {
        text = JSON.stringify(value);
      } catch { /* a circle, or a big integer */ }
      if (text === undefined) throw refused(`has the value ${classOf(value)}, which is no JSON`);
      return this.text(text);
    }));
  }

  /** The values of a schema that "#" or a path such as "#/$defs/name" names. */
  #ref(name: unknown): Rule {
    const found = this.#refs.get(name as string);
    if (found) return found;
    const [root, ...keys] = String(name).split('/');
    let at = root === '#' ? this.#root : undefined;
    for (const key of keys.map((one) => one.replaceAll('~1', '/').replaceAll('~0', '~'))) at = isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined;
    if (typeof name !== 'string' || at === undefined) throw refused(`has the $ref ${typeof name === 'string' ? `"${name}"` : shown(name)}: it must name a part of the schema, such as #/$defs/name`);
    const s = this.choice();
    this.#refs.set(name, s);
    s.parts = [this.schema(at)];
    return s;
  }
}
