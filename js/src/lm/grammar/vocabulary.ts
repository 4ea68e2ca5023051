// The texts of the tokens of a tokenizer, and the grammars over them.

import { checkOptions, need, RlxError } from '../../values/errors.js';
import type { Tokenizer } from '../tokenizer/tokenizer.js';
import { Machine, type Rule, type State } from './machine.js';
import { jsonGrammar, readSchema, type Schema, SchemaCompiler } from './schema.js';

/** A text as characters of one byte each, of its UTF-8. Most are of ASCII, and take no time. */
const bytesOf = (text: string): string => /^[\0-\x7f]*$/.test(text) ? text : Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join('');

/** Stands for a part of a character, which a token is or ends in: a byte that only a string may contain. */
const partOfCharacter = '\x80';

/**
 * Sets the bits of the tokens that may follow the tokens of a result so far; all are clear before the call. Bit i % 32 of word
 * i / 32 is for token i.
 */
export type Allow = (result: readonly number[], allowed: Uint32Array) => void;

/** A function that a model may ask its user to call. */
export interface CallFunction {
  name: string;
  /** The JSON schema of the arguments, an object; any object if not given. */
  parameters?: Schema | string;
}

/** Options of {@link Vocabulary.calls}. */
export interface CallOptions {
  /** Has a result consist of calls. Otherwise it is any text, in which each {@link callBegin} begins a call. */
  required?: boolean;
  /** Allows one call at most, with which the result ends. */
  once?: boolean;
}

/** Marks around a call of a function, as Hermes, Qwen and models after them write it. */
export const callBegin = '<tool_call>', callEnd = '</tool_call>';

/**
 * The texts of the tokens of a tokenizer, for grammars. It takes a while to make for a large vocabulary, and serves any number
 * of requests.
 */
export class Vocabulary {
  /** By token, '' for those without a text. */
  readonly #texts: string[];
  /** The tokens in the order of their texts, and how many bytes each text has in common with the one before. */
  readonly #sorted: Uint32Array;
  readonly #shared: Uint16Array;
  readonly #ends: readonly number[];

