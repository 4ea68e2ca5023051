// Models as Hugging Face keeps them: a folder with config.json, safetensors and tokenizer.json.

import { classOf, RlxError } from '../values/errors.js';
import { headerLength, readHeader } from '../safetensors/file.js';
import { modelFile, type ModelFile, type TensorInfo } from './gguf.js';
import { addressOf, openSource, type Source } from './source.js';
import { readTokenizer, type Tokenizer } from './tokenizer/tokenizer.js';

/** The files of a folder: the URL of the folder, blobs by name, or a folder of the user or of the origin's private file system. */
export type HFSource = string | URL | Readonly<Record<string, Blob>> | FileSystemDirectoryHandle;

/** A model as Hugging Face keeps it. The metadata are the keys of config.json; the names of types are those of `/safetensors`. */
export interface HFModel extends ModelFile {
  /** The tokenizer of tokenizer.json, read when it is asked for; undefined if that is not there. Throws as {@link readTokenizer}. */
  readonly tokenizer: Tokenizer | undefined;
  /** The chat template, of chat_template.jinja or tokenizer_config.json; undefined if there is none. */
  readonly template: string | undefined;
}

/** A bound on the files that are read whole, and on the files of tensors. */
const maxText = 512 << 20, maxShards = 4096;

type Json = Readonly<Record<string, unknown>>;

const bad = (name: string, reason: string, cause?: unknown): RlxError => new RlxError('syntax', `${name}: ${reason}`, { name, cause });
const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Opens a file of the folder; undefined if there is none. */
type Opener = (name: string) => Promise<Source | undefined>;

