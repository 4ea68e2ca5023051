/**
 * ONNX models: their graphs, to run, differentiate and train, and their weights, which are read when they are needed.
 *
 * @module
 */

export type { FileSource } from './files/source.js';
export type { OnnxInfo, ImportOptions } from './onnx/importer.js';
export { type External, type OnnxModel, type OnnxOptions, type OnnxProgramOptions, type OnnxWeight, openONNX } from './onnx/model.js';