  /** Decodes all tokens of a tokenizer, each as one within a text. */
  constructor(tokenizer: Tokenizer) {
    need(typeof tokenizer?.stream === 'function', 'attr', 'Vocabulary: the tokenizer', 'a Tokenizer', tokenizer);
    const { size, eos } = tokenizer, has = (id: number) => tokenizer.token(id) !== undefined;
    let within = -1;
    for (let id = 0; id < size && within < 0; id++) if (has(id) && tokenizer.stream().push(id)) within = id;
    this.#ends = eos;
    this.#texts = Array.from({ length: size }, (_, id) => {
      if (!has(id) || eos.includes(id)) return '';
      const stream = tokenizer.stream();
      if (within >= 0) stream.push(within); // the first token of a text may be decoded without its space
      return bytesOf(stream.push(id)) + (stream.end() && partOfCharacter);
    });
    this.#sorted = Uint32Array.from(this.#texts.keys()).filter((id) => this.#texts[id]);
    this.#sorted.sort((a, b) => this.#texts[a]! < this.#texts[b]! ? -1 : Number(this.#texts[a]! > this.#texts[b]!));
    this.#shared = Uint16Array.from(this.#sorted, (id, i) => {
      const a = i > 0 ? this.#texts[this.#sorted[i - 1]!]! : '', b = this.#texts[id]!;
      let n = 0;
      while (n < a.length && a[n] === b[n]) n++;
      return n;
    });
  }

  /**
   * The grammar of the JSON values that a JSON schema describes, given as it is or as text; without one of objects. Objects
   * have the properties that the schema lists, in its order, and no others. A space, or a line break with up to 16 spaces, may
   * precede each value, name and closing bracket. Supported are type, properties, required, additionalProperties, items,
   * minItems, maxItems, enum, const, anyOf, oneOf and $ref within the schema; one of the last five may stand beside type alone.
   * Errors are of kind `attr` for a schema that is malformed or has another keyword, which they name.
   */
  json(schema?: Schema | string): Grammar {
    return new Grammar(jsonGrammar(schema === undefined ? schema : readSchema(schema)), this);
  }

  /**
   * The grammar of results that call functions. A call is an object of JSON with a name and arguments, or parameters, that
   * the schema of the function describes. It is between {@link callBegin} and {@link callEnd}; a required one may stand alone
   * instead. Errors are those of {@link Vocabulary.json}, and of kind `missing` without functions.
   */
  calls(functions: readonly CallFunction[], options?: CallOptions): Grammar {
    checkOptions('calls', options, 'required once');
    const { required = false, once = false } = options ?? {};
    if (!(functions?.length > 0)) throw new RlxError('missing', 'calls: there are no functions to call');
    for (const one of Array.isArray(functions) ? functions : [functions]) need(typeof one?.name === 'string', 'attr', 'calls: a function', '{ name, parameters }', one);
    const c = new SchemaCompiler(), call = c.choice(...functions.map(({ name, parameters }) => c.sequence(
      c.text('{'), c.space, c.text('"name":'), c.space, c.text(JSON.stringify(name)), c.text(','), c.space,
      c.choice(c.text('"arguments":'), c.text('"parameters":')), jsonGrammar(parameters === undefined ? parameters : readSchema(parameters)), c.space, c.text('}'))));
    const rest = [c.space, call, c.space, c.text(callEnd)], marked = c.sequence(c.text(callBegin), ...rest);
    if (!required) return new Grammar(textWith(c, c.sequence(...rest), once), this);
    return new Grammar(c.sequence(c.space, c.choice(call, once ? marked : c.sequence(marked, c.many(c.sequence(c.space, marked))))), this);
  }

  /** The text of a token within a text; '' for a special token, and U+FFFD for a part of a character. */
  text(token: number): string {
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(Uint8Array.from(this.bytes(token), (c) => c.charCodeAt(0)));
  }

  /** The bytes of a token. @internal */
  bytes(token: number): string { return typeof token === 'number' && this.#texts[token] || ''; }

  /** The bits of the tokens that may follow a state. @internal */
  mask(m: Machine, s: State): Uint32Array {
    const bits = new Uint32Array(Math.ceil(this.#texts.length / 32)), path = [s], set = (id: number) => { bits[id >> 5]! |= 1 << (id & 31); }; // path[n] is the state after n bytes of the last text
    this.#sorted.forEach((id, i) => {
      const text = this.#texts[id]!, shared = this.#shared[i]!;
      if (shared >= path.length) return; // it begins with bytes that cannot follow
      path.length = shared + 1;
      while (path.length <= text.length) {
        const next = m.step(path.at(-1)!, text.charCodeAt(path.length - 1));
        if (!next) return;
        path.push(next);
      }
      set(id);
    });
    if (s.free) this.#texts.forEach((text, id) => { if (!text) set(id); });
    return bits;
  }

  /** Sets the bits of the tokens that end a text. @internal */
  allowEnds(allowed: Uint32Array): void { for (const id of this.#ends) allowed[id >> 5]! |= 1 << (id & 31); }
}

/**
 * Any text in which a call follows wherever callBegin stands; the text ends with it if it may be there once. The rules are an
 * automaton: after[n] follows n bytes of callBegin, whose first byte is not repeated in it.
 */
function textWith(c: SchemaCompiler, call: Rule, once: boolean): Rule {
  const codes = Array.from(callBegin, (char) => char.charCodeAt(0)), [first] = codes as [number], after = codes.map(() => c.choice());
  codes.forEach((code, n) => {
    const other = c.oneOf(0, 255), next = n + 1 < codes.length ? after[n + 1]! : c.sequence(call, once ? c.sequence() : after[0]!);
    other.free = true;
    other.bytes[code] = other.bytes[first] = 0;
    after[n]!.parts = [c.sequence(), c.sequence(other, after[0]!), c.sequence(c.oneOf(code, code), next)];
    if (n > 0) after[n]!.parts.push(c.sequence(c.oneOf(first, first), after[1]!));
  });
  return after[0]!;
}

/** The most states that a machine keeps. */
const maxStates = 512;

/** Restricts results to the texts of a grammar: that of {@link Vocabulary.json}, for one. It serves any number of requests. */
export class Grammar {
  readonly #root: Rule;
  readonly #words: Vocabulary;
  #machine: Machine | undefined;

  /** @internal */
  constructor(root: Rule, words: Vocabulary) {
    this.#root = root;
    this.#words = words;
  }

  /**
   * The option `allow` of one request. The tokens that end a text are allowed where it may end, and where no other token can
   * follow.
   */
  allow(): Allow {
    let machine: Machine | undefined, at: State | null = null, read = 0;
    return (result, allowed) => {
      if (!this.#machine || this.#machine.size > maxStates) this.#machine = new Machine(this.#root);
      if (machine !== this.#machine || read > result.length) {
        machine = this.#machine;
        [at, read] = [machine.first, 0];
      }
      for (; read < result.length; read++) at = this.#after(machine, at, result[read]!);
      if (at) allowed.set((at.mask ??= this.#words.mask(machine, at)).subarray(0, allowed.length));
      if (!at || at.ends || !allowed.some(Boolean)) this.#words.allowEnds(allowed);
    };
  }

  /** The state after a token, null if it cannot follow. */
  #after(machine: Machine, s: State | null, token: number): State | null {
    const text = this.#words.bytes(token);
    for (let i = 0; i < text.length && s; i++) s = machine.step(s, text.charCodeAt(i));
    return s;
  }
}
