// The files of a folder: of an address, of blobs by name, or of the user's or the origin's private file system.

import { classOf, RlxError } from '../values/errors.js';
import { addressOf, openSource, type Source, unread } from './source.js';

/**
 * The files of a folder: the URL of the folder, blobs by name, or a folder of the user or of the origin's private file system.
 */
export type Folder = string | URL | Readonly<Record<string, Blob>> | FileSystemDirectoryHandle;

/** A bound on the files that are read whole. */
const maxText = 512 << 20;

export type Json = Readonly<Record<string, unknown>>;

/** An error for a damaged file. */
export const damaged = (name: string, reason: string, cause?: unknown): RlxError => new RlxError('syntax', `${name}: ${reason}`, { name, cause });
export const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);
export const isHandle = (given: unknown, method: 'getFile' | 'getFileHandle'): boolean => Object(given) === given && typeof (given as Json)[method] === 'function';

/** Opens a file of the folder; undefined if there is none. */
export type Opener = (name: string) => Promise<Source | undefined>;

/** Opens the files of a folder; `what` begins the error for what is none. */
export function openerOf(what: string, folder: Folder): Opener {
  if (typeof folder === 'string' || folder instanceof URL) {
    const base = addressOf(folder).replace(/\/*(?=$|[?#])/, '/');
    return (name) => openSource(new URL(name, base)).catch((reason: unknown) => {
      if (reason instanceof RlxError && (reason.place.cause as { status?: number } | undefined)?.status === 404) return undefined;
      throw reason;
    });
  }
  if (isHandle(folder, 'getFileHandle')) {
    const handle = folder as FileSystemDirectoryHandle;
    return async (name) => {
      const file = await handle.getFileHandle(name).catch((reason: Error) => {
        if (reason.name !== 'NotFoundError') unread(name)(reason);
        return undefined;
      });
      return file && openSource(await file.getFile().catch(unread(name)));
    };
  }
  const blobs = folder as Readonly<Record<string, Blob>>;
  if (!isObject(blobs)) throw new RlxError('attr', `${what}: the first argument is ${classOf(folder)}: it must be a folder`);
  return async (name) => Object.hasOwn(blobs, name) ? openSource(blobs[name]!) : undefined;
}

/** The text of a file of a folder; undefined if there is none. */
export async function textOf(open: Opener, name: string): Promise<string | undefined> {
  const source = await open(name);
  if (!source) return undefined;
  if (source.size > maxText) throw damaged(name, `it has ${source.size} bytes, and may have ${maxText}`);
  return new TextDecoder().decode(await source.bytes(0, source.size));
}

/** The object of JSON in a file of a folder; undefined if there is none. */
export async function jsonOf(open: Opener, name: string): Promise<Json | undefined> {
  const text = await textOf(open, name);
  if (text === undefined) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw damaged(name, (cause as Error).message, cause);
  }
  if (!isObject(value)) throw damaged(name, `it is ${classOf(value)}, not an object`);
  return value;
}
