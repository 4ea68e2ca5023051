/**
 * Reads and writes files of tensors in the safetensors format.
 *
 * @module
 */

export { type Adapter, type AdapterFiles, type AdapterOptions, decodeAdapter, encodeAdapter, mergeAdapter, type MergeOptions } from './safetensors/adapter.js';
export type { ConvertOptions } from './safetensors/convert.js';
export { decodeSafetensors, type DecodeOptions, encodeSafetensors, type FileTensor } from './safetensors/file.js';
export type { FileSource } from './files/source.js';
export { type MatchOptions, type MatchPort, type MatchSlot, matchTensors, type MatchTarget } from './safetensors/match.js';
export { openSafetensors, type TensorFile, type TensorSource } from './safetensors/open.js';
export { fromTorch, type FromTorchOptions, toTorch, type ToTorchOptions, type TorchGraph } from './safetensors/torch.js';
export { type TensorEntry, writeSafetensors } from './safetensors/write.js';
