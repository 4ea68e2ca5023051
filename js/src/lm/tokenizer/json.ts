// Tokenizers as the files tokenizer.json have them.

import { classOf, RlxError } from '../../values/errors.js';
import { type AddedToken, marksOf } from './added.js';
import { BPE, type Model } from './bpe.js';
import { prependOf, readDecoders } from './decode.js';
import { partsOf, readNormalizer, spaceMark, textIn } from './normalize.js';
import { compilePattern, literal, matching, readPattern } from './pattern.js';
import { gpt2Pattern } from './pretokenizers.js';
import { usualTokens } from './roles.js';
import { bertSplit, byteLevel, delimited, isBehavior, metaspace, type Splitter, whitespaceSplit } from './split.js';
import { byteTokens, damaged, punctuation, quoted, unsupported } from './text.js';
import type { Tokenizer } from './types.js';
import { type Template, tokenTable, Vocabulary } from './vocabulary.js';
import { Unigram, WordLevel, WordPiece } from './words.js';

type Json = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The model, its tokens, and the added ones. */
interface Read { model: Model; vocab: ReadonlyMap<string, number>; added: AddedToken[]; list?: readonly string[] }

/** Files of old versions have no type: it is that of the fields that a model has. */
const typeOf = (m: Json): unknown => m['type'] ?? (m['merges'] ? 'BPE' : Array.isArray(m['vocab']) ? 'Unigram' : m['continuing_subword_prefix'] !== undefined ? 'WordPiece' : 'WordLevel');

function readModel(m: unknown, addedList: unknown): Read {
  if (!isObject(m)) throw damaged('there is no model');
  const type = typeOf(m);
  if (type === 'Unigram') return readUnigram(m, addedList);
  if (!isObject(m['vocab'])) throw damaged(`model.vocab is ${classOf(m['vocab'])}: it must be an object of ids`);
  const vocab = new Map(Object.entries(m['vocab'] as Record<string, number>)), unkToken = textIn('model.unk_token', m['unk_token']), unk = vocab.get(unkToken) ?? -1;
  const added = readAdded(addedList, vocab), marks = marksOf(added, unk);
  switch (type) {
    case 'BPE':
      if (unkToken && unk < 0) throw damaged(`the vocabulary lacks the unknown token ${quoted(unkToken)}`);
      return { vocab, added, model: readBPE(m, vocab, unk, marks) };
    case 'WordPiece': return { vocab, added, model: new WordPiece(vocab, textIn('model', m['continuing_subword_prefix'], '##'), unk, Number(m['max_input_chars_per_word'] ?? 100), marks) };
    case 'WordLevel': return { vocab, added, model: new WordLevel(vocab, unk, marks) };
  }
  throw unsupported(`model of type ${quoted(type)}`);
}

function readUnigram(m: Json, addedList: unknown): Read {
  const vocab = m['vocab'], unk = Number(m['unk_id'] ?? -1);
  if (!Array.isArray(vocab)) throw damaged(`model.vocab is ${classOf(vocab)}: it must be a list of tokens and scores`);
  for (const one of vocab) if (!Array.isArray(one) || one.length !== 2 || typeof one[0] !== 'string' || typeof one[1] !== 'number') throw damaged('model.vocab: a token must be a text and a score');
  if (m['unk_id'] !== undefined && m['unk_id'] !== null && !(Number.isInteger(unk) && unk >= 0 && unk < vocab.length)) throw damaged(`unk_id is ${unk}: it must be from 0 to ${vocab.length - 1}`);
  const tokens = vocab.map(([token]) => token as string), added = readAdded(addedList, new Map(tokens.map((token, id) => [token, id])));
  const model = new Unigram(tokens, Float64Array.from(vocab, ([, score]) => score as number), unk, !!m['byte_fallback'], marksOf(added, unk));
  return { model, added, list: tokens, vocab: model.ids };
}

