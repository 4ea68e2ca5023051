/** Options of {@link Tokenizer.encode}. */
export interface EncodeOptions {
  /** Reads special tokens in the text, such as `<|im_end|>`, as tokens. By default they are text, as those in the text of a user must be. */
  special?: boolean;
  /** Puts the token before the text that texts begin with, if the model was trained with one. False by default. */
  bos?: boolean;
  /** Puts all tokens around the text that the tokenizer has for that, as encoders such as BERT take them. False by default. */
  template?: boolean;
  /** The text has parts that {@link Tokenizer.quote} made: special tokens in these are text. False by default. */
  quoted?: boolean;
}

/** Options of {@link Tokenizer.decode} and {@link Tokenizer.stream}. */
export interface DecodeOptions {
  /** Writes special tokens, too. False by default. */
  special?: boolean;
}

/** Decodes tokens one by one. */
export interface TextStream {
  /** Takes the next token and returns the text that is complete by it, which may be empty. Throws an RlxError of kind `index` for an id without a token. */
  push(id: number): string;
  /** Returns the rest, with U+FFFD for an incomplete character. */
  end(): string;
}

/**
 * A vocabulary with the rules that split text into its tokens. Ids are those of Hugging Face's
 * tokenizers library, or of SentencePiece for its files. They may differ for characters newer than
 * Unicode 10, which engines classify by their version.
 */
export interface Tokenizer {
  /**
   * The ids of the tokens of a text, in time proportional to its length but for a factor log n within a word. A surrogate without its
   * other half counts as U+FFFD. Throws an RlxError of kind `missing` for text that no token covers.
   */
  encode(text: string, options?: EncodeOptions): Int32Array;
  /** The text of tokens. Invalid UTF-8 becomes U+FFFD. Throws an RlxError of kind `index` for an id without a token. */
  decode(ids: ArrayLike<number>, options?: DecodeOptions): string;
  /** An incremental decoder. Its texts concatenate to the result of `decode`, up to the number of U+FFFD. */
  stream(options?: DecodeOptions): TextStream;
  /**
   * Marks the special tokens of a text, so that it can be a part of a larger text, such as a conversation, without forging them: `encode`
   * with `quoted` reads them as text and takes the marks away. The mark is U+FDD0, which is no character; one in the text becomes U+FFFD.
   */
  quote(text: string): string;
  /** The number of ids: the largest id of a token plus one. */
  readonly size: number;
  /** The token that texts begin with; absent if there is none. */
  readonly bos?: number;
  /** The tokens that end a generation. */
  readonly eos: number[];
  /** The id of a token, spelled as in the vocabulary; undefined if there is none. */
  id(token: string): number | undefined;
  /** The text of a token as the vocabulary has it; undefined if the id has none. */
  token(id: number): string | undefined;
  /** Whether a token is special: a mark that is no text, such as the end of a turn. */
  special(id: number): boolean;
}