function openerOf(folder: HFSource): Opener {
  if (typeof folder === 'string' || folder instanceof URL) {
    const base = addressOf(folder).replace(/\/*(?=$|[?#])/, '/');
    return (name) => openSource(new URL(name, base)).catch((reason: unknown) => {
      if (reason instanceof RlxError && (reason.place.cause as { status?: number } | undefined)?.status === 404) return undefined;
      throw reason;
    });
  }
  if ('getFileHandle' in folder && typeof folder.getFileHandle === 'function') {
    const handle = folder as FileSystemDirectoryHandle;
    return async (name) => {
      const file = await handle.getFileHandle(name).catch((reason: Error) => {
        if (reason.name === 'NotFoundError') return undefined;
        throw new RlxError('missing', `${name} cannot be read: ${reason.message}`, { name, cause: reason });
      });
      return file && openSource(await file.getFile());
    };
  }
  const blobs = folder as Readonly<Record<string, Blob>>;
  if (!isObject(blobs)) throw new RlxError('attr', `openHF: the first argument is ${classOf(folder)}: it must be a folder`);
  return async (name) => Object.hasOwn(blobs, name) ? openSource(blobs[name]!) : undefined;
}

/** The text of a file; undefined if there is none. */
async function textOf(open: Opener, name: string): Promise<string | undefined> {
  const source = await open(name);
  if (!source) return undefined;
  if (source.size > maxText) throw bad(name, `it has ${source.size} bytes, and may have ${maxText}`);
  return new TextDecoder().decode(await source.bytes(0, source.size));
}

async function jsonOf(open: Opener, name: string): Promise<Json | undefined> {
  const text = await textOf(open, name);
  if (text === undefined) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw bad(name, (cause as Error).message, cause);
  }
  if (!isObject(value)) throw bad(name, `it is ${classOf(value)}, not an object`);
  return value;
}

/** The names of the files of tensors, and of each tensor the file that has it, if there is more than one. */
async function shardsOf(open: Opener): Promise<{ names: string[]; placed: Json | undefined }> {
  const index = await jsonOf(open, 'model.safetensors.index.json');
  if (!index) return { names: ['model.safetensors'], placed: undefined };
  const placed = index['weight_map'];
  if (!isObject(placed)) throw bad('model.safetensors.index.json', 'it has no weight_map');
  const names = [...new Set(Object.values(placed))].map(String);
  for (const name of names) if (!/^[\w.-]+\.safetensors$/.test(name)) throw bad('model.safetensors.index.json', `${name} is no name of a file beside it`);
  if (names.length > maxShards) throw bad('model.safetensors.index.json', `it names ${names.length} files, and may name ${maxShards}`);
  return { names, placed };
}

/** The token of a role in tokenizer_config.json: its text, or an object that has it. */
function tokenIn(config: Json | undefined, key: string): string | undefined {
  const value = config?.[key], text = isObject(value) ? value['content'] : value;
  return typeof text === 'string' ? text : undefined;
}

/** The chat template of tokenizer_config.json: a text, or that of the name default in a list. */
function templateIn(config: Json | undefined): string | undefined {
  const given = config?.['chat_template'], listed = Array.isArray(given) ? given.find((one: unknown) => isObject(one) && one['name'] === 'default') as Json | undefined : undefined;
  const text = listed ? listed['template'] : given;
  return typeof text === 'string' ? text : undefined;
}

/**
 * Opens a model of Hugging Face's: config.json, model.safetensors or the files of model.safetensors.index.json, and, where they are there,
 * tokenizer.json, tokenizer_config.json, generation_config.json and chat_template.jinja. Of the files of tensors only the headers are read;
 * tensors when they are asked for. Rejects with an {@link RlxError} of kind `missing` for a file that cannot be loaded, `syntax` for a
 * damaged one, `unsupported` for a server that answers no ranges.
 */
export async function openHF(folder: HFSource): Promise<HFModel> {
  const open = openerOf(folder), sources: Source[] = [], places = new Map<string, Source>(), tensors = new Map<string, TensorInfo>();
  const [config, tokens, tokenizerConfig, generation, jinja, { names, placed }] = await Promise.all([
    jsonOf(open, 'config.json'), jsonOf(open, 'tokenizer.json'), jsonOf(open, 'tokenizer_config.json'), jsonOf(open, 'generation_config.json'), textOf(open, 'chat_template.jinja'), shardsOf(open),
  ]);
  if (!config) throw new RlxError('missing', 'openHF: the folder has no config.json', { name: 'config.json' });
  const headers = await Promise.all(names.map(async (name) => {
    const source = await open(name);
    if (!source) throw new RlxError('missing', `openHF: the folder has no ${name}`, { name });
    const begin = 8 + headerLength(await source.bytes(0, Math.min(8, source.size)), source.size);
    return { name, source, begin, ...readHeader(await source.bytes(8, begin), source.size - begin) };
  }));
  for (const { name, source, begin, places: found } of headers) {
    sources.push(source);
    for (const { name: tensor, dtype, shape, begin: from, end } of found) {
      if (placed && placed[tensor] !== name) throw bad(name, `tensor ${tensor} is in ${String(placed[tensor])} by the index`);
      tensors.set(tensor, { name: tensor, shape, type: dtype, offset: begin + from, bytes: end - from });
      places.set(tensor, source);
    }
  }
  const lost = Object.keys(placed ?? {}).find((name) => !tensors.has(name));
  if (lost !== undefined) throw bad('model.safetensors.index.json', `tensor ${lost} is not in ${String(placed![lost])}`);
  let tokenizer: Tokenizer | undefined;
  const file = modelFile(new Map(Object.entries(config)), tensors, (name) => places.get(name)!, () => { for (const source of sources) source.close(); });
  return {
    ...file, template: jinja ?? templateIn(tokenizerConfig),
    get tokenizer() { return tokenizer ??= tokens && readTokenizer(tokens, specialOf(tokenizerConfig, [generation, config])); },
  };
}

/** The special tokens named by the files next to tokenizer.json. */
function specialOf(tokenizerConfig: Json | undefined, configs: readonly (Json | undefined)[]): { bos?: string; eos: (string | number)[] } {
  const bos = tokenIn(tokenizerConfig, 'bos_token'), end = tokenIn(tokenizerConfig, 'eos_token');
  const ids = configs.flatMap((config) => config?.['eos_token_id'] ?? []).filter((id) => typeof id === 'number');
  return { ...bos !== undefined && { bos }, eos: [...end === undefined ? [] : [end], ...ids] };
}
