// Tokenizers as the metadata of GGUF files have them.

import { need } from '../../values/errors.js';
import type { AddedToken } from './added.js';
import { BPE, type Model } from './bpe.js';
import { type Decoder, fuse, joinBytes, joinByteTokens, metaspaceDecoder, spacesForMarks, stripDecoder, wordPieceDecoder } from './decode.js';
import { cutMerge } from './json.js';
import { bert, chain, charsmap, type Normalizer, spaceMark, spaceMarks, withoutExtraSpaces } from './normalize.js';
import { compilePattern } from './pattern.js';
import { preTokenizer } from './pretokenizers.js';
import { usualTokens } from './roles.js';
import { bertSplit, byteLevel, delimited, type Splitter } from './split.js';
import { byteTokens, damaged, quoted, unsupported } from './text.js';
import type { Tokenizer } from './types.js';
import { Vocabulary } from './vocabulary.js';
import { Unigram, WordPiece } from './words.js';

// The types of tokens in GGUF.
const typeUnknown = 2, typeControl = 3, typeUserDefined = 4;
const prefix = 'tokenizer.ggml.';

/** The tokens that end a generation, by the keys of the metadata. */
const endKeys = ['eos', 'eot', 'eom'];

/** What differs between the kinds of tokenizers. */
interface Kind {
  model: Model;
  tokens?: string[];
  normalizer?: Normalizer;
  splitters?: Splitter[];
  decoders: Decoder[];
  byteLevel?: boolean;
  /** Whether a text begins, and ends, with a special token if no flag is set. */
  begins?: boolean;
  ends?: boolean;
}

/** The metadata of a GGUF file about its tokenizer. */
class Metadata {
  readonly tokens: string[];
  readonly scores: ArrayLike<number> | undefined;
  readonly types: ArrayLike<number> | undefined;

  constructor(private readonly values: ReadonlyMap<string, unknown>) {
    const of = (key: string) => values.get(prefix + key), tokens = of('tokens');
    if (!Array.isArray(tokens) || !tokens.length || typeof tokens[0] !== 'string') throw damaged(`the file has no ${prefix}tokens`);
    const [scores, types] = [of('scores'), of('token_type')];
    this.tokens = tokens as string[];
    this.scores = scores instanceof Float32Array ? scores : undefined;
    this.types = types instanceof Int32Array || types instanceof Uint32Array ? types : undefined;
    for (const list of [this.scores, this.types]) if (list && list.length !== tokens.length) throw damaged(`${tokens.length} tokens have ${this.types?.length} types and ${this.scores?.length} scores`);
  }

  value(key: string): unknown { return this.values.get(prefix + key); }

  flag(key: string, otherwise: boolean): boolean {
    const value = this.value(key);
    return typeof value === 'boolean' ? value : otherwise;
  }

  /** The id of the token of a role; undefined if there is none. */
  role(key: string): number | undefined {
    const id = this.value(`${key}_token_id`);
    return typeof id === 'number' && id >= 0 && id < this.tokens.length ? id : undefined;
  }

  /** The tokens that are no text. */
  marks(): ReadonlySet<number> { return new Set([...this.tokens.keys()].filter((id) => this.isMark(id))); }

  isMark(id: number): boolean { return this.types?.[id] === typeControl || this.types?.[id] === typeUnknown; }

  /** The ids of tokens. Of tokens with the same text the first counts. */
  vocab(tokens: readonly string[] = this.tokens): Map<string, number> {
    const out = new Map<string, number>();
    tokens.forEach((token, id) => { if (!out.has(token)) out.set(token, id); });
    return out;
  }

  /** The id of the token for unknown text, -1 for none. */
  unknown(): number { return this.role('unknown') ?? Array.prototype.indexOf.call(this.types ?? [], typeUnknown); }

  added(): AddedToken[] {
    const out: AddedToken[] = [];
    this.tokens.forEach((content, id) => { if (this.isMark(id) || this.types?.[id] === typeUserDefined) out.push({ id, content, special: this.isMark(id) }); });
    return out;
  }
}

/** A bound on the tokens for which merges are made, since that takes the square of their length. */
const maxPiece = 1 << 10;

/**
 * Byte-pair encoding by scores: pairs are merged that are a token, that with the highest score first. It is the same as merges in the
 * order of the scores of their results.
 */
