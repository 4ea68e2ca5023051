// Decoders: what rewrites the texts of tokens, which are joined after the last.

import { readPattern } from './pattern.js';
import { partsOf, replace, spaceMark, textIn } from './normalize.js';
import { addBytes, byteOf, damaged, exactText, quoted, textOf, unsupported } from './text.js';

/** Rewrites the texts of tokens. */
export type Decoder = (tokens: string[]) => string[];

/** A decoder that rewrites tokens one by one, by their positions. */
const perToken = (rewrite: (token: string, i: number, n: number) => string): Decoder => (tokens) => tokens.map((token, i) => rewrite(token, i, tokens.length));

export const fuse: Decoder = (tokens) => [tokens.join('')];

/** Decodes the alphabet of bytes. */
export const joinBytes: Decoder = (tokens) => {
  const out: number[] = [];
  for (const token of tokens) addBytes(out, token);
  return [textOf(out)];
};

/**
 * Decodes tokens such as <0x0A>: a run of them is decoded as UTF-8, or to one U+FFFD for each byte
 * if it is invalid.
 */
export const joinByteTokens: Decoder = (tokens) => {
  const out: string[] = [];
  let run: number[] = [];
  const end = () => {
    if (run.length) out.push(exactText(run) ?? '\ufffd'.repeat(run.length));
    run = [];
  };
  for (const token of tokens) {
    const b = byteOf(token);
    if (b >= 0) {
      run.push(b);
      continue;
    }
    end();
    out.push(token);
  }
  end();
  return out;
};

/** Spaces before punctuation and English contractions, which are removed in this order. */
const cleanups = [[' .', '.'], [' ?', '?'], [' !', '!'], [' ,', ','], [" ' ", "'"], [" n't", "n't"], [" 'm", "'m"], [' do not', " don't"], [" 's", "'s"], [" 've", "'ve"], [" 're", "'re"]] as const;
const cleaned = (text: string): string => cleanups.reduce((rest, [from, to]) => rest.replaceAll(from, to), text);

/** Removes the prefix of tokens within words and puts spaces between words. */
export const wordPieceDecoder = (prefix: string, cleanup: boolean): Decoder => perToken((token, i) => {
  const text = i === 0 ? token : token.startsWith(prefix) ? token.slice(prefix.length) : ` ${token}`;
  return cleanup ? cleaned(text) : text;
});

/** Writes marks as spaces, but for one at the beginning. */
export const metaspaceDecoder = (mark: string, prepend: string): Decoder => perToken((token, i) =>
  (i === 0 && prepend !== 'never' && token.startsWith(mark) ? token.slice(mark.length) : token).replaceAll(mark, ' '));

/** Writes the marks of spaces as spaces. */
export const spacesForMarks: Decoder = perToken((token) => token.replaceAll(spaceMark, ' '));

/** Removes up to left and right copies of a character at the ends of each text. */
export const stripDecoder = (content: string, left: number, right: number): Decoder => perToken((token) => {
  let text = token;
  for (let i = 0; i < left && content && text.startsWith(content); i++) text = text.slice(content.length);
  for (let i = 0; i < right && content && text.endsWith(content); i++) text = text.slice(0, -content.length);
  return text;
});

/** Drops repeated tokens and the padding of connectionist temporal classification. */
const ctc = (pad: string, delimiter: string, cleanup: boolean): Decoder => (tokens) => tokens
  .filter((token, i) => token !== tokens[i - 1])
  .map((token) => pad ? token.replaceAll(pad, '') : token)
  .map((token) => cleanup ? cleaned(token).replaceAll(delimiter, ' ') : token)
  .filter(Boolean);

/** The fields of all kinds of decoders. */
interface DecoderPart {
  type?: unknown; decoders?: unknown; pattern?: unknown; content?: unknown; start?: unknown; stop?: unknown; prefix?: unknown; cleanup?: unknown;
  suffix?: unknown; pad_token?: unknown; word_delimiter_token?: unknown; replacement?: unknown; prepend_scheme?: unknown; add_prefix_space?: unknown;
}

/** When a Metaspace part puts a mark before a piece. */
export const prependOf = (p: { prepend_scheme?: unknown; add_prefix_space?: unknown }): string =>
  textIn('Metaspace', p.prepend_scheme) || (p.add_prefix_space === false ? 'never' : 'always');

/** Reads the decoders of a tokenizer.json; undefined for none. */
export function readDecoders(given: unknown, depth = 0): Decoder[] | undefined {
  if (given === undefined || given === null) return undefined;
  const p = Object(given) as DecoderPart, text = (value: unknown, otherwise?: string) => textIn('decoder', value, otherwise);
  switch (p.type) {
    case 'Sequence': return partsOf('decoder', p.decoders, depth).flatMap((each) => readDecoders(each, depth + 1) ?? []);
    case 'ByteLevel': return [joinBytes];
    case 'ByteFallback': return [joinByteTokens];
    case 'Fuse': return [fuse];
    case 'WordPiece': return [wordPieceDecoder(text(p.prefix, '##'), p.cleanup !== false)];
    case 'BPEDecoder': {
      const suffix = text(p.suffix, '</w>');
      return [perToken((token, i, n) => suffix ? token.replaceAll(suffix, i === n - 1 ? '' : ' ') : token)];
    }
    case 'CTC': return [ctc(text(p.pad_token, '<pad>'), text(p.word_delimiter_token, '|'), p.cleanup !== false)];
    case 'Replace': return [perToken(replace(readPattern('decoder', p.pattern), text(p.content)))];
    case 'Strip': {
      const { start = 0, stop = 0 } = p;
      if (!(Number(start) >= 0 && Number(stop) >= 0)) throw damaged(`decoder: start is ${start} and stop ${stop}: neither must be negative`);
      return [stripDecoder(text(p.content), Number(start), Number(stop))];
    }
    case 'Metaspace': return [metaspaceDecoder(text(p.replacement) || spaceMark, prependOf(p))];
  }
  throw unsupported(`decoder of type ${quoted(p.type)}`);
}
