/**
 * Grammars that restrict what a language model of `/lm` may generate: JSON by a schema, calls of functions.
 *
 * @module
 */

export type { Schema } from './lm/grammar/schema.js';
export { type Allow, callBegin, callEnd, type CallFunction, type CallOptions, type Grammar, Vocabulary } from './lm/grammar/vocabulary.js';