function sentencePiece(m: Metadata): Kind {
  const { scores } = m, vocab = m.vocab();
  if (!scores) throw damaged(`the file has no ${prefix}scores`);
  const model = new BPE(vocab, { unk: m.unknown(), fuseUnk: true, bytes: byteTokens((token) => vocab.get(token)) });
  const distinct = [...new Set(Array.from(scores))].sort((a, b) => b - a), ranks = new Map(distinct.map((score, rank) => [score, rank]));
  for (const [text, id] of vocab) {
    if (text.length > maxPiece || m.isMark(id)) continue;
    for (let i = 1; i < text.length; i++) {
      const left = vocab.get(text.slice(0, i)), right = left === undefined ? undefined : vocab.get(text.slice(i));
      if (right !== undefined) model.merges.set(left!, right, ranks.get(scores[id]!)!, id);
    }
  }
  const begins = m.flag('add_space_prefix', true);
  return { model, normalizer: spaceMarks(begins), decoders: [spacesForMarks, joinByteTokens, fuse, ...begins ? [stripDecoder(' ', 1, 0)] : []], begins: true };
}

/** Byte-level byte-pair encoding. */
function bytePairs(m: Metadata): Kind {
  const name = m.value('pre') ?? '', rule = typeof name === 'string' ? preTokenizer(name) : undefined, merges = m.value('merges');
  if (!rule) throw unsupported(`${prefix}pre is ${quoted(name)}, a pre-tokenizer that is not known`);
  const model = new BPE(m.vocab(), { unk: -1, wholeWords: !!rule.wholeWords, marks: m.marks() });
  if (Array.isArray(merges)) merges.forEach((text, rank) => model.addMerge(...cutMerge(text, rank), rank));
  return {
    model, byteLevel: true, decoders: [joinBytes], begins: !!rule.bos,
    splitters: [...rule.patterns.map((text) => delimited(compilePattern(text), 'Isolated')), byteLevel(false, undefined, true)],
    ...rule.compose && { normalizer: (text: string) => text.normalize('NFC') },
  };
}

/** BERT's model. In GGUF a token that begins a word has the mark, and the others no prefix. */
function wordPieces(m: Metadata): Kind {
  const within = '##', tokens = m.tokens.map((token, id) => {
    const begins = token.startsWith(spaceMark) && token !== spaceMark; // the mark alone is a character of a text
    if (begins) return token.slice(spaceMark.length);
    return (m.types ? m.isMark(id) : /^\[..+\]$/s.test(token)) ? token : within + token;
  });
  return {
    tokens, model: new WordPiece(m.vocab(tokens), within, m.unknown(), 100, m.marks()), normalizer: bert(true, true, true, true), splitters: [bertSplit()],
    decoders: [wordPieceDecoder(within, true)], begins: true, ends: true,
  };
}

/** The model of T5. */
function unigram(m: Metadata): Kind {
  const { scores, tokens } = m, map = m.value('precompiled_charsmap'), first = m.flag('add_space_prefix', true);
  if (!scores) throw damaged(`the file has no ${prefix}scores`);
  return {
    model: new Unigram(tokens, scores, m.unknown(), true, m.marks()), decoders: [joinByteTokens, metaspaceDecoder(spaceMark, first ? 'always' : 'never')], ends: true,
    normalizer: chain([
      ...map instanceof Uint8Array && map.length ? [charsmap(map)] : [], ...m.flag('remove_extra_whitespaces', false) ? [withoutExtraSpaces()] : [], spaceMarks(first),
    ]),
  };
}

const kinds: Readonly<Record<string, (m: Metadata) => Kind>> = { llama: sentencePiece, gpt2: bytePairs, bert: wordPieces, t5: unigram };

/**
 * Reads the tokenizer of a GGUF file: tokenizer.ggml.model llama, gpt2, bert or t5. Throws an {@link RlxError} of kind `syntax` for damaged
 * metadata, `unsupported` for another model or pre-tokenizer, which it names.
 */
export function tokenizerOf(file: { readonly metadata: ReadonlyMap<string, unknown> }): Tokenizer {
  need(file?.metadata instanceof Map, 'attr', 'tokenizerOf: the metadata of the file', 'a Map', file?.metadata);
  const name = file.metadata.get(`${prefix}model`);
  if (typeof name !== 'string') throw damaged(`the file has no ${prefix}model`);
  const m = new Metadata(file.metadata);
  if (!Object.hasOwn(kinds, name)) throw unsupported(`${prefix}model is ${quoted(name)}: ${Object.keys(kinds).join(', ')} are known`);
  const { begins, ends, tokens = m.tokens, ...kind } = kinds[name]!(m), added = m.added().map((one) => ({ ...one, content: tokens[one.id]! }));
  // BERT's have names of their own in older files.
  const of = (own: string, other: string) => (name === 'bert' ? m.role(own) : undefined) ?? m.role(other), first = of('cls', 'bos'), last = of('seperator', 'eos');
  return new Vocabulary({
    normalizer: undefined, splitters: [], byteLevel: false, ...kind, tokens, added, bos: first, eos: [...endKeys.flatMap((key) => m.role(key) ?? []), ...usualTokens(added).eos],
    template: { before: first !== undefined && m.flag('add_bos_token', !!begins) ? [first] : [], after: last !== undefined && m.flag('add_eos_token', !!ends) ? [last] : [] },
  });
}
