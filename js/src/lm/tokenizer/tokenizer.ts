import { RlxError } from '../../values/errors.js';

/** Options of {@link Tokenizer.encode}. */
export interface EncodeOptions {
  /** Reads special tokens in the text as tokens. By default they are text, as that of a user must be. */
  special?: boolean;
  /** Adds the tokens that begin and end a text, as the model was trained with them. False by default. */
  bos?: boolean;
}

/** Decodes tokens one by one. */
export interface TextStream {
  /** Takes the next token and returns the text that is complete by it, which may be empty. */
  push(id: number): string;
  /** Returns the rest, with U+FFFD for an incomplete character. */
  end(): string;
}

/** A vocabulary with the rules by which text is split into its tokens. */
export interface Tokenizer {
  encode(text: string, options?: EncodeOptions): Int32Array;
  decode(ids: ArrayLike<number>): string;
  stream(): TextStream;
  /** The number of ids. */
  readonly size: number;
  readonly bos?: number;
  /** The tokens that end a generation. */
  readonly eos: number[];
  /** The id of a token, given as the vocabulary has it; undefined if there is none. */
  id(token: string): number | undefined;
}

/** Reads the tokenizer of a GGUF file. */
export function tokenizerOf(_file: { readonly metadata: ReadonlyMap<string, unknown> }): Tokenizer {
  throw new RlxError('unsupported', 'tokenizerOf');
}

/** Reads a tokenizer.json: its text, or the object. */
export function readTokenizer(_json: string | object): Tokenizer {
  throw new RlxError('unsupported', 'readTokenizer');
}
