// Opens files of tensors that are read one by one.

import { type Folder, isHandle, openerOf } from '../files/folder.js';
import { addressOf, type FileSource, openSource, unread } from '../files/source.js';
import { need, RlxError, shown } from '../values/errors.js';
import { type FileTensor, readTensor, unreadable } from './file.js';
import { openShards, type Shards, shardsOf } from './shards.js';

/** An open file of tensors, or the files of a folder. */
export interface TensorFile {
  /**
   * The tensors by name: their element types, as those of a {@link FileTensor}, their shapes, and the bytes that each takes.
   */
  readonly tensors: ReadonlyMap<string, { readonly dtype: string; readonly shape: readonly number[]; readonly bytes: number }>;
  readonly metadata: Readonly<Record<string, string>>;
  /**
   * Reads a tensor. Rejects with an {@link RlxError} of kind `name` for an unknown one, `dtype` for an element type that is not
   * known here, `syntax` for damaged elements, `missing` where the file cannot be read, and `closed`.
   */
  read(name: string): Promise<FileTensor>;
  /** Ends the reads under way. */
  close(): void;
}

/**
 * What tensors can be opened as: a file, by its bytes, a Blob, a handle or its address, or a folder with one or several, or the
 * address of an index.
 */
export type TensorSource = FileSource | FileSystemFileHandle | Folder;

/** The names of the files of a folder. */
async function namesIn(folder: Exclude<Folder, string | URL>): Promise<string[]> {
  if (!isHandle(folder, 'getFileHandle')) return Object.keys(folder);
  const { name: called = 'the folder' } = folder as { name?: string }, names: string[] = [];
  try {
    for await (const name of (folder as unknown as { keys(): AsyncIterable<string> }).keys()) names.push(name);
  } catch (cause) {
    unread(called)(cause);
  }
  return names;
}

/** The files of tensors of a folder: those that its index lists, or all that are there. */
async function filesIn(folder: Exclude<Folder, string | URL>): Promise<Shards> {
  const open = openerOf('openSafetensors', folder), all = await namesIn(folder), indices = all.filter((name) => name.endsWith('.safetensors.index.json'));
  if (indices.length > 1) throw new RlxError('name', `openSafetensors: the folder has ${indices.join(' and ')}: it must have one index`, { name: indices[1]! });
  if (indices.length === 1) return shardsOf(open, indices[0]);
  const names = all.filter((name) => name.endsWith('.safetensors')).sort();
  if (names.length === 0) throw new RlxError('missing', 'openSafetensors: the folder has no file *.safetensors', { name: '*.safetensors' });
  return { names };
}

/**
 * Opens a file in the safetensors format, or several: the files of a folder, or those that an index, *.safetensors.index.json,
 * lists and that are beside it. It reads the headers alone, of a URL by ranges; a tensor is read when it is asked for. Rejects
 * with an {@link RlxError} of kind `missing` for a file that cannot be loaded, `syntax` for a damaged one, `unsupported` for a
 * server that answers no ranges.
 */
export async function openSafetensors(given: TensorSource): Promise<TensorFile> {
  const { tensors, metadata, close } = await openAny(given);
  return {
    tensors, metadata, close,
    async read(name) {
      const found = tensors.get(name);
      if (!found) throw new RlxError('name', `safetensors: there is no tensor ${shown(name)}`, { name: shown(name) });
      const { dtype, shape, source, offset, bytes } = found, other = unreadable(name, dtype, shape);
      if (other) void other.data; // which throws
      return readTensor(name, dtype, shape, await source.bytes(offset, offset + bytes));
    },
  };
}

async function openAny(given: TensorSource) {
  const what = 'openSafetensors';
  if (typeof given === 'string' || given instanceof URL) {
    const { href, pathname } = new URL(addressOf(given)), index = /[^/]+\.index\.json$/.exec(pathname)?.[0];
    if (!index) return openOne(given);
    const open = openerOf(what, new URL('.', href)), shards = await shardsOf(open, index);
    if (!shards.index) throw new RlxError('missing', `${href} cannot be loaded: 404`, { name: href });
    return openShards(what, open, shards);
  }
  if (given instanceof Blob || given instanceof Uint8Array || given instanceof ArrayBuffer) return openOne(given);
  need(Object(given) === given, 'attr', `${what}: the first argument`, 'a file or a folder', given);
  if (isHandle(given, 'getFile')) {
    const { name = 'the file' } = given as FileSystemFileHandle;
    return openOne(await (given as FileSystemFileHandle).getFile().catch(unread(name)));
  }
  const folder = given as Exclude<Folder, string | URL>;
  return openShards(what, openerOf(what, folder), await filesIn(folder));
}

async function openOne(given: FileSource) {
  const source = await openSource(given);
  return openShards('openSafetensors', async () => source, { names: [source.name] });
}
