/**
 * Files of language models, their tokenizers and their chat templates.
 *
 * @module
 */

export { chatTemplate, type ChatTemplate, type Message, type RenderOptions } from './lm/chat/chat.js';
export { openGGUF, type ModelFile, type TensorInfo } from './lm/gguf.js';
export { openHF, type HFModel, type HFSource } from './lm/hf.js';
export { readTokenizer, tokenizerOf, type EncodeOptions, type TextStream, type Tokenizer } from './lm/tokenizer/tokenizer.js';
