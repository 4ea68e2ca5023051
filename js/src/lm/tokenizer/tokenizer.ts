export { tokenizerOf } from './gguf.js';
export { readTokenizer, type SpecialTokens } from './json.js';
export type { DecodeOptions, EncodeOptions, TextStream, Tokenizer } from './types.js';
