/**
 * Language models: their files, tokenizers and chat templates, and text that they generate.
 *
 * @module
 */

export { chatTemplate, type ChatTemplate, type Message, type RenderOptions } from './lm/chat/chat.js';
export { openGGUF, type ModelFile, type TensorInfo } from './lm/gguf.js';
export type { FileSource } from './files/source.js';
export { openHF, type HFModel, type HFSource } from './lm/hf.js';
export { chatPrompt } from './lm/prompt.js';
export { type DecodeOptions, type EncodeOptions, readTokenizer, type SpecialTokens, type TextStream, type Tokenizer, tokenizerOf } from './lm/tokenizer/tokenizer.js';

export { checkConfig, type Config, type Rope } from './lm/model/config.js';
export { decoder, type DecoderOptions, loss, type LossOptions } from './lm/model/decoder.js';
export { architectures } from './lm/model/family.js';
export type { Piece } from './lm/model/engine.js';
export { generate, type GenerateOptions, type GenerateStats, type Generation } from './lm/model/generate.js';
export { configOf, type LanguageModel, memoryOf, type ModelMemory, type ModelOptions } from './lm/model/model.js';
export { openModel } from './lm/model/open.js';
export { sample, type Sampling, samplingFields, samplingRow } from './lm/model/sample.js';
export { Weights, type WeightsOptions } from './lm/model/weights.js';
export type { Tuning, TuningOptions, TuningRun } from './lm/model/tune.js';
export { openTuning, tuningMemoryOf } from './lm/model/tuning.js';
