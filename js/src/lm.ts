/**
 * Files of language models, their tokenizers and their chat templates.
 *
 * @module
 */

export { chatTemplate, type ChatTemplate, type Message, type RenderOptions } from './lm/chat/chat.js';
export { openGGUF, type ModelFile, type TensorInfo } from './lm/gguf.js';
export { generate, type GenerateOptions, type GenerateStats, type Generation, type Piece } from './lm/model/generate.js';
export { openHF, type HFModel, type HFSource } from './lm/hf.js';
export { checkConfig, type Config, type Rope } from './lm/model/config.js';
export { decoder, type DecoderOptions } from './lm/model/decoder.js';
export { architectures } from './lm/model/family.js';
export { configOf, type LanguageModel, memoryOf, type ModelMemory, type ModelOptions, openModel } from './lm/model/model.js';
export { type Sampling } from './lm/model/sample.js';
export { Weights } from './lm/model/weights.js';
export { readTokenizer, tokenizerOf, type EncodeOptions, type TextStream, type Tokenizer } from './lm/tokenizer/tokenizer.js';
