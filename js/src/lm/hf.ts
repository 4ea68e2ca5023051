import { RlxError } from '../values/errors.js';
import type { ModelFile } from './gguf.js';
import type { Tokenizer } from './tokenizer/tokenizer.js';

/** The files of a folder: the URL of the folder, or blobs by name. */
export type HFSource = string | Readonly<Record<string, Blob>> | FileSystemDirectoryHandle;

/** A model as Hugging Face keeps it: config.json, safetensors, tokenizer.json. The metadata are the keys of config.json. */
export interface HFModel extends ModelFile {
  /** The tokenizer of tokenizer.json; undefined if that is not there. */
  readonly tokenizer: Tokenizer | undefined;
  /** The chat template, of chat_template.jinja or tokenizer_config.json; undefined if there is none. */
  readonly template: string | undefined;
}

/** Opens a folder. Tensors are read when they are asked for. */
export function openHF(_source: HFSource): Promise<HFModel> {
  return Promise.reject(new RlxError('unsupported', 'openHF'));
}
