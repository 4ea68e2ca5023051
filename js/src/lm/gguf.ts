import { RlxError } from '../values/errors.js';

/** A tensor of a file. */
export interface TensorInfo {
  name: string;
  /** Row-major, outermost first: a matrix of a linear layer is [out, in]. */
  shape: number[];
  /** How the elements are stored: `f32`, `f16`, `bf16`, `q4_0`, `q8_0`, `q4_k`, ... */
  type: string;
  /** Where the elements begin in the file, in bytes. */
  offset: number;
  bytes: number;
}

/** An open file of a model: what it says of the model, and its tensors, which are read when they are asked for. */
export interface ModelFile {
  /** The keys of GGUF, or those of config.json. */
  metadata: Map<string, unknown>;
  tensors: Map<string, TensorInfo>;
  /** Reads the elements of a tensor as they are stored. */
  read(name: string): Promise<Uint8Array>;
  close(): void;
}

/** Opens a GGUF file: a Blob, bytes, or a URL whose server answers ranges. */
export function openGGUF(_source: Blob | string | ArrayBuffer | Uint8Array): Promise<ModelFile> {
  return Promise.reject(new RlxError('unsupported', 'openGGUF'));
}