/** Divides "a b" at its space. */
export function cutMerge(text: unknown, rank: number): [string, string] {
  const both = Array.isArray(text) ? text : typeof text === 'string' ? text.split(' ') : [];
  if (both.length !== 2 || !both[0] || !both[1] || typeof both[0] !== 'string' || typeof both[1] !== 'string') throw damaged(`merge ${rank} is ${quoted(text)}: it must be two tokens and a space`);
  return both as [string, string];
}

function readBPE(m: Json, vocab: ReadonlyMap<string, number>, unk: number, marks: ReadonlySet<number>): BPE {
  const model = new BPE(vocab, {
    unk, marks, fuseUnk: !!m['fuse_unk'], wholeWords: !!m['ignore_merges'], bytes: m['byte_fallback'] ? byteTokens((token) => vocab.get(token)) : undefined,
    prefix: textIn('model', m['continuing_subword_prefix']), suffix: textIn('model', m['end_of_word_suffix']),
  });
  const merges = m['merges'] ?? [];
  if (!Array.isArray(merges)) throw damaged(`model.merges is ${classOf(merges)}: it must be a list`);
  merges.forEach((text, rank) => model.addMerge(...cutMerge(text, rank), rank));
  return model;
}

/** Reads the splitters of a pre-tokenizer; a sequence is more than one. The last keeps bytes, which are mapped by word then. */
function readSplitters(given: unknown, depth = 0): Json[] {
  if (given === undefined || given === null) return [];
  const p = Object(given) as Json;
  return p['type'] === 'Sequence' ? partsOf('pre_tokenizer', p['pretokenizers'], depth).flatMap((each) => readSplitters(each, depth + 1)) : [p];
}

function splitterOf(p: Json, keepBytes: boolean): Splitter {
  const { type } = p;
  switch (type) {
    case 'ByteLevel': return byteLevel(p['add_prefix_space'] !== false, p['use_regex'] === false ? undefined : compilePattern(gpt2Pattern), keepBytes);
    case 'BertPreTokenizer': return bertSplit();
    case 'WhitespaceSplit': return whitespaceSplit();
    case 'Whitespace': return delimited(compilePattern(String.raw`[\w\u200c\u200d]+|[^\w\u200c\u200d\s]+`), 'Removed', true);
    case 'Digits': return delimited(matching(/\p{N}/gu), p['individual_digits'] ? 'Isolated' : 'Contiguous');
    case 'CharDelimiterSplit': return delimited(literal(textIn('pre_tokenizer', p['delimiter'])), 'Removed');
    case 'Metaspace': return metaspace(textIn('pre_tokenizer', p['replacement']) || spaceMark, prependOf(p), p['split'] !== false);
    case 'Punctuation': case 'Split': {
      const behavior = p['behavior'] ?? (type === 'Punctuation' ? 'Isolated' : undefined);
      if (!isBehavior(behavior)) throw unsupported(`pre_tokenizer.behavior of type ${quoted(behavior)}`);
      return type === 'Split' ? delimited(readPattern('pre_tokenizer', p['pattern']), behavior, !!p['invert']) : delimited(matching(new RegExp(punctuation, 'gv')), behavior);
    }
  }
  throw unsupported(`pre_tokenizer of type ${quoted(type)}`);
}

/** A bound on the tokens of a template. */
const maxTemplate = 1024;

/** Reads the post-processor. Of a sequence the last that adds tokens counts. */
function readTemplate(given: unknown, tokens: readonly unknown[], depth = 0): Template | undefined {
  if (given === undefined || given === null) return undefined;
  const p = Object(given) as Json, idOf = (pair: unknown) => Array.isArray(pair) ? pair[1] as number : -1;
  const known = (ids: readonly number[]): readonly number[] => {
    for (const id of ids) if (tokens[id] === undefined) throw damaged(`post_processor: no token has the id ${id}`);
    return ids;
  };
  switch (p['type']) {
    case 'ByteLevel': return undefined; // changes offsets alone
    case 'Sequence': return partsOf('post_processor', p['processors'], depth).reduce<Template | undefined>((last, each) => readTemplate(each, tokens, depth + 1) ?? last, undefined);
    case 'BertProcessing': case 'RobertaProcessing': return { before: known([idOf(p['cls'])]), after: known([idOf(p['sep'])]) };
    case 'TemplateProcessing': return templateOf(p, known);
  }
  throw unsupported(`post_processor of type ${quoted(p['type'])}`);
}

