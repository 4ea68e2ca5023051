// Models as Hugging Face keeps them: a folder with config.json, safetensors and tokenizer.json.

import { type Folder, isObject, type Json, jsonOf, openerOf, textOf } from '../files/folder.js';
import { openShards, shardsOf } from '../safetensors/shards.js';
import { RlxError } from '../values/errors.js';
import { modelFile, type ModelFile, type TensorInfo } from './gguf.js';
import { readTokenizer, type Tokenizer } from './tokenizer/tokenizer.js';

/** The files of a folder: the URL of the folder, blobs by name, or a folder of the user or of the origin's private file system. */
export type HFSource = Folder;

/** A model as Hugging Face keeps it. The metadata are the keys of config.json; the names of types are those of `/safetensors`. */
export interface HFModel extends ModelFile {
  /** The tokenizer of tokenizer.json, read when it is asked for; undefined if that is not there. Throws as {@link readTokenizer}. */
  readonly tokenizer: Tokenizer | undefined;
  /** The chat template, of chat_template.jinja or tokenizer_config.json; undefined if there is none. */
  readonly template: string | undefined;
}

const stringOf = (value: unknown): string | undefined => typeof value === 'string' ? value : undefined;

/** The token of a role in tokenizer_config.json: its text, or an object that has it. */
function tokenIn(config: Json | undefined, key: string): string | undefined {
  const value = config?.[key];
  return stringOf(isObject(value) ? value['content'] : value);
}

/** The chat template of tokenizer_config.json: a text, or that of the name default in a list. */
function templateIn(config: Json | undefined): string | undefined {
  const given = config?.['chat_template'];
  return stringOf(Array.isArray(given) ? given.find((one: unknown) => isObject(one) && one['name'] === 'default')?.['template'] : given);
}

/**
 * Opens a model of Hugging Face's: config.json, model.safetensors or the files of model.safetensors.index.json, and, where they are there,
 * tokenizer.json, tokenizer_config.json, generation_config.json and chat_template.jinja. Of the files of tensors only the headers are read;
 * tensors when they are asked for. Rejects with an {@link RlxError} of kind `missing` for a file that cannot be loaded, `syntax` for a
 * damaged one, `unsupported` for a server that answers no ranges.
 */
export async function openHF(folder: HFSource): Promise<HFModel> {
  const open = openerOf('openHF', folder), infos = new Map<string, TensorInfo>();
  const [config, tokens, tokenizerConfig, generation, jinja, shards] = await Promise.all([
    jsonOf(open, 'config.json'), jsonOf(open, 'tokenizer.json'), jsonOf(open, 'tokenizer_config.json'), jsonOf(open, 'generation_config.json'), textOf(open, 'chat_template.jinja'), shardsOf(open),
  ]);
  if (!config) throw new RlxError('missing', 'openHF: the folder has no config.json', { name: 'config.json' });
  const { tensors, close } = await openShards('openHF', open, shards);
  for (const [name, { shape, dtype, offset, bytes }] of tensors) infos.set(name, { name, shape, type: dtype, offset, bytes });
  let tokenizer: Tokenizer | undefined;
  const file = modelFile(new Map(Object.entries(config)), infos, (name) => tensors.get(name)!.source, close);
  return {
    ...file, template: jinja ?? templateIn(tokenizerConfig),
    get tokenizer() { return tokenizer ??= tokens && readTokenizer(tokens, specialOf(tokenizerConfig, [generation, config])); },
  };
}

/** The special tokens named by the files next to tokenizer.json. */
function specialOf(tokenizerConfig: Json | undefined, configs: readonly (Json | undefined)[]): { bos?: string; eos: (string | number)[] } {
  const bos = tokenIn(tokenizerConfig, 'bos_token'), end = tokenIn(tokenizerConfig, 'eos_token');
  const ids = configs.flatMap((config) => config?.['eos_token_id'] ?? []).filter((id) => typeof id === 'number');
  return { ...bos && { bos }, eos: end ? [end, ...ids] : ids };
}
