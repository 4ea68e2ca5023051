// Files of tensors whose elements are read when they are asked for.

import { damaged, isObject, type Json, jsonOf, type Opener } from '../files/folder.js';
import type { Source } from '../files/source.js';
import { RlxError } from '../values/errors.js';
import { headerLength, readHeader } from './file.js';

/** A bound on the files of an index. */
const maxShards = 4096;

/** Files of tensors: their names, and of each tensor the file that has it, if an index says so. */
export interface Shards { index?: string; names: readonly string[]; placed?: Json | undefined }

/** The files of a folder that an index lists; without that model.safetensors. */
export async function shardsOf(open: Opener, index = 'model.safetensors.index.json'): Promise<Shards> {
  const list = await jsonOf(open, index);
  if (!list) return { names: ['model.safetensors'] };
  const placed = list['weight_map'];
  if (!isObject(placed)) throw damaged(index, 'it has no weight_map');
  const names = [...new Set(Object.values(placed))].map(String);
  for (const name of names) if (!/^[\w.-]+\.safetensors$/.test(name)) throw damaged(index, `${name} is no name of a file beside it`);
  if (names.length > maxShards) throw damaged(index, `it names ${names.length} files, and may name ${maxShards}`);
  return { index, names, placed };
}

/** Where a tensor is: the bytes from `offset` on. */
export interface Located { dtype: string; shape: number[]; source: Source; offset: number; bytes: number }

/** Tensors by name, the metadata of all files, and what closes them. */
export interface Opened { tensors: Map<string, Located>; metadata: Record<string, string>; close(): void }

/** Reads the headers of files. `what` begins the error for one that is not there. */
export async function openShards(what: string, open: Opener, { index, names, placed }: Shards): Promise<Opened> {
  const sources: Source[] = [], tensors = new Map<string, Located>(), metadata: Record<string, string> = {};
  const close = () => { for (const source of sources) source.close(); };
  try {
    const headers = await Promise.all(names.map(async (name) => {
      const source = await open(name);
      if (!source) throw new RlxError('missing', `${what}: the folder has no ${name}`, { name });
      sources.push(source);
      const start = await source.bytes(0, Math.min(8, source.size));
      try {
        const begin = 8 + headerLength(start, source.size);
        return { name, source, begin, ...readHeader(await source.bytes(8, begin), source.size - begin) };
      } catch (reason) {
        throw names.length > 1 && reason instanceof RlxError && reason.kind === 'syntax' ? damaged(name, reason.message, reason) : reason;
      }
    }));
    for (const { name, source, begin, places, metadata: notes } of headers) {
      Object.assign(metadata, notes);
      for (const { name: tensor, dtype, shape, begin: from, end } of places) {
        if (placed && placed[tensor] !== name) throw damaged(name, `tensor ${tensor} is in ${String(placed[tensor])} by the index`);
        if (tensors.has(tensor)) throw damaged(name, `tensor ${tensor} is in another file, too`);
        tensors.set(tensor, { dtype, shape, source, offset: begin + from, bytes: end - from });
      }
    }
    const lost = Object.keys(placed ?? {}).find((name) => !tensors.has(name));
    if (lost !== undefined) throw damaged(index!, `tensor ${lost} is not in ${String(placed![lost])}`);
  } catch (reason) {
    close();
    throw reason;
  }
  return { tensors, metadata, close };
}