function templateOf(p: Json, known: (ids: readonly number[]) => readonly number[]): Template {
  const { single, special_tokens: special } = p, before: number[] = [], after: number[] = [];
  if (!Array.isArray(single)) throw damaged('post_processor: a template has no list of items');
  let into = before;
  for (const item of single as Json[]) {
    const text = Object(item?.['Sequence']) as Json, mark = item?.['SpecialToken'];
    if (text['id'] === 'A') into = after;
    else if (isObject(mark)) {
      const name = mark['id'] as string, found = isObject(special) && Object.hasOwn(special, name) ? Object(special[name]) as Json : undefined, ids = found?.['ids'];
      if (!Array.isArray(ids)) throw damaged(`post_processor: the special token ${quoted(name)} is not among special_tokens`);
      if (into.length + ids.length > maxTemplate) throw damaged(`post_processor: a template has more than ${maxTemplate} tokens`);
      into.push(...known(ids));
    } else throw damaged('post_processor: an item must be a SpecialToken, or the Sequence A');
  }
  return { before, after };
}

function readAdded(list: unknown, vocab: ReadonlyMap<string, number>): AddedToken[] {
  if (list === undefined || list === null) return [];
  if (!Array.isArray(list)) throw damaged(`added_tokens is ${classOf(list)}: it must be a list`);
  return list.map((one: unknown) => {
    if (!isObject(one) || typeof one['content'] !== 'string') throw damaged('added_tokens: a token has no content');
    const token = one as unknown as AddedToken;
    return { ...token, id: vocab.get(token.content) ?? token.id };
  });
}

/** The special tokens of a tokenizer.json by their texts, which are in tokenizer_config.json. */
export interface SpecialTokens {
  /** The token that texts begin with. By default the first one of the file's template, or one of a usual name. */
  bos?: string;
  /**
   * The tokens that end a generation, by text or id, in addition to those of usual names, such as
   * `</s>` and `<|im_end|>`.
   */
  eos?: readonly (string | number)[];
}

/**
 * Reads a tokenizer.json: its text, or the object. Throws an {@link RlxError} of kind `syntax` for
 * a damaged file, `unsupported` for an unknown kind of part, `name` for a missing special token.
 * Truncation, padding, dropout of merges and pairs of texts are ignored. Patterns become regular
 * expressions of the engine: those that could take unbounded time are `unsupported`.
 */
export function readTokenizer(json: string | object, special: SpecialTokens = {}): Tokenizer {
  const doc = typeof json === 'string' ? parse(json) : json;
  if (!isObject(doc)) throw damaged(`the file is ${classOf(doc)}: it must be an object`);
  const { model, vocab, added, list } = readModel(doc['model'], doc['added_tokens']), tokens = tokenTable(vocab, added, list), splitters = readSplitters(doc['pre_tokenizer']);
  const template = readTemplate(doc['post_processor'], tokens) ?? { before: [], after: [] }, byteLevel = splitters.at(-1)?.['type'] === 'ByteLevel';
  const idOf = (token: string | number) => typeof token === 'number' ? token : added.find(({ content }) => content === token)?.id ?? vocab.get(token) ?? -1;
  const usual = usualTokens(added), bos = special.bos === undefined ? template.before[0] ?? usual.bos : idOf(special.bos), eos = [...(special.eos ?? []).map(idOf), ...usual.eos];
  if ([...eos, bos ?? 0].some((id) => tokens[id] === undefined)) throw new RlxError('name', `tokenizer: one of ${JSON.stringify(special)} is no token`);
  return new Vocabulary({
    model, tokens, added, byteLevel, template, bos, eos, normalizer: readNormalizer(doc['normalizer']), decoders: readDecoders(doc['decoder']),
    splitters: splitters.map((p, i) => splitterOf(p, i === splitters.length - 1)),
  });
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (cause) {
    throw damaged((cause as Error).message);
  }
}
