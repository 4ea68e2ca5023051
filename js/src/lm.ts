/**
 * Files of language models, their tokenizers and their chat templates.
 *
 * @module
 */

export { chatTemplate, type ChatTemplate, type Message, type RenderOptions } from './lm/chat/chat.js';
export { openGGUF, type ModelFile, type TensorInfo } from './lm/gguf.js';
export type { FileSource } from './lm/source.js';
export { openHF, type HFModel, type HFSource } from './lm/hf.js';
export { chatPrompt } from './lm/prompt.js';
export { type DecodeOptions, type EncodeOptions, readTokenizer, type SpecialTokens, type TextStream, type Tokenizer, tokenizerOf } from './lm/tokenizer/tokenizer.js';
